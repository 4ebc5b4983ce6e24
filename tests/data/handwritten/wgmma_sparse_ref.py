import numpy as np

def kept(four):
    """The first two of four values that are not zero, and zeros to make two."""
    chosen = []
    for j, value in enumerate(four):
        if (value != 0 and len(chosen) < 2) or j - len(chosen) >= 2:
            chosen.append(j)
    return [value if j in chosen else 0 for j, value in enumerate(four)]

def reference(i):
    a = np.array([kept(four) for four in i['a'].reshape(-1, 4)], np.float32).reshape(64, 64)
    return {'c': a @ i['b'].astype(np.float32)}
