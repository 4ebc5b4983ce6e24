"""Kernels of the same text are the same kernel, so that nothing is parsed and checked twice."""

from __future__ import annotations

import pytest

from ptxgen import Kernel
from ptxgen.device import kernel as module
from ptxgen.device.kernel import SharedRegion

TEXT = (
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k{}() {{ ret; }}\n.visible .entry l() {{ ret; }}\n"
)


def test_the_same_arguments_give_the_same_kernel() -> None:
    kernel = Kernel.from_ptx(TEXT.format(0), "k0")
    assert Kernel.from_ptx("".join(list(TEXT.format(0))), "k0") is kernel
    assert Kernel.from_ptx(TEXT.format(0), "l").name == "l"
    assert Kernel.from_ptx(TEXT.format(0), "k0", regions=[SharedRegion("a", 0, 16)]).regions
    assert Kernel.from_ptx(TEXT.format(0), "k0").regions == ()


def test_only_the_last_kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 2)
    kernels = [Kernel.from_ptx(TEXT.format(number), f"k{number}") for number in range(3)]
    assert Kernel.from_ptx(TEXT.format(2), "k2") is kernels[2]
    assert Kernel.from_ptx(TEXT.format(1), "k1") is kernels[1]
    assert Kernel.from_ptx(TEXT.format(0), "k0") is not kernels[0]
    monkeypatch.setattr(module, "_KEPT_CHARACTERS", len(TEXT) // 2)
    assert Kernel.from_ptx(TEXT.format(333), "l") is not Kernel.from_ptx(TEXT.format(333), "l")
