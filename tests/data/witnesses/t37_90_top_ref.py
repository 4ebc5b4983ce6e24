import numpy as np
from casetools import *


def top_reference(i):
    return {"y": -np.sort(-i["x"].astype(np.float32), 1)[:, :8]}


def reference(i):
    return top_reference(i)
