"""Who wrote a byte, and from what: of copies, of stores of registers, and of the shipped GEMMs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device.placed import ElementError, Placed, parse_element
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.emulator.observers import Provenance
from ptxgen.emulator.observers.why import Step, Why
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob
from tests.cli.launch.test_plain import TILE

#: Warp 1 stores what warp 0 loads through shared memory; lane i gets the value of lane i ^ 1.
EXCHANGE = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry exchange(.param .u64 x, .param .u64 y)
.reqntid 64
{
    .shared .align 16 .b8 buffer[128];
    .reg .pred %first;
    .reg .b32 %thread, %lane, %at, %value, %other;
    .reg .b64 %x, %y, %offset;
    mov.u32 %thread, %tid.x;
    and.b32 %lane, %thread, 31;
    setp.lt.u32 %first, %thread, 32;
    mov.u32 %at, buffer;
    mad.lo.u32 %at, %lane, 4, %at;
    mul.wide.u32 %offset, %lane, 4;
    ld.param.u64 %x, [x];
    add.u64 %x, %x, %offset;
    @!%first bra $second;
    ld.global.b32 %value, [%x];
    st.shared.b32 [%at], %value;
$second:
    bar.sync 0;
    @%first ret;
    ld.shared.b32 %value, [%at];
    ld.param.u64 %y, [y];
    add.u64 %y, %y, %offset;
    shfl.sync.bfly.b32 %other, %value, 1, 31, 0xffffffff;
    st.global.b32 [%y], %other;
    ret;
}
"""


def line(text: str, part: str) -> int:
    return next(number for number, each in enumerate(text.splitlines(), 1) if part in each)


def texts(step: Step) -> list[str]:
    return [each.strip() for each in str(step).splitlines()]


def multiplied_elements(lines: list[str]) -> list[str]:
    """What MMAs multiplied for one element of D."""
    return [each for each in lines if " along K: " in each]


def test_the_writers_of_a_kernel_of_stores() -> None:
    history = Provenance()
    emulator = Emulator("sm_90a", observers=[history])
    x, y = emulator.array(np.arange(32, dtype=np.uint32)), emulator.empty(32, "u32")
    assert emulator.launch(Kernel.from_ptx(EXCHANGE), 1, 64, [x, y]).ok
    made = history.writer_of_global(y.address + 4 * 5 + 3)
    assert made is not None
    assert str(made) == f"st.global (line {line(EXCHANGE, 'st.global')}, warp 1, lane 5, CTA 0)"
    made = history.writer_of_shared(1024 + 4 * 7)
    assert made is not None
    assert (made.access.line, made.access.warp, made.access.lanes) == (line(EXCHANGE, "st.shared"), 0, 1 << 7)
    assert history.writer_of_global(x.address) is None
    assert history.writer_of_shared(1024 + 128) is None
    with pytest.raises(LookupError, match=r"no CTA \(3, 0, 0\) has begun"):
        history.writer_of_shared(1024, cta=3)


def test_registers_are_walked_through_shuffles_and_shared_memory() -> None:
    history = Provenance()
    emulator = Emulator("sm_90a", observers=[history])
    arrays = {"x": emulator.array(np.arange(32, dtype=np.uint32)), "y": emulator.empty(32, "u32")}
    emulator.launch(Kernel.from_ptx(EXCHANGE), 1, 64, list(arrays.values()))
    placed = {name: Placed.of(name, each) for name, each in arrays.items()}
    lines = texts(Why(history, placed).explain(placed["y"], (5,)))
    assert lines[0].startswith("y[5] (0x")
    assert lines[1].startswith(f"st.global (line {line(EXCHANGE, 'st.global')}, warp 1, lane 5")
    assert lines[2].startswith(f"ld.shared (line {line(EXCHANGE, 'ld.shared')}, warp 1, CTA 0)")  # of any lane
    assert lines[3] == "buffer of CTA 0"
    assert lines[4].startswith(f"st.shared (line {line(EXCHANGE, 'st.shared')}, warp 0, lane ")
    assert any(each.startswith("ld.global") for each in lines)
    assert lines[-1].endswith(", an input")
    assert lines[-1].startswith("x[")


