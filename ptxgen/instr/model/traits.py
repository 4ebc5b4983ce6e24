"""What an instruction does, apart from what is legal: operands, memory, control flow, who takes part.

A declaration states its traits once, in its class arguments (`control="branch"`, `synchronizes=True`) and in its
operands (`address("space", memory="read")`). What the form implies is not stated: the first operand is the result where
it can be one, `.aligned` requires the whole warp, `completed_by` says that the instruction is asynchronous, `.acquire`
and `.release` synchronize, and what only computes is lanewise. `Instruction.traits` resolves them with the modifiers
that are there.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ptxgen.instr.model import operands as specs
from ptxgen.instr.model.operands import Specification
from ptxgen.instr.model.symbols import Subject

#: How an instruction moves the pc: `call` comes back, `trap` ends the launch.
Control = Literal["branch", "call", "return", "exit", "trap"]

#: The semantics of an access that orders others.
_ORDERING = frozenset({"acquire", "release", "acq_rel", "sc"})
_RESULTS = (
    specs.RegisterSpec,
    specs.PredicateSpec,
    specs.VectorSpec,
    specs.SinkSpec,
    specs.PartSpec,
)


@dataclass(frozen=True, slots=True)
class Effect:
    """Memory that the instruction accesses through `operand`.

    `space` is a state space without `::cta` and the like, "generic", "tmem", "texture", "surface", or "tensormap" for a
    tensormap that the tensormap proxy reads.
    """

    operand: str
    space: str
    reads: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class Traits:
    """The traits of one instruction; operands by the names of the declaration, whether or not they are there.

    `aligned` requires that all lanes of the warp execute it together, `converges` (.sync) that those of its mask do.
    The work of an `asynchronous` instruction goes on after it. A `move` copies registers without looking at the
    values. The results of a `lanewise` instruction depend on the operands of the same lane alone, and it has no other
    effect. One that `multiplies` is an MMA of tensor cores. One that `synchronizes` orders accesses of threads or
    proxies, or waits for threads or asynchronous work.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    effects: tuple[Effect, ...]
    aligned: bool
    converges: bool
    control: Control | None
    #: The operands that name where a branch goes: a label, or the label of a list.
    targets: tuple[str, ...]
    asynchronous: bool
    move: bool
    lanewise: bool
    multiplies: bool
    synchronizes: bool

    @property
    def terminator(self) -> bool:
        """Whether the instruction after it is not the next one, or only one of several."""
        return self.control is not None and self.control != "call"

    @property
    def stores(self) -> bool:
        """Whether memory receives values of its operands, rather than other memory."""
        return bool(self.effects) and all(each.writes for each in self.effects)

    @property
    def spaces_read(self) -> frozenset[str]:
        return frozenset(effect.space for effect in self.effects if effect.reads)

    @property
    def spaces_written(self) -> frozenset[str]:
        return frozenset(effect.space for effect in self.effects if effect.writes)


class Stated(typing.TypedDict, total=False):
    """The class arguments of a declaration that state traits; None is what the form implies.

    `results` are the operands that are written, `updates` those that are read and written.
    """

    results: tuple[str, ...] | None
    updates: tuple[str, ...]
    aligned: bool | None
    control: Control | None
    asynchronous: bool | None
    move: bool
    lanewise: bool | None
    multiplies: bool
    synchronizes: bool


#: What a declaration implies that states nothing.
STATED: Stated = {
    "results": None,
    "updates": (),
    "aligned": None,
    "control": None,
    "asynchronous": None,
    "move": False,
    "lanewise": None,
    "multiplies": False,
    "synchronizes": False,
}


