"""Loads, stores and atomic operations of warps: L1, cp.async, CTAs that share an SM, a cold L2, and who takes turns."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.timing import predict
from ptxgen.timing.l1 import L1, LINE, SECTOR, carveout
from ptxgen.timing.simulate import L2

#: Each thread handles the word of its number: `body` is what it does with its address, %rd4.
_TEXT = """.version 8.4
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 data)
{{
    .shared .align 128 .b8 tile[16384];
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [data];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd4, %r4, 4;
    add.u64 %rd4, %rd1, %rd4;
    mov.u32 %r5, tile;
    shl.b32 %r6, %r3, 4;
    add.u32 %r5, %r5, %r6;
{body}
    ret;
}}
"""


def cycles(body: str, *, grid: int = 1, threads: int = 32, words: int = 1 << 20, l2: L2 = "warm") -> float:
    """Predicted cycles without the launch."""
    emulator = Emulator("sm_90a", checks=False)
    data = emulator.array(np.zeros(words, np.uint32))
    kernel = Kernel.from_ptx(_TEXT.format(body=body))
    return predict(kernel, grid, threads, [data], machine="h200", l2=l2).parts["simulated"]


def used(*registers: int) -> str:
    """A store that keeps loads from being removed."""
    added = "".join(f"    add.u32 %r{registers[0]}, %r{registers[0]}, %r{each};\n" for each in registers[1:])
    return f"{added}    setp.eq.u32 %p1, %r{registers[0]}, 12345;\n    @%p1 st.global.u32 [%rd1], %r{registers[0]};\n"


def test_a_line_is_filled_by_sectors_and_leaves_when_others_have_come() -> None:
    cache = L1(2 * LINE)
    assert cache.lookup([0, 1, 9]) == ([0, 1, 9], 0.0)
    cache.fill([0, 1], 100.0)
    assert cache.lookup([0, 1, 2]) == ([2], 100.0)  # still on its way until cycle 100
    cache.fill([9], 120.0)
    assert cache.lookup([0]) == ([], 100.0)
    cache.fill([17], 130.0)  # the line of sector 9 was used before that of 0
    assert cache.lookup([0, 9, 17]) == ([9], 130.0)
    assert L1(0).lookup([0]) == ([0], 0.0)


@pytest.mark.parametrize(("used", "kilobytes"), [(0, 0), (1, 8), (17 << 10, 32), (200 << 10, 228), (228 << 10, 228)])
def test_shared_memory_takes_one_of_the_sizes_that_the_guide_lists(used: int, kilobytes: int) -> None:
    assert carveout(used) == kilobytes << 10


@pytest.mark.parametrize("kind", ["ld.global.u32", "ld.global.nc.u32"])
def test_a_second_load_of_the_same_sectors_does_not_go_to_the_l2(kind: str) -> None:
    once = f"    {kind} %r7, [%rd4];\n    add.u32 %r8, %r7, %r7;\n    cvt.u64.u32 %rd5, %r8;\n"
    again = "    add.u64 %rd5, %rd5, %rd4;\n    {} %r9, [%rd5];\n"  # the first value, 0, is part of the address
    alone = cycles(once + used(7))
    hit, missed = (cycles(once + again.format(each) + used(7, 9)) for each in (kind, "ld.global.cg.u32"))
    assert alone + 30 < hit < alone + 120
    assert missed - hit == pytest.approx(285 - 36, abs=5)


def test_loads_of_neighbors_bytes_take_the_l2_once() -> None:
    loads = "".join(f"    ld.global.u32 %r{7 + i}, [%rd4+{4 * i}];\n" for i in range(4))
    past = loads.replace("ld.global.u32", "ld.global.cg.u32")
    one, four, uncached = (
        cycles(each, grid=132 * 2, threads=1024)
        for each in (loads.splitlines()[0] + "\n" + used(7), loads + used(7, 8, 9, 10), past + used(7, 8, 9, 10))
    )
    # 8 KB at 37 bytes a cycle are 221 cycles each time, some hidden by the first latency; from L1 two lines a warp.
    assert four - one < 250
    assert uncached - one > 450


def test_copies_are_in_flight_together() -> None:
    copy = "    cp.async.cg.shared.global [%r5], [%rd5+{}], 16;\n"
    address = "    and.b64 %rd5, %rd4, -16;\n"
    end = "    cp.async.commit_group;\n    cp.async.wait_group 0;\n"
    one, eight = (cycles(address + "".join(copy.format(4096 * i) for i in range(count)) + end) for count in (1, 8))
    assert one > 285
    assert eight - one < 150


def test_an_sm_has_its_second_cta_after_all_others_have_their_first() -> None:
    body = "    ld.global.u32 %r7, [%rd4];\n" + used(7)
    one, two = (cycles(body, grid=grid, threads=1024) for grid in (132, 264))
    assert 132 < two - one < 350


def test_a_cold_l2_makes_room_for_what_is_loaded() -> None:
    loads = "    ld.global.u32 %r7, [%rd4];\n" + used(7)
    warm, cold = (cycles(loads, grid=1024, threads=1024, l2=each) for each in ("warm", "cold"))
    # 4 MB from memory and 0.4 of that to memory, where lines of others are, at 2.3 KB a cycle.
    assert cold - warm > 1500
    assert len(range(0, LINE, SECTOR)) == 4


@pytest.mark.parametrize(("address", "turns"), [("%rd1", 132), ("%rd5", 1)])
def test_atomic_operations_on_one_word_take_turns(address: str, turns: int) -> None:
    """All CTAs on one word, or each on 4 KB of its own, which another unit of the L2 may have."""
    own = "    mul.wide.u32 %rd5, %r1, 4096;\n    add.u64 %rd5, %rd1, %rd5;\n    setp.eq.u32 %p1, %r3, 0;\n"
    update = f"    @%p1 red.global.add.u32 [{address}], %r3;\n"
    words = 1 if address == "%rd1" else 132 * 1024
    none, some = (cycles(own + each, grid=132, words=words) for each in ("", update))
    assert some - none == pytest.approx(285 + 1.56 * turns, abs=60)


def test_lanes_of_one_bank_take_turns_at_shared_memory() -> None:
    def adds(step: int) -> float:
        at = f"    mov.u32 %r5, tile;\n    mad.lo.u32 %r7, %r3, {step}, %r5;\n"
        return cycles(at + "    atom.shared.add.u32 %r8, [%r7], %r3;\n" * 8 + used(8))

    apart, conflicting, together = adds(4), adds(128), adds(0)
    assert conflicting - apart == pytest.approx(8 * 31, rel=0.2)
    assert conflicting == pytest.approx(together, abs=40)


def test_loads_that_ptxas_merges_take_shared_memory_once() -> None:
    """Four neighboring words that all lanes load are one LDS.128 of one cycle; apart they are four."""
    step = "    mov.u32 %r5, tile;\n    st.shared.u32 [%r5+8000], %r3;\n"

    def loads(stride: int) -> str:
        lines = "".join(f"    ld.shared.u32 %r{7 + i}, [%r5+{stride * i}];\n" for i in range(4))
        return step + lines + used(7, 8, 9, 10)

    together, apart = (cycles(loads(stride), threads=1024) for stride in (4, 128))
    assert 60 < apart - together < 150  # 32 warps, three cycles less each
