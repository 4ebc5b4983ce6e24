import numpy as np

def reference(i):
    return {'y': np.cumsum(i['x'], dtype=np.int32)}
