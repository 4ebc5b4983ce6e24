import numpy as np
from casetools import *


def convolution_reference(i):
    x, w = i["x"].astype(np.float64), i["w"].astype(np.float64)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    p, q = (x.shape[1] + 1) // 2, (x.shape[2] + 1) // 2
    y = sum(
        wide[:, r : r + 2 * p : 2, s : s + 2 * q : 2][:, :p, :q] @ w[:, r, s].T for r in range(3) for s in range(3)
    )
    return {"y": np.maximum(y, 0)}


def reference(i):
    return convolution_reference(i)
