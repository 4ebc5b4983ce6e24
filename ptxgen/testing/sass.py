"""Comparison of the machine code of two kernels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen.device import Kernel
from ptxgen.toolchain import Cubin

if TYPE_CHECKING:
    from ptxgen.sass import Listing

#: Lines of a comparison that a failure shows.
_SHOWN = 60


def assert_same_sass(
    a: str | os.PathLike[str] | Kernel | Cubin,
    b: str | os.PathLike[str] | Kernel | Cubin,
    *,
    target: str | None = None,
    kernel: str | None = None,
) -> None:
    """ptxas makes the same of two kernels, but for the choice of registers, as `ptxgen sass diff` counts it.

    Each is PTX text, a path (PTX or cubin), a Kernel, or a Cubin; `target` replaces the text's own, `kernel` names one
    entry of several. The AssertionError shows the differences side by side. Needs ptxas and nvdisasm.
    """
    __tracebackhide__ = True
    from ptxgen.sass import compare
    from ptxgen.sass.show import comparison_lines

    found = compare(listing_of(a, target, "a"), listing_of(b, target, "b"), kernel=kernel)
    if found.same:
        return
    lines = [line.rstrip() for line in comparison_lines(found)]
    more = [f"... {len(lines) - _SHOWN} lines more"] if len(lines) > _SHOWN else []
    raise AssertionError("\n".join(["the SASS differs", *lines[:_SHOWN], *more]))


def listing_of(given: str | os.PathLike[str] | Kernel | Cubin, target: str | None, origin: str) -> Listing:
    """The SASS of PTX text, a path (PTX or cubin), a Kernel, or a Cubin."""
    from ptxgen.sass import load
    from ptxgen.toolchain import assemble

    if isinstance(given, Kernel):
        given = given.text
    if isinstance(given, str) and "\n" in given:
        given = assemble(given, target)
    if isinstance(given, Cubin):
        return load(given, origin=origin)
    return load(Path(given), target=target)
