"""Element types: the widths are those of the NumPy types and of PTX's own types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxgen.dtypes import DTYPES, scalar_type
from ptxgen.instr.model.types import TYPES as PTX_TYPES
from ptxgen.limits import shared_per_cta, shared_per_sm


@pytest.mark.parametrize("name", [name for name, each in DTYPES.items() if each.array_name])
def test_the_scalar_type_has_the_width(name: str) -> None:
    made, declared = np.dtype(scalar_type(name)), DTYPES[name]
    assert made.itemsize == declared.bytes
    if declared.kind == "float" and name != "tf32":
        assert ml_dtypes.finfo(made).bits == declared.bits
    if declared.kind in ("signed", "unsigned"):
        info = ml_dtypes.iinfo(made)
        assert (info.bits, info.min < 0) == (declared.bits, declared.kind == "signed")


@pytest.mark.parametrize("name", sorted(DTYPES.keys() & PTX_TYPES.keys()))
def test_widths_are_those_of_ptx(name: str) -> None:
    assert DTYPES[name].bits == PTX_TYPES[name].bits


def test_a_type_that_numpy_lacks() -> None:
    with pytest.raises(KeyError, match="no type for ue4m3"):
        scalar_type("ue4m3")


@pytest.mark.parametrize(("target", "bytes"), [("sm_90a", 232448), ("sm_100a", 232448), ("sm_120a", 101376)])
def test_shared_memory_of_a_cta(target: str, bytes: int) -> None:
    assert shared_per_cta(target) == bytes
    assert shared_per_sm(target) == bytes + 1024
