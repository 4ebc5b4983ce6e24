"""Memory that launches take and leave: the snapshot, what is freed at the end of a launch."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.emulator.memory import GlobalMemory, MemoryFault
from ptxgen.emulator.state.machine import Machine

TEXT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry add(.param .u64 x)
{
    .reg .b32 %t, %v;
    .reg .b64 %x;
    .shared .align 4 .b32 tile[32];
    ld.param.u64 %x, [x];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %x, %t, 4, %x;
    ld.global.u32 %v, [%x];
    st.shared.u32 [tile], %v;
    add.u32 %v, %v, 1;
    bar.sync 0;
    st.global.u32 [%x], %v;
    ret;
}
"""


def _machines() -> list[Machine]:
    # By type: isinstance asks objects of other libraries for __class__, and some of torch's warn then.
    return [each for each in gc.get_objects() if type(each) is Machine]


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_launch_is_freed_at_its_end(schedule: str, checks: bool) -> None:
    kernel = Kernel.from_ptx(TEXT)
    emulator = Emulator("sm_90a", schedule=schedule, checks=checks)  # type: ignore[arg-type]
    array = emulator.array(np.zeros(32, np.uint32))
    gc.collect()
    before = _machines()
    gc.disable()
    try:
        for _ in range(3):
            emulator.launch(kernel, 1, 32, [array])
        assert _machines() == before
    finally:
        gc.enable()
    assert array.numpy().tolist() == [3] * 32


def _same(memory: GlobalMemory, copy: GlobalMemory) -> bool:
    size = len(copy.data)
    kinds = np.array_equal(memory.kind[:size], copy.kind) and not memory.kind[size:].any()
    return np.array_equal(memory.written(), copy.written()) and memory.used == copy.used and kinds


def test_a_copy_takes_the_place_of_an_earlier_one() -> None:
    memory, sizes = GlobalMemory(), (100, 5000, 1 << 16, 40, 1 << 18, 7)
    copy, addresses = memory.copy(), []
    for number, size in enumerate(sizes):
        addresses.append(memory.allocate(size))
        memory.view(addresses[-1], size)[:] = number
        copy = memory.copy(copy)
        assert _same(memory, copy)
    first = copy
    memory.view(addresses[0], 100)[:] = 9
    assert not _same(memory, copy)
    copy = memory.copy(copy)
    assert copy is first
    assert _same(memory, copy)
    memory.free(addresses[1])
    copy = memory.copy(copy)
    assert _same(memory, copy)
    with pytest.raises(MemoryFault):
        copy.offsets(np.array([[addresses[1]]], np.uint64), 4, None, "a load")


def test_a_copy_of_a_copy_is_of_its_own() -> None:
    memory = GlobalMemory()
    address = memory.allocate(64)
    before = memory.copy()
    again = before.copy()
    again.view(address, 64)[:] = 1
    again.free(address)
    assert _same(memory, before)
    assert not _same(memory, again)
