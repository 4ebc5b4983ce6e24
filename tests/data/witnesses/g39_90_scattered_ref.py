import numpy as np
from casetools import *


def scattered_reference(i):
    z = np.empty_like(i["x"])
    z[i["index"]] = i["x"] * 3
    return {"y": i["x"][i["index"]], "z": z}


def reference(i):
    return scattered_reference(i)
