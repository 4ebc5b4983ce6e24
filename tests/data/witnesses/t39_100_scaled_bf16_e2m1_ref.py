import numpy as np
from casetools import *


def scaled_reference(i, a, b, scale, vector):
    x, y = dec(a, i["a"]).astype(np.float64), dec(b, i["b"]).astype(np.float64)
    if "sa" in i:
        x = x * np.repeat(dec(scale, i["sa"]).astype(np.float64), vector, 1)
    return {"c": x @ (y * np.repeat(dec(scale, i["sb"]).astype(np.float64), vector, 1)).T}


def reference(i):
    return scaled_reference(i, a='bf16', b='e2m1x2', scale='e8m0', vector=32)
