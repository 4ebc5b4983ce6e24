import numpy as np
from casetools import *


def product_reference(i, a, b, ta, tb):
    x, y = dec(a, i["a"]).astype(np.float64), dec(b, i["b"]).astype(np.float64)
    if a == "tf32":
        x, y = tf32(x).astype(np.float64), tf32(y).astype(np.float64)
    return {"c": (x.T if ta else x) @ (y.T if tb else y)}


def reference(i):
    return product_reference(i, a='bf16', b='bf16', ta=True, tb=False)
