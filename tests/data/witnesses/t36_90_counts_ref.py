import numpy as np
from casetools import *


def counts_reference(i):
    return {"h": np.bincount(i["x"], minlength=64)}


def reference(i):
    return counts_reference(i)
