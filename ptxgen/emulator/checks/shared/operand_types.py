"""The element type that an MMA multiplies, against that of the tensormap by which the operand came.

Integer types move bits of any kind, fp8 above all. A float type of 16 bits, tf32 (whose copies round) and the padded
types of Blackwell say what the elements are.
"""

from __future__ import annotations

from ptxgen.emulator.engines.matrix_operands import MatrixOperand

#: MMA element types that the elements of a tensormap may serve as, by its type; absent types may hold anything.
_HELD = {
    "f16": ("f16",),
    "bf16": ("bf16",),
    "tf32": ("tf32",),
    "tf32_ftz": ("tf32",),
    "16u4_align16b": ("e2m1",),
    "16u6_align16b": ("e2m3", "e3m2"),
}
#: Bits of the instruction descriptor that hold the type.
_FIELDS = {
    "A": "a_type (bits 7-9 of the instruction descriptor)",
    "B": "b_type (bits 10-12 of the instruction descriptor)",
    "": "a_type and b_type (bits 7-9 and 10-12 of the instruction descriptor)",
}
#: Types that both operands must have (fact f16-mixed).
_ALIKE = ("f16", "bf16")


def misfit(dtype: str, operand: MatrixOperand) -> tuple[str, str] | None:
    """Why an operand is no tensor of `dtype`, and the fix; None if it may be."""
    held = _HELD.get(dtype)
    if held is None or operand.type in held:
        return None
    fits = " or ".join(held)
    if operand.instruction == "wgmma":
        where, fix = f"The instruction says .{operand.type}", f"use wgmma.mma_async with .{fits}"
    else:
        where = f"{_FIELDS[operand.side]} is {operand.type}"
        alike = operand.type in _ALIKE and fits in _ALIKE
        fix = f"set {_FIELDS['' if alike else operand.side]} to {fits}"
    return f"{where}, the tensormap has {dtype}", f"{fix}, or encode the tensormap with the type of the tensor"
