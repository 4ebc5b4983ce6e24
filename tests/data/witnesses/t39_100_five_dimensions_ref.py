import numpy as np
from casetools import *


def five_reference(i):
    x = np.pad(i["x"].astype(np.float32), ((0, 0), (1, 4), (0, 4), (0, 8), (0, 32)))[:, :4, :8, 1:5, 8:24]
    y = np.zeros((3, 4, 5, 4, 16), np.float32)
    y[:] = x[:, :, :5] * 2
    return {"y": y, "z": i["z"].astype(np.float32) + x[:, :, :5].sum(0, keepdims=True)}


def reference(i):
    return five_reference(i)
