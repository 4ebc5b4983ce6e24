"""What no B200 has answered in public: tcgen05 on inputs that distinguish the candidate rules.

The candidates are those of docs/facts.md and docs/hardware.md ("Sums in tensor cores"); the emulator's is the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from microtests.harness import sums
from microtests.harness import tensor_layouts as layouts
from microtests.harness.draft import Draft
from microtests.harness.questions import question
from microtests.harness.tensor import LANES, Tensor
from microtests.harness.tensor_products import Product
from microtests.tcgen05_ws import made as stationary
from microtests.tensor_sums_floor import RULES, least, probes
from ptxgen.builder import Register
from ptxgen.instr import integer, logic, tcgen05
from ptxgen.instr.model.form import Instruction

# Sums.


@dataclass(kw_only=True)
class Summed(Product):
    """A product whose result a rule gives."""

    total: Callable[[Product], np.ndarray]

    def result(self) -> np.ndarray:
        return self.total(self).astype(np.float16 if self.d == "f16" else np.float32)


def _codes(kind: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(codes, values) of numbers that the type has."""
    if kind == "f16":
        return numbers.astype(np.float16).view(np.uint16).astype(np.uint32), numbers
    if kind in ("bf16", "tf32"):
        words = numbers.astype(np.float32).view(np.uint32)
        return (words >> 16 if kind == "bf16" else words), numbers
    table = layouts.table(kind)
    return np.array([int(np.flatnonzero(table == each)[0]) for each in numbers.flat], np.uint32).reshape(
        numbers.shape
    ), numbers


@question(
    "What is the least exponent at which a sum is cut?",
    RULES,
    ("f16", "f16", "f16"),
    ("f16", "bf16", "f32"),
    ("tf32", "tf32", "f32"),
)
def floor(draft: Draft, rule: str, kind: Any, type: str, d: str) -> None:
    """tcgen05.mma without D."""
    k = 256 // layouts.BITS[type]
    a, b = probes(d, 128, 64, k)
    cut = sums.Rule(least=least(rule, d))
    Summed(
        kind=kind,
        a=type,
        b=type,
        d=d,
        n=64,
        accumulate=False,
        given_a=_codes(type, a),
        given_b=_codes(type, b),
        total=lambda made: sums.total(a, b, np.zeros((128, 64)), (type, type, d), cut),
    ).run(draft)


@question("Has mxf8f6f4 a least exponent at which a sum is cut?", ("none", "7 below", "0 below", "3 below"))
def floor_mxf8f6f4(draft: Draft, rule: str) -> None:
    """Products that their scale factors make tiny."""
    a, b = np.zeros((128, 32)), np.ones((64, 32))
    depth = np.arange(128) % 14
    a[:, 0], a[:, 1] = 2.0**7, -(2.0 ** (7.0 - depth))
    made = Summed(
        kind="mxf8f6f4",
        size="block32",
        scale="ue8m0",
        a="e5m2",
        b="e4m3",
        n=64,
        accumulate=False,
        given_a=_codes("e5m2", a),
        given_b=_codes("e4m3", b),
        total=lambda made: sums.total(
            a * made.scale_values(made.scale_a),
            b * made.scale_values(made.scale_b),
            np.zeros((128, 64)),
            ("bf16", "bf16", "f32"),
            sums.Rule(least=least(rule, "f32")),
        ),
    )
    # The first product is 2**(-149 + n % 8), the second so much smaller that it counts or not.
    made.scale_a = np.full((128, 1), 127 - 79)
    made.scale_b = (127 - 77 + np.arange(64) % 8)[:, None]
    made.run(draft)


def _groups(
    draft: Draft,
    rule: sums.GroupRule,
    scale: str,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    scales: tuple[np.ndarray, np.ndarray],
) -> None:
    """mxf4nvf4 with four scale factors for 64 elements of K."""
    addend = np.zeros((len(a), len(b))) if c is None else c

    def total(made: Product) -> np.ndarray:
        factors = [made.scale_values(each)[:, ::16] for each in scales]
        return sums.total_of_groups(a, b, addend, (factors[0], factors[1]), scale, rule)

    made = Summed(
        kind="mxf4nvf4",
        size="block16",
        scale=scale,
        a="e2m1",
        b="e2m1",
        n=len(b),
        accumulate=c is not None,
        given_a=_codes("e2m1", a),
        given_b=_codes("e2m1", b),
        given_c=addend,
        total=total,
    )
    made.scale_a, made.scale_b = scales
    made.run(draft)


