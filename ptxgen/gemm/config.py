"""What a person chooses about a GEMM. Its fields are the only list of options: command line and docs read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ptxgen import options
from ptxgen.descriptors.mma_kinds import SCALED_KINDS
from ptxgen.gemm.scales import ScaledType
from ptxgen.gemm.types import ALIASES, INPUTS, OUTPUTS, QUANTIZED_OUTPUTS, TYPES
from ptxgen.options import PlanError, option

_MAJORS = ("k", "mn")
_C_MAJORS = ("n", "m")
_SCHEDULERS = ("grid", "static", "stream", "clc")
_CONSUMERS = ("cooperative", "pingpong")
_ORDERS = ("panels", "hilbert")
_PHASES = ("register", "local")
_SUMS = ("own", "ring")
_STORE_CACHES = ("", "no_allocate")
_KINDS = ("", *SCALED_KINDS)
_SCALES = ("", "ue8m0", "ue4m3")
_GROUPED = ("none", "contiguous", "masked")
_HINTS = ("", "evict_first", "evict_last")
_BLOCK_SCALES = ("none", "1d2d", "2d1d")
_ACTIVATIONS = ("none", "relu", "gelu", "silu")


@dataclass(frozen=True, kw_only=True)
class GemmConfig:
    """C = activation(alpha·A·Bᵀ + beta·source + bias), by default A·Bᵀ; tile sizes are in elements.

    Raises PlanError for a value that is not among an option's; where they depend on the target, `require` does.
    """

    dtype: str = option("bf16", "type of A, and of B unless b_dtype is set", choices=INPUTS)
    b_dtype: str = option("", "type of B if it differs from that of A (e4m3 with e5m2)", choices=("", *INPUTS))
    c_dtype: str = option(
        "",
        "type of C; empty: that of A if legal for C, else f32 or s32; e4m3 and e5m2: with ue8m0 scales",
        choices=("", *OUTPUTS, *QUANTIZED_OUTPUTS),
    )
    a_major: str = option("k", "dimension along which A is contiguous", choices=_MAJORS)
    b_major: str = option("k", "dimension along which B is contiguous", choices=_MAJORS)
    kind: str = option("", "kind of a block-scaled MMA; empty: A and B have no scales", choices=_KINDS)
    scale_dtype: str = option("", "type of the scales; empty: ue4m3 for mxf4nvf4, else ue8m0", choices=_SCALES)
    scale_block: int = option(0, "elements of K per scale; 0: 16 for mxf4nvf4, else 32", choices=(0, 16, 32))
    c_major: str = option("n", "dimension along which C is contiguous", choices=_C_MAJORS)
    m_tile: int = option(128, "rows of C per MMA: of a CTA, or of a pair of CTAs", range=(64, 256, 64))
    n_tile: int = option(
        128,
        "columns of C per MMA; above 256, in steps of 16, two MMAs have half of them each",
        range=(16, 256, 16),
        on={"sm_90a": (16, 384, 8)},
    )
    warpgroups: int = option(
        0, "consumer warpgroups, 64 or 128 rows each; 0: one per 64 rows of the tile", range=(0, 4, 1)
    )
    k_tile_bytes: int = option(128, "bytes of K of A and B in a stage", choices=(128, 256))
    swizzle: str = option("128B", "swizzle of A and B in shared memory", choices=("none", "32B", "64B", "128B"))
    cta_group: int = option(1, "CTAs that one MMA spans", choices=(1, 2))
    cluster_m: int = option(1, "CTAs of a cluster along M", choices=(1, 2, 4, 8))
    cluster_n: int = option(1, "CTAs of a cluster along N", choices=(1, 2, 4, 8))
    stages: int = option(1, "K blocks of A and B in shared memory", range=(1, 24, 1))
    accumulators: int = option(1, "accumulators in tensor memory", range=(1, 4, 1))
    overlap: int = option(0, "columns of tensor memory that two accumulators share", range=(0, 224, 32))
    phases: str = option(
        "register", "phase bits of a ring: one, or an array in local memory, indexed by stage", choices=_PHASES
    )
    sfb_multicast: bool = option(False, "one CTA of a pair loads the scales of B for both", choices=(False, True))
    epilogue: str = option("direct", "how C is stored: st.global, or shared memory and TMA", choices=("direct", "tma"))
    tmem_load: str = option("32x32b", "shape of tcgen05.ld; 16x256b goes with stmatrix", choices=("32x32b", "16x256b"))
    chunk: int = option(
        256, "columns of C that the epilogue stores at a time", range=(16, 256, 16), on={"sm_90a": (16, 256, 8)}
    )
    chunk_buffers: int = option(1, "chunks of C in shared memory", range=(1, 8, 1))
    store_bytes: int = option(16, "bytes of a direct store; 32: st.global.v8 of 32-bit elements", choices=(16, 32))
    store_cache: str = option("", "L1 cache policy of direct stores; empty: the default", choices=_STORE_CACHES)
    alpha: bool = option(False, "scale A·Bᵀ by alpha, an argument of the launch", choices=(False, True))
    source: str = option("", "type of an M×N source, added times beta (the C of BLAS)", choices=("", *OUTPUTS))
    bias: str = option("", "type of a bias along N", choices=("", *OUTPUTS))
    activation: str = option("none", "activation; gelu is its tanh form", choices=_ACTIVATIONS)
    batched: bool = option(False, "batched GEMM: one problem per batch", choices=(False, True))
    grouped: str = option(
        "none",
        "contiguous: each row of A names the matrix of B that it is multiplied by, the same for all rows of a tile; "
        "masked: each batch has rows of its own number, and tiles past them are skipped",
        choices=_GROUPED,
    )
    scheduler: str = option(
        "grid",
        "grid: one tile per CTA; static: persistent; stream: persistent, equal shares of K blocks (stream-K); clc: "
        "persistent by cluster launch control",
        choices=_SCHEDULERS,
        on={"sm_90a": ("grid", "static", "stream"), "sm_100a": ("grid", "static", "clc")},
    )
    consumers: str = option(
        "cooperative",
        "warpgroups share a tile, or alternate tiles: one runs MMAs while the other stores",
        choices=_CONSUMERS,
    )
    split_k: int = option(
        1, "CTAs of a cluster that share the K blocks of a tile and add up their sums", range=(1, 8, 1)
    )
    sums: str = option(
        "own",
        "where the sums of the CTAs of a cluster go that splits K: shared memory of their own, or that of A and B",
        choices=_SUMS,
    )
    k_clusters: int = option(
        1,
        "clusters, or CTAs where tiles have none, that share the K blocks of a tile and add up their sums in a global "
        "workspace; they need not run at once",
        range=(1, 16, 1),
    )
    lag: int = option(0, "K blocks by which the second of two warpgroups lags behind the first", range=(0, 4, 1))
    load_registers: int = option(
        0,
        "registers of a producer thread (setmaxnreg); consumers share the rest; 0: 40, 32 or 24 by their number",
        choices=(0, 24, 32, 40, 56),
    )
    slots: int = option(132, "CTAs of a static scheduler, one per SM: an H200 has 132, a B200 148", range=(1, 1024, 1))
    clc_stages: int = option(1, "responses of cluster launch control in flight", range=(1, 4, 1))
    panel: int = option(0, "width of a panel of the tile order, in tiles along N; 0: along M", range=(0, 16, 1))
    order: str = option("panels", "order of tiles: panels, or along a Hilbert curve", choices=_ORDERS)
    vectors: int = option(1, "rows of A that a CTA of a GEMV multiplies", choices=(1, 2, 4))
    warp_rows: int = option(1, "rows of B that a warp of a GEMV multiplies at a time", choices=(1, 2, 4))
    k_warps: int = option(1, "warps of a GEMV that share rows of B, each with its part of K", choices=(1, 2, 4, 8))
    a_hint: str = option("", "L2 eviction priority of the loads of A", choices=_HINTS)
    b_hint: str = option("", "L2 eviction priority of the loads of B", choices=_HINTS)
    converged: bool = option(
        False,
        "loads and MMAs: a warp runs their loops and elects a thread for each K block; false: one elected thread does",
        choices=(False, True),
    )
    promote: bool = option(
        True,
        "add the fp8 sums of every K block in fp32; false: wgmma accumulates them, with 13 bits",
        choices=(False, True),
    )
    scales: str = option(
        "none",
        "fp32 scales of promoted fp8 sums; 1d2d: 1x128 of A, 128x128 of B; 2d1d: 128x128 of A, 1x128 of B",
        choices=_BLOCK_SCALES,
    )
    dependent: bool = option(
        False,
        "programmatic dependent launch: may start before the previous launch of the stream has ended",
        choices=(False, True),
    )
    ptx: str = option("8.6", "PTX ISA version", choices=("8.6", "8.7", "8.8", "9.0"))

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name.endswith("dtype") or each.name in ("source", "bias"):
                value = getattr(self, each.name)
                object.__setattr__(self, each.name, ALIASES.get(value, value or ""))
        options.require(self, [each.name for each in fields(self) if not each.metadata["on"]])

    def require(self, target: str) -> None:
        """Raises PlanError for a value that is not among an option's on this target."""
        options.require(self, [each.name for each in fields(self) if each.metadata["on"]], target)

    def chosen(self) -> list[str]:
        """What differs from the defaults, as `--set` takes it."""
        return options.chosen(self)

    @property
    def scaled(self) -> tuple[ScaledType, ScaledType] | None:
        """A's and B's types with their scales; None without. Raises PlanError for an illegal combination."""
        if not self.kind:
            return None
        scale = self.scale_dtype or ("ue4m3" if self.kind == "mxf4nvf4" else "ue8m0")
        block = self.scale_block or (16 if self.kind == "mxf4nvf4" else 32)
        return ScaledType(self.kind, self.dtype, scale, block), ScaledType(self.kind, self.b_type, scale, block)

    @property
    def b_type(self) -> str:
        return self.b_dtype or self.dtype

    @property
    def c_type(self) -> str:
        """The type of C. Raises PlanError where the accumulator has no conversion to it."""
        integer = TYPES[self.dtype].is_integer
        chosen = self.c_dtype or ("s32" if integer else self.dtype if self.dtype in OUTPUTS else "f32")
        if TYPES[chosen].is_integer and not integer:
            raise PlanError(f"{self.dtype} accumulates in f32; C cannot be {chosen}")
        return chosen


def parse_options(given: Mapping[str, str]) -> dict[str, Any]:
    """Options as text, as the type of their field. `tile=256x224` is short for m_tile and n_tile. Raises PlanError.

    >>> from ptxgen.gemm import parse_options
    >>> parse_options({"tile": "256x224", "stages": "5"})
    {'m_tile': 256, 'n_tile': 224, 'stages': 5}
    """
    each_by_name: dict[str, str] = {}
    for name, text in given.items():
        if name == "tile":
            m, x, n = text.partition("x")
            if not (x and m.isdigit() and n.isdigit()):
                raise PlanError(f"tile must be M x N such as 256x224, not {text!r}")
            each_by_name.update(m_tile=m, n_tile=n)
        else:
            each_by_name[name] = text
    return options.parse(GemmConfig, each_by_name)
