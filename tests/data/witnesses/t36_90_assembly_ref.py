import numpy as np
from casetools import *


def assembly_reference(i):
    x = i["x"].astype(np.uint32)
    bits = (x[:, None] >> np.arange(31, -1, -1).astype(np.uint32)) & 1
    leading = np.where(x == 0, 32, bits.argmax(1))
    return {"y": bits.sum(1) * 100 + leading, "packed": ~(x & 255).astype(np.uint8).reshape(-1, 4)[:, ::-1]}


def reference(i):
    return assembly_reference(i)
