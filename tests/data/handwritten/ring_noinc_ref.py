import numpy as np

def reference(i):
    return {'y': i['y'] + i['x'].sum((0, 1)) * [1, 2, 1, -1]}
