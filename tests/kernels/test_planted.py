"""Errors planted in the kernel's text end as a report that names the line, under every schedule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import ptxgen
from ptxgen.kernels import find
from ptxgen.kernels.job import run_gemm

PLAN = find("blackwell/swizzled").plan()
TEXT = PLAN.text

Edit = Callable[[str], str]


def swap(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new)


def lines_with(text: str, *words: str) -> set[int]:
    """Lines that contain one of the words."""
    return {n for n, line in enumerate(text.splitlines(), 1) if any(word in line for word in words)}


#: What is wrong, the edit, and words of the lines of which one must be named.
PLANTED: list[tuple[str, Edit, tuple[str, ...]]] = [
    ("descriptor: stride", swap("0x4000404000010000", "0x4000402000010000"), ("tcgen05.mma",)),
    ("descriptor: swizzle", swap("0x4000404000010000", "0x8000404000010000"), ("tcgen05.mma",)),
    ("descriptor: no such swizzle", swap("0x4000404000010000", "0x6000404000010000"), ("tcgen05.mma",)),
    ("instruction descriptor: types", swap("0x08200490", "0x08200010"), ("tcgen05.mma",)),
    ("instruction descriptor: N", swap("0x08200490", "0x08100490"), ("tcgen05.ld",)),
    ("bytes: too few", swap("[%loaded_barrier], 32768", "[%loaded_barrier], 16384"), ("expect_tx", "cp.async.bulk")),
    ("bytes: too many", swap("[%loaded_barrier], 32768", "[%loaded_barrier], 32784"), ("expect_tx",)),
    ("wait for the loads: dropped", lambda t: drop_wait(t, "loaded"), ("tcgen05.mma",)),
    ("wait for the loads: result ignored", lambda t: re.sub(r".*@!%done bra.*\n", "", t), ("tcgen05.mma",)),
    ("wait for the MMAs: dropped", lambda t: drop_wait(t, "multiplied"), ("cp.async.bulk.tensor",)),
    ("wait for the MMAs: result ignored", lambda t: re.sub(r".*@!%done_1 bra.*\n", "", t), ("cp.async.bulk.tensor",)),
    ("wait for tcgen05.ld: dropped", lambda t: re.sub(r".*wait::ld.*\n", "", t), ("cvt.rn.bf16",)),
    ("parity: starts at 1", swap("mov.b32 %parity, 0", "mov.b32 %parity, 1"), ("tcgen05.mma", "try_wait")),
    ("parity: never flips", swap("%parity, %parity, 1;", "%parity, %parity, 0;"), ("tcgen05", "try_wait")),
]


#: The manual has the registers of a tcgen05.ld waited for by who reads them (9.7.16.6.4.5): a run like that is right.
ADVISED = "wait for tcgen05.ld: dropped"


def drop_wait(text: str, barrier: str) -> str:
    """The text without the loop that waits for a barrier."""
    return re.sub(rf"\$wait\w*:\n.*try_wait.*%{barrier}_barrier.*\n.*bra \$wait.*\n", "", text)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("name", "edit", "named"), PLANTED, ids=[each[0] for each in PLANTED])
def test_a_planted_error_is_reported_with_its_line(
    name: str, edit: Edit, named: tuple[str, ...], schedule: Any
) -> None:
    text = edit(TEXT)
    assert text != TEXT
    result = run_gemm(ptxgen.Emulator("sm_100a", schedule), PLAN, 256, 128, 256, text=text)
    if name != ADVISED:
        assert not result.ok
    told = [*result.complaints, *result.advice]
    expected = lines_with(text, *named)
    assert expected
    assert any(expected & set(each.lines) for each in told), result.summary()
    for line in {line for each in told for line in each.lines[:1]}:
        assert re.search(rf"line(s)? .*\b{line}\b", result.summary())


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_without_the_error_nothing_is_reported(schedule: Any) -> None:
    result = run_gemm(ptxgen.Emulator("sm_100a", schedule), PLAN, 256, 128, 256, text=TEXT)
    assert result.ok
    assert [*result.complaints, *result.advice] == []
