import numpy as np

def reference(i):
    q, k, v = (i[name].astype(np.float64) for name in 'qkv')
    scores = np.where(np.tril(np.ones((150, 150), bool)), q @ k.transpose(0, 2, 1) * 0.125, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return {'o': p / p.sum(-1, keepdims=True) @ v}
