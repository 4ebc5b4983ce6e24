"""The order of strong accesses and fences: acquire, release, and the scope. PTX ISA 8.4, 8.5, 8.7."""

from __future__ import annotations

from typing import NamedTuple

#: Widths of scopes.
CTA, CLUSTER, GPU = range(3)
SCOPES = ("cta", "cluster", "gpu")
_LEVELS = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": GPU, "gl": GPU}


def level(scope: str | None) -> int:
    """The width of a scope, of `membar` too; by default that of the GPU."""
    return GPU if scope is None else _LEVELS[scope.lstrip(".")]


class Order(NamedTuple):
    """Whether a strong access acquires or releases, and the width of its scope."""

    acquires: bool
    releases: bool
    level: int


def order_of(sem: str | None, scope: str | None) -> Order:
    """The order of a strong access; without `sem` it is relaxed, without `scope` in that of the GPU."""
    return Order(sem in ("acquire", "acq_rel"), sem in ("release", "acq_rel"), level(scope))
