"""What `KernelBuilder` has for every kernel: each helper in a kernel that is legal, and right in the emulator."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptxgen import Emulator, check
from ptxgen.builder import KernelBuilder, Register, RegisterError, Registers
from ptxgen.builder.structure import Structure
from ptxgen.descriptors import SmemDescriptor
from ptxgen.instr import barrier, bulk, cluster, control, floating, integer, memory, move, tcgen05
from tests.support.paths import ROOT

SCHEDULES = ("eager", "late", "random")


def launched(k: KernelBuilder, size: int, *, schedule: str = "eager", arguments: tuple[object, ...] = ()) -> np.ndarray:
    """What a kernel of one CTA writes to its first parameter, an array of 32-bit words; there must be no finding."""
    k(control.ret())
    assert [each for each in check(k.ptx()) if each.severity == "error"] == []
    emulator = Emulator(k.target, schedule=schedule)  # type: ignore[arg-type]
    out = emulator.empty(size, "u32")
    given = [emulator.array(each) if isinstance(each, np.ndarray) else each for each in arguments]
    report = emulator.launch(k.kernel(), 1, k.threads or 32, [out, *given])
    assert not report.findings, report.summary()
    assert report.ok
    return out.numpy()


def stores(k: KernelBuilder, out: Register, index: Register, value: Register) -> None:
    at = k.reg("b64", "at")
    k(integer.mad_wide(at, index, 4, out, type="u32"))
    k(memory.st(at, value, space="global", type="b32"))


def test_ranges_and_leave() -> None:
    """Sums over ranges with numbers and registers, up and down, nested, and one that ends early."""
    k = KernelBuilder("ranges", "sm_90a", threads=32)
    out, n = k.pointer("out"), k.scalar("u32", "n")
    thread = k.special("tid.x")
    totals = k.regs("b32", 5, "total")
    k(*(move.mov(each, 0, type="u32") for each in totals))
    for i in k.range(n):
        totals[0] += i
    for i in k.range(2, n, 3):
        totals[1] += i
    for i in k.range(5, -1, -1):
        totals[2] += i * i
    for i in k.range(3):
        for j in k.range(i, 3):
            totals[3] += i * 10 + j
    for i in k.range(n):
        k.leave(when=k.compare(i, "==", thread))
        totals[4] += 1
    for number, total in enumerate(totals):
        stores(k, out, thread + 32 * number, total)
    found = launched(k, 160, arguments=(11,)).reshape(5, 32)
    expected = [sum(range(11)), sum(range(2, 11, 3)), 55, sum(10 * i + j for i in range(3) for j in range(i, 3))]
    for row, value in zip(found[:4], expected, strict=True):
        assert np.array_equal(row, np.full(32, value))
    assert np.array_equal(found[4], np.minimum(np.arange(32), 11))
    assert "    setp.ge.u32 %done, %i, %n;" in k.ptx().splitlines()


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("+", lambda a, b: a + b),
        ("-", lambda a, b: a - b),
        ("*", lambda a, b: a * b),
        ("//", lambda a, b: a // b),
        ("%", lambda a, b: a % b),
        ("<<", lambda a, b: a << b),
        (">>", lambda a, b: a >> b),
        ("&", lambda a, b: a & b),
        ("|", lambda a, b: a | b),
        ("^", lambda a, b: a ^ b),
    ],
)
def test_arithmetic(operator: str, expected) -> None:  # type: ignore[no-untyped-def]
    """With a number, with a register, and in place; one instruction each."""
    k = KernelBuilder("arithmetic", "sm_90a", threads=32)
    out, thread = k.pointer("out"), k.special("tid.x")
    a = thread * 7
    before = k.ptx().count(";")
    first, second = expected(a, 5), expected(a, thread + 1) if operator not in ("<<", ">>") else expected(a, thread & 7)
    assert k.ptx().count(";") == before + 3  # one of them for the second operand
    stores(k, out, thread, first)
    stores(k, out, thread + 32, second)
    found = launched(k, 64)
    lanes = np.arange(32, dtype=np.uint32)
    other = (lanes & 7 if operator in ("<<", ">>") else lanes + 1).astype(np.uint32)
    assert np.array_equal(found[:32], expected(lanes * 7, np.uint32(5)))
    assert np.array_equal(found[32:], expected(lanes * 7, other))


def test_floats_and_what_has_no_arithmetic() -> None:
    k = KernelBuilder("floats", "sm_90a", threads=32)
    out, thread = k.pointer("out"), k.special("tid.x")
    x = k.reg("f32", "x")
    k(move.mov(x, 1.5, type="f32"))
    y = x * 2.0 - x
    y += 0.25
    k(floating.add(y, y, y, type="f32"))
    stores(k, out, thread, y)
    assert np.array_equal(launched(k, 32).view(np.float32), np.full(32, 3.5, np.float32))
    for wrong, words in (
        (lambda: x // x, r"registers of .f32 take \+, - and \*"),
        (lambda: out + thread, "one is .b64, the other .b32; convert one"),
        (lambda: k.constant(True) + 1, "arithmetic takes registers of 32 or 64 bits"),
        (lambda: Registers().one("b32", "a") + 1, "arithmetic is for registers of a KernelBuilder"),
        (lambda: k.compare(thread, "=", 1), "k.compare takes <, <=, >, >=, ==, !=, not '='"),
        (lambda: k.leave(), "leave.. stands in the body of a k.range or k.loop"),
        (lambda: next(iter(k.range(0, 3, 0))), "the step must not be 0"),
    ):
        with pytest.raises(RegisterError, match=words):
            wrong()


def test_branches_and_constants() -> None:
    k = KernelBuilder("branches", "sm_90a", threads=32)
    out, thread = k.pointer("out"), k.special("tid.x")
    value = k.reg("b32", "value")
    with k.when(k.compare(thread, "<", 20)):
        with k.when(k.compare(thread & 1, "==", 0)):
            k(move.mov(value, 1, type="u32"))
        with k.otherwise():
            k(move.mov(value, 2, type="u32"))
    with k.otherwise():
        k(move.mov(value, 3, type="u32"))
    k(integer.add(value, value, 10, type="u32").when(k.constant(True)))
    k(integer.add(value, value, 100, type="u32").when(k.constant(False)))
    stores(k, out, thread, value)
    lanes = np.arange(32)
    assert np.array_equal(launched(k, 32), np.where(lanes < 20, 1 + lanes % 2, 3) + 10)
    with (
        pytest.raises(RegisterError, match=r"otherwise\(\) stands directly after the block of a when\(\)"),
        k.otherwise(),
    ):
        pass


def test_a_loop_left_by_break_is_refused() -> None:
    k = KernelBuilder("open", "sm_90a")
    line = test_a_loop_left_by_break_is_refused.__code__.co_firstlineno
    for _ in k.range(3):
        break
    with pytest.raises(RegisterError, match=rf"the loop of test_structure.py:{line + 3} is open: leave it by k.leave"):
        k.ptx()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_roles_elect_and_a_ring(schedule: str) -> None:
    """Warp 0 fills buffers with squares, warps 1 and 2 add them up; an elected thread arrives for each warp."""
    stages, rounds = 3, 8
    k = KernelBuilder("ring", "sm_90a", threads=96)
    out, thread = k.pointer("out"), k.special("tid.x")
    data = k.shared("data", stages * 128)
    ring = k.ring("buffers", stages, producers=32, consumers=2)
    with k.when(k.compare(thread, "==", 0)):
        ring.initialize()
    k(barrier.bar_sync(0))
    lane = thread & 31
    with k.role("producer", 0):
        slot = ring.producer()
        for i in k.range(rounds):
            slot.wait()
            k(memory.st(slot.buffer(data, 128) + lane * 4, i * i + lane, space="shared", type="u32"))
            slot.arrive()
            slot.advance()
    with k.role("consumers", range(1, 3)):
        slot = ring.consumer()
        total, value = k.regs("b32", 2, "sum")
        k(move.mov(total, 0, type="u32"))
        for _ in k.range(rounds):
            slot.wait()
            k(memory.ld(value, slot.buffer(data, 128) + lane * 4, space="shared", type="u32"))
            total += value
            k(barrier.bar_warp_sync("0xffffffff"))
            with k.elect():
                slot.arrive()
            slot.advance()
        stores(k, out, thread - 32, total)
    found = launched(k, 64, schedule=schedule)
    lanes = np.arange(64) % 32
    assert np.array_equal(found, rounds * lanes + sum(i * i for i in range(rounds)))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_ring_that_copies_fill(schedule: str) -> None:
    """One thread copies 6 rows of 128 bytes into 2 buffers by cp.async.bulk, a warp adds them up."""
    rows, stages = 6, 2
    k = KernelBuilder("copies", "sm_90a", threads=64)
    out, x, thread = k.pointer("out"), k.pointer("x"), k.special("tid.x")
    data = k.shared("data", stages * 128, align=128)
    ring = k.ring("rows", stages, consumers=32)
    with k.when(k.compare(thread, "==", 0)):
        ring.initialize()
    k(barrier.bar_sync(0))
    with k.role("load", 0), k.elect():
        slot, source = ring.producer(), k.reg("b64", "source")
        for i in k.range(rows):
            slot.wait()
            full = slot.expect(128)
            k(integer.mad_wide(source, i, 128, x, type="u32"))
            k(bulk.load(slot.buffer(data, 128), source, 128, full, dst="shared::cluster"))
            slot.advance()
    with k.role("sum", 1):
        slot, total, value = ring.consumer(), k.reg("b32", "total"), k.reg("b32", "value")
        k(move.mov(total, 0, type="u32"))
        for _ in k.range(rows):
            slot.wait()
            k(memory.ld(value, slot.buffer(data, 128) + (thread & 31) * 4, space="shared", type="u32"))
            total += value
            slot.arrive()
            slot.advance()
        stores(k, out, thread - 32, total)
    given = np.random.default_rng(0).integers(0, 1 << 20, (rows, 32), dtype=np.uint32)
    assert np.array_equal(launched(k, 32, schedule=schedule, arguments=(given,)), given.sum(axis=0, dtype=np.uint32))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrivals_of_a_cluster_on_the_ring_of_its_leader(schedule: str) -> None:
    """A word of each of two CTAs, which both write to the leader's shared memory before they arrive there."""
    k = KernelBuilder("cluster_ring", "sm_90a", threads=32, cluster=(2, 1, 1))
    out, thread, rank = k.pointer("out"), k.special("tid.x"), k.special("cluster_ctarank")
    words, ring = k.shared("words", 8), k.ring("words", 1, producers=2)

    def everyone() -> None:
        k(cluster.arrive(sem="release", aligned=True), cluster.wait(acquire=True, aligned=True))

    first = k.compare(thread, "==", 0)
    with k.when(first):
        ring.initialize()
    everyone()
    with k.when(first):
        remote, value = k.reg("b32", "remote"), k.reg("b32", "value")
        k(cluster.mapa(remote, words + rank * 4, 0, space="shared::cluster", type="u32"))
        k(memory.st(remote, rank + 7, space="shared::cluster", type="b32"))
        ring.producer().arrive(cta=0)
        with k.when(k.compare(rank, "==", 0)):
            ring.consumer().wait()
            for word in range(2):
                k(memory.ld(value, f"{words}+{4 * word}", space="shared", type="b32"))
                k(memory.st(f"{out}+{4 * word}", value, space="global", type="b32"))
    everyone()
    k(control.ret())
    emulator = Emulator("sm_90a", schedule=schedule)  # type: ignore[arg-type]
    found = emulator.empty(2, "u32")
    report = emulator.launch(k.kernel(), 2, 32, [found], cluster=2)
    assert report.status == "ok", report.summary()
    assert list(found.numpy()) == [7, 8]


