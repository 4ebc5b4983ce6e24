"""How the tensor cores of sm_120 add: products of narrow types, with scale factors and without. Nobody has recorded it.

The candidates are the rules of docs/hardware.md ("Sums in tensor cores"); the emulator's is the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness import matrices, sums
from microtests.harness.draft import Draft, NotThereError
from microtests.harness.questions import question
from microtests.harness.script import like
from microtests.mbarrier import Word
from microtests.mma import kinds_of, load_registers, shape_of, store_registers
from microtests.mma_scaled import placed
from microtests.tensor_sums_floor import least
from ptxgen.builder import Register
from ptxgen.instr import integer, mma

_TILES = 3


def _words(*forms: Any, keep: Callable[[Any], bool]) -> list[Word]:
    """Forms whose A and B have one type, of those that are to be kept."""
    variants = (made for form in forms for made in form.variants())
    return [Word(made) for made in variants if getattr(made, "btype", "") == getattr(made, "atype", "") and keep(made)]


class _Tiles:
    """A product in each of several warps; `factors` are codes [m, blocks] and [n, blocks] of the scale factors."""

    def __init__(self, draft: Draft, made: Any) -> None:
        self.draft, self.made = draft, made
        self.m, self.n, self.k = shape_of(made)
        self.packed = "mxf4" in type(made).__name__
        self.atype, self.dtype = ("e2m1", "f32") if self.packed else (made.atype, made.dtype)
        self.words: list[list[np.ndarray]] = [[], [], [], []]
        self.scales: list[list[np.ndarray]] = [[], []]

    def add(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, factors: tuple[np.ndarray, ...] = ()
    ) -> None:
        """A [m, k], B [n, k], C and D [m, n] of the next warp."""
        kind = "e2m1x8" if self.packed else self.atype
        made = matrices.a_registers(kind, a), matrices.a_registers(kind, b)
        both = *made, matrices.d_registers(self.dtype, c), matrices.d_registers(self.dtype, d)
        for some, words in zip(self.words, both, strict=True):
            some.append(words)
        for some, codes, which in zip(self.scales, factors, "ab", strict=False):
            some.append(placed(codes.astype(np.uint8), which, 0, 0, np.random.default_rng(84)))

    def run(self) -> None:
        """The kernel."""
        draft = self.draft
        draft.launch(grid=len(self.words[0]), block=32)
        thread = draft.reg("b32", "thread")
        draft(integer.mad(thread, draft.special("ctaid.x"), 32, draft.thread, type="u32", half="lo"))
        given: list[Any] = [load_registers(draft, np.concatenate(some, 1), thread) for some in self.words[:3]]
        found = [draft.reg(register.type, "d") for register in given[2]]
        if self.scales[0]:
            scale: list[Register] = []
            for some in self.scales:
                scale += load_registers(draft, np.concatenate(some, 1), thread)
            given += [scale[0], [0, 0], scale[1], [0, 0]]
        draft(like(self.made, found, *given))
        store_registers(draft, np.concatenate(self.words[3], 1), found, thread)


_SUMS = {
    "one sum of all, 25 bits": sums.Rule(),
    "one sum of all, 13 bits": sums.Rule(fraction=13),
    "two sums": None,
}


def _lines(tiles: _Tiles, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A [m, k] and B [n, k]: numbers of all sizes, of which pairs cancel; none that a type lacks."""
    a = sums.lines(tiles.atype, (tiles.m, tiles.k), rng, negated=True)
    b = sums.lines(tiles.atype, (tiles.n, tiles.k), rng, negated=False)
    if tiles.atype not in ("e4m3", "e5m2"):
        a, b = (np.where(np.isfinite(each), each, 1.0) for each in (a, b))
    return a, b


@question(
    "How are products of 8, 6 and 4 bits added on sm_120?",
    tuple(_SUMS),
    *_words(mma.f8f6f4, keep=lambda made: (made.atype, made.dtype) != ("e2m1", "f16")),  # these are exact
)
def narrow(draft: Draft, rule: str, word: Word) -> None:
    """Numbers of all sizes, which cancel, and C far below and above them."""
    if not draft.target.startswith("sm_12"):
        raise NotThereError(f"the tensor cores of {draft.target} add in another way (tensor_sums)")
    made: Any = word.made
    tiles, rng = _Tiles(draft, made), np.random.default_rng(85)
    for _ in range(_TILES):
        a, b = _lines(tiles, rng)
        with np.errstate(invalid="ignore"):
            c = sums.addends(tiles.dtype, a @ b.T, rng)
        cut = _SUMS[rule]
        if cut is None:
            d = sums.total_of_halves(a, b, c, tiles.dtype, 2)
        else:
            d = sums.total(a, b, c, kinds_of(made), cut)
        tiles.add(a, b, c, d)
    tiles.run()


