import numpy as np
from casetools import *


def roundings_reference(i):
    x = i["x"]
    near = x.astype(np.float16)
    over = np.abs(near.astype(np.float32)) > np.abs(x)
    down = np.where(over, np.nextafter(near, np.float16(0)), near)
    wide = x.astype(np.float64)
    return {
        "down": down, "wide": wide / 3 + np.abs(wide), "half": np.trunc(x * np.float32(100)).astype(np.float16),
        "whole": np.floor(x) + np.ceil(x * np.float32(0.5)) * 1000, "truncated": np.trunc(x * np.float32(1e6)),
    }  # fmt: skip


def reference(i):
    return roundings_reference(i)
