import numpy as np
from casetools import *


def split_reference(i):
    return {"c": i["a"].astype(np.float64) @ i["b"].astype(np.float64), "lock": np.array([3])}


def reference(i):
    return split_reference(i)
