"""Changes in PTX: one line is edited, or a kernel of a module is dropped, duplicated or renamed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from tools.sass_score.equal import NEIGHBOR
from tools.sass_score.kernels import FILE, Source, renamed, split

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


def edited(source: Source, rng: random.Random) -> tuple[str, int] | None:
    """The text with one line edited, and the number of that line; None where no edit fits."""
    lines = source.text.split("\n")
    for _ in range(200):
        number = rng.randrange(len(lines))
        pattern, new = rng.choice(_EDITS)
        if re.match(r"\s*\.", lines[number]):
            continue
        changed = re.sub(pattern, new, lines[number], count=1)
        if changed != lines[number]:
            return "\n".join([*lines[:number], changed, *lines[number + 1 :]]), number + 1
    return None


@dataclass(frozen=True)
class KernelChange:
    """Two modules of which the second has other kernels: names that only one of them has."""

    a: str
    b: str
    only_a: frozenset[str]
    only_b: frozenset[str]


def dropped(source: Source, rng: random.Random) -> KernelChange:
    """One of two kernels is missing."""
    head, entry, rest = split(source.text)
    both = head + entry + NEIGHBOR + rest
    if rng.random() < 0.5:
        return KernelChange(both, source.text, frozenset({"zz_neighbor"}), frozenset())
    return KernelChange(both, head + NEIGHBOR + rest, frozenset({source.entry}), frozenset())


def duplicated(source: Source, rng: random.Random) -> KernelChange:
    """A kernel is there twice, under another name."""
    head, entry, rest = split(source.text)
    name = f"{source.entry}_twin" if rng.random() < 0.5 else "zz_twin"
    twin = renamed(NEIGHBOR if name == "zz_twin" else FILE.sub("", entry), name)
    a, b = (head + "\n".join((entry, NEIGHBOR, *more)) + rest for more in ((), (twin,)))
    return KernelChange(a, b, frozenset(), frozenset({name}))


def other_name(source: Source, rng: random.Random) -> KernelChange:
    """A kernel has another name."""
    head, entry, rest = split(source.text)
    name = f"{source.entry}_v{rng.randrange(2, 99)}"
    extra = NEIGHBOR if rng.random() < 0.5 else ""
    a, b = (head + each + extra + rest for each in (entry, renamed(entry, name)))
    return KernelChange(a, b, frozenset({source.entry}), frozenset({name}))


KERNEL_KINDS: dict[str, Callable[[Source, random.Random], KernelChange]] = {
    "kernel dropped": dropped,
    "kernel duplicated": duplicated,
    "kernel renamed": other_name,
}
