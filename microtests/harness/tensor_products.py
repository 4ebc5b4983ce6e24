"""`Product`: one tcgen05.mma of any kind, with its operands and all of tensor memory after it, by NumPy.

Elements are such that their products and sums are exact, so that results are compared bit for bit. What lies between
elements in shared memory, and around the operands in tensor memory, is random and must not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness import tensor_layouts as layouts
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.tensor import LANES, Tensor
from ptxgen.builder import Register
from ptxgen.instr import predicate, tcgen05
from ptxgen.instr.model.form import Instruction

Array = NDArray[Any]
#: Bytes of a row of A that one instruction takes, and with K 96.
ROW, LONG_ROW = 32, 48
#: Scale factors of a row by .scale_vectorsize, where that applies (tables 56 and 57).
SCALES = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}


@dataclass(kw_only=True)
class Product:
    """D = A·B + D. Pairs (of majors, swizzles, ...) are of A and B; `n` and `m` are of both CTAs of a pair."""

    kind: str
    a: str
    b: str
    d: str = "f32"
    m: int = 128
    n: int = 32
    ctas: int = 1
    sparse: bool = False
    ws: bool = False
    in_tensor: bool = False
    majors: tuple[str, str] = ("k", "k")
    swizzles: tuple[str, str] = ("32B", "64B")
    gaps: tuple[int, int] = (0, 0)
    starts: tuple[int, int] = (0, 0)
    #: The leading-dimension offset of the descriptors, where it is not read.
    unread: int | None = None
    #: Whether the patterns of the swizzles begin at `starts`, which the base offset tells.
    based: bool = False
    negate: tuple[int, int] = (0, 0)
    accumulate: bool = True
    #: How enable-input-d is given: a predicate, a negated one, or an immediate.
    enable: str = "plain"
    saturate: bool = False
    scale_input: int | None = None
    #: The usage of the collector buffer; several: the product is issued with each in turn.
    collectors: tuple[str | None, ...] = (None,)
    selector: int = 0
    #: The first lane of D, A and metadata.
    lane: int = 0
    ashift: bool = False
    #: Lanes whose D stays as it is, [CTAs * 128].
    lanes_off: Array | None = None
    #: A descriptor of a zero-column mask, the columns that it zeroes, and by how many it shifts B.
    mask: tuple[int, Array, int] | None = None
    max_shift: int = 0
    size: str | None = None
    scale: str = "ue8m0"
    ids: tuple[int, int] = (0, 0)
    #: K 96 of mxf4 and mxf4nvf4, and operands that go on at an absolute address (sm_103a).
    long: bool = False
    absolute: bool = False
    #: Columns that are allocated and used before D's.
    before: int = 0
    seed: int = 81
    #: Operands other than random ones: (codes, values) of what is stored of A [m, K] and of B [n, K].
    given_a: tuple[Array, Array] | None = None
    given_b: tuple[Array, Array] | None = None
    given_c: Array | None = None
    tolerance: Tolerance | None = None
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    # What follows from the arguments.

    @property
    def scaled(self) -> bool:
        return self.kind.startswith("mx")

    @property
    def packed(self) -> bool:
        """Whether elements of 4 bits fill their bytes."""
        return self.kind in ("mxf4", "mxf4nvf4")

    @property
    def stored_k(self) -> int:
        """Elements of A that a row has in memory."""
        bits = max(layouts.BITS[self.a], 4 if self.packed else 8)
        return (LONG_ROW if self.long else ROW) * 8 // bits

    @property
    def k(self) -> int:
        return self.stored_k * (2 if self.sparse else 1)

    @property
    def scales(self) -> int:
        """Scale factors of a row."""
        if self.long:
            return 6 if self.size == "block16" else 3
        return SCALES.get(self.size or "", 1 if self.kind == "mxf8f6f4" else 2)

    @cached_property
    def path(self) -> layouts.Datapath:
        return layouts.Datapath(self.m, self.ctas, self.sparse, self.ws, self.lane)

    @property
    def columns_of_d(self) -> int:
        return self.n // self.path.parts

    @property
    def columns_of_a(self) -> int:
        return (LONG_ROW if self.long else ROW) // 4

    @cached_property
    def columns(self) -> dict[str, int]:
        """The first column of each matrix in tensor memory; "end" is behind all."""
        found, at = {}, self.before
        wanted = {"d": self.columns_of_d, "a": self.columns_of_a * self.in_tensor, "metadata": 4 * self.sparse}
        if self.scaled:
            words = 2 if self.long else 1
            wanted |= {"scale_a": 4 * words, "scale_b": 4 * -(-self.n // 128) * words}
        for name, width in wanted.items():
            if width:
                found[name], at = at, at + -(-width // 4) * 4
        return {**found, "end": at + 4}

    # Values.

    @cached_property
    def left(self) -> tuple[Array, Array]:
        """(codes, values) of what is stored of A."""
        return self.given_a or layouts.elements(self.a, (self.m, self.stored_k), self.rng, self._small)

    @cached_property
    def right(self) -> tuple[Array, Array]:
        """(codes, values) of B, transposed; more rows where a column shift needs them."""
        rows = self.n + (self.mask[2] if self.mask else 0)
        return self.given_b or layouts.elements(self.b, (rows, self.k), self.rng, self._small)

    @property
    def _small(self) -> bool:
        return self.d == "f16" or self.scaled

    @cached_property
    def full_a(self) -> tuple[Array, Array]:
        """(A with its zeros, metadata)."""
        if not self.sparse:
            return self.left[1], np.zeros(0)
        return layouts.sparse(self.kind, self.left[1], self.rng)

    @cached_property
    def c(self) -> Array:
        if self.given_c is not None:
            return self.given_c
        if self.d == "s32":
            every = [-(2**31), 2**31 - 1, 0] if self.saturate else None
            shape = (self.m, self.n)
            return self.rng.choice(every, shape) if every else self.rng.integers(-(2**31), 2**31, shape)
        return self.rng.integers(-63, 64, (self.m, self.n)) * 2.0 ** (self.scale_input or 0)

    def _scale_codes(self, rows: int) -> Array:
        if self.scale == "ue8m0":
            return self.rng.integers(125, 130, (rows, self.scales))
        return self.rng.choice(np.array([0x30, 0x34, 0x38, 0x3C, 0x40, 0x44]), (rows, self.scales))

    @cached_property
    def scale_a(self) -> Array:
        return self._scale_codes(self.m)

    @cached_property
    def scale_b(self) -> Array:
        return self._scale_codes(self.n)

    def scale_values(self, codes: Array) -> Array:
        """2^(x - 127), or the table of e4m3 without its sign, for each element of K."""
        if self.scale == "ue8m0":
            values = np.where(codes == 255, np.nan, 2.0 ** (codes - 127))
        else:
            values = layouts.table("ue4m3")[codes]
        return np.repeat(values, self.k // self.scales, axis=1)

    def result(self) -> Array:
        """D [m, n]."""
        a, b = self.full_a[0], self.right[1]
        a, b = (-a if self.negate[0] else a), (-b if self.negate[1] else b)
        if self.mask is not None:
            _, zeroed, shift = self.mask
            b = np.where(zeroed[:, None], 0, b[shift:])
        if self.scaled:
            a, b = a * self.scale_values(self.scale_a), b * self.scale_values(self.scale_b)
        with np.errstate(invalid="ignore"):
            total = (a[:, None] * b[None]).sum(2) if not np.isfinite(a).all() else a @ b.T
        total = total * len(self.collectors)
        if self.accumulate:
            total = total + self.c * 2.0 ** -(self.scale_input or 0)
        if self.d != "s32":
            exact = total.astype(np.float32 if self.d == "f32" else np.float16)
            assert self.tolerance or np.array_equal(exact, total, equal_nan=True), "sums are not exact"
            return exact
        whole = total.astype(np.int64)
        return np.clip(whole, -(2**31), 2**31 - 1) if self.saturate else (whole + 2**31) % 2**32 - 2**31

    def words(self, d: Array) -> Array:
        """Cells of D: one element each; above one of 16 bits are zeros (fact tmem-f16-accumulator)."""
        if self.d == "s32":
            return (d.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
        return d.astype(np.float16).view(np.uint16) if self.d == "f16" else d.astype(np.float32).view(np.uint32)

    # Tensor memory.

    @cached_property
    def cells(self) -> Array:
        """Tensor memory before the product, [CTAs, 128, columns]."""
        cells = self._rng(1).integers(0, 2**32, (self.ctas, LANES, self.columns["end"]), dtype=np.uint32)
        for cta in range(self.ctas):
            own = slice(cta * self.path.rows, (cta + 1) * self.path.rows)
            self._put_d(
                cells[cta], self.words(self.c[own].astype(np.float64 if self.d != "s32" else np.int64)), above=True
            )
            if self.in_tensor:
                words = layouts.row_words(self.a, self.left[0][own], self.packed)
                self.path.spread(cells[cta], self.columns["a"], words)
            if self.sparse:
                meta = self.full_a[1][own]
                layouts.put_metadata(cells[cta], self.columns["metadata"], self.kind, meta, self.path, self.selector)
            if self.scaled:
                self._put_scales(cells[cta], own)
        return cells

    def _put_d(self, cells: Array, words: Array, *, above: bool = False) -> None:
        """`above`: the upper halves of elements of 16 bits stay, of a D that is read; else they are 0."""
        lanes, columns = self.path.accumulators(self.n)
        columns = columns + self.before
        keep = cells[lanes, columns] & np.uint32(0xFFFF0000 if above and self.d == "f16" else 0)
        cells[lanes, columns] = keep | words

    def _put_scales(self, cells: Array, own: slice) -> None:
        """A's rows of this CTA in all windows; B's columns in both CTAs, spread over the windows as D's columns are."""
        layouts.put_scales(cells, self.columns["scale_a"], self.scale_a[own], self.ids[0])
        parts = self.path.parts
        for part, scales in enumerate(np.split(self.scale_b, parts)):
            windows = range(part * 4 // parts, (part + 1) * 4 // parts)
            layouts.put_scales(cells, self.columns["scale_b"], scales, self.ids[1], windows)

    def after(self) -> Array:
        """Tensor memory after the product."""
        cells, d = self.cells.copy(), self.words(self.result())
        for cta in range(self.ctas):
            own = slice(cta * self.path.rows, (cta + 1) * self.path.rows)
            before = cells[cta].copy()
            self._put_d(cells[cta], d[own])
            if self.lanes_off is not None:
                off = self.lanes_off[cta * LANES : (cta + 1) * LANES]
                cells[cta][off] = before[off]
            if self.ashift:  # each lane takes what the next one of its quarter has
                a = slice(self.columns["a"], self.columns["a"] + self.columns_of_a)
                for lane in range(LANES):
                    if lane % 32 != 31:
                        cells[cta][lane, a] = before[lane + 1, a]
        return cells

    def _rng(self, which: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, which))

    # Shared memory.

    def _matrix(self, tensor: Tensor, which: int, kind: str, codes: Array) -> Register:
        """The descriptor of an operand: each CTA's shared memory has its share of the rows."""
        rows = len(codes) // self.ctas
        images = [
            layouts.image(
                layouts.row_bytes(kind, part, self._rng(2), self.packed),
                self.swizzles[which],
                self._rng(3 + which),
                major=self.majors[which],
                size=max(layouts.BITS[kind], 8) // 8,
                start=self.starts[which],
                gap=self.gaps[which],
                based=self.based,
                split=self.absolute,
            )
            for part in (codes[cta * rows : (cta + 1) * rows] for cta in range(self.ctas))
        ]
        box = tensor.share(np.stack([each.memory for each in images]))
        bits = images[0].bits
        if self.unread is not None:
            bits = bits & ~(0x3FFF << 16) | (self.unread >> 4) << 16
        return tensor.descriptor(box, bits, images[0].start, images[0].following)

    # The kernel.

    def idesc(self) -> int:
        if self.scaled:
            return layouts.scaled_idesc(
                self.m,
                self.n,
                self.a,
                self.b,
                self.scale,
                self.ids,
                packed=self.packed,
                sparse=self.sparse,
                negate=self.negate,
                majors=self.majors,
                long=self.long,
            )
        return layouts.idesc(
            self.m,
            self.n,
            self.a,
            self.b,
            self.d,
            sparse=self.sparse,
            selector=self.selector,
            saturate=self.saturate,
            negate=self.negate,
            majors=self.majors,
            max_shift=self.max_shift,
        )

    def instructions(self, tensor: Tensor) -> list[Instruction]:
        """The product, whose operands are in memory from here on, with each of the collector usages."""
        draft = tensor.draft
        form = "mma" + "_ws" * self.ws + "_sp" * self.sparse + "_scaled" * self.scaled + "_ts" * self.in_tensor
        given: dict[str, Any] = {"kind": self.kind}
        given["d"] = f"[{tensor.at(self.columns['d'], self.lane)}]"
        if self.in_tensor:
            given["a"] = f"[{tensor.at(self.columns['a'], self.lane)}]"
        else:
            given["a"] = self._matrix(tensor, 0, self.a, self.left[0])
        given["b"] = self._matrix(tensor, 1, self.b, self.right[0])
        if self.sparse:
            given["metadata"] = f"[{tensor.at(self.columns['metadata'], self.lane)}]"
        given["idesc"] = draft.scalar("u32", self.idesc())
        given["enable_input_d"] = self._enable(draft)
        if self.scaled:
            given["scale_vectorsize"] = self.size
            for name in ("scale_a", "scale_b"):
                given[name] = f"[{tensor.at(self.columns[name])}]"
        if not self.ws:
            given["cta_group"] = self.ctas
        if self.ashift:
            given["ashift"] = True
        if self.mask is not None:
            given["zero_column_mask"] = draft.scalar("u64", self.mask[0])
        if self.lanes_off is not None:
            words = np.packbits(self.lanes_off, bitorder="little").view(np.uint32)
            given["disable_output_lane"] = [draft.scalar("u32", int(word)) for word in words]
        if self.scale_input is not None:
            given["scale_input_d"] = self.scale_input
        return [getattr(tcgen05, form)(**given, collector=usage) for usage in self.collectors]

    def _enable(self, draft: Draft) -> Any:
        if self.enable == "immediate":
            return int(self.accumulate)
        register, negated = draft.reg("pred", "accumulate"), self.enable == "negated"
        given = draft.scalar("u32", int(self.accumulate))
        draft(predicate.setp(register, given, 0, compare="eq" if negated else "ne", type="u32"))
        return f"!{register}" if negated else register

    def tensor(self, draft: Draft) -> Tensor:
        """Tensor memory, filled."""
        if self.long:
            draft.requires("8.8", "sm_103a")
        made = Tensor(draft, self.columns["end"], self.ctas)
        made.fill(self._shaped(self.cells))
        return made

    def _shaped(self, cells: Array) -> Array:
        return cells if self.ctas > 1 else cells[0]

    def run(self, draft: Draft) -> None:
        """The whole kernel."""
        tensor = self.tensor(draft)
        tensor.issue(*self.instructions(tensor))
        self.compare(tensor)
        tensor.end()

    def compare(self, tensor: Tensor) -> None:
        """Dump what is after the product."""
        after, first = self._shaped(self.after()), self.before
        last = first + -(-self.columns_of_d // 4) * 4
        tensor.dump(after[..., first:last], first, tolerance=self.tolerance)
        tensor.dump(after[..., last:], last)
        if first:
            tensor.dump(after[..., :first])
