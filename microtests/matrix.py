"""8x8 matrices between shared memory and registers. References from PTX ISA 9.7.14.5.15 to 9.7.14.5.17."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from ptxgen.instr import matrix

_LANES = np.arange(32)


def _slots(seed: int) -> np.ndarray:
    """The rows lie in any order, with gaps: where the row of each lane is."""
    return np.random.default_rng(seed).permutation(64)[:32].astype(np.uint32)


def _fragments(rows: np.ndarray, num: int, trans: bool) -> np.ndarray:
    """Registers [num, lane] of `num` matrices of 8 rows of 8 elements."""
    found = []
    for number in range(num):
        tile = rows[8 * number : 8 * number + 8]
        tile = tile.T if trans else tile
        low, high = tile[_LANES // 4, 2 * (_LANES % 4)], tile[_LANES // 4, 2 * (_LANES % 4) + 1]
        found.append(low.astype(np.uint32) | high.astype(np.uint32) << 16)
    return np.array(found)


@microtest(*each(matrix.ldmatrix))
def ldmatrix(draft: Draft, word: Word) -> None:
    """Rows from any address; the lanes that give no row may have any."""
    made: Any = word.made
    rng = np.random.default_rng(21)
    slots, memory = _slots(22), rng.integers(0, 2**16, (64, 8)).astype(np.uint16)
    draft.launch(block=32)
    tid = draft.thread
    box = draft.shared(1024)
    draft.copy_in(box, memory)
    slot = draft.load(draft.offset(draft.input(slots), tid, 4), "b32")
    place = draft.offset(box, slot, 16)
    registers = draft.regs("b32", made.num)
    draft(like(made, registers, f"[{place if made.space else draft.generic(place)}]"))
    out = draft.output(_fragments(memory[slots], made.num, made.trans))
    for number, register in enumerate(registers):
        draft.store(draft.offset(out, tid, 4), register, 128 * number)


@microtest(*each(matrix.stmatrix))
def stmatrix(draft: Draft, word: Word) -> None:
    """Rows to any address; the memory between them stays as it is."""
    made: Any = word.made
    rng = np.random.default_rng(23)
    slots, before = _slots(24), rng.integers(0, 2**16, (64, 8)).astype(np.uint16)
    rows = rng.integers(0, 2**16, (8 * made.num, 8)).astype(np.uint16)
    after = before.copy()
    after[slots[: 8 * made.num]] = rows
    draft.launch(block=32)
    tid = draft.thread
    box = draft.shared(1024)
    draft.copy_in(box, before)
    place = draft.offset(box, draft.load(draft.offset(draft.input(slots), tid, 4), "b32"), 16)
    given = draft.offset(draft.input(_fragments(rows, made.num, made.trans)), tid, 4)
    registers = []
    for number in range(made.num):
        register = draft.reg("b32")
        draft.load_into(register, given, 128 * number)
        registers.append(register)
    draft(like(made, f"[{place if made.space else draft.generic(place)}]", registers))
    draft.copy_out(box, draft.output(after), 1024)


@microtest()
def movmatrix(draft: Draft) -> None:
    """Transposed, from registers to registers."""
    tile = np.random.default_rng(25).integers(0, 2**16, (8, 8)).astype(np.uint16)
    draft.launch(block=32)
    tid, found = draft.thread, draft.reg("b32")
    given = draft.load(draft.offset(draft.input(_fragments(tile, 1, False)[0]), tid, 4), "b32")
    draft(matrix.movmatrix(found, given))
    draft.store(draft.offset(draft.output(_fragments(tile, 1, True)[0]), tid, 4), found)


# Bytes, and what is unpacked into them: no Hopper has it.

_NARROW = (matrix.ldmatrix_m16n16, matrix.ldmatrix_m8n16_unpack, matrix.ldmatrix_m16n16_unpack)


def _bytes_of(rows: np.ndarray, source: str) -> np.ndarray:
    """Sixteen elements of each row of 16 bytes: bytes, or the lowest bits of the row in sixes or fours."""
    if not source:
        return rows
    bits = {"b6x16_p32": 6, "b4x16_p64": 4}[source]
    numbers = [int.from_bytes(row.tobytes(), "little") for row in rows]
    return np.array([[number >> bits * at & ((1 << bits) - 1) for at in range(16)] for number in numbers], np.uint8)


def _bytes_fragments(rows: np.ndarray, num: int, tall: bool) -> np.ndarray:
    """Registers [n, lane]: four columns of a row; of 16x16, transposed, those of the row eight below follow."""
    found = []
    height = 16 if tall else 8
    for number in range(num):
        tile = rows[height * number : height * number + height]
        tile = tile.T if tall else tile
        for half in range(2 if tall else 1):
            four = tile[(_LANES // 4 + 8 * half)[:, None], 4 * (_LANES % 4)[:, None] + np.arange(4)]
            found.append(np.ascontiguousarray(four).view(np.uint32)[:, 0])
    return np.array(found)


@microtest(*(Word(made) for form in _NARROW for made in form.variants()))
def ldmatrix_bytes(draft: Draft, word: Word) -> None:
    """16x16 bytes, transposed; elements of 6 and 4 bits, each into a byte."""
    made: Any = word.made
    tall = "m16n16" in made.form.key
    slots, memory = _slots(26), np.random.default_rng(27).integers(0, 256, (64, 16)).astype(np.uint8)
    draft.launch(block=32)
    tid = draft.thread
    box = draft.shared(1024)
    draft.copy_in(box, memory)
    place = draft.offset(box, draft.load(draft.offset(draft.input(slots), tid, 4), "b32"), 16)
    expected = _bytes_fragments(_bytes_of(memory[slots], getattr(made, "src", "")), made.num, tall)
    registers = draft.regs("b32", len(expected))
    draft(like(made, registers, f"[{place if made.space else draft.generic(place)}]"))
    out = draft.output(expected)
    for number, register in enumerate(registers):
        draft.store(draft.offset(out, tid, 4), register, 128 * number)


@microtest(*(Word(made) for made in matrix.stmatrix_m16n8.variants()))
def stmatrix_bytes(draft: Draft, word: Word) -> None:
    """16x8 bytes, held as accumulators are: rows of memory are their columns."""
    made: Any = word.made
    rng = np.random.default_rng(28)
    slots, before = _slots(29), rng.integers(0, 256, (64, 16)).astype(np.uint8)
    tiles = rng.integers(0, 256, (made.num, 16, 8)).astype(np.uint8)
    after = before.copy()
    after[slots[: 8 * made.num]] = tiles.transpose(0, 2, 1).reshape(-1, 16)
    parts = [
        tiles[:, _LANES // 4 + 8 * (part // 2), 2 * (_LANES % 4) + part % 2].astype(np.uint32) << (8 * part)
        for part in range(4)
    ]
    draft.launch(block=32)
    tid = draft.thread
    box = draft.shared(1024)
    draft.copy_in(box, before)
    place = draft.offset(box, draft.load(draft.offset(draft.input(slots), tid, 4), "b32"), 16)
    given = draft.offset(draft.input(np.bitwise_or.reduce(np.array(parts))), tid, 4)
    registers = draft.regs("b32", made.num)
    for number, register in enumerate(registers):
        draft.load_into(register, given, 128 * number)
    draft(like(made, f"[{place if made.space else draft.generic(place)}]", registers))
    draft.copy_out(box, draft.output(after), 1024)
