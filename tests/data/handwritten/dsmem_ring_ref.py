import numpy as np

def reference(i):
    y = sum(np.roll(i['x'], hop, axis=1) * (hop + 1) for hop in range(8))
    # Thread t of CTA r tells CTA t its own sum: it lands at place r.
    return {'y': y, 'firsts': y[:, :, :8].transpose(0, 2, 1)}
