"""Mutants: correct kernels with one synchronization or descriptor broken at a time, to see if the emulator detects it.

Each wait, fence, arrival, expectation, commit and barrier is dropped or weakened; stages, parities, masks and counts
are shifted; fields of descriptors are changed. A mutant is caught by a finding, a fault, a deadlock, a run without end,
or a wrong result, on any of several schedules. What survives is proved equivalent with a reason, or it is a gap; most
equivalent mutants are proved many at a time (groups.py).

    python -m tools.mutants [--jobs N] [--sample N] [--record] [SUBJECT ...]
"""
