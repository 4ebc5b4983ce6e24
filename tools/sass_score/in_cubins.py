"""Changes in the bytes of cubins: many copies of a kernel in one cubin, each changed in one place.

One call of nvdisasm then judges as many changes as there are copies. Each copy is compared with itself alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from ptxgen.sass import ContainerError, Function, Listing, load
from tools.sass_score.changes import Change, draw, spread
from tools.sass_score.judges import Cccl, Judged, Verdict, ours
from tools.sass_score.kernels import Source, assembled, copies, text_offset

#: Instructions in one cubin, at most, and copies.
_SIZE, _COPIES = 9_000, 24


def judged(source: Source, count: int, rng: random.Random, folder: Path, cccl: Cccl | None) -> Iterator[Judged]:
    """`count` changes of one kernel, each judged."""
    alone = load(assembled(source.text, source.target)).kernel()
    number = max(2, min(_COPIES, _SIZE // len(alone.instructions), count))
    cubin = assembled(copies(source, number), source.target)
    whole = load(cubin, cache=False)
    functions = [whole.kernel(f"{source.entry}_{position}") for position in range(number)]
    before = cccl.kernels(cubin.data) if cccl else {}
    changes = list(spread(draw(functions[0], source.target, rng, folder, 24 * count), count))
    rng.shuffle(changes)
    for start in range(0, len(changes), number):
        batch = list(zip(functions, changes[start : start + number], strict=False))
        yield from _batch(source, cubin.data, whole, batch, before, cccl)


def _batch(
    source: Source,
    data: bytes,
    whole: Listing,
    batch: list[tuple[Function, Change]],
    before: dict[str, list[str]],
    cccl: Cccl | None,
) -> Iterator[Judged]:
    """Judge changes of different functions at once; one by one where nvdisasm refuses them together."""
    changed = bytearray(data)
    for function, change in batch:
        start = text_offset(data, function.name) + 16 * change.index
        changed[start : start + 16] = change.word.to_bytes(16, "little")
    try:
        other = load(bytes(changed), cache=False)
    except ContainerError:
        if len(batch) > 1:
            middle = len(batch) // 2
            yield from _batch(source, data, whole, batch[:middle], before, cccl)
            yield from _batch(source, data, whole, batch[middle:], before, cccl)
        else:
            ((_, change),) = batch
            both = Verdict(True, True)  # neither judge gets a listing
            yield Judged(change.kind, _what(source, change), both, both if cccl else None, refused=True)
        return
    after = cccl.kernels(bytes(changed)) if cccl else {}
    for function, change in batch:
        verdict = ours(whole, other, function, other.kernel(function.name), change.index)
        theirs = None
        if cccl:
            theirs = cccl.judge(before[function.name], after[function.name], change.index)
        yield Judged(change.kind, _what(source, change), verdict, theirs)


def _what(source: Source, change: Change) -> str:
    return f"{source.name} {source.target} {change.index * 16:#x}: {change.before} -> {change.after}"
