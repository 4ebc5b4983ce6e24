import numpy as np
from casetools import dec

def scaled(values, scales):
    return dec('e2m1x2', values).astype(np.float64) * np.repeat(dec('e4m3', scales), 16, axis=1)

def reference(i):
    return {'c': scaled(i['a'], i['sfa']) @ scaled(i['b'], i['sfb']).T}
