"""Sources of `tests/data/witnesses`, and the command that compiles them: README.md beside this file."""

import sys
from pathlib import Path

# References are written against the recorded cases' casetools, which needs NumPy only.
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "data" / "cases"))
