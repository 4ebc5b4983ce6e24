"""Exchanges inside a warp, lane by lane, against the manual's algorithm (9.7.9.6)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.exact import float_edges
from tests.support.harness import codes, edges, launch, module, poisoned, signed


def shuffled(mode: str, values: list[int], offset: list[int], control: int) -> tuple[list[int], list[int]]:
    """What every lane gets, and whether its source is in its segment."""
    found, inside = [], []
    clamp, segment = control & 31, control >> 8 & 31
    for lane in range(32):
        b = offset[lane] & 31
        highest, lowest = (lane & segment) | (clamp & ~segment & 31), lane & segment
        if mode == "up":
            source, valid = lane - b, lane - b >= highest
        elif mode == "down":
            source, valid = lane + b, lane + b <= highest
        elif mode == "bfly":
            source, valid = lane ^ b, lane ^ b <= highest
        else:
            source = lowest | (b & ~segment & 31)
            valid = source <= highest
        found.append(values[source if valid else lane])
        inside.append(int(valid))
    return found, inside


@pytest.mark.parametrize("control", [31, 0, 0x1C03, 0x181F, 0x1007, 0x1F1F, 0x0C10, 0xFFFFE0FF & 0xFFFF])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(mode: str, control: int) -> None:
    rng = np.random.default_rng(control)
    values = rng.integers(0, 2**32, 64, dtype=np.uint32)
    for same in (True, False):
        offsets = np.full(64, rng.integers(0, 32)) if same else rng.integers(0, 64, 64)
        body = f"""
            .reg .b32 %v, %o, %d, %i; .reg .b64 %at; .reg .pred %p;
            mov.u32 %i, %tid.x;
            mul.wide.u32 %at, %i, 4;
            add.u64 %in0, %in0, %at;
            add.u64 %in1, %in1, %at;
            add.u64 %out0, %out0, %at;
            add.u64 %out1, %out1, %at;
            ld.global.b32 %v, [%in0];
            ld.global.b32 %o, [%in1];
            shfl.sync.{mode}.b32 %d|%p, %v, %o, {control}, 0xffffffff;
            selp.u32 %i, 1, 0, %p;
            st.global.b32 [%out0], %d;
            st.global.b32 [%out1], %i;
            ret;
            """
        inputs: list[Any] = [values, offsets.astype(np.uint32)]
        report, (found, inside) = launch(body, [poisoned(64), poisoned(64)], inputs=inputs, block=64)
        assert report.status == "ok", report.summary()
        for warp in (slice(0, 32), slice(32, 64)):
            expected = shuffled(mode, values[warp].tolist(), offsets[warp].tolist(), control)
            assert (found[warp].tolist(), inside[warp].tolist()) == expected


MASKS = [
    (32, "-1", "ok", ""),
    (16, "0xffff", "ok", ""),
    (16, "-1", "ok", ""),
    (32, "0xffff", "findings", "lanes 16, 17, 18"),
]


@pytest.mark.parametrize(("threads", "mask", "status", "message"), MASKS)
def test_lanes_that_the_mask_does_not_name(threads: int, mask: str, status: str, message: str) -> None:
    """Lanes that have exited are not waited for; a mask without the lane itself is an error."""
    body = f""".reg .b32 %t, %d;
.reg .pred %p;
mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, {threads};
        @!%p exit;
        shfl.sync.bfly.b32 %d, %t, 1, 31, {mask};
        ret;
        """
    report, _ = launch(body)
    assert report.status == status
    assert message in report.summary()
    assert codes(report) == (["warp-mask"] if message else [])


DIVERGED = """
    .reg .b32 %t, %d, %m; .reg .pred %p, %q; .reg .b64 %at;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 4;
    add.u64 %out0, %out0, %at;
    mov.b32 %d, 0x5a5a5a5a;
    {condition}
    @%p bra other;
    {first}
    bra end;
other:
    {second}
end:
    st.global.b32 [%out0], %d;
    ret;
