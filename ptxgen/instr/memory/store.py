"""Stores through the generic proxy. PTX ISA 9.7.9.11."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.memory import access
from ptxgen.instr.memory.access import Count, Element, PriorityL1, PriorityL2, Scope, Seen
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, source, vector
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.model.targets import ALL, Availability

_Global = Literal["global"]


class _Store(Instruction, section="9.7.9.11"):
    a: OperandLike = address("space", written=True, indexed=True, memory="write")
    b: OperandLike = vector("type", access.elements, scalar=True, sink=access.is_256_bit, immediate=True, wide=True)
    _: KW_ONLY
    l2: PriorityL2 | None = modifier("L2::", default=None)
    vec: Count | None = None
    type: Element
    needs = access.NEEDS
    _w = rule("width")(access.width)
    _l = rule("l2-priority")(access.l2_priority)


class _HintedStore(_Store):
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    hint: bool = flag("L2::cache_hint", default=False)
    _h = rule("hints")(access.hints)


class st(_HintedStore, ptx="1.0", targets=ALL):
    """The value at an address of a state space (generic without `space`) = b.

    Of 256 bits, `_` leaves elements as they are. `policy` comes from createpolicy.
    """

    syntax = "st{.weak}{.space}{.cop}{.l2}{.hint}{.vec}.type [a], b{, policy}"
    _: KW_ONLY
    weak: bool = False
    space: Literal["global", "local", "param", "param::func", "shared", "shared::cta", "shared::cluster"] | None = None
    cop: Literal["wb", "cg", "cs", "wt"] | None = None


class st_keep(_HintedStore, ptx="7.4", targets="sm_70+"):
    """As st to global memory, with the priority that its line has in the L1 cache."""

    syntax = "st{.weak}{.space}.l1{.l2}{.hint}{.vec}.type [a], b{, policy}"
    _: KW_ONLY
    weak: bool = False
    space: _Global | None = None
    l1: PriorityL1 = modifier("L1::")


class st_volatile(_Store, opcode="st", ptx="1.1", targets=ALL):
    """The value at an address = b, neither cached nor merged with other accesses."""

    syntax = "st.volatile{.space}{.l2}{.vec}.type [a], b"
    _: KW_ONLY
    space: Literal["global", "local", "shared", "shared::cta", "shared::cluster"] | None = None
    needs = {**access.NEEDS, "local": Availability("9.1", ALL)}


class st_ordered(_HintedStore, opcode="st", ptx="6.0", targets="sm_70+"):
    """The value at an address = b, as a relaxed or release access in `scope`."""

    syntax = "st.sem.scope{.space}{.l1}{.l2}{.hint}{.vec}.type [a], b{, policy}"
    _: KW_ONLY
    sem: Literal["relaxed", "release"]
    scope: Scope
    space: Seen | None = None
    needs = {**access.NEEDS, **access.NEEDS_L1}
    l1: PriorityL1 | None = modifier("L1::", default=None)


class st_mmio(Instruction, opcode="st", section="9.7.9.11", ptx="8.2", targets="sm_70+"):
    """A device register = b, written exactly once."""

    syntax = "st.mmio.sem.sys{.space}.type [a], b"
    a: OperandLike = address("space", written=True, indexed=True, memory="write")
    b: OperandLike = vector("type", 1, scalar=True, immediate=True, wide=True)
    _: KW_ONLY
    sem: Literal["relaxed", "release"]
    space: _Global | None = None
    type: Element
    needs = {"release": Availability("9.3", "sm_70+"), "b128": Availability("8.4", "sm_70+")}