@question(
    "How are products of mxf8f6f4 added on sm_120?",
    tuple(name for name, each in _SUMS.items() if each is not None),
    *_words(mma.mxf8f6f4, keep=lambda made: made.scale_vec is None),
)
def mxf8f6f4(draft: Draft, rule: str, word: Word) -> None:
    """Normal numbers of all sizes, which cancel, times factors of each row and column, and C far below and above."""
    made: Any = word.made
    tiles, rng = _Tiles(draft, made), np.random.default_rng(86)
    least_normal = 2.0 ** sums.FORMATS[tiles.atype][1]
    for _ in range(_TILES):
        a, b = _lines(tiles, rng)
        a, b = (np.where(np.abs(each) < least_normal, np.copysign(least_normal, each), each) for each in (a, b))
        a, b = (np.where(np.isfinite(each), each, 1.0) for each in (a, b))
        codes = rng.integers(117, 138, (tiles.m, 1)), rng.integers(117, 138, (tiles.n, 1))
        x, y = a * 2.0 ** (codes[0] - 127), b * 2.0 ** (codes[1] - 127)
        c = sums.addends("f32", x @ y.T, rng)
        tiles.add(a, b, c, sums.total(x, y, c, ("bf16", "bf16", "f32"), _SUMS[rule]), codes)
    tiles.run()


_GROUPS = {
    "16 by 16": sums.GroupRule(),
    "4 by 4": sums.GroupRule(group=4),
    "one by one": sums.GroupRule(group=1),
    "16 by 16, none that cancels counts": sums.GroupRule(cancelled=False),
}


@question(
    "How many products of mxf4 and mxf4nvf4 are added before they are cut on sm_120?",
    tuple(_GROUPS),
    *_words(mma.mxf4, mma.mxf4nvf4, keep=lambda made: made.scale_vec is not None),
)
def groups(draft: Draft, rule: str, word: Word) -> None:
    """Blocks far below the largest one, which cancels in the upper rows."""
    made: Any = word.made
    tiles, rng = _Tiles(draft, made), np.random.default_rng(87)
    count, kind = int(made.scale_vec[0]), getattr(made, "stype", "ue8m0")
    table = np.array([-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6])
    for _ in range(_TILES):
        a, b = rng.choice(table, (tiles.m, 64)), rng.choice(table, (tiles.n, 64))
        large = 64 // count
        a[:, :large], b[:, :large] = 0, 1
        a[:, 0] = 1
        a[:8, 1] = -1
        one, top = (0x01, 0x78) if kind == "ue4m3" else (127 - 17, 127)
        codes = np.full((tiles.m, count), one), np.full((tiles.n, count), one)
        for each in codes:
            each[:, 0] = top
        decode = ml_dtypes.float8_e4m3fn if kind == "ue4m3" else None
        scales = tuple(
            each.astype(np.uint8).view(decode).astype(np.float64) if decode else 2.0 ** (each - 127.0) for each in codes
        )
        c = np.zeros((tiles.m, tiles.n))
        tiles.add(a, b, c, sums.total_of_groups(a, b, c, (scales[0], scales[1]), kind, _GROUPS[rule]), codes)
    tiles.run()


_FLOORS = {
    "-139": sums.GroupRule(),
    "none": sums.GroupRule(least=-1000),
    "-133": sums.GroupRule(least=-133),
    "-126": sums.GroupRule(least=-126),
}


@question(
    "What is the least exponent at which sums of mxf4 and mxf4nvf4 are cut on sm_120?",
    tuple(_FLOORS),
    *_words(
        mma.mxf4,
        mma.mxf4nvf4,
        keep=lambda made: made.scale_vec is not None and getattr(made, "stype", "ue8m0") == "ue8m0",
    ),
)
def floor_groups(draft: Draft, rule: str, word: Word) -> None:
    """A result on the edge of the least number, less a block that is cut or not."""
    made: Any = word.made
    tiles, count = _Tiles(draft, made), int(made.scale_vec[0])
    for tile in range(4):
        a, b, c = np.zeros((16, 64)), np.ones((8, 64)), np.zeros((16, 8))
        a[:, 0], a[:, 64 // count] = 1, -1
        codes = np.full((16, count), 127 - 75), np.full((8, count), 127 - 74)
        codes[0][:, 1] -= 1 + 10 * tile + np.arange(16) % 10
        scales = 2.0 ** (codes[0] - 127.0), 2.0 ** (codes[1] - 127.0)
        tiles.add(a, b, c, sums.total_of_groups(a, b, c, scales, "ue8m0", _FLOORS[rule]), codes)
    tiles.run()


@question(
    "Has mxf8f6f4 a least exponent at which a sum is cut on sm_120?",
    ("none", "7 below", "0 below", "3 below"),
    *_words(mma.mxf8f6f4, keep=lambda made: made.scale_vec is None and made.atype in ("e4m3", "e5m2")),
)
def floor_mxf8f6f4(draft: Draft, rule: str, word: Word) -> None:
    """Products that their scale factors make tiny."""
    tiles = _Tiles(draft, word.made)
    a, b, c = np.zeros((16, 32)), np.ones((8, 32)), np.zeros((16, 8))
    a[:, 0], a[:, 1] = 2.0**7, -(2.0 ** (7.0 - np.arange(16) % 13))
    codes = np.full((16, 1), 127 - 79), (127 - 77 + np.arange(8))[:, None]
    x, y = a * 2.0 ** (codes[0] - 127.0), b * 2.0 ** (codes[1] - 127.0)
    cut = sums.Rule(least=least(rule, "f32"))
    tiles.add(a, b, c, sums.total(x, y, c, ("bf16", "bf16", "f32"), cut), codes)
    tiles.run()
