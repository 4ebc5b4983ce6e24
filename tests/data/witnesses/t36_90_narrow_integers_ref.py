import numpy as np
from casetools import *


def narrow_integers_reference(i):
    a, b = i["x"], i["y"]
    long = a.astype(np.int64) * 1234567890123 + b
    quotient = np.sign(long) * (np.abs(long) // 1000)
    rest = long - np.sign(long) * (np.abs(long) // 77) * 77
    return {
        "total": (a.astype(np.int32) + b.astype(np.int32) * 3).astype(np.int8), "wide": quotient + rest * (long >> 5),
        "compared": np.where(a < b, a & b, a | b),
    }  # fmt: skip


def reference(i):
    return narrow_integers_reference(i)
