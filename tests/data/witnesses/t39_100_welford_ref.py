import numpy as np
from casetools import *


def welford_reference(i):
    x = i["x"].astype(np.float64)
    return {"mean": x.mean(1), "variance": x.var(1)}


def reference(i):
    return welford_reference(i)
