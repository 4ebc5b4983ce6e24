"""Communication between the lanes of a warp. References from PTX ISA 9.7.9.5 to 9.7.9.6 and 9.7.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.inputs import words
from microtests.harness.lanes import elements
from ptxgen.builder import Register
from ptxgen.instr import barrier, logic, predicate, warp

#: Ten warps.
LANES = 320
FULL = 0xFFFFFFFF
Array = NDArray[Any]


def _values(seed: int, kind: str = "u32") -> Array:
    return words(kind, int(kind[1:]), LANES, np.random.default_rng(seed))


def _few(seed: int, count: int, bits: int = 32) -> Array:
    """Values of which many are the same."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, count, LANES).astype(np.uint64)
    found[64:96] = 5
    return found.astype(np.uint32 if bits == 32 else np.uint64)


def by_warp(compute: Callable[..., list[int]], *columns: Array) -> Callable[[], list[int]]:
    """Expected values from a function of what the lanes of one warp have."""

    def made() -> list[int]:
        found: list[int] = []
        for start in range(0, LANES, 32):
            found += compute(*([int(each) for each in column[start : start + 32]] for column in columns))
        return found

    return made


def _shuffled(mode: str, a: list[int], b: list[int], c: list[int]) -> list[tuple[int, int]]:
    """The manual's program: a clamp and a segment mask in c."""
    found = []
    for lane in range(32):
        bval, cval, mask = b[lane] & 31, c[lane] & 31, c[lane] >> 8 & 31
        limit = lane & mask | cval & ~mask & 31
        if mode == "up":
            source, good = lane - bval, lane - bval >= limit
        elif mode == "down":
            source, good = lane + bval, lane + bval <= limit
        elif mode == "bfly":
            source, good = lane ^ bval, lane ^ bval <= limit
        else:
            source = lane & mask | bval & ~mask & 31
            good = source <= limit
        found.append((a[source if good else lane], int(good)))
    return found


@microtest("up", "down", "bfly", "idx")
def shfl(draft: Draft, mode: Any) -> None:
    """Random values, lanes and controls in every lane; the predicate is whether the source was in range."""
    a, b = _values(1), _values(2)
    rng = np.random.default_rng(3)
    # Lanes of a warp have one control: what differs between lanes is random data and lanes.
    choices = [0x1F, 0x0, 0x181F, 0x1C1F, 0x1E00, 0x101F, 0x1800, 0x0F1F, 0x1F1F, 0x0707]
    c = np.repeat(rng.permutation(np.array(choices, np.uint32)), 32)

    def part(index: int) -> Callable[[], list[int]]:
        return by_warp(lambda *lists: [pair[index] for pair in _shuffled(mode, *lists)], a, b, c)

    def body(r: dict[str, Register]) -> None:
        draft(warp.shfl(r["d"], r["a"], r["b"], r["c"], FULL, p=r["p"], mode=mode))

    elements(
        draft,
        {"a": ("b32", a), "b": ("b32", b), "c": ("b32", c)},
        {"d": ("b32", part(0)), "p": ("pred", part(1))},
        body,
    )


@microtest("all", "any", "uni")
def vote(draft: Draft, mode: Any) -> None:
    """Of all lanes, none, one, and random ones."""
    given = np.random.default_rng(4).integers(0, 2, LANES).astype(np.uint8)
    given[0:32], given[32:64], given[64:96] = 1, 0, 0
    given[70] = 1
    compute = {"all": all, "any": any, "uni": lambda lane: len(set(lane)) == 1}[mode]

    def body(r: dict[str, Register]) -> None:
        draft(warp.vote(r["d"], r["p"], FULL, mode=mode))

    elements(draft, {"p": ("pred", given)}, {"d": ("pred", by_warp(lambda p: [int(compute(p))] * 32, given))}, body)


