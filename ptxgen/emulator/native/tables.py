"""The tables of the special function unit, which floats.c gets when the first instruction needs one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from ptxgen.emulator.arithmetic import special
from ptxgen.emulator.arithmetic.interpolator import squares
from ptxgen.emulator.native.library import Library, pointer_to

#: The table of each operation, by its name in `special.ROWS`, whose order is that of floats.c.
_TABLES: Mapping[str, str] = {
    "rcp_approx_f32": "reciprocal",
    "div_full_f32": "reciprocal",
    "div_approx_f32": "reciprocal",
    "rsqrt_approx_f32": "reciprocal root",
    "sqrt_approx_f32": "root",
    "lg2_approx_f32": "logarithm",
    "ex2_approx_f32": "power",
    "sin_approx_f32": "sine",
    "cos_approx_f32": "sine",
    "tanh_approx_f32": "tangent",
}


def provide(library: Library, operation: str) -> None:
    """Give the library the table of an operation, if that has one."""
    name = _TABLES.get(operation)
    if name is not None:
        _give(library, name)


@cache
def _give(library: Library, name: str) -> tuple[object, ...]:
    """The arrays of a table: they live as long as the library."""
    rows = special.ROWS[name]()
    arrays = [np.ascontiguousarray(each, np.float64) for each in (rows.c0, rows.c1, rows.c2, squares(rows.rest))]
    shifts = np.ascontiguousarray(special.tangent_shifts(), np.int64)
    pointers = [*map(pointer_to, arrays), pointer_to(shifts) if name == "tangent" else None]
    library.table(list(special.ROWS).index(name), *pointers, rows.rest)
    return *arrays, shifts
