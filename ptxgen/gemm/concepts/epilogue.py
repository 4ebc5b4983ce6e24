"""How the accumulator becomes C: its way through registers and shared memory, and the tensormap of C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.gemm.concepts.accumulator import Accumulator, RegisterAccumulator
from ptxgen.gemm.concepts.combination import LinearCombination
from ptxgen.gemm.concepts.operand import Batches, matrix_map
from ptxgen.gemm.concepts.shared_map import Wanted
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.scales import ScaledType
from ptxgen.gemm.types import QUANTIZED_OUTPUTS, TYPES

#: Columns of a block of a quantized C.
SCALE_COLUMNS = 32
#: Columns that a thread holds at once, unless accumulators overlap.
_BATCH = 32
#: The same of a C of less than 32 bits.
_NARROW_PART = 64
#: C is the product alone.
_NO_COMBINATION = LinearCombination()


@dataclass(frozen=True)
class Epilogue:
    """The columns of the accumulator go chunk by chunk; with `tma` through `buffers` chunks of shared memory.

    Each warp has its own rows of a buffer and stores them itself. A chunk is a series of panels, each as wide as a row
    of their swizzle. `transposed`: C is contiguous along M, and a chunk is one panel as wide as the rows of a warp.
    `blocks`: times that a warp of wgmma has `rows_per_warp`, 64 rows apart. `fragments`: tcgen05.ld 16x256b, whose
    registers are those of stmatrix; else a thread has a row.

    Where two accumulators share `overlap` columns, a thread reads these first, `part` columns at once, and releases
    them; only then does it store. Direct stores have `store_bytes`, and `cache` says what they do in the L1.
    In block-scaled kernels a part is whole chunks.

    `whole`: a tile has all columns of C, whose rows are whole units of 16 bytes. `heads`: the tensormap of C has the
    head as third dimension and the batch as fourth. `row_scale`: a thread multiplies its row by %f_row_scale.
    """

    c_type: str
    tma: bool
    fragments: bool
    n_tile: int
    rows_per_warp: int
    chunk: int
    buffers: int
    warps: int = 4
    tmem: bool = True
    combination: LinearCombination = field(default_factory=LinearCombination)
    batched: bool = False
    overlap: int = 0
    store_bytes: int = 16
    cache: str = ""
    transposed: bool = False
    blocks: int = 1
    whole: bool = False
    heads: bool = False
    row_scale: bool = False

    @classmethod
    def of(
        cls,
        accumulator: Accumulator | RegisterAccumulator,
        c_type: str,
        *,
        c_major: str = "n",
        tma: bool = False,
        tmem_load: str = "32x32b",
        chunk: int = 256,
        buffers: int = 1,
        combination: LinearCombination = _NO_COMBINATION,
        batched: bool = False,
        warps: int = 4,
        overlap: int = 0,
        store_bytes: int = 16,
        cache: str = "",
        whole: bool = False,
        heads: bool = False,
        row_scale: bool = False,
    ) -> Epilogue:
        """The epilogue of an accumulator: by `warps` warps, and with `tma` in chunks of at most `chunk` columns.

        Raises PlanError for a C that cannot go through stmatrix, where there is no other way.
        """
        if c_type in QUANTIZED_OUTPUTS and (tma or accumulator.n % SCALE_COLUMNS):
            raise PlanError(
                f"C of {c_type} has a scale for every {SCALE_COLUMNS} columns: the epilogue must be direct, and the N "
                f"tile a multiple of that"
            )
        narrow, tmem = TYPES[c_type].bytes == 2, isinstance(accumulator, Accumulator)
        if isinstance(accumulator, RegisterAccumulator):
            if tma and not narrow:
                raise PlanError(f"the TMA epilogue of wgmma stores 16-bit types by stmatrix, not {c_type}; take direct")
            fragments = True
            if accumulator.blocks > 1 and (not tma or combination.present):
                raise PlanError("warpgroups of 128 rows take epilogue=tma, without alpha, source, bias and activation")
        else:
            fragments = tmem_load == "16x256b" and (not tma or narrow)
        transposed, blocks = c_major == "m", accumulator.blocks if isinstance(accumulator, RegisterAccumulator) else 1
        if transposed and (tmem or not tma or combination.present):
            raise PlanError("c_major=m takes wgmma and epilogue=tma, without alpha, source, bias and activation")
        # With a combination each value takes many lines: short chunks keep the text short.
        widest = chunk if tma else _BATCH
        if combination.present:
            widest = min(widest, _BATCH if tma and narrow else _BATCH // 2)
        part = _part(accumulator.n, overlap) if isinstance(accumulator, Accumulator) and accumulator.scales else 0
        columns = chunk_columns(accumulator.n, widest, part)
        rows = accumulator.rows_per_warp
        return cls(
            c_type,
            tma,
            fragments,
            accumulator.n,
            rows,
            columns,
            buffers,
            warps,
            tmem,
            combination,
            batched,
            overlap,
            store_bytes,
            cache,
            transposed,
            blocks,
            whole,
            heads,
            row_scale,
        )

    @property
    def outer(self) -> list[str]:
        """Registers with the coordinates of a TMA store beyond rows and columns."""
        return ["%r_head_c"] * self.heads + ["%r_batch"] * (self.batched or self.heads)

    @property
    def c_bytes(self) -> int:
        return TYPES[self.c_type].bytes

    @property
    def chunks(self) -> int:
        return self.n_tile // self.chunk

    @property
    def part(self) -> int:
        """Columns that a thread reads before it stores any of them."""
        columns = _part(self.n_tile, self.overlap)
        # A guarded store of less than 32 bits takes a conversion, too: with more columns the text would be too long.
        return columns if self.tma or self.c_bytes == 4 else gcd(columns, _NARROW_PART)

    @property
    def parts(self) -> int:
        return self.n_tile // self.part

    @property
    def last_read(self) -> int:
        """The part after which the next MMAs may overwrite what they share with this accumulator, or all of it."""
        return (self.overlap or self.n_tile) // self.part - 1

    @property
    def crowded(self) -> bool:
        """Whether ptxas may take fewer registers than the epilogue needs, for more CTAs at a time, and spill."""
        wide = self.tma and not self.fragments and self.chunk > _BATCH
        return wide or self.batched or self.combination.present

    @property
    def quantizes(self) -> bool:
        """Whether C has a scale for every 32 columns."""
        return self.c_type in QUANTIZED_OUTPUTS

    @property
    def scaled_type(self) -> ScaledType:
        """The type of a quantized C with its scales."""
        return ScaledType("mxf8f6f4", self.c_type, "ue8m0", SCALE_COLUMNS)

    @property
    def largest_exponent(self) -> int:
        """That of the largest element of a quantized C."""
        return self.scaled_type.largest_exponent

    @property
    def vector(self) -> int:
        """Elements of a direct store."""
        return self.store_bytes // self.c_bytes

    @property
    def store(self) -> str:
        """The instruction of a direct store."""
        cache = f".L1::{self.cache}" if self.cache else ""
        return f"st.global{cache}.v{self.store_bytes // 4}.b32"

    @property
    def rotates(self) -> bool:
        """Whether the registers of wgmma go through a loop over chunks, as all chunks written out would be too long."""
        long = self.chunks > max(8, self.n_tile // 32) if self.tma else self.n_tile > 128
        return self.chunks > 1 and (self.combination.present or long)

    @property
    def batch(self) -> int:
        """Columns per tcgen05.ld; the registers of wgmma have those of an odd chunk at once."""
        return self.chunk if self.odd else gcd(_BATCH, self.chunk)

    @property
    def odd(self) -> bool:
        """Whether the chunk is no multiple of 16 columns: two 8x8 matrices are left behind those of four."""
        return self.chunk % 16 > 0

    @property
    def panel_columns(self) -> int:
        """Columns of a panel: the widest swizzle row that divides the chunk; transposed, the chunk.

        An odd chunk is a panel without swizzle: eight of its rows, an odd number of 16 bytes apart, lie in different
        banks as they are.
        """
        if self.transposed or self.odd:
            return self.chunk
        return next(width // self.c_bytes for width in (128, 64, 32) if self.chunk % (width // self.c_bytes) == 0)

    @property
    def row_bytes(self) -> int:
        """Bytes of a line of a panel: of a row, or of a column where transposed."""
        return (self.rows_per_warp if self.transposed else self.panel_columns) * self.c_bytes

    @property
    def swizzle(self) -> str:
        return "none" if self.odd and not self.transposed else f"{self.row_bytes}B"

    @property
    def xor_mask(self) -> int:
        """The address bits that the swizzle XORs with those three above them."""
        return 0 if self.swizzle == "none" else self.row_bytes - 16

    @property
    def panels(self) -> int:
        return self.chunk // self.panel_columns

    @property
    def panel_bytes(self) -> int:
        return self.panel_columns * self.rows_per_warp * self.c_bytes

    @property
    def warp_bytes(self) -> int:
        """Bytes of a buffer that belong to one warp."""
        return self.panels * self.panel_bytes

    @property
    def buffer_bytes(self) -> int:
        return self.warps * self.warp_bytes

    @property
    def wanted(self) -> list[Wanted]:
        if not self.tma:
            return []
        words = f"C, {self.warps * self.rows_per_warp} rows of {self.chunk} columns"
        return [Wanted("c", self.buffers * self.buffer_bytes, 1024, words, self.buffers)]

    def tensormap(
        self, address: Any, m: int, n: int, leading: int, batches: Batches | Sequence[Batches] | None = None
    ) -> TiledMap:
        """The tensormap of C; a box is one warp's rows of a panel."""
        dims, box = (n, m), (self.panel_columns, self.rows_per_warp)
        if self.transposed:
            dims, box = (m, n), (self.rows_per_warp, self.panel_columns)
        return matrix_map(self.c_type, address, dims, leading, box, self.swizzle, batches)

    def explain(self) -> str:
        what = f"C = {self.combination.explain()}; " if self.combination.present else ""
        load = what + ("tcgen05.ld 16x256b, " if self.fragments else "tcgen05.ld 32x32b, ") if self.tmem else ""
        if not self.tma:
            wide = f"{self.store_bytes}-byte " if self.store_bytes > 16 else ""
            cache = f" with L1::{self.cache}" if self.cache else ""
            if self.quantizes:
                return (
                    f"{load}{wide}direct stores of {self.c_type}{cache}, with a ue8m0 scale for {SCALE_COLUMNS} columns"
                )
            return f"{load}{wide}direct stores of {self.c_type}{cache}, guarded at the edges of C"
        pack = "stmatrix" if self.fragments else "st.shared"
        return (
            f"{load}{pack}, TMA store; {self.chunks} chunk{'s' * (self.chunks > 1)} of {self.chunk} "
            f"columns, {self.buffers} in shared memory"
        )


def _part(n: int, overlap: int) -> int:
    """Columns that one tcgen05.ld 32x32b reads: the largest power of two that divides N and the overlap."""
    shared = gcd(overlap or _BATCH, n)
    return shared & -shared


def chunk_columns(n: int, widest: int, part: int = 0) -> int:
    """Columns of a chunk of an N tile: at most `widest`, and a divisor of `part` if there is one.

    Where N is no multiple of 16, the most that divide it.
    """
    if n % 16 == 0:
        return gcd(gcd(widest, part), n)
    return max(columns for columns in range(8, widest + 1, 8) if n % columns == 0)
