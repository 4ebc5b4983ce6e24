"""Joins sampled addresses with SASS, PTX lines and control codes, through `ptxgen.sass` where there is a cubin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ptxgen.ncu.schema import Sample
from ptxgen.sass import ContainerError, Function, load
from ptxgen.toolchain import ToolNotFoundError


@dataclass(frozen=True, slots=True)
class Places:
    """What a report says of an address. `start` is where the function begins; an empty string: nothing known."""

    start: int | None
    sass: Callable[[int], str]
    ptx: Callable[[int], str]
    source: Callable[[int], str]


def join(
    samples: Sequence[Sample], places: Places, cubin: bytes | None, mangled: str
) -> tuple[tuple[Sample, ...], str]:
    """The samples with their code, and what could not be joined ("" if nothing)."""
    start = places.start
    if start is None:
        start = min((each.address for each in samples if each.address is not None), default=0)
    function, ptx, gap = _function(cubin, mangled)
    listed = {each.address: each for each in function.instructions} if function is not None else {}
    joined: list[Sample] = []
    for each in samples:
        address = each.address if each.address is not None else start
        offset = address - start
        made = replace(
            each,
            offset=offset,
            sass=_one_line(places.sass(address)),
            ptx=_one_line(places.ptx(address)),
            source=places.source(address),
        )
        found = listed.get(offset)
        if found is not None:
            line = found.ptx_line
            made = replace(
                made,
                sass=made.sass or found.text,
                ptx_line=line,
                ptx=made.ptx or (ptx[line - 1].strip() if line is not None and 0 < line <= len(ptx) else ""),
                source=made.source or found.source,
                control=str(found.control),
            )
        joined.append(made)
    return tuple(joined), gap


def _function(cubin: bytes | None, mangled: str) -> tuple[Function | None, list[str], str]:
    """The kernel in a cubin, the lines of its PTX, and what is missing."""
    if not cubin:
        return None, [], "the report holds no cubin: no PTX lines and control codes of the samples"
    try:
        listing = load(cubin, origin="the report's cubin")
        return listing.kernel(mangled), listing.ptx.splitlines(), ""
    except (ContainerError, ToolNotFoundError, LookupError) as error:
        reason = (str(error.args[0]).splitlines() or [""])[0].partition(": nvdisasm warning")[0]
        return None, [], f"no PTX lines and control codes of the samples: {reason}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
