import numpy as np
from casetools import *


def conversions_reference(i):
    x = i["x"]
    e4, e5 = E4M3[e4m3_enc(x)], E5M2[e5m2_enc(x)]
    return {
        "h": x.astype(np.float16), "b": bf16_dec(bf16_enc(x)), "e4": e4, "e5": e5, "i8": np.trunc(x),
        "u16": np.trunc(np.abs(x)), "back4": (e4 + 1).astype(np.float16), "back5": e5,
    }  # fmt: skip


def reference(i):
    return conversions_reference(i)
