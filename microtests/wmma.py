"""wmma: matrices of a warp in fragments whose layout no program may know. References from PTX ISA 9.7.14.4.

What can be seen is memory: two matrices and an accumulator are loaded, multiplied, and stored. Elements are small whole
numbers (all values for integers), whose sums are exact in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness import matrices
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from microtests.mma import accumulator, fused, product, shape_of, summed
from ptxgen.builder import Register
from ptxgen.instr import wmma

_SPACES: tuple[Any, ...] = ("global", "shared", "shared::cta", None)


def _words(kind: str, values: np.ndarray) -> np.ndarray:
    """Elements of a row, packed as they lie in memory."""
    bits = matrices.BITS[kind]
    raw = matrices.raw(kind, values)
    if bits < 8:
        raw = matrices.packed(raw.reshape(len(raw), -1, 8 // bits), bits)
        return raw.astype(np.uint8)
    return raw.astype({8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits])


def _image(kind: str, values: np.ndarray, layout: str, gap: int) -> tuple[np.ndarray, int]:
    """(memory [lines, stride] with a matrix, its stride in elements): `gap` elements lie between the lines."""
    lines = values if layout == "row" else values.T
    words = _words(kind, lines)
    beside = np.full((len(words), gap * matrices.BITS[kind] // 8 // words.itemsize), 0x5A, np.uint64)
    return np.concatenate([words, beside.astype(words.dtype)], 1), lines.shape[1] + gap


class Fragments:
    """A warp and its fragments."""

    def __init__(self, draft: Draft, space: Any = "global") -> None:
        self.draft, self.space = draft, space
        draft.launch(block=32)
        self.tid = draft.thread

    def _place(self, memory_: np.ndarray) -> Register:
        """Where a matrix is, in the state space; without one, at a generic address."""
        draft = self.draft
        if self.space in (None, "global"):
            return draft.input(memory_)
        box = draft.shared(-(-memory_.nbytes // 16) * 16, 256)
        data = np.zeros(-(-memory_.nbytes // 16) * 16, np.uint8)
        data[: memory_.nbytes] = memory_.reshape(-1).view(np.uint8)
        draft.copy_in(box, data)
        return box

    def load(
        self,
        form: Any,
        kind: str,
        values: np.ndarray,
        count: int,
        register: str,
        *,
        stride: bool = True,
        gap: int = 0,
        **modifiers: Any,
    ) -> list[Register]:
        memory_, step = _image(kind, values, modifiers["layout"], gap)
        found = self.draft.regs(register, count, "m")
        given = [self.draft.scalar("u32", step)] if stride else []
        self.draft(form(found, f"[{self._place(memory_)}]", *given, space=self.space, type=kind, **modifiers))
        return found

    def store(
        self,
        kind: str,
        expected: np.ndarray,
        registers: list[Register],
        layout: Any,
        shape: Any,
        *,
        stride: bool = True,
        gap: int = 0,
    ) -> None:
        after, step = _image(kind, expected, layout, gap)
        before = after.copy()
        columns = expected.shape[1 if layout == "row" else 0] * after.shape[1] // step
        before[:, :columns] = np.array(0xCD, after.dtype)
        given = [self.draft.scalar("u32", step)] if stride else []
        out = self.draft.output(after, initial=before)
        place = out
        if self.space not in (None, "global"):
            place = self._place(before)
        self.draft(
            wmma.store_d(
                f"[{place}]",
                registers,
                *given,
                layout=layout,
                shape=shape,
                space=self.space,
                type=kind,  # type: ignore[arg-type]
            )
        )
        if place is not out:
            self.draft.copy_out(place, out, after.nbytes)


_REGISTERS = {"f64": "f64", "f32": "f32", "tf32": "b32"}
_MULTIPLY = (wmma.mma_f16, wmma.mma_bf16, wmma.mma_tf32, wmma.mma_f64, wmma.mma_i8, wmma.mma_i4, wmma.mma_b1)


def _multiplied(
    draft: Draft, made: Any, space: Any, layouts: tuple[Any, Any], *, stride: bool = True, gap: int = 0
) -> None:
    """D = A * B + C, C and D in memory as `layouts` say."""
    m, n, k = shape_of(made)
    kind, dtype = made.type, made.dtype
    ctype = getattr(made, "ctype", dtype)
    rng = np.random.default_rng(35)
    a, b = matrices.random_elements(kind, (m, k), rng), matrices.random_elements(kind, (k, n), rng)
    saturating = getattr(made, "satfinite", False)
    c = accumulator(ctype, (m, n), rng, saturating)
    d = summed(dtype, product(kind, made, a, b), c, saturating)
    if kind == "f64":
        d = fused(a, b, c, made.rounding or "rn")
    fragments, shape = Fragments(draft, space), f"m{m}n{n}k{k}"
    operands: dict[str, Any] = {name: len(getattr(made, name).elements) for name in ("a", "b", "c", "d")}
    narrow = _REGISTERS.get(kind, "b32")
    options: dict[str, Any] = {"stride": stride, "gap": gap, "shape": shape}
    given = [
        fragments.load(
            wmma.load, kind, a, operands["a"], narrow, matrix="a", layout=getattr(made, "alayout", "row"), **options
        ),
        fragments.load(
            wmma.load, kind, b, operands["b"], narrow, matrix="b", layout=getattr(made, "blayout", "col"), **options
        ),
        fragments.load(
            wmma.load_c, ctype, c, operands["c"], _REGISTERS.get(ctype, "b32"), layout=layouts[0], **options
        ),
    ]
    found = draft.regs(_REGISTERS.get(dtype, "b32"), operands["d"], "d")
    draft(like(made, found, *given))
    fragments.store(dtype, d, found, layouts[1], shape, stride=stride, gap=gap)


@microtest(*each(*_MULTIPLY))
def multiply(draft: Draft, word: Word) -> None:
    """Every type, shape, layout and rounding; rows as far apart as they are long."""
    _multiplied(draft, word.made, "global", ("row", "row"))


def _last(form: Any) -> Any:
    return Word(list(form.variants())[-1])


@microtest(*((_last(form), space) for form in _MULTIPLY for space in _SPACES))
def spaces(draft: Draft, word: Any, space: Any) -> None:
    """Matrices in each state space, with gaps between their rows; the accumulators column by column."""
    _multiplied(draft, word.made, space, ("col", "col"), gap=512 // matrices.BITS[word.made.type])


@microtest(*((_last(form), c, d) for form in _MULTIPLY for c in ("row", "col") for d in ("row", "col")))
def without_stride(draft: Draft, word: Any, c: Any, d: Any) -> None:
    """Without a stride rows follow each other."""
    _multiplied(draft, word.made, "global", (c, d), stride=False)
