import numpy as np
from casetools import *


def atomics_reference(i):
    x = i["x"]
    where = x & 31
    found = {name: i[name].copy() for name in ("add", "low", "high", "both", "either", "other", "unsigned", "wide")}
    np.add.at(found["add"], where, x)
    np.minimum.at(found["low"], where, x)
    np.maximum.at(found["high"], where, x)
    np.bitwise_and.at(found["both"], where, x)
    np.bitwise_or.at(found["either"], where, x)
    np.bitwise_xor.at(found["other"], where, x)
    np.maximum.at(found["unsigned"], where, x.view(np.uint32))
    np.add.at(found["wide"], where, x.astype(np.int64) << 32)
    return {**found, "taken": i["swapped"], "swapped": x}


def reference(i):
    return atomics_reference(i)
