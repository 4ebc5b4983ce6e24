"""Values of warps, spread over their lanes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen.emulator.state.group import spread

VALUES = {
    "a scalar": np.asarray(np.float16(1.5)),
    "a flag": np.asarray(True),
    "one of each warp": np.arange(3, dtype=np.uint32)[:, None],
    "a column": np.arange(9, dtype=np.uint64).reshape(3, 3)[:, 1:2],
    "one of each lane": np.arange(32)[None],
    "a row": np.arange(32),
    "of a type of its own": np.asarray(ml_dtypes.bfloat16(3)),
    "whole": np.arange(96).reshape(3, 32),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_are_spread_as_numpy_does(values: Any) -> None:
    found = spread(values, (3, 32))
    expected = np.broadcast_to(values, (3, 32))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
    if values.shape != (3, 32):
        assert not found.flags.writeable


@pytest.mark.parametrize("shape", [(3,), (2, 1), (3, 31)])
def test_values_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        spread(np.zeros(shape), (3, 32))


def test_what_is_spread_lives_as_long_as_it_is_used() -> None:
    """The values may have no other owner."""
    kept = [spread(np.asarray(np.uint32(number)), (2, 32)) for number in range(1000)]
    assert all((each == number).all() for number, each in enumerate(kept))
