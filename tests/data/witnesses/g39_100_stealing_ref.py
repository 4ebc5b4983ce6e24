import numpy as np
from casetools import *


def stealing_reference(i):
    return {"y": np.exp(i["x"].astype(np.float64)), "count": np.ones(len(i["count"]), np.int32)}


def reference(i):
    return stealing_reference(i)
