import numpy as np
from casetools import *


def specialised_reference(i):
    x = i["x"].astype(np.float64)
    return {"y": x.sum(0), "z": x.max(0)}


def reference(i):
    return specialised_reference(i)
