import numpy as np
from casetools import *


def calls_reference(i):
    x = np.pad(i["x"].astype(np.float64), (0, 168)).reshape(3, 256)
    highest = x.max(1, keepdims=True)
    once = highest**3 * 0.75 + 0.75**2
    twice = (once + highest + 1) ** 3 * 0.5 + 0.25
    return {"y": (x * twice + once).reshape(-1)[:600]}


def reference(i):
    return calls_reference(i)
