import numpy as np
from casetools import *


def float_atomics_reference(i):
    x = i["x"].astype(np.float64)
    where = np.arange(len(x)) % 16
    sums, low, high = np.zeros(16), i["low"].copy(), i["high"].copy()
    np.add.at(sums, where, x)
    np.minimum.at(low, where, i["x"])
    np.maximum.at(high, where, i["x"])
    return {"add": sums, "half": sums, "brain": sums, "low": low, "high": high, "double": sums}


def reference(i):
    return float_atomics_reference(i)
