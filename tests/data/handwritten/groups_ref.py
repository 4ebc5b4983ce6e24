import numpy as np

def reference(i):
    x = i['x'][:, np.arange(128) ^ 5].astype(np.int64)
    tiles, warps = x.reshape(-1, 16), x.reshape(-1, 32)
    scans = np.cumsum(tiles, 1) - tiles + tiles.max(1, keepdims=True)
    same = (warps[:, :, None] & 3) == (warps[:, None, :] & 3)
    labels = (same * warps[:, None, :]).sum(2) * 64 + same.sum(2)
    chosen = warps % 3 == 0
    places = np.where(chosen, np.cumsum(chosen, 1) - 1, 0xFFFFFFFF)
    sums = x.sum(1)
    return {
        'scans': scans.reshape(4, 128), 'labels': labels.reshape(4, 128), 'places': places.reshape(4, 128),
        'counter': [chosen.sum()],
        'totals': np.concatenate([np.repeat(sums.reshape(2, 2).sum(1), 2), warps[3::4].sum(1)]),
    }
