"""Compare two listings: functions by name, instructions by alignment, and what differs in each pair.

Two functions are the same if a one-to-one alignment leaves no difference in opcode, modifiers, predicate, immediates,
constants, branch targets and control codes, and every register read sees the same definitions. Neither the kernel's
name nor which registers the compiler chose counts (ptxas 13.5 does not always choose the same for the same text);
`renamed` lists the instructions with other register numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from difflib import SequenceMatcher
from typing import Literal

from ptxgen.sass.align import align
from ptxgen.sass.canonical import Canonical, canonical
from ptxgen.sass.control import MASK
from ptxgen.sass.dataflow import Dataflow
from ptxgen.sass.flow import ENTRY, Flow
from ptxgen.sass.listing import Function, Instruction, Listing
from ptxgen.sass.loops import LoopPair, NoLoopError, address, chosen, matched
from ptxgen.sass.order import arrival, moved
from ptxgen.sass.ptx_lines import Lines, changed_lines
from ptxgen.sass.registers import other_definitions, swapped
from ptxgen.sass.summary import Summary, summarize

Kind = Literal[
    "removed",
    "added",
    "opcode",
    "modifier",
    "predicate",
    "operand",
    "target",
    "register",
    "moved",
    "control",
    "encoding",
]
#: Functions without a partner of the same name count as renamed from this likeness on.
_RENAMED = 0.8
#: The opcode bits of NOP.
_NOP = 0x918
#: Bits of an instruction word that hold register numbers, predicates among them; those that hold addresses of code.
_REGISTER_BITS = sum(1 << bit for bit in (*range(12, 16), *range(16, 41), *range(64, 91)))
_ADDRESS_BITS = sum(1 << bit for bit in (*range(16, 24), *range(32, 82)))
#: Said of a side whose registers are compared by their numbers.
_NO_LIFE_RANGES = (
    "is a cubin of CUDA 12 or older, or a dump, for which there are no life ranges: registers are compared by number, "
    "and how many are live is not known"
)
#: Opcodes that may hold an address of code without a label in their text.
_ADDRESSED = frozenset({"CALL", "BRX", "BRXU", "BSSY", "BRA", "MOV", "UMOV", "IMAD", "JMP", "RET"})


@dataclass(frozen=True)
class Difference:
    """One instruction that differs. `a` and `b` are its indices, None on the side that does not have it."""

    kind: Kind
    a: int | None
    b: int | None
    detail: str


@dataclass(frozen=True)
class Pair:
    """Two functions that belong together, and how they differ."""

    a: Function
    b: Function
    a_summary: Summary
    b_summary: Summary
    differences: tuple[Difference, ...]
    #: Instructions whose registers have other numbers, and see the same definitions: (index in a, index in b).
    renamed: tuple[tuple[int, int], ...] = ()
    #: What the two functions use and the code does not show: (what, a, b).
    resources: tuple[tuple[str, int | None, int | None], ...] = ()
    #: Lines of the PTX of both that differ, where the code does.
    ptx: tuple[Lines, ...] = ()
    #: The loops of both, spins and elections left out.
    loops: tuple[LoopPair, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs. What a side does not say, as a dump of its registers, is no difference."""
        return not self.differences and all(None in (a, b) for _, a, b in self.resources)

    @property
    def kinds(self) -> Counter[str]:
        """How many differences there are of each kind."""
        return Counter(each.kind for each in self.differences)


