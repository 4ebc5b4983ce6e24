"""Which kernel of a target is the fastest for a problem, as far as it was measured."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ptxgen.attention.ladder import find
from ptxgen.attention.plan import ROWS, AttentionPlan
from ptxgen.options import PlanError

_KERNELS = {"sm_90a": "hopper/attention", "sm_100a": "blackwell/attention"}
#: Up to so many keys two warpgroups are faster than three on an H200: less of the last tile is wasted.
_FEW = 1024


@lru_cache(maxsize=1024)
def best(queries: int, keys: int, *, target: str = "sm_90a", **options: Any) -> AttentionPlan:
    """The plan for a number of queries and keys, with options that must hold: `head_size`, `causal`, `dtype`, ...

    On Hopper by measurement on an H200, which the defaults of `hopper/attention` follow from 1024 keys on; on Blackwell
    those of `blackwell/attention`, which nobody has timed. Raises PlanError where no kernel takes the options.

    >>> from ptxgen.attention import best
    >>> [best(keys, keys, head_size=128).config.query_tile for keys in (512, 4096)]
    [128, 192]
    """
    if target not in _KERNELS:
        raise PlanError(f"ptxgen has no attention kernel for {target}; it has some for {', '.join(_KERNELS)}")
    entry = find(_KERNELS[target])
    made = entry.plan(**options)
    if target == "sm_90a" and min(queries, keys) <= _FEW and (made.config.causal or made.config.head_size == 128):
        made = entry.plan(**{"query_tile": 2 * ROWS, **options})
    return made
