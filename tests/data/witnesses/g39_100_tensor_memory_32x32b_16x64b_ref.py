import numpy as np
from casetools import *


def through_reference(i, kind):
    x = dec(kind, i["x"]).astype(np.float32)
    a, b = np.split(x, 2, 1)
    return {"y": np.concatenate([a + b, a - b], 1)}


def reference(i):
    return through_reference(i, kind='fp32')
