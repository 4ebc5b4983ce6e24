import numpy as np
from casetools import *


def shuffles_reference(i):
    x = i["x"].astype(np.float32)
    return {
        "taken": np.take_along_axis(x, i["index"].astype(np.int64), 1),
        "pairs": np.stack([x, -x], 2).reshape(len(x), -1), "first": x[:, 0::2], "second": x[:, 1::2], "turned": x.T * 2,
    }  # fmt: skip


def reference(i):
    return shuffles_reference(i)
