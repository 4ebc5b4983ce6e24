import numpy as np
from casetools import *


def scaled_reference(i, a, b, scale, vector):
    x = dec(a, i["a"]).astype(np.float64) * np.repeat(dec(scale, i["sa"]).astype(np.float64), vector, 1)
    y = dec(b, i["b"]).astype(np.float64) * np.repeat(dec(scale, i["sb"]).astype(np.float64), vector, 1)
    return {"c": x @ y.T}


def reference(i):
    return scaled_reference(i, a='e4m3', b='e2m1x2', scale='e8m0', vector=32)
