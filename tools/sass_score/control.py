"""Control fields of every recorded kernel: decode, encode, and compare with the bytes of the cubin.

    python -m tools.sass_score.control --record

Cubins of all recorded kernels (tests/data), of the shipped ladders, and of the modules that certification assembles
for its index, for sm_90a and sm_100a where a kernel has both. Words come from the ELF file, not from nvdisasm's text.
"""

from __future__ import annotations

import argparse
import datetime
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ptxgen.gemm import find, kernels
from ptxgen.sass.control import MASK, Control
from ptxgen.toolchain import AssemblerError, assemble, find_ptxas, ptxas_version, target_of
from tools.certify import emitted
from tools.measurements import record
from tools.sass_score.kernels import DATA


@dataclass(frozen=True)
class Swept:
    """What one cubin's words say: how many there are, and those that do not come back."""

    target: str
    kind: str
    words: int
    wrong: tuple[str, ...]


def check(data: bytes, name: str) -> tuple[int, tuple[str, ...]]:
    """The number of instruction words of a cubin, and those whose control fields do not encode to themselves."""
    words, wrong = 0, list[str]()
    for section in ELFFile(io.BytesIO(data)).iter_sections():
        if not section.name.startswith(".text"):
            continue
        code = section.data()
        for place in range(0, len(code), 16):
            word = int.from_bytes(code[place : place + 16], "little")
            words += 1
            control = Control.decode(word)
            fresh = control.encode(word & ~MASK)
            if fresh.to_bytes(16, "little") != code[place : place + 16] or Control.decode(control.encode()) != control:
                wrong.append(f"{name} {section.name} {place:#x}: {word:032x} -> {fresh:032x}")
    return words, tuple(wrong)


@dataclass(frozen=True)
class Text:
    """PTX to assemble: what it is from, and for which target."""

    kind: str
    name: str
    target: str
    text: str


def texts(limit: int | None, families: Sequence[str] = ()) -> Iterator[Text]:
    """All that is assembled; `limit` takes every so many to make that number, `families` those of the certification."""
    found = [*_recorded(), *_shipped(), *_certified(families)]
    step = 1 if limit is None else max(1, len(found) // limit)
    for make in found[::step]:
        yield make()


def _recorded() -> Iterator[Callable[[], Text]]:
    for folder in ("cases", "handwritten", "witnesses"):
        for path in sorted((DATA / folder).glob("*.ptx")):
            yield partial(_read, folder, path)


def _read(folder: str, path: Path) -> Text:
    text = path.read_text(encoding="utf-8")
    return Text(folder, path.stem, target_of(text) or "", text)


def _shipped() -> Iterator[Callable[[], Text]]:
    for name in kernels():
        yield partial(_rendered, name)


def _rendered(name: str) -> Text:
    text = find(name).plan().text
    return Text("ladders", name, target_of(text) or "", text)


def _certified(families: Sequence[str]) -> Iterator[Callable[[], Text]]:
    for number, (target, forms) in enumerate(emitted.work(families)):
        for form in forms:
            yield partial(_alone, form, target, number)


def _alone(form: emitted.Form, target: str, number: int) -> Text:
    text, _ = emitted.module([form], target)
    return Text("certification", f"{number} {form.spelling}", target, text)


def sweep(each: Text) -> Swept | None:
    """The words of one cubin; None where ptxas refuses the text."""
    try:
        cubin = assemble(each.text, each.target)
    except AssemblerError:
        return None
    words, wrong = check(cubin.data, each.name)
    return Swept(each.target, each.kind, words, wrong)


def main() -> int:
    """Print a table and every word that does not come back; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, help="cubins, about (default all)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="write the figures into docs/measurements.md")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        found = [each for each in pool.map(sweep, texts(arguments.limit), chunksize=8) if each is not None]
    wrong = [text for each in found for text in each.wrong]
    for text in wrong[:40]:
        print(text)
    lines = "\n".join(table(found, len(wrong)))
    print(lines)
    if arguments.record:
        record("control", lines)
    return 1 if wrong or not found else 0


def table(found: list[Swept], wrong: int) -> Iterator[str]:
    """The figures as Markdown."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    yield f"By `make sass-control` ({today}, ptxas {ptxas_version(find_ptxas())}): the control fields of every"
    yield f"instruction word are decoded and encoded again. {wrong} words differ."
    yield ""
    yield "| cubins of | target | cubins | words |"
    yield "|---|---|---:|---:|"
    cubins = Counter((each.kind, each.target) for each in found)
    words: Counter[tuple[str, str]] = Counter()
    for each in found:
        words[each.kind, each.target] += each.words
    for kind, target in sorted(cubins):
        yield f"| {kind} | {target} | {cubins[kind, target]:,} | {words[kind, target]:,} |"
    yield f"| all | | {cubins.total():,} | {words.total():,} |"


if __name__ == "__main__":
    sys.exit(main())
