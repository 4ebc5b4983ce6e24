import numpy as np

def reference(i):
    return {'bins': np.bincount(i['x'] % 128, minlength=128)}
