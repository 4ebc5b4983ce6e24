"""Compare the instruction model with ptxas, both ways.

Every form that the model calls legal is assembled on every target that has it, and so are its neighbors (`cases`).
ptxas and `ptxgen.check` must agree on each line (`judges`), but for what `irreconcilable` lists. `sweep` does it for
all declarations, in chunks over all cores.

    python -m tools.certify [family ...] [--neighbors N] [--each K] [--forms F] [--seed S] [--jobs J] [--record]
"""

from tools.certify.cases import Case, declared, forms_of
from tools.certify.judges import Disagreement, compare, ours, ptxas

__all__ = ["Case", "Disagreement", "compare", "declared", "forms_of", "ours", "ptxas"]
