import numpy as np

def reference(i):
    x = np.sort(i['x'], axis=1)
    heads = np.concatenate([np.ones((3, 1), int), x[:, 1:] != x[:, :-1]], axis=1)
    return {
        'sorted': x,
        'ranks': np.cumsum(heads, axis=1),
        'maxima': (x[:, 3::4] - 8 * np.arange(64)).max(1),
        'bins': np.stack([np.bincount(row & 15, minlength=16) for row in x]),
    }
