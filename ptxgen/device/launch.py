"""Launches: grid, block, cluster and shared memory, and the interface of what runs them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from ptxgen.device.arrays import DeviceArray, DTypeLike, Extent, whole_numbers
from ptxgen.device.kernel import Kernel
from ptxgen.device.report import LaunchReport

_MAX_THREADS = 1024
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_CLUSTER = 16  # the largest that any target has, and only for a kernel that opts in to a non-portable size


class LaunchError(ValueError):
    """A launch shape that no target allows: grid, block, cluster or dynamic shared memory."""


@dataclass(frozen=True)
class LaunchShape:
    """Grid and cluster in CTAs, block in threads, each (x, y, z); dynamic shared memory in bytes per CTA."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None = None
    shared_bytes: int = 0
    #: True: all CTAs are resident together, for barriers of the grid.
    cooperative: bool = False

    @classmethod
    def of(
        cls,
        grid: Extent,
        block: Extent,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
        *,
        cooperative: bool = False,
    ) -> LaunchShape:
        """Check what holds on every target and fill missing dimensions with 1. Raises LaunchError."""
        full_grid = _extent("grid", grid, _MAX_GRID)
        full_block = _extent("block", block, _MAX_BLOCK)
        threads = math.prod(full_block)
        if threads > _MAX_THREADS:
            raise LaunchError(f"a block has at most {_MAX_THREADS} threads, but {full_block} has {threads}")
        full_cluster = None
        if cluster is not None:
            full_cluster = _extent("cluster", cluster, (_MAX_CLUSTER,) * 3)
            count = math.prod(full_cluster)
            if count > _MAX_CLUSTER:
                raise LaunchError(f"a cluster has at most {_MAX_CLUSTER} CTAs, but {full_cluster} has {count}")
            if any(extent % part for extent, part in zip(full_grid, full_cluster, strict=True)):
                raise LaunchError(
                    f"every grid dimension must be a multiple of the cluster's: grid {full_grid}, "
                    f"cluster {full_cluster}"
                )
        size = whole_numbers(shared_bytes)
        if size is None or len(size) != 1 or size[0] < 0:
            raise LaunchError(f"shared_bytes is a number of bytes, 0 or more, but it is {shared_bytes!r}")
        return cls(full_grid, full_block, full_cluster, size[0], bool(cooperative))


@dataclass(frozen=True)
class Launch:
    """One launch of several in a stream: the arguments of `Device.launch`. Raises LaunchError for what is none."""

    kernel: Kernel
    grid: Extent
    block: Extent
    args: Sequence[object]
    cluster: Extent | None = None
    shared_bytes: int = 0
    cooperative: bool = False

    @property
    def shape(self) -> LaunchShape:
        """The shape, checked. Raises LaunchError."""
        return LaunchShape.of(self.grid, self.block, self.cluster, self.shared_bytes, cooperative=self.cooperative)

    def __post_init__(self) -> None:
        kernel, args = cast("object", self.kernel), cast("object", self.args)
        if not isinstance(kernel, Kernel):
            raise LaunchError(
                f"a launch takes a ptxgen.Kernel, not {type(kernel).__name__}; Kernel.from_ptx(text) makes one"
            )
        if not isinstance(args, Sequence) or isinstance(args, str | bytes):
            raise LaunchError(
                f"the arguments of a launch are a list, in the order of the parameters, not {type(args).__name__}"
            )


@runtime_checkable
class Device(Protocol):
    """What runs kernels: the emulator or a GPU. A script runs on either by changing one object."""

    @property
    def name(self) -> str:
        """What the device calls itself."""
        ...

    @property
    def target(self) -> str:
        """The architecture whose PTX it runs, such as "sm_90a"."""
        ...

    def array(self, values: object, dtype: DTypeLike | None = None) -> DeviceArray:
        """Copy host values, as `dtype` if one is given, into new device memory; `host_array` says what is taken."""
        ...

    def empty(self, shape: Extent, dtype: DTypeLike) -> DeviceArray:
        """New device memory whose contents are undefined."""
        ...

    def launch(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        *,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> LaunchReport:
        """Run a kernel to its end; `args` are in the order of the entry's parameters.

        The CTAs of a `cooperative` launch are all resident together, as cooperative groups' grid().sync() requires.
        """
        ...


def _extent(what: str, given: Extent, limits: tuple[int, ...]) -> tuple[int, int, int]:
    parts = whole_numbers(given)
    if parts is None:
        raise LaunchError(f"the {what} is a whole number, or up to three of them, not {given!r}")
    if not 1 <= len(parts) <= 3:
        raise LaunchError(f"the {what} has 1 to 3 dimensions, but {given!r} has {len(parts)}")
    x, y, z = (*parts, 1, 1)[:3]
    full = (x, y, z)
    for axis, extent, limit in zip("xyz", full, limits, strict=True):
        if not 1 <= extent <= limit:
            raise LaunchError(f"the {what}'s {axis} must be in 1..{limit}, but it is {extent} in {given!r}")
    return full
