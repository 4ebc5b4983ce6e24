import numpy as np
from casetools import *


def staged_reference(i):
    x, total, rows = i["x"].astype(np.float64), 0.0, []
    for row in x:
        total = total * 0.5 + row
        rows.append(total)
    return {"y": np.stack(rows)}


def reference(i):
    return staged_reference(i)
