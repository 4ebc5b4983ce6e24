import numpy as np
from casetools import *


def functions_reference(i):
    v = i["x"].astype(np.float64)
    t = np.abs(v)
    steps = np.linspace(0, 1, 2001)
    middle = (steps[1:] + steps[:-1]) / 2
    erf = 2 / np.sqrt(np.pi) * v * np.exp(-((v[:, None] * middle) ** 2)).mean(1)
    ten = (i["x"] * np.float32(10)).astype(np.float64)
    return {
        "y": np.stack([
            np.exp(v), np.log2(t + 0.5), np.sin(v * 3) * np.cos(v), erf, 1 / np.sqrt(t + 0.1), np.tanh(v),
            (t + 0.1) ** 2.5, np.arctan2(v, 0.7), v * 3 + np.clip(v, -0.5, 0.5), 1 / (1 + np.exp(-v)) + v / 3,
            np.log1p(t) + np.expm1(v) + np.cbrt(v), np.fmod(ten, 3) + np.rint(v * 4),
        ]),
    }  # fmt: skip


def reference(i):
    return functions_reference(i)
