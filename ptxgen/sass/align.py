"""Which instruction of one function is which of another: blocks by order and control flow, then inside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from ptxgen.sass.canonical import Canonical
from ptxgen.sass.flow import Flow

#: Blocks that share less than this part of their instructions are not taken for the same.
_ALIKE = 0.5
#: Blocks of one length that share this part of their opcodes, place by place, are not shifted.
_ALMOST = 0.8


def align(a: Flow, b: Flow, a_codes: Sequence[Canonical], b_codes: Sequence[Canonical]) -> dict[int, int]:
    """The instruction of `b` for each of `a` that has one."""
    if [each.key for each in a_codes] == [each.key for each in b_codes]:
        return {index: index for index in range(len(a_codes))}
    pairs: dict[int, int] = {}
    for one, other in _blocks(a, b, a_codes, b_codes):
        first, second = a.blocks[one], b.blocks[other]
        left = [each.key for each in a_codes[first.start : first.end]]
        right = [each.key for each in b_codes[second.start : second.end]]
        for i, j in _inside(left, right):
            pairs[first.start + i] = second.start + j
    _fill(pairs, a, b, a_codes, b_codes)
    return pairs


def _blocks(a: Flow, b: Flow, a_codes: Sequence[Canonical], b_codes: Sequence[Canonical]) -> Iterator[tuple[int, int]]:
    """Pairs of blocks: those with the same code in the same order first, then by the blocks before and after them."""
    left, right = _signatures(a, a_codes), _signatures(b, b_codes)
    pairs: dict[int, int] = {}
    for tag, i, i_end, j, _ in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs.update(zip(range(i, i_end), range(j, j + i_end - i), strict=True))
    taken = set(pairs.values())
    changed = True
    while changed:  # neighbors of what is paired, as long as that finds more
        changed = False
        for one, other in list(pairs.items()):
            for ones, others in (
                (a.blocks[one].following, b.blocks[other].following),
                (tuple(a.before[one]), tuple(b.before[other])),
                ((one + 1,) if one + 1 < len(a.blocks) else (), (other + 1,) if other + 1 < len(b.blocks) else ()),
            ):
                for x, y in zip(ones, others, strict=False):
                    if x not in pairs and y not in taken and _alike(left[x], right[y]):
                        pairs[x] = y
                        taken.add(y)
                        changed = True
    if not pairs and left and right:
        pairs[0] = 0
    yield from pairs.items()


def _signatures(flow: Flow, codes: Sequence[Canonical]) -> list[tuple[str, ...]]:
    return [tuple(each.key for each in codes[block.start : block.end]) for block in flow.blocks]


def _alike(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether two blocks are mostly the same, by their mnemonics."""
    if left == right:
        return True
    one, other = ([_opcode(key) for key in keys] for keys in (left, right))
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _ALIKE


def _inside(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs in two blocks: the same keys, and between them instructions with the same opcode.

    Blocks of one length with mostly the same opcodes at the same places are paired as they stand.
    """
    if len(left) == len(right):
        alike = sum(_opcode(one) == _opcode(other) for one, other in zip(left, right, strict=True))
        if alike >= _ALMOST * len(left):
            yield from ((index, index) for index in range(len(left)))
            return
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        elif tag == "replace":
            ones, others = [_opcode(key) for key in left[i:i_end]], [_opcode(key) for key in right[j:j_end]]
            if len(ones) == len(others) == 1:  # one instruction in the place of another
                yield i, j
                continue
            for inner, x, x_end, y, y_end in SequenceMatcher(None, ones, others, autojunk=False).get_opcodes():
                if inner == "equal" or (inner == "replace" and x_end - x == y_end - y):
                    yield from zip(range(i + x, i + x_end), range(j + y, j + y_end), strict=True)


def _opcode(key: str) -> str:
    """The opcode in a canonical key, whatever its predicate."""
    words = key.split()
    return (words[1] if words[0].startswith("@") and len(words) > 1 else words[0]).split(".")[0]


def _fill(pairs: dict[int, int], a: Flow, b: Flow, a_codes: Sequence[Canonical], b_codes: Sequence[Canonical]) -> None:
    """Pair what is left between two pairs that follow each other in both functions."""
    free = set(range(len(b_codes))) - set(pairs.values())
    index = 0
    while index < len(a_codes):
        if index in pairs:
            index += 1
            continue
        end = index
        while end < len(a_codes) and end not in pairs:
            end += 1
        start = pairs[index - 1] + 1 if index else 0
        stop = start
        while stop < len(b_codes) and stop in free:
            stop += 1
        left, right = [each.key for each in a_codes[index:end]], [each.key for each in b_codes[start:stop]]
        for i, j in _inside(left, right):
            pairs[index + i] = start + j
            free.discard(start + j)
        index = end