_COUNTING = {
    "cancelling groups count": sums.GroupRule(),
    "none counts": sums.GroupRule(cancelled=False),
    "groups of zeros count too": sums.GroupRule(empty=True),
}


@question("Which groups of 16 products have an exponent in the alignment?", tuple(_COUNTING), "ue8m0", "ue4m3")
def counting(draft: Draft, rule: str, scale: str) -> None:
    """Groups with large factors that cancel, or are all zero, beside small ones."""
    rng = np.random.default_rng(71)
    a, b = np.zeros((128, 64)), np.ones((16, 64))
    a[:64, 0], a[:64, 1] = 1, -1
    a[:, 16:] = rng.choice([0.5, 1, 1.5, 2, 3, 4, 6], (128, 48))
    first, one = (127 + 30, 127) if scale == "ue8m0" else (0x78, 0x38)
    scales = np.full((128, 4), one), np.full((16, 4), one)
    for each in scales:
        each[:, 0] = first
    if scale == "ue4m3":
        scales[0][:, 1:], scales[1][:, 1:] = 0x09, 0x0A
    c = rng.uniform(1, 2, (128, 16)).astype(np.float32) * 2.0**-13
    _groups(draft, _COUNTING[rule], scale, a, b, c.astype(np.float64), scales)


_FLOORS = {
    "-139": sums.GroupRule(),
    "none": sums.GroupRule(least=-1000),
    "-133": sums.GroupRule(least=-133),
    "-126": sums.GroupRule(least=-126),
}


@question("What is the least exponent at which sums of mxf4 and mxf4nvf4 are cut?", tuple(_FLOORS))
def floor_groups(draft: Draft, rule: str) -> None:
    """A result on the edge of the least number, less a group that is cut or not."""
    a, b = np.zeros((128, 64)), np.ones((16, 64))
    a[:, 0], a[:, 16] = 1, -1
    scales = np.full((128, 4), 127 - 75), np.full((16, 4), 127 - 74)
    scales[0][:, 1] -= 1 + np.arange(128) % 40
    _groups(draft, _FLOORS[rule], "ue8m0", a, b, None, scales)


_GROUPING = {"16 by 16": sums.GroupRule(), "4 by 4": sums.GroupRule(group=4), "one by one": sums.GroupRule(group=1)}


@question("How many products of nvfp4 are added before they are cut?", tuple(_GROUPING))
def grouping(draft: Draft, rule: str) -> None:
    """Blocks far below the largest one: what is left of 16 products is not what is left of four times four."""
    rng = np.random.default_rng(73)
    table = np.array([-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6])
    a, b = rng.choice(table, (128, 64)), rng.choice(table, (16, 64))
    a[:, :16], b[:, :16] = 0, 1
    a[:, 0] = 1
    # 2**16 in the first block, 2**-18 and odd factors in the others: the cut is at 2**-19 of a product's 2**-20.
    scales = np.full((128, 4), 0x01), np.full((16, 4), 0x01)
    scales[0][:, 0], scales[1][:, 0] = 0x78, 0x78
    _groups(draft, _GROUPING[rule], "ue4m3", a, b, None, scales)


_LATE = {"always": sums.GroupRule(), "where it reaches the largest product": sums.GroupRule(late_c=True)}


@question("When does C's exponent count in sums of mxf4nvf4?", tuple(_LATE))
def addend(draft: Draft, rule: str) -> None:
    """C between the factors of the scales and the largest product."""
    rng = np.random.default_rng(74)
    a, b = rng.choice([0.5, 1.5, 3, 6], (128, 64)), rng.choice([0.5, 1.5, 3, 6], (16, 64))
    a[:, :16], b[:, :3] = 0, (6, 6, 1)
    a[:, 0], a[:, 1], a[:, 2] = 6, -6, 2.0 ** (np.arange(128) % 3)
    c = np.repeat(-a[:, 2:3], 16, axis=1)  # it cancels the first group, below whose products it is
    scales = np.full((128, 4), 127), np.full((16, 4), 127)
    scales[0][:, 1:] -= 34 + np.arange(128)[:, None] % 4
    _groups(draft, _LATE[rule], "ue8m0", a, b, c, scales)


