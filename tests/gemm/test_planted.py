"""Errors planted in the kernel's text end as a report that names the line, under every schedule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import ptxgen
from ptxgen.gemm import find
from ptxgen.gemm.job import run_gemm

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
    ("instruction descriptor: types", swap("0x8200490", "0x8200010"), ("tcgen05.mma",)),
    ("instruction descriptor: N", swap("0x8200490", "0x8100490"), ("tcgen05.ld",)),
    ("bytes: too few", swap("[%r_full], 32768", "[%r_full], 16384"), ("expect_tx", "cp.async.bulk")),
    ("bytes: too many", swap("[%r_full], 32768", "[%r_full], 32784"), ("expect_tx",)),
    ("wait for the loads: dropped", lambda t: drop_wait(t, "r_use_slot"), ("tcgen05.mma",)),
    ("wait for the loads: result ignored", lambda t: ignore_wait(t, "r_use_slot"), ("tcgen05.mma",)),
    ("wait for the MMAs: dropped", lambda t: drop_wait(t, "r_ab_slot"), ("cp.async.bulk.tensor",)),
    ("wait for the MMAs: result ignored", lambda t: ignore_wait(t, "r_ab_slot"), ("cp.async.bulk.tensor",)),
    ("wait for tcgen05.ld: dropped", lambda t: re.sub(r".*wait::ld.*\n", "", t), ("cvt.rn.bf16",)),
    ("parity: starts at 1", swap("mov.b32 %r_use_phase, 0", "mov.b32 %r_use_phase, 1"), ("tcgen05.mma", "try_wait")),
    ("parity: never flips", swap("%r_use_phase, %r_use_phase, 1;", "%r_use_phase, %r_use_phase, 0;"),
     ("tcgen05", "try_wait")),
]  # fmt: skip


#: The manual has the registers of a tcgen05.ld waited for by who reads them (9.7.16.6.4.5): a run like that is right.
ADVISED = "wait for tcgen05.ld: dropped"


def drop_wait(text: str, barrier: str) -> str:
    """The text without the loop that waits for a barrier."""
    return re.sub(rf"\$wait:\n.*\n.*try_wait.*%{barrier}\+.*\n.*\n.*bra \$wait;\n", "", text)


def ignore_wait(text: str, barrier: str) -> str:
    """The text with the test of a barrier, but not its loop."""
    return re.sub(rf"(try_wait.*%{barrier}\+.*\n.*\n).*bra \$wait;\n", r"\1", text)


@pytest.mark.one_in(3)
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
    reported = [*result.errors, *result.advice]
    expected = lines_with(text, *named)
    assert expected
    assert any(expected & set(each.lines) for each in reported), result.summary()
    for line in {line for each in reported for line in each.lines[:1]}:
        assert re.search(rf"line(s)? .*\b{line}\b", result.summary())


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_without_the_error_nothing_is_reported(schedule: Any) -> None:
    result = run_gemm(ptxgen.Emulator("sm_100a", schedule), PLAN, 256, 128, 256, text=TEXT)
    assert result.ok
    assert [*result.errors, *result.advice] == []
