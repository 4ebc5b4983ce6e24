"""Golden figures of machine code: registers, spills, instructions and stalls of the loops, kept next to the test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen.device import Kernel
from ptxgen.testing.sass import listing_of
from ptxgen.testing.snapshots import read_snapshots, write_snapshots
from ptxgen.toolchain import Cubin

if TYPE_CHECKING:
    from ptxgen.sass import Listing
    from ptxgen.sass.summary import Summary

#: Default tolerances of figures: counts, or percent of the snapshot.
TOLERANCES: Mapping[str, int | str] = {
    "registers": 0,
    "spills": 0,
    "instructions": "2%",
    "loop-instructions": 0,
    "loop-stalls": "5%",
}
Figures = dict[str, int | list[int] | None]


class SassSnapshots:
    """Figures of the kernels of one test file, in `__snapshots__/<name of the file>.sass.json` next to it.

    With `update`, what differs or is missing is written, and nothing fails.
    """

    def __init__(self, test_file: Path, update: bool) -> None:
        self.path = test_file.parent / "__snapshots__" / f"{test_file.stem}.sass.json"
        self.update = update

    def check(
        self,
        name: str,
        given: str | os.PathLike[str] | Kernel | Cubin,
        *,
        target: str | None = None,
        kernel: str | None = None,
        tolerances: Mapping[str, int | str] | None = None,
    ) -> None:
        """The figures of all kernels of `given`, or of `kernel`, are those of the snapshot.

        Figures of loops are lists, a loop each, in the order of their addresses. Raises AssertionError with what
        differs by more than its tolerance, in either direction, and ValueError for unknown tolerances.
        """
        __tracebackhide__ = True
        from ptxgen.sass import summarize

        allowed = {**TOLERANCES, **_known(tolerances or {})}
        listing = listing_of(given, target, "snapshot")
        functions = listing.functions if kernel is None else (listing.kernel(kernel),)
        now = {
            "target": listing.target,
            "ptxas": _version(listing),
            "kernels": {each.name: figures(summarize(each, listing)) for each in functions},
        }
        kept = read_snapshots(self.path)
        problems = list(_differences(kept[name], now, allowed)) if name in kept else [f"no snapshot {name!r}"]
        if not problems:
            return
        if self.update:
            write_snapshots(self.path, {**kept, name: now})
            return
        if name not in kept:
            raise AssertionError(f"{self.path} has no snapshot {name!r}; pytest --update-sass writes it")
        lines = [f"the SASS is not that of {self.path} (pytest --update-sass writes the new one)", *problems]
        if kept[name].get("ptxas") != now["ptxas"]:
            lines.append(f"the snapshot is of ptxas {kept[name].get('ptxas')}, this is {now['ptxas']}")
        raise AssertionError("\n".join(lines))


def figures(summary: Summary) -> Figures:
    """The figures of a kernel, by the names that tolerances have."""
    loops = sorted(summary.loops, key=lambda loop: loop.address)
    return {
        "registers": summary.registers,
        "spills": summary.local_loads + summary.local_stores,
        "instructions": summary.instructions,
        "loop-instructions": [each.instructions for each in loops],
        "loop-stalls": [each.stall for each in loops],
    }


def _version(listing: Listing) -> str | None:
    from ptxgen.toolchain import ptxas_version

    return ptxas_version() if listing.log or listing.ptx else None


def _known(tolerances: Mapping[str, int | str]) -> Mapping[str, int | str]:
    for name, value in tolerances.items():
        if name not in TOLERANCES:
            raise ValueError(f"sass_snapshot: no figure is called {name!r}; there are {', '.join(TOLERANCES)}")
        _allowance(name, value, 0)
    return tolerances


def _allowance(name: str, tolerance: int | str, of: int) -> float:
    """By how much a figure may differ. Raises ValueError."""
    text = str(tolerance)
    try:
        found = of * float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        found = -1.0
    if not found >= 0:
        raise ValueError(f"sass_snapshot: the tolerance of {name} must be a number or a percentage, not {tolerance!r}")
    return found


def _differences(
    kept: Mapping[str, object], now: Mapping[str, object], allowed: Mapping[str, int | str]
) -> Iterator[str]:
    before, after = kept.get("kernels"), now["kernels"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    if kept.get("target") != now["target"]:
        yield f"target: {kept.get('target')} -> {now['target']}"
    yield from (f"{kernel}: is gone" for kernel in before.keys() - after.keys())
    for kernel, values in after.items():
        if kernel not in before:
            yield f"{kernel}: is new"
            continue
        for name, value in values.items():
            yield from (f"{kernel}: {words}" for words in _changed(name, before[kernel].get(name), value, allowed))


def _changed(name: str, old: object, new: object, allowed: Mapping[str, int | str]) -> Iterator[str]:
    ones = old if isinstance(old, list) else [old]
    others = new if isinstance(new, list) else [new]
    if len(ones) != len(others):
        yield f"{name}: {len(ones)} loops -> {len(others)}"
        return
    for number, (a, b) in enumerate(zip(ones, others, strict=True), 1):
        where = f" of loop {number}" if isinstance(new, list) and len(others) > 1 else ""
        if a is None or b is None or not isinstance(a, int) or not isinstance(b, int):
            if a != b:
                yield f"{name}{where}: {a} -> {b}"
        elif abs(b - a) > _allowance(name, allowed[name], a):
            yield f"{name}{where}: {a} -> {b}, more than {allowed[name]} allows"
