import numpy as np
from casetools import *


def attention_reference(i, kind, group, causal):
    q, k, v = (dec(kind, i[name]).astype(np.float64) for name in "qkv")
    score = np.einsum("hid,hjd->hij", q, np.repeat(k, group, 0)) * 0.125
    if causal:
        score = np.where(np.tri(score.shape[1], dtype=bool), score, -np.inf)
    highest = score.max(2, keepdims=True)
    power = np.exp(score - highest)
    total = power.sum(2, keepdims=True)
    return {"o": power / total @ np.repeat(v, group, 0), "lse": (highest + np.log(total))[..., 0]}


def reference(i):
    return attention_reference(i, kind='bf16', group=1, causal=True)