def test_descriptors_at_run_time() -> None:
    """Of a tile, and of addresses that registers hold: what the codec encodes for each."""
    layout = SmemDescriptor(start_address=0, stride_byte_offset=1024, swizzle="128B")
    k = KernelBuilder("descriptors", "sm_100a", threads=32)
    out, thread = k.pointer("out"), k.special("tid.x")
    tile = k.tile("tile", 8192, layout)
    at = k.reg("b64", "at")
    k(integer.mad_wide(at, thread, 8, out, type="u32"))
    k(memory.st(at, tile.descriptor(tile.address + thread * 32), space="global", type="u64"))
    with k.when(k.compare(thread, "==", 0)):
        k(memory.st(f"{out}+256", tile.descriptor(), space="global", type="u64"))
        stores(k, out, k.special("laneid") + 66, tile.address)
    found = launched(k, 67)
    base = int(found[66])
    words = found[:66].view(np.uint64)
    for lane in range(32):
        expected = SmemDescriptor(start_address=base + 32 * lane, stride_byte_offset=1024, swizzle="128B").encode()
        assert int(words[lane]) == expected
    assert int(words[32]) == SmemDescriptor(start_address=base, stride_byte_offset=1024, swizzle="128B").encode()
    with pytest.raises(RegisterError, match="the layout must have start address 0, not 0x400"):
        k.tile("other", 16, SmemDescriptor(start_address=1024))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_columns_of_tensor_memory(schedule: str) -> None:
    """Store 8 columns, 4 at a time, and load them 2 at a time."""
    k = KernelBuilder("columns", "sm_100a", threads=32)
    out, thread = k.pointer("out"), k.special("tid.x")
    slot, tensor = k.shared("slot", 4), k.reg("b32", "tensor")
    k(tcgen05.alloc(slot, 32, cta_group=1, space="shared::cta"))
    k(barrier.bar_warp_sync("0xffffffff"))
    k(memory.ld(tensor, slot, space="shared", type="b32"))
    for column, registers in k.tmem_store(tensor, 8, width=4):
        for number, register in enumerate(registers):
            k(integer.mad(register, thread, 100, column + number, half="lo", type="u32"))
    for column, registers in k.tmem_load(tensor, 8, width=2, type="u32"):
        for number, register in enumerate(registers):
            assert register.type == "u32"
            stores(k, out, thread * 8 + (column + number), register)
    k(tcgen05.relinquish_alloc_permit(cta_group=1), tcgen05.dealloc(tensor, 32, cta_group=1))
    found = launched(k, 256, schedule=schedule)
    assert np.array_equal(found.reshape(32, 8), 100 * np.arange(32)[:, None] + np.arange(8))
    with pytest.raises(RegisterError, match="10 columns are not a multiple of 4"):
        next(iter(k.tmem_load(tensor, 10, width=4)))


def test_the_page_names_what_there_is() -> None:
    """Every `k.NAME` of docs/builder.md is a method, and every public method is there."""
    page = (ROOT / "docs" / "builder.md").read_text()
    named = set(re.findall(r"\bk\.(\w+)", page))
    assert not [each for each in named if not hasattr(KernelBuilder, each)]
    public = {name for name in vars(Structure) if not name.startswith("_")}
    helpers = public - vars(KernelBuilder).keys()
    assert helpers - {"arithmetic", "warp"} <= named
