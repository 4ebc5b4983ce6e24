import numpy as np
from casetools import *


def unpacked_reference(i):
    b = i["b"]
    low, high = (b << 4).astype(np.int8) >> 4, b >> 4
    w = np.stack([low, high], 2).reshape(len(b), -1).astype(np.float64)
    return {"c": bf16_dec(i["a"]).astype(np.float64) @ (w * np.repeat(i["scale"].astype(np.float64), 64, 1)).T}


def reference(i):
    return unpacked_reference(i)
