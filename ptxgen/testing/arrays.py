"""Comparison of arrays, with words for where the wrong elements are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxgen.device import DeviceArray
from ptxgen.gemm.reference.comparison import POISON, describe_pattern

#: Relative and absolute tolerance by dtype, those of torch.testing.assert_close; other types must be equal.
TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
}


def assert_allclose(
    actual: DeviceArray | npt.ArrayLike,
    expected: DeviceArray | npt.ArrayLike,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    tile: tuple[int, int] | None = None,
    name: str = "C",
) -> None:
    """Every element is within atol + rtol * |expected|; NaN equals NaN.

    The tolerances default to those of `TOLERANCES` for the dtype of `actual`, 0 for types that are not there; if one is
    given, the other is 0. The AssertionError names the first wrong element, the largest error, and which rows and
    columns of which tiles are wrong; `tile` (rows, columns) is that of the kernel. All dimensions but the last count as
    rows.
    """
    __tracebackhide__ = True
    found, wanted = _host(actual), _host(expected)
    if found.shape != wanted.shape:
        raise AssertionError(f"{name} has shape {found.shape}, expected {wanted.shape}")
    relative, absolute = TOLERANCES.get(found.dtype.name, (0.0, 0.0))
    if rtol is not None or atol is not None:
        relative, absolute = rtol or 0.0, atol or 0.0
    values, exact = _wide(found), _wide(wanted)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(values - exact)
        allowed = absolute + relative * np.abs(exact)
        right = (errors <= allowed) | (values == exact) | (np.isnan(values) & np.isnan(exact))
    wrong = ~right
    if not wrong.any():
        return
    raise AssertionError(_message(name, found, wanted, errors, allowed, wrong, tile))


def _host(values: DeviceArray | npt.ArrayLike) -> np.ndarray:
    return values.numpy() if isinstance(values, DeviceArray) else np.asarray(values)


def _wide(values: np.ndarray) -> np.ndarray:
    """Values in a type that holds them and their differences; integers of 64 bits as Python numbers."""
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        return values.astype(np.longdouble)
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _message(
    name: str,
    found: np.ndarray,
    wanted: np.ndarray,
    errors: np.ndarray,
    allowed: np.ndarray,
    wrong: npt.NDArray[np.bool_],
    tile: tuple[int, int] | None,
) -> str:
    at = tuple(int(each) for each in np.argwhere(wrong)[0])
    lines = [
        f"{int(wrong.sum())} of {wrong.size} elements of {name} are wrong",
        f"the first: {_element(name, at)} is {found[at]}, expected {wanted[at]} with a tolerance of {allowed[at]:.3g}",
    ]
    finite = np.where(np.isnan(errors), np.inf, errors)
    worst = tuple(int(each) for each in np.unravel_index(int(np.where(wrong, finite, -1.0).argmax()), wrong.shape))
    lines.append(f"the largest error: {float(finite[worst]):.3g} at {_element(name, worst)}")
    if wrong.ndim:
        flat = wrong.reshape(-1, wrong.shape[-1])
        rows, columns = tile or flat.shape
        lines.append(describe_pattern(flat, rows, columns))
        if wrong.ndim > 2:
            lines[-1] += f" (rows are the dimensions {wrong.shape[:-1]} together)"
    unwritten = int(np.count_nonzero(wrong & _is_poison(found)))
    if unwritten:
        lines.append(f"{unwritten} of them hold {POISON:#x} in every byte, as memory does before a kernel writes it")
    return "\n".join(lines)


def _element(name: str, at: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, at))}]" if at else name


def _is_poison(values: np.ndarray) -> Any:
    data = np.ascontiguousarray(values).reshape(values.shape)
    return (data.reshape(*data.shape, 1).view(np.uint8) == POISON).all(axis=-1)
