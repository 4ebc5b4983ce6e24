import numpy as np
from casetools import *


def told_reference(i):
    return {"y": 1000 // i["x"]}


def reference(i):
    return told_reference(i)
