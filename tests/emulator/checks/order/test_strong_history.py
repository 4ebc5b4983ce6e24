"""What strong accesses alone would tell: the record, searched, against knowledge that is kept up to date."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order import strong_history as strong_record
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.syntax import Instruction, walk
from tests.support.harness import codes, launch, module

STATEMENT = next(each for each in walk([Kernel.from_ptx(module("ret;")).entry]) if isinstance(each, Instruction))
Clocks = Counter[int]


class Reference:
    """Plain vector clocks of warps that would know whatever strong stores come after, and what words would tell."""

    def __init__(self, rows: int) -> None:
        self.would = [Counter({row: 1}) for row in range(rows)]
        self.words: dict[int, Clocks] = {}

    def access(self, row: int, words: list[int], *, reads: bool, writes: bool) -> None:
        if reads:
            for word in words:
                self.would[row] |= self.words.get(word, Counter())
        if writes:
            for word in words:
                self.words[word] = self.words.get(word, Counter()) | self.would[row]
            self.would[row][row] += 1


@pytest.mark.parametrize("most", [1 << 23, 900])
def test_searches_against_vector_clocks(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight warps of two clusters at random; where the oldest accesses are dropped, less is found and nothing else."""
    monkeypatch.setattr(strong_record, "_MOST", most)
    asked = Counter[tuple[bool, bool]]()
    for seed in range(6):
        rng, rows = random.Random(seed), 8
        happens_before, reference = HappensBefore(4, 2, 2, Findings()), Reference(rows)
        first = [happens_before.clock(row) - 1 for row in range(rows)]
        released: list[tuple[VectorClock, Clocks]] = []
        for _ in range(150):
            row, what = rng.randrange(rows), rng.random()
            if what < 0.5:
                group = sorted(rng.sample(range(rows), rng.randrange(1, 4)))
                lanes = [(position, rng.randrange(5) * 4) for position in range(len(group)) for _ in range(2)]
                reads, writes = rng.choice(((True, False), (False, True), (True, True)))
                happens_before.strong.add(
                    np.array(group),
                    np.array([lane[0] for lane in lanes]),
                    np.array([lane[1] for lane in lanes]),
                    2,
                    STATEMENT,
                    reads=reads,
                    writes=writes,
                )
                for position, each in enumerate(group):
                    words = [word for at, word in lanes if at == position]
                    reference.access(each, words, reads=reads, writes=writes)
                if writes:
                    happens_before.end_intervals(np.array(group))
            elif what < 0.75:
                released.append((happens_before.release(row), Counter(reference.would[row])))
                reference.would[row][row] += 1
            elif released:
                given, would = rng.choice(released[-4:])
                happens_before.acquire(row, given)
                reference.would[row] |= would
            row, other = rng.sample(range(rows), 2)
            known = reference.would[row][other]
            clock = max(known + rng.choice((-1, 0, 1)), 1)
            found, expected = (
                happens_before.strong.would_order(row, happens_before.actor(other), first[other] + clock),
                clock <= known,
            )
            assert found == expected or (most < 1000 and not found)
            asked[found, expected] += 1
    assert min(asked[True, True], asked[False, False]) > 100
    assert (asked[False, True] > 0) == (most < 1000)


#: Warp 0 stores and sets a flag, without a release; warp 1 sees the flag, counts to ROUNDS, and loads.
FLAG = """
    .reg .pred %p; .reg .u32 %t, %x, %y;
    mov.u32 %t, %tid.x;
    setp.ge.u32 %p, %t, 32;
    @%p bra see;
    st.global.u32 [%out0], 7;
    st.relaxed.gpu.global.u32 [%out0+64], 1;
    ret;
    see:
    ld.acquire.gpu.global.u32 %x, [%out0+64];
    setp.ne.u32 %p, %x, 1;
    @%p bra see;
    mov.u32 %y, 0;
    more:
    red.global.add.u32 [%out0+128], 1;
    add.u32 %y, %y, 1;
    setp.lt.u32 %p, %y, ROUNDS;
    @%p bra more;
    ld.global.u32 %x, [%out0];
    st.global.u32 [%out0+32], %x;
    ret;
"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("rounds", "most", "code"), [(1, 1000, "missing-fence"), (40, 1000, "global-race")])
def test_what_is_too_long_ago_is_a_race(
    rounds: int, most: int, code: str, schedule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing release is named as such while the record has the store; the error stays."""
    monkeypatch.setattr(strong_record, "_MOST", most)
    report, (left,) = launch(
        FLAG.replace("ROUNDS", str(rounds)), [np.zeros(64, np.uint32)], block=64, schedule=schedule
    )
    assert (codes(report), left[8], left[32]) == ([code], 7, 32 * rounds), report.summary()


def test_warps_that_poll_fill_no_record() -> None:
    """A load that is repeated while nothing is stored is one entry, and one after a store another."""
    happens_before = HappensBefore(1, 2, 1, Findings())
    row, lane, word = np.array([0]), np.zeros(1, np.int64), np.array([64])

    def access(writes: bool) -> int:
        happens_before.strong.add(row, lane, word, 2, STATEMENT, reads=not writes, writes=writes)
        return happens_before.strong.end

    assert [access(writes) for writes in (False, False, False, True, False, False, True, True)] == [
        1,
        1,
        1,
        2,
        3,
        3,
        4,
        5,
    ]
