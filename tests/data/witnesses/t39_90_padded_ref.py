import numpy as np
from casetools import *


def padded_reference(i):
    return {"y": np.pad(i["x"], ((0, 7), (0, 16)), constant_values=np.nan)}


def reference(i):
    return padded_reference(i)
