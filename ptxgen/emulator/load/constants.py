"""Constants of the program as NumPy scalars, and the NumPy type of each PTX type."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.registers import UNSIGNED
from ptxgen.instr.model.types import Type

_FLOAT: dict[int, Any] = {16: np.float16, 32: np.float32, 64: np.float64}


_found: dict[str, np.dtype[Any]] = {}


def numpy_type(type: Type) -> np.dtype[Any]:
    """The NumPy type that computes in a PTX type; .b types and packed formats are unsigned words."""
    found = _found.get(type.name)
    if found is None:
        found = _found[type.name] = _numpy_type(type)
    return found


def _numpy_type(type: Type) -> np.dtype[Any]:
    if type.kind == "signed":
        return np.dtype(f"i{type.bytes}")
    if type.kind == "float":
        return np.dtype(_FLOAT[type.bits])
    return np.dtype(UNSIGNED[type.bits])


#: Constants that have been made, by their text and the name of the type; and how many are kept.
_made: dict[tuple[str, str], Any] = {}
_MOST_MADE = 10_000


def constant(operand: syntax.Operand, type: Type) -> Any:
    """A constant as a NumPy scalar of the type; integers wrap to the width, as ptxas does."""
    if not isinstance(operand, syntax.Immediate):
        return _constant(operand, type)
    key = operand.text, type.name
    found = _made.get(key)
    if found is None:
        if len(_made) >= _MOST_MADE:
            _made.clear()
        found = _made[key] = _constant(operand, type)
    return found


def _constant(operand: syntax.Operand, type: Type) -> Any:
    value = operand.evaluate({}) if isinstance(operand, syntax.Expression) else operand.value  # type: ignore[union-attr]
    dtype = numpy_type(type)
    bits = operand.bits if isinstance(operand, syntax.Immediate) else None
    if isinstance(value, float):
        if bits is not None and operand.width == type.bits:  # type: ignore[union-attr]
            return np.array(bits, UNSIGNED[type.bits]).view(dtype)[()]
        word = np.array(value, _FLOAT[type.bits])
        return word.view(dtype)[()]
    if dtype == np.bool_:
        return np.bool_(bool(value))
    if type.kind == "float":
        return np.array(value, dtype)[()]
    wrapped = int(value) & ((1 << min(type.bits, 64)) - 1)
    return np.array(wrapped, UNSIGNED[type.bits]).view(dtype)[()]