# Moves.

_SHIFTS = ("all four quarters", "the quarters from the lane on", "only that quarter", "it faults")


@question("Which lanes does tcgen05.shift move at lane 32 or 64?", _SHIFTS, 32, 64)
def shift_lane(draft: Draft, rule: str, lane: int) -> None:
    """One shift at another lane than 0."""
    cells = np.random.default_rng(75).integers(0, 2**32, (LANES, 16), dtype=np.uint32)
    quarters = {_SHIFTS[0]: range(4), _SHIFTS[1]: range(lane // 32, 4), _SHIFTS[2]: (lane // 32,)}
    _shift(draft, cells, quarters.get(rule, ()), range(4, 12), lane, fault=rule == _SHIFTS[3])


_WIDTHS = {"8": 8, "32": 32, "all that are allocated": 60}


@question("Which lanes does tcgen05.shift move at lane 96?", (_SHIFTS[0], *_SHIFTS[2:]), 96)
def shift_last_lane(draft: Draft, rule: str, lane: int) -> None:
    """One shift at the last quarter."""
    shift_lane(draft, rule, lane)


@question("How many columns does tcgen05.shift move?", tuple(_WIDTHS))
def shift_columns(draft: Draft, rule: str) -> None:
    """Columns behind the 8 of 32 bytes."""
    cells = np.random.default_rng(76).integers(0, 2**32, (LANES, 64), dtype=np.uint32)
    _shift(draft, cells, range(4), range(4, 4 + _WIDTHS[rule]), 0)


def _shift(draft: Draft, cells: np.ndarray, quarters: Any, columns: range, lane: int, *, fault: bool = False) -> None:
    if fault:
        draft.fault = "misaligned"
    tensor = Tensor(draft, cells.shape[1])
    tensor.fill(cells)
    tensor.issue(tcgen05.shift(f"[{tensor.at(4, lane)}]", cta_group=1))
    after, some = cells.copy(), slice(columns.start, columns.stop)
    for quarter in quarters:
        first = 32 * quarter
        after[first : first + 31, some] = cells[first + 1 : first + 32, some]
    tensor.dump(after)
    tensor.end()


@question("What does .unpack::16b leave in the upper halves of cells that held something?", ("zero", "what was there"))
def unpack(draft: Draft, rule: str) -> None:
    """tcgen05.st.unpack::16b over filled cells."""
    rng = np.random.default_rng(77)
    cells, words = (rng.integers(0, 2**32, (LANES, count), dtype=np.uint32) for count in (8, 4))
    tensor = Tensor(draft, 8)
    tensor.fill(cells)
    at = draft.offset(draft.input(words), draft.thread, 16)
    registers = draft.regs("b32", 4)
    for index, register in enumerate(registers):
        draft.load_into(register, at, 4 * index)
    draft(tcgen05.st(f"[{tensor.mine}]", registers, shape="32x32b", num=4, unpack=True), tcgen05.wait(what="st"))
    halves = np.stack([words & 0xFFFF, words >> 16], -1).reshape(LANES, 8)
    tensor.dump(halves if rule == "zero" else halves | cells & np.uint32(0xFFFF0000))
    tensor.end()


_REACH = ("it faults", "that of the own quarter", "that of the other quarter")


@question("What does a tcgen05.ld reach with another warp's lane field?", _REACH)
def other_quarter(draft: Draft, rule: str) -> None:
    """Each warp loads with the lane field of the next one."""
    cells = np.random.default_rng(78).integers(0, 2**32, (LANES, 4), dtype=np.uint32)
    tensor, other = _next_quarter(draft, rule, cells)
    registers = draft.regs("b32", 4)
    draft(tcgen05.ld(registers, f"[{other}]", shape="32x32b", num=4), tcgen05.wait(what="ld"))
    expected = np.roll(cells, -32, axis=0) if rule == _REACH[2] else cells
    at = draft.offset(draft.output(expected), draft.thread, 16)
    for index, register in enumerate(registers):
        draft.store(at, register, 4 * index)
    tensor.end()


@question("What does a tcgen05.st reach with another warp's lane field?", _REACH)
def store_to_other_quarter(draft: Draft, rule: str) -> None:
    """Each warp stores with the lane field of the next one."""
    cells, words = np.random.default_rng(79).integers(0, 2**32, (2, LANES, 4), dtype=np.uint32)
    tensor, other = _next_quarter(draft, rule, cells)
    at, registers = draft.offset(draft.input(words), draft.thread, 16), draft.regs("b32", 4)
    for index, register in enumerate(registers):
        draft.load_into(register, at, 4 * index)
    draft(tcgen05.st(f"[{other}]", registers, shape="32x32b", num=4), tcgen05.wait(what="st"))
    tensor.between_threads()
    tensor.dump(np.roll(words, 32, axis=0) if rule == _REACH[2] else words)
    tensor.end()


def _next_quarter(draft: Draft, rule: str, cells: np.ndarray) -> tuple[Tensor, Register]:
    """Filled tensor memory, and its address with the lane field of the next warp."""
    if rule == _REACH[0]:
        draft.fault = "tmem-lane-rights"
    tensor = Tensor(draft, cells.shape[1])
    tensor.fill(cells)
    tensor.between_threads()
    other = draft.reg("b32", "other")
    draft(integer.add(other, draft.thread, 32, type="u32"), logic.and_(other, other, 0x60, type="b32"))
    draft(logic.shl(other, other, 16, type="b32"), integer.add(other, other, tensor.base, type="u32"))
    return tensor, other


_COLLECTED = ("the one its descriptor names", "the one in the buffer")


@dataclass(kw_only=True)
class Collected(Product):
    """A product with .collector::a::fill, and one with ::use whose descriptor names another A."""

    second: tuple[np.ndarray, np.ndarray]
    taken: tuple[np.ndarray, np.ndarray]

    def instructions(self, tensor: Tensor) -> list[Instruction]:
        self.collectors = ("fill",)
        filling = super().instructions(tensor)
        first, self.left, self.collectors = self.left, self.second, ("use",)
        using = super().instructions(tensor)
        self.left = first
        return filling + using

    def result(self) -> np.ndarray:
        return ((self.left[1] + self.taken[1]) @ self.right[1].T + self.c).astype(np.float32)


@question("Which A does .collector::a::use take?", _COLLECTED, ("f16", "bf16"), ("tf32", "tf32"), ("f8f6f4", "e4m3"))
def collector(draft: Draft, rule: str, kind: Any, type: str) -> None:
    """A descriptor of another A than the one that ::fill had."""
    rng, shape = np.random.default_rng(83), (128, 256 // max(layouts.BITS[type], 8))
    first, second = (layouts.elements(type, shape, rng, False) for _ in range(2))
    taken = second if rule == _COLLECTED[0] else first
    Collected(kind=kind, a=type, b=type, given_a=first, second=second, taken=taken).run(draft)


# Refusals.


@question(
    "Is kind::f16 with operands of different types refused?", ("it faults", "it runs"), ("f16", "bf16"), ("bf16", "f16")
)
def mixed_halves(draft: Draft, rule: str, a: str, b: str) -> None:
    """A and B of different types of 16 bits."""
    if rule == "it faults":
        draft.fault = "illegal-descriptor"
    Product(kind="f16", a=a, b=b).run(draft)


@question("Does .ws with M 32 and a max-shift trap?", ("it faults", "it runs"), 8, 16, 32)
def max_shift(draft: Draft, rule: str, most: int) -> None:
    """A max-shift in the instruction descriptor, no shift in a mask."""
    if rule == "it faults":
        draft.fault = "illegal-descriptor"
    stationary("f16", "f16", "f16", "f32", m=32, n=64, max_shift=most).run(draft)
