"""What a person chooses about attention. Its fields are the only list of options: command line and docs read it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ptxgen import options
from ptxgen.gemm.types import ALIASES
from ptxgen.options import option

_TYPES = ("bf16", "f16")
_SIZES = (64, 128, 192, 256)


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """O = softmax(scale·Q·Kᵀ)·V for each head; sizes are in elements.

    Raises PlanError for a value that is not among an option's.
    """

    dtype: str = option("bf16", "type of Q, K and V", choices=_TYPES)
    o_dtype: str = option("", "type of O; empty: that of Q", choices=("", *_TYPES, "f32"))
    head_size: int = option(128, "columns of Q and K", choices=_SIZES)
    value_size: int = option(0, "columns of V and O; 0: as many as Q has", choices=(0, *_SIZES))
    causal: bool = option(
        False, "query i sees the keys up to i + keys - queries: the last query sees all", choices=(False, True)
    )
    lse: bool = option(
        False, "also store the logarithm of each row's sum of exponentials, in fp32", choices=(False, True)
    )
    query_tile: int = option(
        0,
        "queries of a CTA: 64 for each warpgroup, on Blackwell 128; 0: by design and head size",
        range=(0, 256, 64),
        on={"sm_90a": (0, 192, 64), "sm_100a": (0, 256, 128)},
    )
    key_tile: int = option(0, "keys of a block; 0: by queries and head size", range=(0, 256, 16))
    stages: int = option(1, "blocks of K and of V in shared memory", range=(1, 8, 1))
    overlap: bool = option(
        False,
        "a warpgroup computes the scores of the next block while the exponentials of this one multiply V",
        choices=(False, True),
    )
    consumers: str = option(
        "cooperative",
        "warpgroups run as they come, or take turns: one runs MMAs while the others compute exponentials; empty: three "
        "take turns",
        choices=("", "cooperative", "pingpong"),
    )
    epilogue: str = option("direct", "how O is stored: st.global, or shared memory and TMA", choices=("direct", "tma"))
    chunk: int = option(64, "columns of O that a TMA epilogue stores at a time", choices=(32, 64, 128))
    chunk_buffers: int = option(1, "chunks of O in shared memory", range=(1, 4, 1))
    scheduler: str = option("grid", "grid: one tile per CTA; static: persistent", choices=("grid", "static"))
    slots: int = option(132, "CTAs of a static scheduler, one per SM: an H200 has 132, a B200 148", range=(1, 1024, 1))
    panel: int = option(
        0, "heads that take turns tile by tile; 0: all tiles of a head before the next", range=(0, 64, 1)
    )
    load_registers: int = option(
        0,
        "registers of a producer thread (setmaxnreg); consumers share the rest; 0: 40 or 32 by their number",
        choices=(0, 24, 32, 40, 56),
    )
    ptx: str = option("8.6", "PTX ISA version", choices=("8.6", "8.7", "8.8", "9.0"))

    def __post_init__(self) -> None:
        for name in ("dtype", "o_dtype"):
            value = getattr(self, name)
            object.__setattr__(self, name, ALIASES.get(value, value or ""))
        options.require(self, [each.name for each in fields(self) if not each.metadata["on"]])

    def require(self, target: str) -> None:
        """Raises PlanError for a value that is not among an option's on this target."""
        options.require(self, [each.name for each in fields(self) if each.metadata["on"]], target)

    def chosen(self) -> list[str]:
        """What differs from the defaults, as `--set` takes it."""
        return options.chosen(self)

    @property
    def o_type(self) -> str:
        return self.o_dtype or self.dtype

    @property
    def values(self) -> int:
        """Columns of V and O."""
        return self.value_size or self.head_size
