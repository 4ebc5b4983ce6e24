"""Arguments that do not fit their parameter, and what names both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import KernelArgumentError, pack_arguments


def kernel(type: str) -> Kernel:
    text = f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .{type} k) {{ ret; }}\n"
    return Kernel.from_ptx(text)


@pytest.mark.parametrize(
    ("type", "value"), [("u32", -1), ("u64", -1), ("u8", -128), ("u32", 2**32), ("s32", 2**31), ("b32", -(2**31) - 1)]
)
def test_integers_out_of_range(type: str, value: int) -> None:
    with pytest.raises(KernelArgumentError, match=rf"the int {value} is outside"):
        pack_arguments(kernel(type), [value])


@pytest.mark.parametrize(
    ("type", "value"), [("s32", -1), ("b32", -1), ("u32", np.int32(-1)), ("u32", 2**32 - 1), ("u32", np.uint32(0))]
)
def test_integers_that_fit(type: str, value: Any) -> None:
    word = int(value) % 2**32
    assert pack_arguments(kernel(type), [value]) == word.to_bytes(4, "little")


def test_the_way_to_pass_a_negative_number() -> None:
    with pytest.raises(KernelArgumentError, match=r"numpy.int32\(-1\) passes its bits"):
        pack_arguments(kernel("u32"), [-1])
