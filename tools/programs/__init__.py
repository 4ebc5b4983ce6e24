"""Random legal programs in the emulator: each must end in a report, never in a Python traceback.

A program is a few instructions drawn from the declarations' legal forms, over registers that hold addresses, small
numbers and random bits; some stand under guards, in branches or in loops. In most programs mbarriers, tensor memory and
a tensormap are there, and operands get addresses of them and descriptors, so that instructions do something.

    python -m tools.programs [--count N] [--seed N] [--jobs N]
    python -m tools.programs --operands [--judge] [--family F] [--jobs N]
"""
