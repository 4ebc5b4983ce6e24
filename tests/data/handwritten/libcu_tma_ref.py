import numpy as np

def reference(i):
    y = np.roll(i['x'], -1, axis=2) - i['x']
    norms = (y.astype(np.float64) ** 2).sum((1, 2))
    return {'y': y, 'norms': np.append(norms, norms.sum())}
