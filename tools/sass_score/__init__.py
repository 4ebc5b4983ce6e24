"""How reliable `ptxgen sass diff` is: thousands of generated changes and equal pairs, on real cubins.

A change is one bit pattern in a cubin, or one edit of its PTX, that nvdisasm prints otherwise; each must be reported,
and at the instruction that was changed. An equal pair is the same code under other names, lines, order or paths; none
may be reported. NVIDIA/cccl's ci/sass/compare_sass.py judges the same pairs if its folder is given (--cccl).
"""
