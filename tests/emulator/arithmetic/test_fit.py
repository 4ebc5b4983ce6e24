"""tools/interpolator/fit.py finds the coefficients of the tables in outputs, and no others."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ptxgen.emulator.arithmetic.interpolator import LAYOUTS, coefficients
from tools.interpolator.fit import STEPS, segments, solve
from tools.interpolator.outputs import Outputs
from tools.interpolator.recorded import FUNCTIONS


class Emulated(Outputs):
    """Outputs that the emulator computes."""

    def range(self, function: str, start: int, count: int, stride: int = 1) -> np.ndarray:
        return FUNCTIONS[function](np.arange(start, start + count * stride, stride, dtype=np.uint32))


class Changed(Emulated):
    """The same, one of them greater by 1."""

    def range(self, function: str, start: int, count: int, stride: int = 1) -> np.ndarray:
        words = super().range(function, start, count, stride)
        words[12345] += 1
        return words


@pytest.mark.parametrize("name", ["rcp", "lg2", "tanh"])
def test_coefficients(name: str) -> None:
    layout = LAYOUTS[name]
    found = [solve(layout, each, STEPS.get(name, 1)) for each in islice(segments(layout, Emulated(Path())), 3)]
    assert found == [tuple(row) for row in coefficients()[name][:3].tolist()]


def test_one_wrong_output() -> None:
    """No coefficients give it, and none are made up."""
    with pytest.raises(SystemExit, match="no coefficients"):
        solve(LAYOUTS["rcp"], next(segments(LAYOUTS["rcp"], Changed(Path()))))
