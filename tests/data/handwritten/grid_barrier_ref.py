import numpy as np

def reference(i):
    a, b = i['ping'].astype(np.float64), None
    for step in range(7):
        b, a = a, 0.25 * np.roll(a, 1) + 0.5 * a + 0.25 * np.roll(a, -1)
    return {'pong': a, 'ping': b}
