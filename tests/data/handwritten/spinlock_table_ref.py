import numpy as np

def reference(i):
    rows = []
    for key in range(40):
        own = i['values'][i['keys'] == key]
        rows.append((len(own), own.min(), own.max()) if len(own) else (0, 0, 0))
    return {'by_key': rows, 'locks': np.zeros(64)}
