import numpy as np

def reference(i):
    x = np.roll(i['x'].astype(np.int64), -37, axis=2).reshape(3, 5, 4, 128)
    sums = (x.sum(2) * np.arange(1, 6)[None, :, None]).sum(1)
    eights = np.repeat(sums.reshape(3, 16, 8).sum(2), 8, axis=1)
    return {'y': sums[:, ::-1] + eights, 'total': [sums.sum()]}
