import numpy as np

def reference(i):
    x = np.zeros(7 * 768, np.int64)
    x[:5000] = i['x']
    parts = x.reshape(7, 6, 128).sum((0, 2))
    shifted = np.repeat(np.roll(parts, -1), 128) + np.arange(768)
    return {'parts': parts, 'total': [x.sum()], 'ticket': [0], 'shifted': np.roll(shifted, -77)}
