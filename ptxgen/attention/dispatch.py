"""Which kernel of a target is the fastest for a problem, as far as it was measured."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ptxgen.attention.ladder import find
from ptxgen.attention.plan import AttentionPlan
from ptxgen.options import PlanError

_KERNELS = {"sm_90a": "hopper/attention", "sm_100a": "blackwell/attention"}
#: Up to so many keys smaller tiles are faster on an H200 (bench/data/h200-attention.jsonl): less of the last is wasted.
_FEW = 1024


@lru_cache(maxsize=1024)
def best(queries: int, keys: int, *, target: str = "sm_90a", **options: Any) -> AttentionPlan:
    """The plan for a number of queries and keys, with options that must hold: `head_size`, `causal`, `dtype`, ...

    On Hopper by measurement on an H200, which the defaults of `hopper/attention` follow from 1024 keys on; on Blackwell
    those of `blackwell/attention`, which nobody has timed. Raises PlanError where no kernel takes the options.

    >>> from ptxgen.attention import best
    >>> [best(keys, keys, head_size=128).config.key_tile for keys in (512, 4096)]
    [128, 144]
    """
    if target not in _KERNELS:
        raise PlanError(f"ptxgen has no attention kernel for {target}; it has some for {', '.join(_KERNELS)}")
    entry = find(_KERNELS[target])
    made = entry.plan(**options)
    if target == "sm_90a" and min(queries, keys) <= _FEW and max(made.config.head_size, made.config.values) <= 128:
        few = {"key_tile": min(made.config.key_tile, 128)}
        if made.config.causal:
            few["query_tile"] = 128
        made = entry.plan(**{**few, **options})
    return made
