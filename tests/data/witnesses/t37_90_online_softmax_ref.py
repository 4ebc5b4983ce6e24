import numpy as np
from casetools import *


def online_softmax_reference(i):
    x = i["x"].astype(np.float64)[:, :333]
    e = np.exp(x - x.max(1, keepdims=True))
    return {"y": e / e.sum(1, keepdims=True)}


def reference(i):
    return online_softmax_reference(i)