@dataclass(frozen=True)
class Comparison:
    """Two listings side by side."""

    a: Listing
    b: Listing
    pairs: tuple[Pair, ...]
    only_a: tuple[Function, ...] = ()
    only_b: tuple[Function, ...] = ()
    #: Options of shipped kernels that differ: (option, a, b).
    options: tuple[tuple[str, str, str], ...] = ()
    #: By option the instructions of `a`, as (function, index), that differ where only this option does.
    causes: Mapping[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    #: What cannot be compared.
    gaps: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs: the same functions, with the same code and the same use of resources."""
        return not self.only_a and not self.only_b and all(pair.same for pair in self.pairs)

    @property
    def places(self) -> frozenset[tuple[str, int]]:
        """The instructions of `a` that differ, as (function, index)."""
        return frozenset(
            (pair.a.name, each.a) for pair in self.pairs for each in pair.differences if each.a is not None
        )

    def causes_of(self, pair: Pair, difference: Difference) -> str:
        """The options that alone make the instruction differ; empty where that is not known."""
        place = pair.a.name, difference.a
        return ", ".join(option for option, places in self.causes.items() if place in places)

    def to_json(self) -> dict[str, object]:
        """All of it as JSON values."""
        return {
            "same": self.same,
            "a": {"origin": self.a.origin, "target": self.a.target},
            "b": {"origin": self.b.origin, "target": self.b.target},
            "options": [list(each) for each in self.options],
            "gaps": list(self.gaps),
            "only_a": [each.name for each in self.only_a],
            "only_b": [each.name for each in self.only_b],
            "functions": [
                {
                    "a": pair.a.name,
                    "b": pair.b.name,
                    "same": pair.same,
                    "kinds": dict(pair.kinds),
                    "resources": [list(each) for each in pair.resources],
                    "renamed_registers": len(pair.renamed),
                    "ptx_lines": [list(each) for each in pair.ptx],
                    "loops": [_loop_json(each) for each in pair.loops],
                    "a_summary": pair.a_summary.to_json(),
                    "b_summary": pair.b_summary.to_json(),
                    "differences": [
                        {**_located(each, pair), "cause": self.causes_of(pair, each)} for each in pair.differences
                    ],
                }
                for pair in self.pairs
            ],
        }


def _loop_json(pair: LoopPair) -> dict[str, object]:
    sides = {side: asdict(each) if each is not None else None for side, each in (("a", pair.a), ("b", pair.b))}
    names = ("line", "a_instructions", "b_instructions", "a_stall", "b_stall")
    return {
        "place": pair.place,
        "same": pair.same,
        "unrolled": float(pair.unrolled),
        **sides,
        "lines": [dict(zip(names, line, strict=True)) for line in pair.lines],
    }


def _located(each: Difference, pair: Pair) -> dict[str, object]:
    made: dict[str, object] = dict(asdict(each))
    for side, function, index in (("a", pair.a, each.a), ("b", pair.b, each.b)):
        if index is not None:
            instruction = function.instructions[index]
            made[f"{side}_address"] = instruction.address
            made[f"{side}_text"] = instruction.text
            made[f"{side}_ptx_line"] = instruction.ptx_line
            made[f"{side}_source"] = instruction.source
    return made


def compare(
    a: Listing,
    b: Listing,
    *,
    kernel: str | None = None,
    options: Sequence[tuple[str, str, str]] = (),
) -> Comparison:
    """Compare all functions of two listings, or the one named `kernel` alone. Raises LookupError if that is missing.

    Registers of a listing without life ranges must have the same numbers.
    """
    ones, others = list(a.functions), list(b.functions)
    if kernel is not None:
        ones, others = [a.kernel(kernel)], [b.kernel(kernel)]
    pairs, only_a, only_b = _matched(ones, others)
    made = [_compared(one, other, a, b) for one, other in pairs]
    if not all(pair.same for pair in made):
        lines = changed_lines(a.ptx, b.ptx)
        made = [replace(pair, ptx=tuple(_lines_of(pair, lines))) if not pair.same else pair for pair in made]
    gaps = [f"{side} {_NO_LIFE_RANGES}" for side, each in (("A", a), ("B", b)) if not each.has_life_ranges]
    return Comparison(a, b, tuple(made), tuple(only_a), tuple(only_b), tuple(options), gaps=tuple(gaps))


def within(found: Comparison, word: str) -> Comparison:
    """A comparison of one loop alone: at an address or line of either side, or `main`. Raises NoLoopError."""
    made: list[Pair] = []
    missing = "there is no kernel on both sides"
    for pair in found.pairs:
        flows = Flow(pair.a), Flow(pair.b)
        try:
            loop = _loop_at(pair, flows, word)
        except NoLoopError as error:
            missing = str(error.args[0])
            continue
        a, b = (
            {each.index for one in flow.loops if side and address(flow, one) == side.address
             for each in flow.instructions(one)}
            for flow, side in zip(flows, (loop.a, loop.b), strict=True)
        )  # fmt: skip
        kept = tuple(each for each in pair.differences if each.a in a or each.b in b)
        made.append(replace(pair, differences=kept, loops=(loop,), resources=(), ptx=()))
    if not made:
        raise NoLoopError(missing)
    return replace(found, pairs=tuple(made))


def _loop_at(pair: Pair, flows: tuple[Flow, Flow], word: str) -> LoopPair:
    """The pair of loops of which one is at a place. Raises NoLoopError."""
    missing = NoLoopError(f"{word} is a loop that only polls or elects")
    for side in (1, 0):  # B is what its author has open
        try:
            at = address(flows[side], chosen(flows[side], word))
        except NoLoopError as error:
            missing = error
            continue
        for each in pair.loops:
            loop = (each.a, each.b)[side]
            if loop is not None and loop.address == at:
                return each
    raise missing


def _lines_of(pair: Pair, lines: Sequence[Lines]) -> Iterator[Lines]:
    """Those of some lines that lie among the PTX lines of either function."""
    spans = [_span(pair.a), _span(pair.b)]
    for each in lines:
        if any(line is not None and span[0] <= line <= span[1] for line, span in zip(each, spans, strict=True)):
            yield each


def _span(function: Function) -> tuple[int, int]:
    """The first and the last PTX line of a function; an empty span where they are not known."""
    lines = [each.ptx_line for each in function.instructions if each.ptx_line is not None]
    return (min(lines), max(lines)) if lines else (1, 0)


def _matched(
    ones: list[Function], others: list[Function]
) -> tuple[list[tuple[Function, Function]], list[Function], list[Function]]:
    """Functions by name, then those that are left by likeness; the rest of either side."""
    if len(ones) == len(others) == 1:
        return [(ones[0], others[0])], [], []
    by_name: dict[str, list[Function]] = {}
    for each in others:
        by_name.setdefault(each.name, []).append(each)
    pairs: list[tuple[Function, Function]] = []
    left: list[Function] = []
    for each in ones:
        if by_name.get(each.name):
            pairs.append((each, by_name[each.name].pop(0)))
        else:
            left.append(each)
    rest = [each for group in by_name.values() for each in group]
    alone: list[Function] = []
    for each in left:
        best = max(rest, key=lambda other: _likeness(each, other), default=None)
        if best is not None and _likeness(each, best) >= _RENAMED:
            pairs.append((each, best))
            rest.remove(best)
        else:
            alone.append(each)
    return pairs, alone, rest


def _likeness(one: Function, other: Function) -> float:
    left, right = ([each.mnemonic for each in function.instructions] for function in (one, other))
    return SequenceMatcher(None, left, right, autojunk=False).ratio() if left != right else 1.0


def _compared(one: Function, other: Function, a: Listing, b: Listing) -> Pair:
    a_flow, b_flow = Flow(one), Flow(other)
    ones, others = Dataflow(a_flow, canonical(one, a.target)), Dataflow(b_flow, canonical(other, b.target))
    pairs = align(ones, others)
    found = _Differences(ones, others, pairs, known=a.has_life_ranges and b.has_life_ranges)
    differences = list(found.all())
    if _hidden(one) != _hidden(other):
        differences.append(Difference("encoding", None, None, "code after the last instruction that control reaches"))
    back = {j: i for i, j in pairs.items()}
    differences.sort(key=lambda each: (each.a if each.a is not None else back_position(each.b or 0, back), each.b or 0))
    return Pair(
        one,
        other,
        summarize(one, a, a_flow),
        summarize(other, b, b_flow),
        tuple(differences),
        found.renamed,
        tuple(_resources(one, other)),
        loops=matched(a_flow, b_flow, pairs),
    )


class _Differences:
    """What differs between two functions of which the instructions are paired."""

    def __init__(self, a: Dataflow, b: Dataflow, pairs: Mapping[int, int], *, known: bool) -> None:
        self.a, self.b, self.pairs = a, b, pairs
        self.one, self.other = a.flow.function, b.flow.function
        self.moved = moved(a.flow, pairs)
        staying = {i: j for i, j in pairs.items() if i not in self.moved}
        places = set(staying.values())
        self._staying = (
            [each.index in staying for each in self.one.instructions],
            [each.index in places for each in self.other.instructions],
        )
        unlike = {i for i, j in pairs.items() if a.canonical[i].registers != b.canonical[j].registers}
        if known:
            self.wrong = other_definitions(a, b, pairs) if unlike or staying != pairs else set[int]()
        else:
            self.wrong = unlike
        self.renamed = tuple((i, j) for i, j in sorted(pairs.items()) if i in unlike - self.wrong)
        self._renamed = {i for i, _ in self.renamed}

    def all(self) -> Iterator[Difference]:
        """All differences but of the order of functions, those of `a` first."""
        for each in self.one.instructions:
            i, j = each.index, self.pairs.get(each.index)
            if j is None:
                yield Difference("removed", i, None, each.text)
            elif (found := self._of(i, j)) is not None:
                yield found
        partners = set(self.pairs.values())
        for each in self.other.instructions:
            if each.index not in partners:
                yield Difference("added", None, each.index, each.text)

    def _of(self, i: int, j: int) -> Difference | None:
        """The difference of a pair: what it does, then where it stands, then how it is scheduled and encoded."""
        left, right = self.one.instructions[i], self.other.instructions[j]
        if left.opcode != right.opcode:
            return Difference("opcode", i, j, f"{left.mnemonic} -> {right.mnemonic}")
        if left.modifiers != right.modifiers:
            return Difference("modifier", i, j, f"{left.mnemonic} -> {right.mnemonic}")
        a, b = self.a.canonical[i].key, self.b.canonical[j].key
        if _guard(a) != _guard(b):
            return Difference("predicate", i, j, f"{left.predicate or 'none'} -> {right.predicate or 'none'}")
        if a != b:
            return Difference("operand", i, j, f"{', '.join(left.operands)} -> {', '.join(right.operands)}")
        ones, others = (_targets(function, each) for function, each in ((self.one, left), (self.other, right)))
        if [self._end(target) for target in ones] != [arrival(target, self._staying[1]) for target in others]:
            return Difference("target", i, j, f"{_addresses(self.one, ones)} -> {_addresses(self.other, others)}")
        if i in self.wrong:
            return Difference("register", i, j, self._registers(i, j))
        word = _in_the_word(left, right, i in self._renamed)
        if i in self.moved and (word is None or word[0] == "control"):
            count = self.moved[i]
            way = f"{abs(count)} instruction{'s' * (abs(count) != 1)} {'up' if count < 0 else 'down'}"
            return Difference("moved", i, j, f"{way}; control: {word[1]}" if word else way)
        return Difference(word[0], i, j, word[1]) if word else None

    def _end(self, target: int) -> int:
        """The instruction of `b` for a branch target; the end stands for the end."""
        place = arrival(target, self._staying[0])
        return self.pairs[place] if place < len(self.one.instructions) else len(self.other.instructions)

    def _registers(self, i: int, j: int) -> str:
        """What a pair reads of other instructions: the registers, with the addresses of what wrote them."""
        ones, others = self.a.reads[i], self.b.reads[j]
        shared = {replace(each, source=self.pairs.get(each.source, each.source)) for each in ones} & others
        slots = {each.slot for each in others - shared} | {
            each.slot for each in ones if replace(each, source=self.pairs.get(each.source, each.source)) not in shared
        }
        left, right = (_origins(side, at, slots) for side, at in ((self.a, i), (self.b, j)))
        if not slots or not left or not right:
            return _numbers(self.a.canonical[i], self.b.canonical[j])
        exchanged = "exchanged sources, " if swapped(self.a, self.b, i, j, self.pairs) else ""
        return f"{exchanged}{left} -> {right}"


def _origins(side: Dataflow, index: int, slots: Set[int]) -> str:
    """Operands of an instruction with the addresses of what wrote them: `R5 of 0140, R7 of 0150`."""
    each, function = side.flow.function.instructions[index], side.flow.function
    found: list[str] = []
    for slot in sorted(slots):
        sources = sorted({read.source for read in side.reads[index] if read.slot == slot})
        places = "|".join(f"{function.instructions[one].address:04x}" if one != ENTRY else "entry" for one in sources)
        operand = each.predicate if slot == -1 else each.operands[slot] if slot >= 0 else ""
        found.append(f"{operand} of {places}" if places else operand)
    return ", ".join(filter(None, found))


def _numbers(one: Canonical, other: Canonical) -> str:
    names = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
    pairs = [
        f"{names[x[0]]}{x[1]} -> {names[y[0]]}{y[1]}"
        for x, y in zip(one.registers, other.registers, strict=False)
        if x != y
    ]
    return ", ".join(pairs) or "the same registers, with other definitions"


def _hidden(function: Function) -> list[int]:
    """Unlisted words that are no NOP, without their control codes."""
    return [word & ~MASK for word in function.padding if word & 0xFFF != _NOP]


def back_position(j: int, back: dict[int, int]) -> float:
    """Where an added instruction stands among those of the other function."""
    while j >= 0 and j not in back:
        j -= 1
    return back[j] + 0.5 if j >= 0 else -0.5


def _resources(one: Function, other: Function) -> list[tuple[str, int | None, int | None]]:
    rows = (
        ("registers", one.registers, other.registers),
        ("stack bytes", one.stack_bytes, other.stack_bytes),
        ("shared memory bytes", one.shared_bytes, other.shared_bytes),
    )
    return [row for row in rows if row[1] != row[2]]


def _guard(key: str) -> str:
    return key.partition(" ")[0]


def _targets(function: Function, each: Instruction) -> list[int]:
    return [function.labels[name] for name in each.targets if name in function.labels]


def _addresses(function: Function, indices: Sequence[int]) -> str:
    instructions = function.instructions
    return ", ".join(f"{instructions[i].address:#x}" if i < len(instructions) else "end" for i in indices) or "none"


def _in_the_word(left: Instruction, right: Instruction, renamed: bool) -> tuple[Kind, str] | None:
    """What differs in the control code, or in the encoding alone."""
    if left.word == right.word:
        return None
    if left.control != right.control:
        ones, others = str(left.control), str(right.control)
        if ones == others:
            return "control", f"{ones}, reuse of operands {left.control.reuse:04b} -> {right.control.reuse:04b}"
        return "control", f"{ones} -> {others}"
    ignored = MASK
    if renamed:
        ignored |= _REGISTER_BITS
    if left.targets or left.opcode in _ADDRESSED:
        ignored |= _ADDRESS_BITS
    if (left.word ^ right.word) & ~ignored and (renamed or left.text == right.text):
        return "encoding", f"{left.word:032x} -> {right.word:032x}"
    return None
