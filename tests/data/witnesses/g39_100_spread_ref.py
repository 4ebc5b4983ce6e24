import numpy as np
from casetools import *


def spread_reference(i):
    return {"y": i["x"].astype(np.float32) + 1}


def reference(i):
    return spread_reference(i)