@dataclass(frozen=True)
class FormTraits:
    """The traits of a declaration; `of` resolves what depends on modifiers, once for each of their values."""

    traits: Traits
    accessing: tuple[Specification, ...]
    #: The modifier fields that decide.
    fields: tuple[str, ...]
    #: The names of those that are flags of `.aligned`, and that carry the ordering of an access.
    alignment: str | None
    orders: tuple[str, ...]
    known: dict[Hashable, Traits] = field(default_factory=dict)

    def of(self, instruction: Subject) -> Traits:
        key = tuple([getattr(instruction, name) for name in self.fields])
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._resolve(instruction)
        return found

    def _resolve(self, instruction: Subject) -> Traits:
        fixed = self.traits
        return Traits(
            reads=fixed.reads,
            writes=fixed.writes,
            effects=tuple(_effect(spec, instruction) for spec in self.accessing),
            aligned=fixed.aligned or (self.alignment is not None and bool(getattr(instruction, self.alignment))),
            converges=fixed.converges,
            control=fixed.control,
            targets=fixed.targets,
            asynchronous=fixed.asynchronous,
            move=fixed.move,
            lanewise=fixed.lanewise,
            multiplies=fixed.multiplies,
            synchronizes=fixed.synchronizes or any(getattr(instruction, name) in _ORDERING for name in self.orders),
        )


def _effect(spec: Specification, instruction: Subject) -> Effect:
    space = spec.memory_space
    if space is None and isinstance(spec, specs.AddressSpec):
        space = spec.space_of(instruction)
        if space is None and len(spec.variables) == 1:
            space = spec.variables[0]
    access = spec.memory or "none"
    return Effect(spec.name, space or "generic", "read" in access, "write" in access)


def form_traits(
    name: str,
    stated: Stated,
    operands: Mapping[str, Specification],
    first: Sequence[Specification],
    modifiers: Mapping[str | None, Mapping[str, Any]],
    *,
    issued_by: str,
    completed_by: str,
) -> FormTraits:
    """The traits of the declaration `name`: what it states, and what its form implies.

    `first` are the specifications of the first operand position, `modifiers` the tokens of each field, and of None the
    fixed ones. Raises TypeError where an address does not say how its memory is accessed.
    """
    results, updates = stated.get("results"), stated.get("updates", ())
    if results is None:
        results = tuple(each.name for each in first if isinstance(each, _RESULTS))
    unknown = {*results, *updates} - operands.keys()
    silent = [each.name for each in operands.values() if isinstance(each, specs.AddressSpec) and each.memory is None]
    if unknown or silent:
        raise TypeError(f"{name}: no operands {sorted(unknown)}; say memory= of the addresses {silent}")
    accessing = tuple(each for each in operands.values() if each.memory not in (None, "none"))
    tokens = modifiers.get(None, {})
    orders = tuple(str(field) for field, known in modifiers.items() if field and not _ORDERING.isdisjoint(known))
    alignment = next((field for field, known in modifiers.items() if field and "aligned" in known), None)
    spaces = [each.space for each in accessing if isinstance(each, specs.AddressSpec)]
    fields = dict.fromkeys(
        [*(each for each in spaces if each and each in modifiers), *orders, *([alignment] if alignment else [])]
    )
    aligned, asynchronous = stated.get("aligned"), stated.get("asynchronous")
    control, lanewise = stated.get("control"), stated.get("lanewise")
    if asynchronous is None:
        asynchronous = completed_by != "at once"
    if lanewise is None:
        effects = bool(accessing) or control is not None or asynchronous or stated.get("synchronizes", False)
        lanewise = bool(results) and not effects and issued_by == "thread"
    traits = Traits(
        reads=frozenset(operands) - (set(results) - set(updates)),
        writes=frozenset(results) | frozenset(updates),
        effects=(),
        aligned="aligned" in tokens if aligned is None else aligned,
        converges="sync" in tokens,
        control=control,
        targets=tuple(each.name for each in operands.values() if isinstance(each, specs.LabelSpec)),
        asynchronous=asynchronous,
        move=stated.get("move", False),
        lanewise=lanewise,
        multiplies=stated.get("multiplies", False),
        synchronizes=stated.get("synchronizes", False) or not _ORDERING.isdisjoint(tokens),
    )
    return FormTraits(traits, accessing, tuple(str(each) for each in fields), alignment, orders)
