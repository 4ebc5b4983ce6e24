"""What a grid may not do to memory of the grid before it without griddepcontrol.wait: every form of access."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import Launch
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

SCHEDULES: list[Any] = ["eager", "late", "random"]
#: `a` has 256 words, `map` is a tensormap of its first 64; thread 0 of 64 asks for copies, from and to `tile`.
HEAD = """
    .shared .align 128 .b8 tile[256];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %first, %w; .reg .b32 %t, %v, %s, %k; .reg .b64 %a, %at, %map; .reg .f32 %f;
    ld.param.u64 %a, [a];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %a;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %s, tile;
    mad.lo.u32 %s, %t, 4, %s;
    mov.f32 %f, 0f3F800000;
    mad.lo.u32 %k, %t, 7, {};
    st.shared.u32 [%s], %k;
    @%first mbarrier.init.shared::cta.b64 [bar], 1;
    @%first fence.mbarrier_init.release.cluster;
    fence.proxy.async;
    bar.sync 0;
"""
RELEASE, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
LANDED = "w: mbarrier.try_wait.parity.shared::cta.b64 %w, [bar], 0; @!%w bra w;"
EXPECT = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;"
MBARRIER = "mbarrier::complete_tx::bytes"
DONE = "@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0;"
READS = {
    "load": "ld.global.u32 %v, [%at];",
    "load.nc": "ld.global.nc.u32 %v, [%at];",
    "strong load": "ld.acquire.gpu.global.u32 %v, [%at];",
    "byte load": "ld.global.u8 %v, [%at+1];",
    "cp.async": "cp.async.ca.shared.global [%s], [%at], 4; cp.async.wait_all;",
    "bulk copy": EXPECT + f"@%first cp.async.bulk.shared::cta.global.{MBARRIER} [tile], [%a], 256, [bar];" + LANDED,
    "multicast": "mov.b32 %v, 1;" + EXPECT
    + f"@%first cp.async.bulk.shared::cluster.global.{MBARRIER}.multicast::cluster [tile], [%a], 256, [bar], 1;"
    + LANDED,
    "tensor copy": EXPECT
    + f"@%first cp.async.bulk.tensor.1d.shared::cta.global.tile.{MBARRIER} [tile], [%map, {{0}}], [bar];" + LANDED,
}  # fmt: skip
WRITES = {
    "store": "st.global.u32 [%at], %k;",
    "byte store": "st.global.u8 [%at+1], %k;",
    "strong store": "st.release.gpu.global.u32 [%at], %t;",
    "atom": "atom.global.add.u32 %v, [%at], 1;",
    "red": "red.global.add.f32 [%at], %f;",
    "bulk store": "@%first cp.async.bulk.global.shared::cta.bulk_group [%a], [tile], 256;" + DONE,
    "bulk reduction": "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [tile], 256;" + DONE,
    "tensor store": "@%first cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%map, {0}], [tile];" + DONE,
    "tensor reduction":
        "@%first cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%map, {0}], [tile];" + DONE,
}  # fmt: skip
#: Those that do not race with each other.
RELAXED = {"strong load", "strong store", "atom", "red"}
ADDING = RELAXED | {"bulk reduction", "tensor reduction"}


def found(first: str, second: str, schedule: Any, release: str = RELEASE) -> set[str]:
    """The findings for a grid that does the second while that which does the first may still run."""
    device = Emulator("sm_100a", schedule)
    array = device.array(np.arange(1000, 1256, dtype=np.uint32))
    tensormap = TensorMap.tiled("u32", array.address, [64], [0], [64]).encode()
    parameters = ".param .u64 a, .param .align 64 .b8 map[128]"
    bodies = HEAD.replace("{}", "4000") + release + first, HEAD.replace("{}", "99") + second
    kernels = [Kernel.from_ptx(module(body + " ret;", parameters)) for body in bodies]
    reports = device.launch_overlapping([Launch(each, 1, 64, [array, tensormap]) for each in kernels])
    assert all(each.status in ("ok", "findings") for each in reports), [each.summary() for each in reports]
    return {code for each in reports for code in codes(each)}


def race(first: str, second: str) -> bool:
    if first in READS and second in READS:
        return False
    return not {first, second} <= ADDING


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("first", [*READS, *WRITES])
def test_forms_of_access(first: str, schedule: Any) -> None:
    """Every form against a store and a load, in either order, and with a wait."""
    forms = READS | WRITES
    for other in ("store", "load", "load.nc", "red", "tensor reduction"):
        for one, two in ((first, other), (other, first)):
            expected = {"grid-race"} if race(one, two) else set()
            assert found(forms[one], forms[two], schedule) == expected, (one, two)
            stale = {"nc-load"} if two == "load.nc" and one in WRITES else set()
            assert found(forms[one], WAIT + forms[two], schedule) == stale, (one, two)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("write", WRITES)
def test_read_only_loads_of_what_was_written_before_the_release(write: str, schedule: Any) -> None:
    """The next grid begins after that."""
    assert found(WRITES[write] + RELEASE, WAIT + READS["load.nc"], schedule, release="") == set()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_who_has_not_waited_may_know_of_a_wait(schedule: Any) -> None:
    """One warp waits; the others know it from a barrier, or do not."""
    waits = "setp.lt.u32 %p, %t, 32; @!%p bra met;" + WAIT + "met: {} @!%p st.global.u32 [%at], %v;"
    store = WRITES["store"]
    assert found(store, "mov.u32 %v, 5;" + waits.format(""), schedule) == {"grid-race"}
    assert found(store, "mov.u32 %v, 5;" + waits.format("bar.sync 0;"), schedule) == set()
    copy = "setp.ge.u32 %p, %t, 32; @!%p bra met;" + WAIT + "met: {}" + READS["bulk copy"]
    assert found(store, copy.format(""), schedule) == {"grid-race"}
    assert found(store, copy.format("bar.sync 0;"), schedule) == set()
