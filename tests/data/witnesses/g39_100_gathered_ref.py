import numpy as np
from casetools import *


def gathered_reference(i):
    x, index = dec("bf16", i["x"]), i["index"]
    y = np.zeros((128, 64), np.float32)
    y[index[64:]] = x[index[:64], 32:96]
    return {"y": y}


def reference(i):
    return gathered_reference(i)
