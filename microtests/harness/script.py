"""`Script`: what one thread does in a row, and what it must see; and `like`: a variant with other operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.draft import Draft
from ptxgen.builder import Register
from ptxgen.instr import conversion, memory
from ptxgen.instr.model.form import Instruction


def like(made: Instruction, *operands: Any, **named: Any) -> Instruction:
    """The same variant with these operands."""
    modifiers = {slot.field: getattr(made, slot.field) for slot in made.form.slots if slot.field}
    return type(made)(*operands, **named, **modifiers)


def modifiers(made: Instruction) -> str:
    """The variant in a word, for names."""
    return ".".join(made.modifiers) or "plain"


class Script:
    """The kernel of one warp in which thread 0 does all; `see` notes a register and what must be in it."""

    def __init__(self, draft: Draft, threads: int = 32) -> None:
        draft.launch(block=threads)
        self.draft = draft
        self.end = draft.label("end")
        self.seen: list[tuple[Register, int]] = []
        draft.branch(self.end, draft.is_thread(0), negated=True)

    def see(self, register: Register, expected: int) -> None:
        """The value of a register now: a predicate or up to 64 bits."""
        if register.type == "pred":
            register = self.draft.as_word(register)
        word = self.draft.reg("b64", "seen")
        if register.type == "b64":
            word = register
        else:
            self.draft(conversion.cvt(word, register, dtype="u64", atype="u32"))
        self.seen.append((word, expected))

    def finish(self) -> None:
        """Store what was seen."""
        out = self.draft.output(np.array([value for _, value in self.seen], np.uint64))
        for index, (register, _) in enumerate(self.seen):
            self.draft(memory.st(f"[{out}+{8 * index}]", register, space="global", type="b64"))
        self.draft.place(self.end)
