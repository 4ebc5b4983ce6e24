import numpy as np
from casetools import *


def layer_norm_backward_reference(i):
    g, x, w = (i[name].astype(np.float64) for name in ("g", "x", "w"))
    centred = x - x.mean(1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    normal, weighted = centred * inverse, w * g
    dx = (weighted - normal * (normal * weighted).mean(1, keepdims=True) - weighted.mean(1, keepdims=True)) * inverse
    group = (np.arange(len(x)) // 3) % 2
    dw = np.stack([(g * normal)[group == k].sum(0) for k in (0, 1)])
    db = np.stack([g[group == k].sum(0) for k in (0, 1)])
    return {"dx": dx, "dw": dw, "db": db, "lock": np.array([0, 0, 1, 1])}


def reference(i):
    return layer_norm_backward_reference(i)
