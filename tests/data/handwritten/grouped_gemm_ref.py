import numpy as np

SHAPES = ((100, 80, 128), (64, 24, 72), (37, 65, 8))

def reference(i):
    out = np.full(i['c'].shape, np.nan, np.float32)
    out[:] = i['c']
    for g, (m, n, k) in enumerate(SHAPES):
        a = i['a'][g].reshape(-1)[: m * k].reshape(m, k).astype(np.float32)
        b = i['b'][g].reshape(-1)[: n * k].reshape(n, k).astype(np.float32)
        out[g].reshape(-1)[: m * n] = (a @ b.T).reshape(-1)
    return {'c': out}
