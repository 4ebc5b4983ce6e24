"""Where the tests find recorded data and the project's pages."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
ROOT = TESTS.parent
DOCS = ROOT / "docs"
