import numpy as np

def ackermann(m, n):
    return n + 1 if m == 0 else ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))

def reference(i):
    x = i['x']
    rows = np.arange(100)
    first = np.stack([np.concatenate([np.sort(row[:5 + r % 5]), row[5 + r % 5:]]) for r, row in enumerate(x)])
    kinds = x.reshape(-1)[rows] % 3
    own = x.reshape(-1)[rows]
    return {
        'sorted': first,
        'called': np.choose(kinds, [2 * own, own * own, -own]),
        'areas': np.where(rows % 2, 3.0 * rows * rows, 2.0 * rows),
        'recursed': [ackermann(r % 3, r % 4) for r in rows],
    }
