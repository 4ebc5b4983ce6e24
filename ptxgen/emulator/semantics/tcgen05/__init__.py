"""Tensor memory and fifth-generation tensor cores. PTX ISA 9.7.16.

`allocation`, `movement`, `matrix` and `ordering` give the instructions their meaning. `operands` reads matrices from
shared and tensor memory, `elements` turns their bytes into values, `mma` multiplies.

Products are exact, sums are kept in .f32 in an order that the manual leaves open (9.7.16.10): results are compared with
a tolerance. The tensor core of a CTA runs its operations in the order of their issue.
"""

from ptxgen.emulator.semantics.tcgen05 import allocation, matrix, movement, ordering

__all__ = ["allocation", "matrix", "movement", "ordering"]
