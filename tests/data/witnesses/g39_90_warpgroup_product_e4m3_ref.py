import numpy as np
from casetools import *


def f8_product_reference(i, kind):
    # wgmma of 8-bit floats adds 32 products and D at a time: each is cut 13 bits below the largest exponent among
    # them, and so is the total (measured, H200: docs/hardware.md).
    a, b = dec(kind, i["a"]).astype(np.float64), dec(kind, i["b"]).astype(np.float64)

    def exponents(values, least):
        return np.where(values == 0, -50, np.maximum(np.frexp(values)[1] - 1, least))

    least = {"e4m3": -6, "e5m2": -14}[kind]
    ea, eb = exponents(a, least), exponents(b, least)
    c = np.zeros((len(a), len(b)))
    for first in range(0, a.shape[1], 32):
        steps = range(first, first + 32)
        unit = 2.0 ** (np.max([exponents(c, -126), *(ea[:, k, None] + eb[:, k] for k in steps)], axis=0) - 13)
        total = np.trunc(c / unit) + sum(np.trunc(a[:, k, None] * b[:, k] / unit) for k in steps)
        kept = 2.0 ** (exponents(total, 0) - 13)
        c = np.trunc(total / kept) * kept * unit
    return {"c": c}


def reference(i):
    return f8_product_reference(i, kind='e4m3')