"""
ODD = "and.b32 %m, %t, 1; setp.ne.u32 %p, %m, 0;"
UPPER = "and.b32 %m, %t, 16; setp.ne.u32 %p, %m, 0;"
MEETINGS = {
    "both ways": (ODD, "redux.sync.add.u32 %d, %t, -1;", "add.u32 %t, %t, 100; redux.sync.add.u32 %d, %t, -1;",
                  lambda lane: sum(range(32)) + 1600),
    "each its own": (ODD, "redux.sync.add.u32 %d, %t, 0x55555555;", "redux.sync.add.u32 %d, %t, 0xaaaaaaaa;",
                     lambda lane: sum(range(lane % 2, 32, 2))),
    "one leaves": (UPPER, "redux.sync.add.u32 %d, %t, -1;", "exit;",
                   lambda lane: sum(range(16)) if lane < 16 else None),
    "the other leaves": (UPPER, "exit;", "redux.sync.add.u32 %d, %t, -1;",
                         lambda lane: sum(range(16, 32)) if lane >= 16 else None),
    "one leaves late": (
        UPPER, "redux.sync.add.u32 %d, %t, -1;", "bar.warp.sync 0xffff0000; add.u32 %t, %t, 1; bra out; out: exit;",
        lambda lane: sum(range(16)) if lane < 16 else None),
    "other qualifiers first": (
        ODD, "redux.sync.add.u32 %d, %t, 0x55555555; redux.sync.max.u32 %d, %d, -1;", "redux.sync.max.u32 %d, %t, -1;",
        lambda lane: sum(range(0, 32, 2))),
    "twice": (
        ODD, "redux.sync.add.u32 %d, %t, -1; add.u32 %d, %d, %t; redux.sync.add.u32 %d, %d, -1;",
        "redux.sync.add.u32 %d, %t, -1; redux.sync.add.u32 %d, %d, -1;", lambda lane: 32 * 496 + sum(range(0, 32, 2))),
    "shuffles": (
        ODD, "shfl.sync.bfly.b32 %d, %t, 1, 31, -1;", "add.u32 %t, %t, 50; shfl.sync.bfly.b32 %d, %t, 1, 31, -1;",
        lambda lane: (lane ^ 1) + (50 if lane % 2 == 0 else 0)),
    "election": (UPPER, "elect.sync %d|%q, 0xffff;", "elect.sync %d|%q, 0xffff0000;", lambda lane: lane // 16 * 16),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("case", MEETINGS)
def test_lanes_that_come_by_different_ways(case: str, schedule: Any) -> None:
    """Who comes first waits; the instructions need not be the same, their qualifiers and masks are (9.7.13.12)."""
    condition, first, second, expected = MEETINGS[case]
    body = DIVERGED.format(condition=condition, first=first, second=second)
    report, (found,) = launch(body, [poisoned(64)], block=64, schedule=schedule, seed=3)
    assert report.status == "ok", report.summary()
    wanted = [0xCDCDCDCD if expected(lane) is None else expected(lane) for lane in range(32)]
    assert found[:32].tolist() == wanted
    if "leaves" not in case:  # the second warp's lanes have other numbers
        assert len(set(found[32:].tolist())) == len(set(wanted))


def test_masks_of_tiles() -> None:
    """One instruction, four masks: each tile of eight lanes reduces and votes alone."""
    values = edges(32, 64, 3)
    tile = "and.b32 %m, %i, 24; shl.b32 %m2, 255, %m;"
    setup = ".reg .b32 %m2; " + tile
    total = by_lane("redux.sync.add.s32 %d, %v, %m2;", values, active=setup)
    ballot = by_lane("vote.sync.ballot.b32 %d, %q, %m2;", values, active=setup)
    for lane in range(64):
        members = range(lane // 8 * 8, lane // 8 * 8 + 8)
        assert total[lane] == sum(values[members].tolist()) & 0xFFFFFFFF
        assert ballot[lane] == sum((int(values[i]) & 1) << i % 32 for i in members)


def test_a_lane_that_never_comes_is_a_deadlock() -> None:
    body = """.reg .b32 %t, %d;
