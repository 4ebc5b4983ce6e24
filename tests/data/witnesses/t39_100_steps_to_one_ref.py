import numpy as np
from casetools import *


def steps_to_one_reference(i):
    value, count = i["x"].astype(np.int64), np.zeros(len(i["x"]), np.int32)
    while (value > 1).any():
        count += value > 1
        value = np.where(value > 1, np.where(value % 2 == 1, 3 * value + 1, value // 2), value)
    return {"y": count}


def reference(i):
    return steps_to_one_reference(i)
