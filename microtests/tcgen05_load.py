"""tcgen05.ld, st and their waits: every shape and repetition, packing, reductions.

References from PTX ISA 9.7.16.2.3.1 (figures 183 to 187) and 9.7.16.8. Tensor memory is filled and dumped by 32x32b,
which gives thread t of a warp lane t, and register r column r; 32x32b itself is held against the others by tcgen05.cp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.inputs import words
from microtests.harness.tensor import LANES, Tensor
from ptxgen.builder import Register
from ptxgen.instr import tcgen05

#: By shape: 32-bit words of a lane, and registers, of one repetition; the most repetitions (tables 49 and 50).
_SHAPES = {
    "32x32b": (1, 1, 128),
    "16x64b": (2, 1, 128),
    "16x128b": (4, 2, 64),
    "16x256b": (8, 4, 32),
    "16x32bx2": (1, 1, 128),
}


def places(shape: str, num: int, split: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(lane, column) of [register, thread of the warp].

    The shapes of 16 lanes and 64, 128 or 256 bits are made of pieces of 8 lanes by 1, 4 or 8 columns, over which the
    threads go lane by lane: 16x64b has one register for two such pieces, whose threads take turns.
    """
    thread = np.arange(32)
    rows, columns = [], []
    for register in range(_SHAPES[shape][1] * num):
        if shape == "32x32b":
            rows.append(thread)
            columns.append(np.full(32, register))
        elif shape == "16x32bx2":
            rows.append(thread % 16)
            columns.append(np.where(thread < 16, register, register + split))
        elif shape == "16x64b":
            quad, inner = thread // 4, thread % 4
            rows.append(quad + 8 * (inner & 1))
            columns.append(2 * register + (inner >> 1))
        elif shape == "16x128b":
            repeat, half = divmod(register, 2)
            rows.append(thread // 4 + 8 * half)
            columns.append(4 * repeat + thread % 4)
        else:
            repeat, inner = divmod(register, 4)
            half, low = divmod(inner, 2)
            rows.append(thread // 4 + 8 * half)
            columns.append(8 * repeat + 2 * (thread % 4) + low)
    return np.array(rows), np.array(columns)


def _cases() -> Iterator[tuple[str, int, int, bool]]:
    """Shape, repetitions, the lane of a quarter that is the first, whether two columns are packed."""
    for shape, (_, _, most) in _SHAPES.items():
        for lane in (0,) if shape == "32x32b" else (0, 16):
            for packed in (False, True):
                num = 1
                while num <= most:
                    # All repetitions from the first lane, few from the other: it costs time.
                    if not lane or num in (1, 4, 16):
                        yield shape, num, lane, packed
                    num *= 2


class Fragments:
    """What the registers of four warps hold of cells, or give to them."""

    def __init__(self, shape: str, num: int, lane: int, packed: bool) -> None:
        self.shape, self.num, self.lane = shape, num, lane
        width = _SHAPES[shape][0] * num * (2 if packed else 1)
        #: The second half of 16x32bx2 lies behind the first, and a gap.
        gap = 3 if width < 256 else 0
        self.split = width + gap if shape == "16x32bx2" else 0
        self.first = 2 if width < 256 else 0
        self.columns = self.first + self.split + width
        rows, columns = places(shape, num)
        if packed:
            columns = 2 * columns
        columns = columns + self.first
        if self.split:
            columns[:, 16:] += self.split
        quarter = 32 * np.arange(4)[:, None]
        #: [register, thread of the CTA]
        self.rows = (rows[:, None, :] + lane + quarter[None]).reshape(len(rows), LANES)
        self.places = np.tile(columns[:, None, :], (1, 4, 1)).reshape(len(rows), LANES)

    @property
    def count(self) -> int:
        return len(self.rows)

    def address(self, tensor: Tensor) -> str:
        return f"[{tensor.mine}+{(self.lane << 16) + self.first}]"


def _store(tensor: Tensor, registers: list[Register], expected: np.ndarray, **options: Any) -> None:
    """Registers of all threads must be `expected` [register, thread]."""
    draft = tensor.draft
    at = draft.offset(draft.output(expected.astype(np.uint32), **options), draft.thread, 4)
    for number, register in enumerate(registers):
        draft.store(at, register, 4 * LANES * number)


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, shape, dtype=np.uint32)


@microtest(*_cases(), only_if=lambda shape, num, lane, packed: Fragments(shape, num, lane, packed).columns <= 512)
def ld(draft: Draft, shape: Any, num: Any, lane: int, packed: bool) -> None:
    """Which cells each thread gets; .pack::16b puts the lower halves of two columns into a register."""
    fragments = Fragments(shape, num, lane, packed)
    tensor = Tensor(draft, fragments.columns)
    cells = _random(51, LANES, fragments.columns)
    tensor.fill(cells)
    found, where = draft.regs("b32", fragments.count, "found"), fragments.address(tensor)
    if fragments.split:
        draft(tcgen05.ld_halves(found, where, fragments.split, num=num, pack=packed))
    else:
        draft(tcgen05.ld(found, where, shape=shape, num=num, pack=packed))
    draft(tcgen05.wait(what="ld"))
    expected = cells[fragments.rows, fragments.places]
    if packed:
        expected = expected & 0xFFFF | cells[fragments.rows, fragments.places + 1] << 16
    _store(tensor, found, expected)
    tensor.end()


@microtest(*_cases(), only_if=lambda shape, num, lane, packed: Fragments(shape, num, lane, packed).columns <= 512)
def st(draft: Draft, shape: Any, num: Any, lane: int, unpacked: bool) -> None:
    """Which cells each thread changes, and no others; .unpack::16b takes a register to the lower halves of two.

    What it leaves in the upper halves is not documented, and not compared.
    """
    fragments = Fragments(shape, num, lane, unpacked)
    columns = fragments.columns + fragments.columns % 2
    tensor = Tensor(draft, columns)
    cells, given = _random(52, LANES, columns), _random(53, fragments.count, LANES)
    tensor.fill(cells)
    at = draft.offset(draft.input(given), draft.thread, 4)
    registers = draft.regs("b32", fragments.count, "given")
    for number, register in enumerate(registers):
        draft.load_into(register, at, 4 * LANES * number)
    if fragments.split:
        draft(tcgen05.st_halves(fragments.address(tensor), fragments.split, registers, num=num, unpack=unpacked))
    else:
        draft(tcgen05.st(fragments.address(tensor), registers, shape=shape, num=num, unpack=unpacked))
    draft(tcgen05.wait(what="st"))
    if unpacked:
        cells[fragments.rows, fragments.places] = given & 0xFFFF
        cells[fragments.rows, fragments.places + 1] = given >> 16
        tensor.dump(cells & 0xFFFF, low=True)
    else:
        cells[fragments.rows, fragments.places] = given
        tensor.dump(cells)
    tensor.end()


@microtest()
def st_mixed(draft: Draft) -> None:
    """Constants among the registers of a store; negative distance of the halves."""
    tensor = Tensor(draft, 16)
    cells = _random(54, LANES, 16)
    tensor.fill(cells)
    draft(tcgen05.st_halves(f"[{tensor.mine}+12]", -8, [draft.thread, 77], num=2), tcgen05.wait(what="st"))
    for thread in range(LANES):
        lane = thread // 32 * 32 + thread % 16
        column = 12 if thread % 32 < 16 else 4
        cells[lane, column : column + 2] = thread, 77
    tensor.dump(cells)
    tensor.end()


@microtest("plain", "relative")
def ld_own_quarter(draft: Draft, way: str) -> None:
    """The lanes of an address are those of the warp's own quarter."""
    tensor = Tensor(draft, 32)
    cells = _random(55, LANES, 32)
    tensor.fill(cells)
    (found,) = registers = draft.regs("b32", 1, "found")
    draft(tcgen05.ld(registers, f"[{tensor.mine if way == 'plain' else tensor.base}+31]", shape="32x32b", num=1))
    draft(tcgen05.wait(what="ld"))
    _store(tensor, [found], cells[:, 31][None])
    tensor.end()


@microtest()
def wait_for_several(draft: Draft) -> None:
    """One wait is for all loads, or all stores, before it; stores that were waited for are seen by loads."""
    tensor = Tensor(draft, 32)
    cells = _random(56, LANES, 32)
    tensor.fill(cells)
    first, second = draft.regs("b32", 4), draft.regs("b32", 4)
    for registers, column in ((first, 0), (second, 20)):
        draft(tcgen05.ld(registers, f"[{tensor.mine}+{column}]", shape="32x32b", num=4))
    draft(tcgen05.wait(what="ld"))
    for registers, column in ((second, 0), (first, 20)):
        draft(tcgen05.st(f"[{tensor.mine}+{column}]", registers, shape="32x32b", num=4))
    draft(tcgen05.wait(what="st"))
    swapped = cells.copy()
    swapped[:, 0:4], swapped[:, 20:24] = cells[:, 20:24], cells[:, 0:4]
    tensor.dump(swapped)
    tensor.end()


# Loads with a reduction.


def _key(word: int) -> int:
    """.f32 words in the order of their values, -0 before +0."""
    return -(word & 0x7FFFFFFF) - 1 if word >> 31 else word


def reduced(row: list[int], op: str, type: str, absolute: bool, nan: bool) -> int:
    """min or max of words; NaNs count only with .NaN, and where there is nothing else (9.7.3, min and max)."""
    pick = min if op == "min" else max
    if type == "u32":
        return pick(row)
    if type == "s32":
        return pick(row, key=lambda word: word - (word >> 31 << 32))
    numbers = [word & 0x7FFFFFFF for word in row] if absolute else row
    known = [word for word in numbers if word & 0x7FFFFFFF <= 0x7F800000]
    if not known or (nan and len(known) < len(numbers)):
        return 0x7FFFFFFF
    return pick(known, key=_key)


_REDUCTIONS = (
    *((op, type, False, False) for op in ("min", "max") for type in ("u32", "s32")),
    *((op, "f32", absolute, nan) for op in ("min", "max") for absolute in (False, True) for nan in (False, True)),
)


@microtest(
    *(
        (shape, num, *reduction)
        for shape in ("32x32b", "16x32bx2")
        for reduction in _REDUCTIONS
        for num in (2, 4, 8, 16, 32, 64, 128)
    )
)
def ld_red(draft: Draft, shape: str, num: Any, op: Any, type: Any, absolute: bool, nan: bool) -> None:
    """The least or greatest of a thread's columns comes with them."""
    fragments = Fragments(shape, num, 0, False)
    tensor = Tensor(draft, fragments.columns)
    rng = np.random.default_rng(57)
    cells = words(type, 32, LANES * fragments.columns, rng).reshape(LANES, -1)
    if type == "f32":  # lanes of NaNs alone, and of zeros of both signs
        cells[3], cells[20] = 0xFFC12345, 0x7F800001
        cells[5] = rng.choice(np.array([0, 0x80000000], np.uint32), fragments.columns)
    tensor.fill(cells)
    found, result = draft.regs("b32", fragments.count, "found"), draft.reg("b32", "result")
    options = {"num": num, "op": op, "type": type, "abs": absolute, "NaN": nan}
    if fragments.split:
        draft(tcgen05.ld_red_halves(found, result, fragments.address(tensor), fragments.split, **options))
    else:
        draft(tcgen05.ld_red(found, result, fragments.address(tensor), **options))
    draft(tcgen05.wait(what="ld"))
    expected = cells[fragments.rows, fragments.places]
    least = [reduced([int(word) for word in column], op, type, absolute, nan) for column in expected.T]
    _store(tensor, [*found, result], np.array([*expected, least], np.uint32))
    tensor.end()