@microtest()
def vote_ballot(draft: Draft) -> None:
    """A bit for each lane whose predicate holds."""
    given = np.random.default_rng(5).integers(0, 2, LANES).astype(np.uint8)
    expected = by_warp(lambda p: [sum(bit << lane for lane, bit in enumerate(p))] * 32, given)

    def body(r: dict[str, Register]) -> None:
        draft(warp.vote_ballot(r["d"], r["p"], FULL))

    elements(draft, {"p": ("pred", given)}, {"d": ("b32", expected)}, body)


@microtest()
def vote_of_some(draft: Draft) -> None:
    """Lanes that are not in the mask do not take part, and pass by."""
    given = np.random.default_rng(6).integers(0, 2, LANES).astype(np.uint8)
    mask = 0x0F0FF00F
    chosen = sum(bit << lane for lane, bit in enumerate([1] * 32)) & mask

    def compute(p: list[int]) -> list[int]:
        ballot = sum(bit << lane for lane, bit in enumerate(p)) & mask
        return [ballot if chosen >> lane & 1 else 0xFFFFFFFF for lane in range(32)]

    def body(r: dict[str, Register]) -> None:
        lane, bit, inside = draft.masked(draft.thread, 5), draft.reg("b32"), draft.reg("pred")
        draft(logic.shr(bit, draft.scalar("u32", mask), lane, type="b32"), logic.and_(bit, bit, 1, type="b32"))
        draft(predicate.setp(inside, bit, 1, compare="eq", type="u32"))
        end = draft.label("outside")
        draft(logic.not_(r["d"], draft.zero(), type="b32"))
        draft.branch(end, inside, negated=True)
        draft(warp.vote_ballot(r["d"], r["p"], mask))
        draft.place(end)
        draft(barrier.bar_warp_sync(FULL))

    elements(draft, {"p": ("pred", given)}, {"d": ("b32", by_warp(compute, given))}, body)


@microtest("b32", "b64")
def match_any(draft: Draft, kind: Any) -> None:
    """A bit for each lane that has the same value."""
    given = _few(7, 6, int(kind[1:]))
    if kind == "b64":
        given = given << np.uint64(33)
    expected = by_warp(lambda a: [sum(1 << i for i in range(32) if a[i] == mine) for mine in a], given)

    def body(r: dict[str, Register]) -> None:
        draft(warp.match_any(r["d"], r["a"], FULL, type=kind))

    elements(draft, {"a": (kind, given)}, {"d": ("b32", expected)}, body)


@microtest("b32", "b64")
def match_all(draft: Draft, kind: Any) -> None:
    """The mask where all have one value, else 0; p is whether they agree."""
    given = _few(8, 2, int(kind[1:]))

    def body(r: dict[str, Register]) -> None:
        draft(warp.match_all(r["d"], r["a"], FULL, p=r["p"], type=kind))

    same = by_warp(lambda a: [FULL if len(set(a)) == 1 else 0] * 32, given)
    outputs: Any = {"d": ("b32", same), "p": ("pred", lambda: [int(each != 0) for each in same()])}
    elements(draft, {"a": (kind, given)}, outputs, body)


@microtest(*((op, kind) for op in ("add", "min", "max") for kind in ("u32", "s32")))
def redux(draft: Draft, op: Any, kind: Any) -> None:
    """One result of all lanes."""
    given = _values(9)

    def compute(a: list[int]) -> list[int]:
        numbers = [each - 2**32 if kind == "s32" and each >> 31 else each for each in a]
        return [{"add": sum, "min": min, "max": max}[op](numbers) % 2**32] * 32

    def body(r: dict[str, Register]) -> None:
        draft(warp.redux(r["d"], r["a"], FULL, op=op, type=kind))

    elements(draft, {"a": (kind, given)}, {"d": ("b32", by_warp(compute, given))}, body)


@microtest("and", "or", "xor")
def redux_bits(draft: Draft, op: Any) -> None:
    """Bitwise, over all lanes."""
    given = _values(10)
    given[:32] |= np.uint32(0x10)
    reduce = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op].reduce
    expected = by_warp(lambda a: [int(reduce(np.array(a, np.uint32)))] * 32, given)

    def body(r: dict[str, Register]) -> None:
        draft(warp.redux_bits(r["d"], r["a"], FULL, op=op))

    elements(draft, {"a": ("b32", given)}, {"d": ("b32", expected)}, body)


