"""Which instruction of one function is which of another by what it computes: the same opcode, sources and uses.

Instructions are labeled by all that flows into them and all that they flow into, at first over many steps. What has a
label of its own on both sides is a pair; from pairs the others are found along the graph, best agreement first.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ptxgen.sass.dataflow import Dataflow
from ptxgen.sass.flow import ENTRY

#: Over how many steps of the graph labels look, from the most on.
_STEPS = (8, 4, 2, 1)
#: Readers of a result that are compared one by one with those of another, at most; more say little of it.
_MOST = 12
#: What agreement is worth: all sources, all uses, the whole code, the same place in the text.
_SOURCES, _USES, _SAME, _TEXT = 2.0, 1.0, 1.0, 0.25
#: The part of the sources that must differ where two instructions are not taken for one that was edited.
_CONTRADICTION = 0.75
#: The least agreement of a pair.
_LEAST = 1.0

#: An edge by the number of its port, and the instruction at its other end.
_Edges = list[tuple[int, int]]


class _Side:
    """A function: numbers of its keys and families, and edges to sources and readers by numbers of ports."""

    def __init__(self, graph: Dataflow, regions: Sequence[int], numbers: _Numbers) -> None:
        self.keys = [numbers[code.key, region] for code, region in zip(graph.codes, regions, strict=True)]
        self.families = [numbers[code.family, region] for code, region in zip(graph.codes, regions, strict=True)]
        self.sources: list[_Edges] = []
        self.uses: list[_Edges] = [[] for _ in self.keys]
        #: Edges from and to moves and spills, which `sources` and `uses` pass by.
        self.passed: tuple[list[_Edges], list[_Edges]] = [[] for _ in self.keys], [[] for _ in self.keys]
        moves = [graph.moves(index) for index in range(len(self.keys))]
        for index, (origins, reads) in enumerate(zip(graph.origins, graph.reads, strict=True)):
            edges = sorted({(numbers[graph.named(index, read)], read.source) for read in origins})
            self.sources.append(edges)
            for port, source in edges:
                if source != ENTRY and not moves[index]:
                    self.uses[source].append((port, index))
            for read in reads:
                if read.source != ENTRY and (moves[index] or moves[read.source]):
                    port = numbers[graph.named(index, read)]
                    self.passed[0][index].append((port, read.source))
                    self.passed[1][read.source].append((port, index))
                    if moves[read.source]:
                        self.uses[read.source].append((port, index))

    def labels(self, numbers: _Numbers, steps: int) -> Iterator[tuple[list[int], list[int]]]:
        """Labels by what flows into each instruction and what it flows into, for each number of steps up to `steps`."""
        into, out = self.keys, self.keys
        for _ in range(steps):
            into = _step(into, self.sources, numbers)
            out = _step(out, self.uses, numbers)
            yield into, out


class _Numbers(dict[object, int]):
    """A number for each thing."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return self[key]


def _step(labels: list[int], edges: Sequence[_Edges], numbers: _Numbers) -> list[int]:
    """Labels that see one step further."""
    return [
        numbers[label, tuple(sorted([(port, labels[end] if end >= 0 else ENTRY) for port, end in edges[index]]))]
        for index, label in enumerate(labels)
    ]


