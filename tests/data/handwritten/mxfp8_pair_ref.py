import numpy as np
from casetools import dec

def plain(factors, rows):
    """Atoms [blocks, steps, 32, 4 groups of rows, 4 of K] as a matrix [rows, K / 32], the first `rows` of each block."""
    f = dec('e8m0', factors).astype(np.float64)
    return f.transpose(0, 3, 2, 1, 4).reshape(len(f), 128, -1)[:, :rows].reshape(len(f) * rows, -1)

def reference(i):
    a = dec('e4m3', i['a']).astype(np.float64) * np.repeat(plain(i['sfa'], 128), 32, axis=1)
    b = dec('e5m2', i['b']).astype(np.float64) * np.repeat(plain(i['sfb'], 64), 32, axis=1)
    return {'c': a @ b.T}