@microtest(*((op, absolute, nan) for op in ("min", "max") for absolute in (False, True) for nan in (False, True)))
def redux_float(draft: Draft, op: Any, absolute: bool, nan: bool) -> None:
    """The smallest or largest of all lanes; NaNs lose unless .NaN lets them win."""
    rng = np.random.default_rng(11)
    given = rng.standard_normal(LANES).astype(np.float32)
    given[40] = np.nan
    given[64:96] = np.nan

    def compute(a: list[int]) -> list[int]:
        numbers = np.array(a, np.uint32).view(np.float32)
        numbers = np.abs(numbers) if absolute else numbers
        present = numbers[~np.isnan(numbers)]
        if not len(present) or (nan and len(present) < 32):
            return [0x7FFFFFFF] * 32
        return [int((present.min() if op == "min" else present.max()).view(np.uint32))] * 32

    def body(r: dict[str, Register]) -> None:
        draft(warp.redux_float(r["d"], r["a"], FULL, op=op, abs=absolute, NaN=nan))

    bits = given.view(np.uint32)
    elements(draft, {"a": ("b32", bits)}, {"d": ("b32", by_warp(compute, bits))}, body)


@microtest()
def activemask(draft: Draft) -> None:
    """All lanes of a warp that stand together; after a branch, those that went the same way."""
    given = np.arange(LANES).astype(np.uint32)

    def body(r: dict[str, Register]) -> None:
        draft(warp.activemask(r["d"]))

    elements(draft, {"a": ("b32", given)}, {"d": ("b32", lambda: [FULL] * LANES)}, body)


@microtest(FULL, 0x80000000, 0x00FF0000, 0x00000001)
def elect(draft: Draft, mask: int) -> None:
    """One lane of the mask is the leader, and all know its number (the lowest: measured, H200)."""
    lowest = (mask & -mask).bit_length() - 1
    inside = [bool(mask >> lane & 1) for lane in range(32)]
    given = np.tile(np.array(inside, np.uint8), LANES // 32)

    def body(r: dict[str, Register]) -> None:
        end = draft.label("outside")
        draft(logic.not_(r["d"], draft.zero(), type="b32"))
        draft(predicate.setp(r["p"], r["d"], 0, compare="eq", type="u32"))
        draft.branch(end, r["a"], negated=True)
        draft(warp.elect(r["d"], r["p"], mask))
        draft.place(end)
        draft(barrier.bar_warp_sync(FULL))

    outputs: Any = {
        "d": ("b32", lambda: [lowest if each else FULL for each in inside] * (LANES // 32)),
        "p": ("pred", lambda: [int(lane == lowest) for lane in range(32)] * (LANES // 32)),
    }
    elements(draft, {"a": ("pred", given)}, outputs, body)


@microtest("up", "down", "bfly", "idx")
def shfl_without_predicate(draft: Draft, mode: Any) -> None:
    """The value alone; the lane and the control are constants."""
    a = _values(12)
    lane, control = {"up": (3, 0), "down": (5, 0x1F), "bfly": (9, 0x1F), "idx": (4, 0x181F)}[mode]

    def compute(values: list[int]) -> list[int]:
        return [value for value, _ in _shuffled(mode, values, [lane] * 32, [control] * 32)]

    def body(r: dict[str, Register]) -> None:
        draft(warp.shfl(r["d"], r["a"], lane, control, FULL, mode=mode))

    elements(draft, {"a": ("b32", a)}, {"d": ("b32", by_warp(compute, a))}, body)


@microtest("b32", "b64")
def match_all_without_predicate(draft: Draft, kind: Any) -> None:
    """The mask alone."""
    given = _few(13, 2, int(kind[1:]))

    def body(r: dict[str, Register]) -> None:
        draft(warp.match_all(r["d"], r["a"], FULL, type=kind))

    same = by_warp(lambda a: [FULL if len(set(a)) == 1 else 0] * 32, given)
    elements(draft, {"a": (kind, given)}, {"d": ("b32", same)}, body)