class Matching:
    """`found`: the instruction of `b` for each of `a` that has one, where the data flow says which it is.

    `regions` number what may be paired with each other, by instruction.
    """

    def __init__(self, a: Dataflow, b: Dataflow, regions: tuple[Sequence[int], Sequence[int]]) -> None:
        numbers = _Numbers()
        self.a, self.b = (_Side(each, region, numbers) for each, region in zip((a, b), regions, strict=True))
        self.text: Mapping[int, int] = {}
        self.found: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.queue: list[tuple[float, int, int]] = []
        self._by_labels(numbers)
        for i, j in list(self.found.items()):
            self._propose_around(i, j)
        self._grow()

    def extend(self, text: Mapping[int, int]) -> None:
        """Add pairs that follow from proposed ones: which of several equal instructions is which."""
        self.text = text
        for i, j in text.items():
            self._propose(i, j)
        self._grow()

    def contradicts(self, i: int, j: int) -> bool:
        """Whether all that is known of the sources of two instructions differs, and their uses do not agree either."""
        sources = self._agreement(self.a.sources[i], self.b.sources[j])
        return sources <= -_CONTRADICTION and self._agreement(self.a.uses[i], self.b.uses[j]) <= 0

    def _by_labels(self, numbers: _Numbers) -> None:
        """Pair what alone has its label on both sides; labels that see far first."""
        a, b = (list(side.labels(numbers, max(_STEPS))) for side in (self.a, self.b))
        for steps in _STEPS:
            (a_in, a_out), (b_in, b_out) = a[steps - 1], b[steps - 1]
            both = [numbers[pair] for pair in zip(a_in, a_out, strict=True)]
            self._unique(both, [numbers[pair] for pair in zip(b_in, b_out, strict=True)])
            self._unique(a_in, b_in)
            self._unique(a_out, b_out)
        self._unique(self.a.keys, self.b.keys)

    def _unique(self, ones: Sequence[int], others: Sequence[int]) -> None:
        places: tuple[dict[int, int], dict[int, int]] = {}, {}
        for side, labels, known in ((places[0], ones, self.found), (places[1], others, self.back)):
            for index, label in enumerate(labels):
                if index not in known:
                    side[label] = index if label not in side else -1
        for label, i in places[0].items():
            j = places[1].get(label, -1)
            if i >= 0 and j >= 0:
                self._pair(i, j)

    def _pair(self, i: int, j: int) -> None:
        self.found[i] = j
        self.back[j] = i

    def _grow(self) -> None:
        while self.queue:
            score, i, j = heapq.heappop(self.queue)
            if i in self.found or j in self.back:
                continue
            now = self._score(i, j)
            if now < -score:  # a neighbor has found another partner since
                if now >= _LEAST:
                    heapq.heappush(self.queue, (-now, i, j))
                continue
            self._pair(i, j)
            self._propose_around(i, j)

    def _propose(self, i: int, j: int) -> None:
        if i in self.found or j in self.back or self.a.families[i] != self.b.families[j]:
            return
        score = self._score(i, j)
        if score >= _LEAST:
            heapq.heappush(self.queue, (-score, i, j))

    def _propose_around(self, i: int, j: int) -> None:
        """Propose pairs of what a pair reads, and of what reads it."""
        for ones, others in (
            (self.a.sources[i], self.b.sources[j]),
            (self.a.uses[i], self.b.uses[j]),
            *((one[i], other[j]) for one, other in zip(self.a.passed, self.b.passed, strict=True)),
        ):
            left: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
            right: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
            for port, one in ones:
                if one >= 0 and one not in self.found:
                    left[port, self.a.families[one]].append(one)
            for port, other in others if left else ():
                if other >= 0 and other not in self.back:
                    right[port, self.b.families[other]].append(other)
            for kind, group in left.items():
                if len(group) * len(right.get(kind, ())) <= _MOST:
                    for one in group:
                        for other in right.get(kind, ()):
                            self._propose(one, other)

    def _score(self, i: int, j: int) -> float:
        return (
            _SOURCES * self._agreement(self.a.sources[i], self.b.sources[j])
            + _USES * self._agreement(self.a.uses[i], self.b.uses[j])
            + _SAME * (self.a.keys[i] == self.b.keys[j])
            + _TEXT * (self.text.get(i) == j)
        )

    def _agreement(self, ones: _Edges, others: _Edges) -> float:
        """How many edges lead to partners, less those that lead to others, as a part of all."""
        if not ones or not others:
            return 0.0
        wanted = set(others[: 4 * _MOST])
        agreed = known = 0
        for port, one in ones[: 4 * _MOST]:
            partner = ENTRY if one == ENTRY else self.found.get(one)
            if partner is not None:
                known += 1
                agreed += (port, partner) in wanted
        return (2 * agreed - known) / max(len(ones), len(others))
