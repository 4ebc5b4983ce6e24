"""Which lines of the PTX differ between two texts; comments, white space, line tables and .reg do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

#: A line of A and the line of B in its place, from 1 on; None on the side that has none.
Lines = tuple[int | None, int | None]
_NO_CODE = re.compile(r"//.*|/\*.*?\*/|^\s*\.(?:loc|file|reg)\b.*")
_SPACE = re.compile(r"\s+")
#: Lines between what two texts share at their ends: more are compared only where both have as many.
_MOST = 3_000


def changed_lines(a: str, b: str) -> list[Lines]:
    """The lines that differ; empty where a text is missing, or where too much differs to say which lines do."""
    if not a or not b or a == b:
        return []
    ones, others = list(_code(a)), list(_code(b))
    left, right = [text for _, text in ones], [text for _, text in others]
    start = _shared(left, right)
    end = _shared(left[start:][::-1], right[start:][::-1])
    ones, others = ones[start : len(ones) - end], others[start : len(others) - end]
    left, right = [text for _, text in ones], [text for _, text in others]
    if len(ones) == len(others):
        differ = [index for index, (x, y) in enumerate(zip(left, right, strict=True)) if x != y]
        if 2 * len(differ) <= len(ones) or len(ones) <= 2:
            return [(ones[index][0], others[index][0]) for index in differ]
    if max(len(ones), len(others)) > _MOST:
        return []
    found: list[Lines] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for place in range(max(i_end - i, j_end - j)):
            one = ones[i + place][0] if i + place < i_end else None
            found.append((one, others[j + place][0] if j + place < j_end else None))
    return found


def _code(text: str) -> Iterator[tuple[int, str]]:
    """The lines with code: number and text."""
    for number, line in enumerate(text.splitlines(), 1):
        if code := _SPACE.sub(" ", _NO_CODE.sub("", line)).strip():
            yield number, code


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two texts share at their beginning."""
    count = 0
    for x, y in zip(one, other, strict=False):
        if x != y:
            break
        count += 1
    return count
