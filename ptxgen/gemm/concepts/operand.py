"""An operand of the MMA in shared memory: how TMA brings it, where it lies, how a descriptor names it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import Any, Literal

from ptxgen.descriptors import SmemDescriptor, TensorMap, WgmmaDescriptor
from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.gemm.concepts.shared_map import Wanted
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.types import TYPES, ElementType
from ptxgen.layouts.swizzle import Swizzle, swizzle

Load = Literal["tma", "copies", "direct", "vectors"]
#: Bytes of K that a stage holds of each row unless the plan says otherwise, and that one MMA instruction takes.
STAGE_ROW_BYTES = 128
MMA_ROW_BYTES = 32
#: Elements of a TMA box in one dimension at most.
BOX_ROWS = 256


@dataclass(frozen=True, slots=True)
class Batches:
    """How many matrices there are, and the elements from one to the next."""

    count: int
    stride: int


@dataclass(frozen=True, slots=True)
class Copy:
    """One TMA load of a stage: bytes from the operand's start, and elements from the tile's origin along K and rows."""

    offset: int
    k: int
    row: int


@dataclass(frozen=True)
class Fragments:
    """An A of `k` columns that threads pack from an accumulator: in registers for wgmma, else in tensor memory."""

    name: str
    dtype: str
    k: int
    major: str = "k"

    @property
    def type(self) -> ElementType:
        return TYPES[self.dtype]

    @property
    def mma_k(self) -> int:
        """Elements of K that one MMA instruction takes."""
        return MMA_ROW_BYTES // self.type.bytes

    @property
    def steps(self) -> int:
        """MMA instructions, of four registers each."""
        return self.k // self.mma_k

    @property
    def registers(self) -> int:
        """Registers of a thread for wgmma, four for each instruction."""
        return 4 * self.steps

    @property
    def columns(self) -> int:
        """Columns of tensor memory for tcgen05.mma, 32 bits each."""
        return self.k * self.type.bytes // 4


@dataclass(frozen=True)
class Operand:
    """A tile of `rows` of A (or B) by `k_tile` of K, one per stage.

    The tile is a series of panels. A panel is as wide as a row of the swizzle: of K where the operand is K-major, of M
    (or N) where it is MN-major. `peers` CTAs of the cluster need the same tile: each loads its share of the rows and
    multicasts it to all of them. `hint`: the L2 eviction priority of its loads.
    `load`: by TMA, by copies of all threads, or by each thread for itself (then there is no tile in shared memory),
    element by element or 16 bytes at a time.

    A stage has `stage_bytes` of each row. Types of 4 and 6 bits have a byte of shared memory each, unless they are
    `packed`: two of 4 bits in a byte, as the kinds mxf4 and mxf4nvf4 take them.

    `batched`: the tensormap has the batch as third dimension; `heads`: the head as third and the batch as fourth.
    """

    name: str
    dtype: str
    major: str
    rows: int
    swizzle: str
    wgmma: bool = False
    peers: int = 1
    load: Load = "tma"
    batched: bool = False
    stage_bytes: int = STAGE_ROW_BYTES
    packed: bool = False
    hint: str = ""
    heads: bool = False

    def __post_init__(self) -> None:
        if self.load == "vectors" and self.major != "k":
            raise PlanError(f"{self.name.upper()} must be K-major to be read 16 bytes at a time")
        if self.load in ("direct", "vectors"):
            return
        if self.major == "mn" and self.type.bits < 8:
            raise PlanError(f"{self.name.upper()} of type {self.dtype} must be K-major (PTX ISA table 54)")
        if self.padded and self.swizzle not in ("none", "128B"):
            raise PlanError(f"{self.name.upper()} of type {self.dtype} takes the swizzle none or 128B")
        if self.load == "copies" and (self.major, self.swizzle) != ("k", "128B"):
            raise PlanError(f"{self.name.upper()} must be K-major with 128-byte swizzle to be copied by threads")
        if self.major == "mn" and self.wgmma and self.type.bytes != 2:
            raise PlanError(
                f"{self.name.upper()} of type {self.dtype} must be K-major: wgmma transposes 16-bit types only"
            )
        if self.major == "mn" and self.type.bytes == 4 and self.swizzle != "128B":
            raise PlanError(
                f"{self.name.upper()} of type {self.dtype} takes the swizzle 128B where it is MN-major (atoms of 32 "
                f"bytes, PTX ISA table 54), not {self.swizzle}"
            )
        if self.rows % self._row_step:
            layout = f"{self.major.upper()}-major with swizzle {self.swizzle}"
            slices = f" in {self.peers} slices" if self.peers > 1 else ""
            raise PlanError(
                f"{self.name.upper()} has {self.rows} rows a CTA; {layout}{slices} takes a multiple of {self._row_step}"
            )

    @property
    def _row_step(self) -> int:
        """What the rows are a multiple of: each slice has whole panels, or whole groups of 8 rows.

        On Hopper a slice of a swizzled K-major operand only begins at a multiple of 128 bytes, as TMA requires: the
        swizzle XORs the absolute address (fact swizzle-absolute-address).
        """
        if self.major == "mn":
            return self.row_bytes // self.type.bytes * self.peers
        if self.wgmma and self.mode.width:
            return lcm(8, 128 // self.row_bytes * self.peers)
        return 8 * self.peers

    @property
    def type(self) -> ElementType:
        return TYPES[self.dtype]

    @property
    def mode(self) -> Swizzle:
        """The swizzle mode: MN-major operands of 32 bits have one of their own, with atoms of 32 bytes (table 54)."""
        return swizzle("128B_atom_32B" if self.major == "mn" and self.type.bytes == 4 else self.swizzle)

    @property
    def row_bytes(self) -> int:
        """Width of a panel in bytes: a row of the swizzle, or 16 bytes, a row of a core matrix, without one."""
        return self.mode.row_bytes

    @property
    def outer(self) -> list[str]:
        """Registers with the coordinates of a load beyond rows and K, in the order of the tensormap's dimensions."""
        return [f"%r_head_{self.name}"] * self.heads + ["%r_batch"] * (self.batched or self.heads)

    @property
    def tma(self) -> bool:
        return self.load == "tma"

    @property
    def padded(self) -> bool:
        """Whether an element takes more of shared memory than of global memory."""
        return self.type.bits < 8 and not self.packed

    @property
    def shared_bits(self) -> int:
        """Bits of an element in shared memory."""
        return self.type.bits if self.packed else 8 * self.type.bytes

    @property
    def k_tile(self) -> int:
        """Elements of K in a stage."""
        return 8 * self.stage_bytes // self.shared_bits

    @property
    def mma_k(self) -> int:
        """Elements of K that one MMA instruction takes."""
        return 8 * MMA_ROW_BYTES // self.shared_bits

    @property
    def line_step(self) -> int:
        """Elements that the distance of two lines in global memory is a multiple of: 16 bytes, 32 where padded."""
        bits = 256 if self.padded else 128
        return bits // gcd(bits, self.type.bits)

    @property
    def k_step(self) -> int:
        """What K is a multiple of: 128 where padded, as such tensormaps have it."""
        return 128 if self.padded else 1

    @property
    def bytes(self) -> int:
        """Bytes of a stage."""
        return self.rows * self.stage_bytes

    @property
    def tx_bytes(self) -> int:
        """What the copies of a stage add to the tx-count: the padding of elements does not count."""
        return self.bytes * self.type.bits // self.shared_bits if self.padded else self.bytes

    @property
    def alignment(self) -> int:
        """What the start of a stage must be a multiple of."""
        return max(self.mode.period, 128)

    def wanted(self, stages: int) -> Wanted:
        """The region of shared memory with so many stages."""
        return Wanted(self.name, stages * self.bytes, 1024, f"{self.name.upper()}, {self.rows} rows", stages)

    @property
    def lines(self) -> int:
        """Lines of `row_bytes` in a panel: rows where K-major, K where MN-major."""
        return self.rows if self.major == "k" else self.k_tile

    @property
    def panel_bytes(self) -> int:
        return self.lines * self.row_bytes

    @property
    def panels(self) -> int:
        return self.bytes // self.panel_bytes

    @property
    def slice_rows(self) -> int:
        """Rows that this CTA loads itself."""
        return self.rows // self.peers

    @property
    def slice_bytes(self) -> int:
        """Bytes from one CTA's slice to the next one's."""
        return self.slice_rows * self.row_bytes if self.major == "k" else self.slice_rows * self.stage_bytes

    def peers_mask(self, step: int) -> int:
        """Bits of the peers, whose ranks are `step` apart, from the first one on."""
        return sum(1 << (peer * step) for peer in range(self.peers))

    @property
    def box(self) -> tuple[int, int]:
        """Elements of one TMA load, innermost dimension first."""
        inner = 8 * self.row_bytes // self.shared_bits
        return inner, (self.slice_rows // self.boxes if self.major == "k" else self.k_tile)

    @property
    def boxes(self) -> int:
        """TMA loads of a panel's rows where K-major: a box has at most 256."""
        return -(-self.slice_rows // BOX_ROWS) if self.major == "k" else 1

    def row_offset(self, rows: int) -> int:
        """Bytes from the start to the part of the operand that begins at a row, the first of a panel or of 8 rows."""
        if self.major == "k":
            return rows * self.row_bytes
        return rows * self.type.bytes // self.row_bytes * self.panel_bytes

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The TMA loads of a stage."""
        width = 8 * self.row_bytes // self.shared_bits
        if self.major == "k":
            rows = self.slice_rows // self.boxes
            return tuple(
                Copy(i * self.panel_bytes + box * rows * self.row_bytes, i * width, box * rows)
                for i in range(self.panels)
                for box in range(self.boxes)
            )
        return tuple(Copy(i * self.panel_bytes, 0, i * width) for i in range(self.panels // self.peers))

    @property
    def k_steps(self) -> tuple[int, ...]:
        """What each MMA of a stage adds to the descriptor's start address field, in its units of 16 bytes."""
        offsets = []
        for step in range(self.stage_bytes // MMA_ROW_BYTES):
            if self.major == "mn":
                offset = step * self.mma_k * self.row_bytes
            else:
                panel, within = divmod(step * MMA_ROW_BYTES, self.row_bytes)
                offset = panel * self.panel_bytes + within
            offsets.append(offset // 16)
        return tuple(offsets)

    @property
    def descriptor(self) -> SmemDescriptor | WgmmaDescriptor:
        """The matrix descriptor with start address 0."""
        group = (4 if self.mode.atom_bytes == 32 else 8) * self.row_bytes
        if self.mode.width:
            # LBO is ignored for swizzled K-major layouts, and 16 by convention.
            leading, stride = (16 if self.major == "k" else self.panel_bytes), group
        elif self.major == "k":
            leading, stride = self.panel_bytes, group
        else:
            leading, stride = group, self.panel_bytes
        made = WgmmaDescriptor if self.wgmma else SmemDescriptor
        return made(start_address=0, leading_byte_offset=leading, stride_byte_offset=stride, swizzle=self.mode.name)

    def tensormap(
        self, address: Any, rows: int, k: int, leading: int, batches: Batches | Sequence[Batches] | None = None
    ) -> TiledMap:
        """The tensormap of matrices of `rows` x `k` elements whose lines are `leading` elements apart.

        `batches`: the outer dimensions, innermost first.
        """
        dims = (k, rows) if self.major == "k" else (rows, k)
        return matrix_map(
            self.dtype,
            address,
            dims,
            leading,
            self.box,
            self.mode.name,
            batches,
            packed=self.packed,
            l2_promotion="128B",
        )


def matrix_map(
    dtype: str,
    address: Any,
    dims: tuple[int, int],
    leading: int,
    box: tuple[int, int],
    swizzle: str,
    batches: Batches | Sequence[Batches] | None,
    *,
    packed: bool = False,
    l2_promotion: str = "none",
) -> TiledMap:
    """The tensormap of a matrix, or of many with batches as outer dimensions; sizes in elements, innermost first.

    `packed`: elements of 4 bits stay two in a byte in shared memory.
    """
    made, bits = TYPES[dtype], TYPES[dtype].bits
    outer = [batches] if isinstance(batches, Batches) else list(batches or ())
    return TensorMap.tiled(
        "16u4_align8b" if packed else made.tensormap,
        address,
        dims=(*dims, *(each.count for each in outer)),
        strides=[stride * bits // 8 for stride in (leading, *(each.stride for each in outer))],
        box=(*box, *(1 for _ in outer)),
        swizzle=swizzle,
        l2_promotion=l2_promotion,
    )
