import numpy as np
from casetools import *


def scalars_reference(i):
    target = np.abs(i["x"].astype(np.float64))
    low, high = np.zeros_like(target), np.full_like(target, 4.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle**3 + middle < i["x"]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return {"y": low}


def reference(i):
    return scalars_reference(i)
