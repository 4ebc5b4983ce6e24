import numpy as np
from casetools import *


def cross_entropy_reference(i):
    x, label = bf16_dec(i["x"]).astype(np.float64), i["label"]
    e = np.exp(x - x.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    used = label >= 0
    return {
        "loss": np.where(used, -np.log(p[np.arange(len(x)), label]), 0),
        "dx": np.where(used[:, None], p - np.eye(x.shape[1])[label], 0),
    }


def reference(i):
    return cross_entropy_reference(i)
