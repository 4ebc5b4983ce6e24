"""Changes in PTX: one line is edited, or a kernel of a module is dropped, duplicated or renamed."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from tools.sass_score.kernels import Source, parts, renamed

#: Edits of a line: what is sought, and what stands there instead.
_EDITS: tuple[tuple[str, str], ...] = (
    (r"^(\s*(?:@\S+\s+)?)add(\.[us]\d+)", r"\1sub\2"), (r"^(\s*(?:@\S+\s+)?)sub(\.[us]\d+)", r"\1add\2"),
    (r"^(\s*(?:@\S+\s+)?)and(\.b\d+)", r"\1or\2"), (r"^(\s*(?:@\S+\s+)?)or(\.b\d+)", r"\1xor\2"),
    (r"^(\s*(?:@\S+\s+)?)shl(\.b\d+)", r"\1shr\2"), (r"^(\s*(?:@\S+\s+)?)shr\.u(\d+)", r"\1shl.b\2"),
    (r"^(\s*(?:@\S+\s+)?)min(\.[usf]\d+)", r"\1max\2"), (r"^(\s*(?:@\S+\s+)?)max(\.[usf]\d+)", r"\1min\2"),
    (r"\bsetp\.lt\b", "setp.le"), (r"\bsetp\.eq\b", "setp.ne"), (r"\bsetp\.ne\b", "setp.eq"),
    (r"\bsetp\.gt\b", "setp.ge"), (r"^(\s*)@(%\w+)", r"\1@!\2"), (r"^(\s*)@!(%\w+)", r"\1@\2"),
    (r"\b(ld|st)\.global(\.\w+ .*\[%\w+)\]", r"\1.global\2+16]"), (r"(\[%\w+\+)(\d+)\]", r"\g<1>1\2]"),
    (r"(add\.[us]\d+\s+%\w+, %\w+, )(\d+);", r"\g<1>1\2;"), (r"(mov\.b32\s+%\w+, )(\d+);", r"\g<1>1\2;"),
    (r"\bmul(\S*)\.f32\b", r"add\1.f32"), (r"\badd(\S*)\.f32\b", r"mul\1.f32"), (r"\bfma\.rn\b", "fma.rz"),
)  # fmt: skip


def edited(source: Source, rng: random.Random) -> dict[int, str]:
    """One edited line in each kernel, by its number; kernels in which no edit fits are left out."""
    lines = source.text.split("\n")
    starts = [number for number, line in enumerate(lines) if ".entry" in line] + [len(lines)]
    found: dict[int, str] = {}
    for start, end in itertools.pairwise(starts):
        for _ in range(100):
            number = rng.randrange(start, end)
            pattern, new = rng.choice(_EDITS)
            changed = lines[number]
            if not re.match(r"\s*\.", changed):
                changed = re.sub(pattern, new, changed, count=1)
            if changed != lines[number]:
                found[number + 1] = changed
                break
    return found


def with_lines(text: str, edits: dict[int, str]) -> str:
    """The text with other lines."""
    return "\n".join(edits.get(number, line) for number, line in enumerate(text.split("\n"), 1))


@dataclass(frozen=True)
class KernelChange:
    """Two modules of which the second has other kernels: names that only one of them has."""

    a: str
    b: str
    only_a: frozenset[str]
    only_b: frozenset[str]


def dropped(source: Source, rng: random.Random) -> KernelChange:
    """One kernel is missing."""
    head, entries = parts(source.text)
    number = rng.randrange(len(entries))
    rest = head + "\n".join(entries[:number] + entries[number + 1 :])
    return KernelChange(source.text, rest, frozenset({source.entries[number]}), frozenset())


def duplicated(source: Source, rng: random.Random) -> KernelChange:
    """A kernel is there twice, under another name."""
    _, entries = parts(source.text)
    number = rng.randrange(len(entries))
    name = f"{source.entries[number]}_twin"
    twice = source.text + "\n" + renamed(entries[number], name)
    return KernelChange(source.text, twice, frozenset(), frozenset({name}))


def other_name(source: Source, rng: random.Random) -> KernelChange:
    """A kernel has another name."""
    head, entries = parts(source.text)
    number = rng.randrange(len(entries))
    name = f"{source.entries[number]}_v{rng.randrange(2, 99)}"
    entries[number] = renamed(entries[number], name)
    changed = head + "\n".join(entries)
    return KernelChange(source.text, changed, frozenset({source.entries[number]}), frozenset({name}))


KERNEL_KINDS: dict[str, Callable[[Source, random.Random], KernelChange]] = {
    "kernel dropped": dropped,
    "kernel duplicated": duplicated,
}
