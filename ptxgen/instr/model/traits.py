"""What kind of thing an instruction does, for those who walk programs: the emulator's loader and its checks.

Most follows from the declaration. What does not is declared with the class argument `role`; `lanewise` overrides
what is derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ptxgen.instr.model import operands as specs
from ptxgen.instr.model.form import Form, Instruction
from ptxgen.instr.model.recognize import candidates

#: Operands that are registers or constants: they name no memory, no label and no function.
_PLAIN = (
    specs.RegisterSpec, specs.SourceSpec, specs.PredicateSpec, specs.ImmediateSpec, specs.SinkSpec, specs.VectorSpec,
)  # fmt: skip
_RESULT = (specs.RegisterSpec, specs.PredicateSpec, specs.SinkSpec, specs.VectorSpec)


@dataclass(frozen=True, slots=True)
class Traits:
    """What an instruction does.

    `lanewise`: the results of each lane depend on its own operands alone, and there is no other effect. `move`: it
    copies registers unchanged. `stores`: it writes registers to memory or combines them with it. `mma`: it multiplies
    matrices. `asynchronous`: it completes later than it is issued. `aligned`: all threads of the warp must execute it
    together. `terminator`: nothing follows it in the text unless it has a guard; `call` comes back.
    """

    lanewise: bool = False
    move: bool = False
    stores: bool = False
    mma: bool = False
    asynchronous: bool = False
    aligned: bool = False
    terminator: bool = False
    call: bool = False

    @property
    def control_flow(self) -> bool:
        """Whether it decides what executes next."""
        return self.terminator or self.call


def traits_of(made: Instruction) -> Traits:
    """The traits of an instruction with its modifiers."""
    form = made.form
    return Traits(
        lanewise=_is_lanewise(form) if form.lanewise is None else form.lanewise,
        move=form.role == "move",
        stores=form.role == "store",
        mma=form.role == "mma",
        asynchronous=form.completed_by != "at once",
        aligned=form.role == "aligned" or "aligned" in made.modifiers,
        terminator=form.role == "terminator",
        call=form.role == "call",
    )


@lru_cache(maxsize=4096)
def traits_of_opcode(opcode: str) -> Traits:
    """The traits of an opcode with its modifiers, which all its syntax lines share; none of one that is not legal."""
    found = candidates(opcode)
    return traits_of(found[0]) if found else Traits()


def _is_lanewise(form: Form) -> bool:
    """Arithmetic of one thread; a carry (.cc) is in no register."""
    has_carry = any("cc" in slot.tokens for slot in form.slots)
    result = form.patterns[0].fields[0] if form.patterns else None
    return (
        (form.issued_by, form.completed_by, form.fences) == ("thread", "at once", "")
        and isinstance(result, _RESULT)
        and all(isinstance(spec, _PLAIN) for spec in form.operands.values())
        and not has_carry
    )
