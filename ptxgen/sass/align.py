"""Which instruction of one function is which of another: blocks by order and control flow, in them by data flow.

What the data flow leaves open, as barriers and branches, is decided by the order of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from ptxgen.sass.canonical import Canonical
from ptxgen.sass.correspond import Matching
from ptxgen.sass.dataflow import Dataflow
from ptxgen.sass.flow import Flow
from ptxgen.sass.registers import other_definitions

#: Blocks that share less than this part of their instructions are not taken for the same.
_ALIKE = 0.5
#: Blocks of one length that share this part of their opcodes, place by place, are not shifted.
_ALMOST = 0.8
#: The part of a block that must be code which both functions have only once, where that alone pairs it.
_UNIQUE = 0.25
#: The number of the region of each instruction of a function.
Regions = Sequence[int]


def align(a: Dataflow, b: Dataflow) -> dict[int, int]:
    """The instruction of `b` for each of `a` that has one."""
    same = {index: index for index in range(len(a.canonical))}
    if [each.key for each in a.canonical] == [each.key for each in b.canonical] and not other_definitions(a, b, same):
        return same
    blocks = _blocks(a, b)
    regions = _regions(a.flow, b.flow, blocks)
    matching = Matching(a, b, regions)
    matching.extend(dict(_by_order(matching.found, a.canonical, b.canonical, regions)))
    rest = {
        i: j
        for i, j in _by_order(matching.found, a.canonical, b.canonical, regions)
        if a.canonical[i].operands == b.canonical[j].operands or not matching.contradicts(i, j)
    }
    pairs = {**matching.found, **rest}
    return {**pairs, **dict(_equal(pairs, a, b, regions))}


def _blocks(a: Dataflow, b: Dataflow) -> dict[int, int]:
    """Pairs of blocks: those with the same code, then with the same opcodes, then by the blocks before and after them.

    First come those that share code which both functions have once. The order inside blocks does not count: it is what
    a schedule changes.
    """
    left, right = _signatures(a), _signatures(b)
    pairs = _by_unique(left, right)
    opcodes = [[tuple(sorted(map(_opcode, each))) for each in side] for side in (left, right)]
    for ones, others in ((left, right), opcodes):
        back = {y: x for x, y in pairs.items()}
        known = [(str(x),) if x in pairs else each for x, each in enumerate(ones)]
        its = [(str(back[y]),) if y in back else each for y, each in enumerate(others)]
        for tag, i, i_end, j, _ in SequenceMatcher(None, known, its, autojunk=False).get_opcodes():
            if tag == "equal":
                pairs.update(zip(range(i, i_end), range(j, j + i_end - i), strict=True))
    taken = set(pairs.values())
    changed = True
    while changed:  # neighbors of what is paired, as long as that finds more
        changed = False
        for one, other in list(pairs.items()):
            first, second = a.flow.blocks[one], b.flow.blocks[other]
            for ones, others in (
                (first.following, second.following),
                (tuple(a.flow.before[one]), tuple(b.flow.before[other])),
                ((one + 1,) if one + 1 < len(left) else (), (other + 1,) if other + 1 < len(right) else ()),
            ):
                for x, y in zip(ones, others, strict=False):
                    if x not in pairs and y not in taken and _alike(left[x], right[y]):
                        pairs[x] = y
                        taken.add(y)
                        changed = True
    if not pairs and left and right:
        pairs[0] = 0
    return pairs


def _by_unique(left: Sequence[tuple[str, ...]], right: Sequence[tuple[str, ...]]) -> dict[int, int]:
    """Pairs of blocks that are alike, and share much code that both functions have only once."""
    places = [{key: block for block, keys in enumerate(side) for key in keys} for side in (left, right)]
    counts = [Counter(key for keys in side for key in keys) for side in (left, right)]
    votes = Counter(
        (places[0][key], places[1][key]) for key, count in counts[0].items() if count == 1 == counts[1][key]
    )
    found: dict[int, int] = {}
    for (one, other), count in votes.most_common():
        if count < _UNIQUE * min(len(left[one]), len(right[other])):
            continue  # a few offsets that only one loop has, unrolled or not, say little
        if one not in found and other not in found.values() and _alike(left[one], right[other]):
            found[one] = other
    return found


def _signatures(side: Dataflow) -> list[tuple[str, ...]]:
    """The code of each block, in no order."""
    return [tuple(sorted(each.key for each in side.codes[block.start : block.end])) for block in side.flow.blocks]


def _alike(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether two blocks are mostly the same, by their opcodes in any order."""
    if left == right:
        return True
    shared = Counter(map(_opcode, left)) & Counter(map(_opcode, right))
    return 2 * shared.total() >= _ALIKE * (len(left) + len(right))


