import numpy as np
from casetools import tf32

def reference(i):
    c = np.empty((256, 32), np.float32)
    c[i['to']] = tf32(i['a'][i['from']]) @ tf32(i['b']).T
    return {'c': c}