.reg .pred %p;
mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, 16;
        @%p bra there;
        bar.sync 0;
        bra end;
        there:
        redux.sync.add.u32 %d, %t, -1;
        bar.sync 0;
        end:
        ret;
        """
    report, _ = launch(body)
    assert report.status == "deadlock"
    (found,) = report.findings
    words = "lanes that the mask of redux.sync.add.u32 names never arrive: lanes 16-31 are at bar.sync (line "
    assert words in found.message
    assert {each.instruction for each in found.accesses} == {"redux.sync.add.u32 %d, %t, -1;", "bar.sync 0;"}


@pytest.mark.parametrize("wide", [False, True])
def test_matches(wide: bool) -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 5, 64).astype(np.uint64 if wide else np.uint32)
    values[32:] = 7
    if wide:
        values <<= np.uint64(33)
    kind = "b64" if wide else "b32"
    any_ = by_lane(f"match.any.sync.{kind} %d, %v, -1;", values, wide=wide)
    all_ = by_lane(f"match.all.sync.{kind} %d|%p, %v, -1; @%p xor.b32 %d, %d, 1;", values, wide=wide)
    for lane, value in enumerate(values.tolist()):
        first = lane // 32 * 32
        assert any_[lane] == sum(1 << i for i in range(32) if values[first + i] == value)
    assert set(all_[:32].tolist()) == {0}
    assert set(all_[32:].tolist()) == {0xFFFFFFFE}


def by_lane(instruction: str, values: Any, *, threads: int = 64, wide: bool = False, active: str = "") -> Any:
    """What `instruction` leaves in %d of every thread; %v is the thread's value, %q whether it is odd."""
    bits = 64 if wide else 32
    body = f""".reg .b{bits} %v; .reg .b32 %d, %i, %m; .reg .b64 %at, %from; .reg .pred %p, %q, %here;
        mov.u32 %i, %tid.x; mul.wide.u32 %from, %i, {bits // 8}; add.u64 %in0, %in0, %from;
        mul.wide.u32 %at, %i, 4;
        add.u64 %out0, %out0, %at;
        ld.global.b{bits} %v, [%in0];
        cvt.u32.u{bits} %m, %v;
        and.b32 %m, %m, 1;
        setp.ne.u32 %q, %m, 0;
        mov.b32 %d, 0x55555555;
        {active}{instruction}
        st.global.b32 [%out0], %d;
        ret;
        """
    report, (found,) = launch(body, [poisoned(threads)], inputs=[values], block=threads)
    assert report.status == "ok", report.summary()
    return found


INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b & 0xFFFFFFFF, "add.s32": lambda a, b: a + b & 0xFFFFFFFF, "min.u32": min,
    "max.u32": max, "and.b32": lambda a, b: a & b, "or.b32": lambda a, b: a | b, "xor.b32": lambda a, b: a ^ b,
    "min.s32": lambda a, b: min(a, b, key=lambda word: signed(word, 32)),
    "max.s32": lambda a, b: max(a, b, key=lambda word: signed(word, 32)),
}  # fmt: skip


@pytest.mark.parametrize("op", INTEGERS)
def test_reductions(op: str) -> None:
    """All lanes, and the upper half of them alone."""
    values = edges(32, 64, len(op))
    found = by_lane(f"redux.sync.{op} %d, %v, -1;", values)
    some = by_lane(
        f"@%here redux.sync.{op} %d, %v, 0xffff0000;", values, active="and.b32 %i, %i, 16; setp.ne.u32 %here, %i, 0;"
    )
    for first in (0, 32):
        warp = values[first : first + 32].tolist()
        assert set(found[first : first + 32].tolist()) == {reduce(INTEGERS[op], warp)}
        assert some[first : first + 32].tolist() == [0x55555555] * 16 + [reduce(INTEGERS[op], warp[16:])] * 16