def _regions(a: Flow, b: Flow, blocks: Mapping[int, int]) -> tuple[Regions, Regions]:
    """Numbers of the regions of both functions, by instruction: what may be paired with each other; -1 is with nothing.

    A region is a pair of blocks. Blocks without a partner belong to one that lacks what they have: where a branch has
    come or gone, one side has two blocks for one. Else they are a region with those at the same place.
    """
    back = {j: i for i, j in blocks.items()}
    ones = {one: position for position, one in enumerate(blocks)}
    others = {blocks[one]: position for one, position in ones.items()}
    sides = (a, ones, b, blocks), (b, others, a, back)
    places: dict[int | None, int] = {}
    for flow, known, other, partners in sides:
        last: int | None = None
        for block in flow.blocks:
            if block.number in partners:
                last = known[block.number]
                continue
            ways = range(block.number - 1, -1, -1), range(block.number + 1, len(flow.blocks))
            near = [each for way in ways if (each := next(filter(partners.__contains__, way), None)) is not None]
            lacks = {each: _lacks(flow, each, other, partners[each], block.number) for each in near}
            best = max(near, key=lambda each: lacks[each], default=None)
            if best is not None and lacks[best] > 0:
                known[block.number] = known[best]
            else:
                known[block.number] = places.setdefault(last, len(blocks) + len(places))
    return [ones[block] for block in a.block_of], [others[block] for block in b.block_of]


def _lacks(flow: Flow, block: int, other: Flow, partner: int, extra: int) -> float:
    """The part of a block's opcodes that the partner of its neighbor has, and the neighbor has not."""
    here, there, more = (
        Counter(each.opcode for each in side.function.instructions[side.blocks[n].start : side.blocks[n].end])
        for side, n in ((flow, block), (other, partner), (flow, extra))
    )
    return ((there - here) & more).total() / max(more.total(), 1)


def _by_order(
    found: Mapping[int, int], a: Sequence[Canonical], b: Sequence[Canonical], regions: tuple[Regions, Regions]
) -> Iterator[tuple[int, int]]:
    """Pairs of what is left in each region, by its order among the pairs that were found."""
    back = {j: i for i, j in found.items()}
    inside: tuple[dict[int, list[int]], dict[int, list[int]]] = {}, {}
    for side, numbers in zip(inside, regions, strict=True):
        for index, region in enumerate(numbers):
            side.setdefault(region, []).append(index)
    for region, ones in inside[0].items():
        others = inside[1].get(region, [])
        if all(i in found for i in ones) or all(j in back for j in others):
            continue
        left = [f"={i}" if i in found else a[i].key for i in ones]
        right = [f"={back[j]}" if j in back else b[j].key for j in others]
        for x, y in _inside(left, right):
            if ones[x] not in found and others[y] not in back:
                yield ones[x], others[y]


def _equal(
    found: Mapping[int, int], a: Dataflow, b: Dataflow, regions: tuple[Regions, Regions]
) -> Iterator[tuple[int, int]]:
    """Pairs of what is left, where a region of both has as much of the same code: barriers between moved code."""
    left: tuple[dict[tuple[int, str], list[int]], dict[tuple[int, str], list[int]]] = {}, {}
    for side, graph, numbers, known in zip(left, (a, b), regions, (found.keys(), set(found.values())), strict=True):
        for index, code in enumerate(graph.canonical):
            if index not in known:
                side.setdefault((numbers[index], code.key), []).append(index)
    for kind, ones in left[0].items():
        others = left[1].get(kind, [])
        if len(ones) == len(others):
            yield from zip(ones, others, strict=True)


def _inside(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs in two regions: the same keys, and between them instructions with the same opcode.

    Regions of one length with mostly the same opcodes at the same places are paired as they stand.
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
