import numpy as np
from casetools import *


def product(i, operands, majors):
    a, b = dec(operands, i["a"]), dec(operands, i["b"])
    if operands == "tf32":  # tensormaps of this type round to the nearest, ties to even
        a, b = (
            ((x.view(np.uint32) + 0xFFF + (x.view(np.uint32) >> 13 & 1)) & 0xFFFFE000).view(np.float32) for x in (a, b)
        )
    a = a.astype(np.float64) if majors[0] == "k" else a.astype(np.float64).T
    b = b.astype(np.float64) if majors[1] == "k" else b.astype(np.float64).T
    return {"c": a @ b.T}


def reference(i):
    return product(i, operands='bf16', majors='mm')