@pytest.mark.parametrize("nan", ["", ".NaN"])
@pytest.mark.parametrize("magnitude", ["", ".abs"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_float_reductions(op: str, magnitude: str, nan: str) -> None:
    for seed, spoil in enumerate(("no", "one", "all", "zeros")):
        words = float_edges("f32", 64, seed)
        words[(words & 0x7FFFFFFF) > 0x7F800000] = 0x3F000000
        if spoil == "zeros":
            words &= 0x80000000
        words[{"one": slice(3, 64, 32), "all": slice(None)}.get(spoil, slice(0))] = 0xFFC00001
        found = by_lane(f"redux.sync.{op}{magnitude}{nan}.f32 %d, %v, -1;", words)
        for first in (0, 32):
            warp = [word & 0x7FFFFFFF if magnitude else word for word in words[first : first + 32].tolist()]
            numbers = [word for word in warp if word & 0x7FFFFFFF <= 0x7F800000]
            # -0.0 is less than +0.0: by value, then by sign.
            order = [(float(np.uint32(word).view(np.float32)), -(word >> 31), word) for word in numbers]
            wrong = not numbers or (nan and len(numbers) < 32)
            expected = 0x7FFFFFFF if wrong else (min if op == "min" else max)(order)[2]
            assert set(found[first : first + 32].tolist()) == {expected}, (spoil, op, magnitude, nan)


def test_votes() -> None:
    for seed in range(4):
        values = edges(32, 64, seed)
        values[:32] |= seed == 1
        values[32:] &= 0xFFFFFFFE if seed == 2 else 0xFFFFFFFF
        ballot = by_lane("vote.sync.ballot.b32 %d, !%q, -1;", values)
        votes = {
            mode: by_lane(f"vote.sync.{mode}.pred %p, %q, -1; selp.b32 %d, 1, 0, %p;", values)
            for mode in ("all", "any", "uni")
        }
        for first in (0, 32):
            odd = [word & 1 for word in values[first : first + 32].tolist()]
            here = slice(first, first + 32)
            assert set(ballot[here].tolist()) == {sum((1 - bit) << lane for lane, bit in enumerate(odd))}
            assert set(votes["all"][here].tolist()) == {int(all(odd))}
            assert set(votes["any"][here].tolist()) == {int(any(odd))}
            assert set(votes["uni"][here].tolist()) == {int(len(set(odd)) == 1)}


def test_active_lanes() -> None:
    values = edges(32, 64, 5)
    found = by_lane("@%q activemask.b32 %d;", values)
    for first in (0, 32):
        odd = [word & 1 for word in values[first : first + 32].tolist()]
        mask = sum(bit << lane for lane, bit in enumerate(odd))
        assert found[first : first + 32].tolist() == [mask if bit else 0x55555555 for bit in odd]


#: Lanes below 20 take numbers from a counter together: one adds their count, by its mask, and shuffles the sum to all.
AGGREGATED = """
    .reg .b64 %data, %at; .reg .u32 %lane, %mask, %leader, %below, %count, %first, %rank; .reg .pred %p, %leads;
    ld.param.u64 %data, [data];
    mov.u32 %lane, %laneid;
    {before}
    setp.ge.u32 %p, %lane, 20;
    @%p bra OVER;
    activemask.b32 %mask;
    {again}
    popc.b32 %count, %mask;
    brev.b32 %leader, %mask;
    bfind.shiftamt.u32 %leader, %leader;
    setp.eq.u32 %leads, %lane, %leader;
    mov.u32 %first, 0;
    @%leads atom.relaxed.gpu.global.add.u32 %first, [%data], %count;
    shfl.sync.idx.b32 %first, %first, %leader, 31, %mask;
    mov.u32 %below, %lanemask_lt;
    and.b32 %below, %below, %mask;
    popc.b32 %rank, %below;
    add.u32 %rank, %rank, %first;
    mul.wide.u32 %at, %lane, 4; add.u64 %at, %at, %data;
    st.global.u32 [%at+64], %rank;
OVER:
    ret;
"""


def test_active_masks_where_paths_have_joined() -> None:
    """With `random` fewer lanes may be active than take the branch, unless a .sync has converged them since."""

    def right(again: str, before: str = "") -> list[bool]:
        found = []
        for seed in range(16):
            emulator = Emulator(schedule="random", seed=seed)
            data = emulator.array(np.zeros(64, np.uint32))
            text = module(AGGREGATED.format(before=before, again=again), ".param .u64 data")
            report = emulator.launch(Kernel.from_ptx(text), 1, 32, [data])
            numbers = sorted(data.numpy()[16:36].tolist())
            found.append(report.status == "ok" and numbers == list(range(20)) and int(data.numpy()[0]) == 20)
        return found

    joined = "and.b32 %rank, %lane, 1; setp.eq.u32 %p, %rank, 0; @%p bra JOIN; add.u32 %rank, %rank, 1;\nJOIN:"
    twice = "activemask.b32 %count; popc.b32 %count, %count; setp.ne.u32 %p, %count, 20; @%p bra OVER;"
    assert all(right(""))
    assert all(right("", joined))
    assert all(right(twice))
    assert all(right(twice, joined + " bar.warp.sync 0xffffffff;"))
    assert not all(right(twice, joined))


NO_OVERLAP = [
    "shfl.sync.bfly.b32 %d, %v, 5, 0x1f, -1;",
    "vote.sync.ballot.b32 %d, %p, -1;",
    "vote.sync.any.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;",
    "match.any.sync.b32 %d, %v, -1;",
    "match.all.sync.b32 %d, %v, -1;",
    "redux.sync.add.u32 %d, %v, -1;",
    "redux.sync.xor.b32 %d, %v, -1;",
    "redux.sync.max.f32 %f, %f, -1; mov.b32 %d, %f;",
    "bar.warp.sync -1; mov.u32 %d, %v;",
]


@pytest.mark.parametrize("statements", NO_OVERLAP)
def test_the_promise_of_masks_that_do_not_overlap_changes_no_result(statements: str) -> None:
    values = np.random.default_rng(5).integers(0, 4, 32, dtype=np.uint32)

    def result(text: str) -> list[int]:
        body = f"""
            .reg .b32 %v, %d, %i; .reg .f32 %f; .reg .b64 %at; .reg .pred %p, %q;
            mov.u32 %i, %tid.x;
            mul.wide.u32 %at, %i, 4;
            add.u64 %in0, %in0, %at;
            add.u64 %out0, %out0, %at;
            ld.global.b32 %v, [%in0];
            mov.b32 %f, %v;
            setp.eq.u32 %p, %v, 2;
            {text}
            st.global.b32 [%out0], %d;
            ret;
            """
        report, (found,) = launch(body, [poisoned(32)], inputs=[values], block=32)
        assert report.status == "ok", report.summary()
        return found.tolist()  # type: ignore[no-any-return]

    assert result(statements.replace(".sync", ".sync.no_membermask_overlap")) == result(statements)


def test_lanes_with_and_without_the_promise_meet() -> None:
    body = """
        .reg .b32 %d, %i; .reg .b64 %at; .reg .pred %p;
        mov.u32 %i, %tid.x;
        mul.wide.u32 %at, %i, 4;
        add.u64 %out0, %out0, %at;
        setp.lt.u32 %p, %i, 16;
        @%p bra LOW;
        shfl.sync.bfly.b32 %d, %i, 31, 0x1f, -1;
        bra DONE;
        LOW: shfl.sync.no_membermask_overlap.bfly.b32 %d, %i, 31, 0x1f, -1;
        DONE: st.global.b32 [%out0], %d;
        ret;
        """
    report, (found,) = launch(body, [poisoned(32)], block=32)
    assert report.status == "ok", report.summary()
    assert found.tolist() == list(range(31, -1, -1))
