import numpy as np

LANES = np.arange(32)

def mask(lanes):
    return int(sum(1 << int(lane) for lane in np.flatnonzero(lanes)))

def facts_of(values):
    """Of one warp."""
    words = [int(v) & 0xFFFFFFFF for v in values]
    base = (int(values.max()) & 0xFFFFFFFF) ^ int(np.bitwise_xor.reduce(values.view(np.uint32)))
    odd, third = (values & 1) != 0, ((values & 1) == 0) & (LANES % 3 == 0)
    found = []
    for lane, word in enumerate(words):
        fact = base
        if odd[lane]:
            same = odd & ((values & 6) == (values[lane] & 6))
            fact += mask(odd).bit_count() * 1000 + int(LANES[odd].sum()) + (mask(same) & 0xFF)
        elif third[lane]:
            here = mask(third & ((values & 2) != 0))
            reverse = int(f'{lane:032b}'[::-1], 2)
            clz, ffs = 32 - (word | 1).bit_length(), (word & -word).bit_length()
            fact ^= (here << 3 & 0xFFFFFFFF) | reverse | clz | ffs
        permuted = (word & 0xFF) | lane << 8 | (word >> 8 & 0xFF) << 16
        found.append((fact + 1 + (lane << 7 | word >> 25) + permuted) & 0xFFFFFFFF)
    return found

def reference(i):
    x, by = i['x'], i['bytes'].astype(np.int64)
    warps = x.reshape(16, 32)
    tile = (x.reshape(16, 32)[np.arange(32) % 16].astype(np.int64) + np.arange(32)[:, None]).astype(np.int32)
    signed = np.where(by > 127, by - 256, by)
    lanes = np.tile(np.arange(32), 16)
    dots = signed @ [-2, 2, -1, 1] + (by[:, 0] + 1) % 256 + np.abs(x.astype(np.int64) - lanes) + 3
    h = np.stack([by[:, 0] * 0.5, by[:, 1] - 100.0], axis=1)
    return {
        'sorted': np.sort(warps, axis=1).reshape(-1),
        'facts': np.concatenate([facts_of(warp) for warp in warps]),
        'transposed': np.stack([tile.T, tile.T]),
        'bins': np.bincount(x & 15, minlength=16),
        'dots': dots.astype(np.uint32).view(np.int32),
        'halves': h * 2 + np.minimum(h, -1),
    }
