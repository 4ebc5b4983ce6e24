import numpy as np
from casetools import *


def arriving_reference(i):
    return {"y": i["x"].astype(np.float64) * 2}


def reference(i):
    return arriving_reference(i)
