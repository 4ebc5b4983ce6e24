"""Loads through the generic proxy, and through the read-only one. PTX ISA 9.7.9.8 to 9.7.9.10."""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.expanded import element_result
from ptxgen.instr.memory import access
from ptxgen.instr.memory.access import Count, Element, Prefetch, PriorityL1, PriorityL2, Scope, Seen
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, source, vector
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.model.targets import ALL, Availability, Target

_Global = Literal["global"]


class _Load(Instruction, section="9.7.9.8"):
    d: OperandLike = vector("type", access.elements, scalar=True, sink=True, wide=True)
    a: OperandLike = address("space", unified=True, indexed=True, memory="read")
    _: KW_ONLY
    vec: Count | None = None
    type: Element
    needs = access.NEEDS
    _w = rule("width")(access.width)


class _HintedLoad(_Load):
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    l2: PriorityL2 | None = modifier("L2::", default=None)
    hint: bool = flag("L2::cache_hint", default=False)
    prefetch: Prefetch | None = None
    _l = rule("l2-priority")(access.l2_priority)
    _h = rule("hints")(access.hints)


class ld(_HintedLoad, ptx="1.0", targets=ALL):
    """d = the value at an address of a state space (generic without `space`); `vec` loads 2, 4 or 8 at once.

    `policy` comes from createpolicy, `prefetch` says how much more to bring into a cache.
    """

    syntax = "ld{.weak}{.space}{.cop}{.l2}{.hint}{.prefetch}{.vec}.type d, [a]{, policy}"
    _: KW_ONLY
    weak: bool = False
    space: (
        Literal[
            "const",
            "global",
            "local",
            "param",
            "param::entry",
            "param::func",
            "shared",
            "shared::cta",
            "shared::cluster",
        ]
        | None
    ) = None
    cop: Literal["ca", "cg", "cs", "lu", "cv"] | None = None


class ld_keep(_HintedLoad, ptx="7.4", targets="sm_70+"):
    """As ld from global memory, with the priority that its line has in the L1 cache."""

    syntax = "ld{.weak}{.space}.l1{.l2}{.hint}{.prefetch}{.vec}.type d, [a]{, policy}"
    _: KW_ONLY
    weak: bool = False
    space: _Global | None = None
    l1: PriorityL1 = modifier("L1::")


class ld_volatile(_Load, opcode="ld", ptx="1.1", targets=ALL):
    """d = the value at an address, neither cached nor merged with other accesses."""

    syntax = "ld.volatile{.space}{.l2}{.prefetch}{.vec}.type d, [a]"
    _: KW_ONLY
    space: Literal["global", "local", "shared", "shared::cta", "shared::cluster"] | None = None
    l2: PriorityL2 | None = modifier("L2::", default=None)
    prefetch: Prefetch | None = None
    needs = {**access.NEEDS, "local": Availability("9.1", ALL)}
    _l = rule("l2-priority")(access.l2_priority)
    _h = rule("hints")(access.hints)

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        if self.vec is None and self.space in ("shared", "shared::cta"):
            yield from element_result(self, target, resolve)


class ld_ordered(_HintedLoad, opcode="ld", ptx="6.0", targets="sm_70+"):
    """d = the value at an address, as a relaxed or acquire access in `scope`."""

    syntax = "ld.sem.scope{.space}{.l1}{.l2}{.hint}{.prefetch}{.vec}.type d, [a]{, policy}"
    _: KW_ONLY
    sem: Literal["relaxed", "acquire"]
    scope: Scope
    space: Seen | None = None
    needs = {**access.NEEDS, **access.NEEDS_L1}
    l1: PriorityL1 | None = modifier("L1::", default=None)

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        if self.sem == "relaxed" and self.vec is None and self.space in ("shared", "shared::cta"):
            yield from element_result(self, target, resolve)


class ld_mmio(Instruction, opcode="ld", section="9.7.9.8", ptx="8.2", targets="sm_70+"):
    """d = the value of a device register, read exactly once."""

    syntax = "ld.mmio.sem.sys{.space}.type d, [a]"
    d: OperandLike = vector("type", 1, scalar=True, sink=True, wide=True)
    a: OperandLike = address("space", unified=True, indexed=True, memory="read")
    _: KW_ONLY
    sem: Literal["relaxed", "acquire"]
    space: _Global | None = None
    type: Element
    needs = {"acquire": Availability("9.3", "sm_70+"), "b128": Availability("8.4", "sm_70+")}

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        yield from element_result(self, target, resolve)


class ld_readonly(_Load, opcode="ld", ptx="9.4", targets="sm_90+"):
    """d = the value at a global address that no one writes, through the read-only proxy (measured, ptxas 13.5)."""

    syntax = "ld.proxy::readonly{.space}{.l2}{.vec}.type d, [a]"
    _: KW_ONLY
    space: _Global | None = None
    l2: PriorityL2 | None = modifier("L2::", default=None)
    type: Literal["b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"]
    _l = rule("l2-priority")(access.l2_priority)


class ld_readonly_nc(ld_readonly):
    """As ld_readonly, through the non-coherent cache (measured, ptxas 13.5)."""

    syntax = "ld.proxy::readonly.space.nc{.l2}{.vec}.type d, [a]"
    _: KW_ONLY
    space: _Global  # type: ignore[assignment]


class ld_nc(_HintedLoad, opcode="ld", section="9.7.9.9", ptx="3.1", targets="sm_32+"):
    """d = the value at a global address that no one writes while the kernel runs, through the non-coherent cache."""

    syntax = "ld.space{.cop}.nc{.l2}{.hint}{.prefetch}{.vec}.type d, [a]{, policy}"
    _: KW_ONLY
    space: _Global
    cop: Literal["ca", "cg", "cs"] | None = None


class ld_nc_keep(_HintedLoad, opcode="ld", section="9.7.9.9", ptx="7.4", targets="sm_70+"):
    """As ld_nc, with the priority that its line has in the L1 cache."""

    syntax = "ld.space.nc.l1{.l2}{.hint}{.prefetch}{.vec}.type d, [a]{, policy}"
    _: KW_ONLY
    space: _Global
    l1: PriorityL1 = modifier("L1::")


class ldu(_Load, section="9.7.9.10", ptx="2.0", targets=ALL):
    """d = a value that no one writes, at an address that is the same in all threads of the warp."""

    syntax = "ldu{.space}{.vec}.type d, [a]"
    _: KW_ONLY
    space: _Global | None = None
    vec: Literal["v2", "v4"] | None = None
    _w = rule("width")(access.narrow)
