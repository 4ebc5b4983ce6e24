import numpy as np

def reference(i):
    x = i['a'].astype(np.float64) @ i['b'].astype(np.float64).T + i['bias']
    return {'c': 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))}