def test_copies_are_walked_granule_by_granule() -> None:
    history = Provenance()
    emulator = Emulator("sm_90a", observers=[history])
    a, out = emulator.array(np.ones((32, 128), np.float16)), emulator.empty((8, 64), "f16")
    tensormap = TensorMap.tiled("f16", a, (128, 32), (256,), (64, 8), swizzle="128B")
    assert emulator.launch(Kernel.from_ptx(TILE), 1, 32, [tensormap, out]).ok
    placed = {"a": Placed.of("a", a), "out": Placed.of("out", out)}
    lines = texts(Why(history, placed).explain(placed["out"], (3, 5)))
    assert lines[1].endswith(", bulk store")
    assert lines[2] == "box of CTA 0"
    assert lines[3].endswith("tensor copy, completes on phase 0 of full")
    # Chunk 0 of row 3 holds chunk 3 of the box, whose first element is a[8, 32].
    assert lines[4] == "a[11, 56:64], an input"


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("kernel", "mma", "box_of_a", "box_of_b"),
    [
        ("blackwell/tilus-roles", "tcgen05.mma", "a[0:128, 0:192]", "b["),
        ("blackwell/clc", "tcgen05.mma", "a[0:256, 0:192]", "b["),
        ("hopper/persistent", "wgmma.mma_async", "a[0:128, 0:192]", "b["),
    ],
)
def test_an_element_of_a_gemm(kernel: str, mma: str, box_of_a: str, box_of_b: str, schedule: Schedule) -> None:
    history = Provenance()
    plan = find(kernel).plan()
    emulator = Emulator(plan.target, schedule=schedule, observers=[history])
    result = GemmJob(plan, 256, 256, 192).run(emulator)
    assert result.ok
    lines = texts(Why(history, result.arrays).explain(*parse_element("C[3,5]", result.arrays)))
    assert len(lines) < 40
    multiplied = [each for each in lines if each.startswith(mma)]
    assert len(multiplied) == 1
    assert ", 12 of them (lines " in multiplied[0]  # K in steps of 16
    assert multiplied[0].endswith("the first overwrites")
    if ".32x32b." in plan.text:  # a lane has a row there
        assert any("of tensor memory, lane 3, column 5" in each for each in lines)
    # From the accumulator's cell or register down to each element that was multiplied for it.
    assert multiplied_elements(lines) == ["row 3 of A along K: a[3, 0:192]", "column 5 of B along K: b[5, 0:192]"]
    at = lines.index("a")
    assert lines[at + 1].startswith("cp.async.bulk.tensor")
    assert lines[at + 2] == f"{box_of_a}, an input"
    assert lines[lines.index("b") + 2].startswith(box_of_b)


def test_a_missing_k_block_is_seen() -> None:
    """Of a kernel that overwrites its accumulator with each K block, only the last is found."""
    plan = find("blackwell/tilus-roles").plan()
    first = next(each for each in plan.text.splitlines() if "tcgen05.mma." in each)
    text = plan.text.replace(first, first.rsplit(",", 1)[0] + ", 0;")
    history = Provenance()
    result = GemmJob(plan, 128, 256, 256).run(Emulator(plan.target, observers=[history]), text=text)
    assert result.wrong
    lines = texts(Why(history, result.arrays).explain(result.arrays["c"], (3, 5)))
    assert "a[0:128, 192:256], an input" in lines
    assert multiplied_elements(lines)[0] == "row 3 of A along K: a[3, 192:256]"


def test_elements_of_a_layout_that_is_misread() -> None:
    """A descriptor with half of SBO makes row 9 of A out of row 5."""
    plan = find("hopper/wgmma").plan()
    value = "0x4000004000010000"
    assert value in plan.text
    history = Provenance()
    text = plan.text.replace(value, "0x4000002000010000")
    result = GemmJob(plan, 64, 128, 64).run(Emulator(plan.target, observers=[history]), text=text)
    assert result.wrong
    lines = texts(Why(history, result.arrays).explain(result.arrays["c"], (9, 14)))
    assert multiplied_elements(lines) == ["row 9 of A along K: a[5, 0:64]", "column 14 of B along K: b[10, 0:64]"]


def test_tensor_memory_has_writers() -> None:
    plan = find("blackwell/tilus-roles").plan()
    history = Provenance()
    GemmJob(plan, 128, 256, 64).run(Emulator(plan.target, observers=[history]))
    made = history.writer_of_tensor(67, 5)
    assert made is not None
    assert made.access.opcode == "tcgen05.mma"
    assert history.writer_of_tensor(0, 511) is None
    lines = [number for number, each in enumerate(plan.text.splitlines(), 1) if "tcgen05.mma." in each]
    assert made.access.line == lines[-1]
    assert all(a < b for a, b in pairwise(lines))


def test_a_launch_that_is_too_long_is_cut() -> None:
    history = Provenance(most=1)
    emulator = Emulator("sm_90a", observers=[history])
    x, y = emulator.array(np.arange(32, dtype=np.uint32)), emulator.empty(32, "u32")
    emulator.launch(Kernel.from_ptx(EXCHANGE), 1, 64, [x, y])
    placed = {"y": Placed.of("y", y)}
    assert history.truncated
    assert "only the first 1 events were recorded" in str(Why(history, placed).explain(placed["y"], (5,)))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("y", r"an element is NAME\[INDEX, ...\], such as c\[3,5\], not 'y'"),
        ("z[3]", "there is no array 'z'; there are y"),
        ("y[3, 4]", r"y has shape \(4,\), and no element \[3, 4\]"),
        ("y[4]", r"y has shape \(4,\), and no element \[4\]"),
    ],
)
def test_elements_that_there_are_not(text: str, sentence: str) -> None:
    arrays = {"y": Placed.packed("y", 4096, (4,), 4)}

    def address() -> int:
        array, index = parse_element(text, arrays)
        return array.address_of(index)

    with pytest.raises(ElementError, match=sentence):
        address()


def test_no_launch_no_answer() -> None:
    with pytest.raises(LookupError, match="no launch has been recorded yet"):
        Why(Provenance(), {})
