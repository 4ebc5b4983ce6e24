import numpy as np
from casetools import *


def integers_reference(i):
    a, b, c = (i[name].astype(np.int64) for name in ("x", "y", "s"))
    ua, ub = a.astype(np.uint32).astype(np.uint64), b.astype(np.uint32).astype(np.uint64)
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    mixed = (np.minimum(a, b) & ~c) | np.abs(np.maximum(a, b))
    return {
        "quotient": quotient, "remainder": a - quotient * b, "shifted": (a << c).astype(np.int32) ^ (a >> c),
        "high": (ua * ub) >> np.uint64(32), "mixed": mixed.astype(np.int32),
        "unsigned": (ua // np.uint64(1000003) + (ub >> np.uint64(3)) % np.uint64(977)).astype(np.uint32),
    }  # fmt: skip


def reference(i):
    return integers_reference(i)
