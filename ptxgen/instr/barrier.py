"""Barriers among the threads of a CTA or a warp. PTX ISA 9.7.13.1 and 9.7.13.2.

A CTA has 16 barriers, numbered 0 to 15. `threads` is how many take part, a multiple of the warp size; without it, all.
`bar` wants each warp to arrive as a whole, as `barrier` does with `aligned`.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.expanded import ExpandedBeforeHopper
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import predicate, register, source
from ptxgen.instr.model.targets import ALL, Availability, Target
from ptxgen.instr.warp import NO_OVERLAP
from ptxgen.syntax import Expression, Immediate

_CTA = {"cta": Availability("7.8", ALL)}
_BARRIER = "9.7.13.1"


def _arrives(form: Any) -> str | None:
    """An arrival without a thread count of its own would never complete the barrier."""
    if isinstance(form.threads, Immediate | Expression) and form.threads.evaluate() == 0:
        return f"{form.form.opcode}.arrive requires a thread count, a multiple of 32 from 32 on, not {form.threads}"
    return None


class bar_sync(
    Instruction,
    opcode="bar",
    section=_BARRIER,
    ptx="1.0",
    targets=ALL,
    issued_by="warp",
    leading=1,
    aligned=True,
    synchronizes=True,
):
    """Arrive at barrier `name`, and wait until all threads of the CTA, or `threads` of them, have."""

    syntax = "bar{.cta}.sync name{, threads}"
    name: OperandLike = source("u32", low=0, high=15, word=True)
    threads: OperandLike = source("u32", multiple=32, default=None)
    _: KW_ONLY
    cta: bool = False
    needs = _CTA


class bar_arrive(
    Instruction,
    opcode="bar",
    section=_BARRIER,
    ptx="2.0",
    targets=ALL,
    issued_by="warp",
    leading=2,
    aligned=True,
    synchronizes=True,
):
    """Arrive at barrier `name`, for which `threads` arrive in all, without waiting."""

    syntax = "bar{.cta}.arrive name, threads"
    name: OperandLike = source("u32", low=0, high=15, word=True)
    threads: OperandLike = source("u32", multiple=32)
    _: KW_ONLY
    cta: bool = False
    needs = _CTA
    _a = rule("threads", reads_operands=True)(_arrives)


class bar_red_popc(
    Instruction,
    opcode="bar",
    section=_BARRIER,
    ptx="2.0",
    targets=ALL,
    issued_by="warp",
    leading=2,
    aligned=True,
    synchronizes=True,
):
    """As bar.sync; then d = how many of the threads have a true c."""

    syntax = "bar{.cta}.red.popc.u32 d, name{, threads}, c"
    d: OperandLike = register("u32")
    name: OperandLike = source("u32", low=0, high=15, word=True)
    c: OperandLike = predicate(negatable=True, immediate=True)
    threads: OperandLike = source("u32", multiple=32, default=None)
    _: KW_ONLY
    cta: bool = False
    needs = _CTA


class bar_red(
    Instruction,
    opcode="bar",
    section=_BARRIER,
    ptx="2.0",
    targets=ALL,
    issued_by="warp",
    leading=2,
    aligned=True,
    synchronizes=True,
):
    """As bar.sync; then p = whether all of the threads (`and`), or any (`or`), have a true c."""

    syntax = "bar{.cta}.red.op.pred p, name{, threads}, c"
    p: OperandLike = predicate()
    name: OperandLike = source("u32", low=0, high=15, word=True)
    c: OperandLike = predicate(negatable=True, immediate=True)
    threads: OperandLike = source("u32", multiple=32, default=None)
    _: KW_ONLY
    cta: bool = False
    op: Literal["and", "or"]
    needs = _CTA


class _Barrier(ExpandedBeforeHopper):
    _: KW_ONLY
    cta: bool = False
    aligned: bool = False
    needs = _CTA

    def expands(self, target: Target) -> bool:
        return not self.aligned and super().expands(target)


class barrier_sync(
    _Barrier,
    opcode="barrier",
    section=_BARRIER,
    ptx="6.0",
    targets="sm_30+",
    issued_by="warp",
    leading=1,
    synchronizes=True,
):
    """As bar.sync; without `aligned` the threads of a warp may arrive one by one."""

    syntax = "barrier{.cta}.sync{.aligned} name{, threads}"
    whole = ("name", "threads")
    name: OperandLike = source("u32", low=0, high=15, word=True)
    threads: OperandLike = source("u32", multiple=32, default=None)


class barrier_arrive(
    _Barrier,
    opcode="barrier",
    section=_BARRIER,
    ptx="6.0",
    targets="sm_30+",
    issued_by="warp",
    leading=2,
    synchronizes=True,
):
    """As bar.arrive; without `aligned` the threads of a warp may arrive one by one."""

    syntax = "barrier{.cta}.arrive{.aligned} name, threads"
    whole = ("name", "threads")
    name: OperandLike = source("u32", low=0, high=15, word=True)
    threads: OperandLike = source("u32", multiple=32)
    _a = rule("threads", reads_operands=True)(_arrives)


class barrier_red_popc(
    _Barrier,
    opcode="barrier",
    section=_BARRIER,
    ptx="6.0",
    targets="sm_30+",
    issued_by="warp",
    leading=2,
    synchronizes=True,
):
    """As bar.red.popc; without `aligned` the threads of a warp may arrive one by one."""

    syntax = "barrier{.cta}.red.popc{.aligned}.u32 d, name{, threads}, c"
    whole = ("d", "name", "threads")
    d: OperandLike = register("u32")
    name: OperandLike = source("u32", low=0, high=15, word=True)
    c: OperandLike = predicate(negatable=True, immediate=True)
    threads: OperandLike = source("u32", multiple=32, default=None)


class barrier_red(
    _Barrier,
    opcode="barrier",
    section=_BARRIER,
    ptx="6.0",
    targets="sm_30+",
    issued_by="warp",
    leading=2,
    synchronizes=True,
):
    """As bar.red.and and bar.red.or; without `aligned` the threads of a warp may arrive one by one."""

    syntax = "barrier{.cta}.red.op{.aligned}.pred p, name{, threads}, c"
    whole = ("name", "threads")
    p: OperandLike = predicate()
    name: OperandLike = source("u32", low=0, high=15, word=True)
    c: OperandLike = predicate(negatable=True, immediate=True)
    threads: OperandLike = source("u32", multiple=32, default=None)
    _: KW_ONLY
    op: Literal["and", "or"]


class bar_warp_sync(
    ExpandedBeforeHopper,
    opcode="bar.warp",
    section="9.7.13.2",
    ptx="6.0",
    targets="sm_30+",
    issued_by="warp",
    synchronizes=True,
):
    """Wait until all threads of the warp in `mask` are here; what they wrote before, they see of each other after."""

    syntax = "bar.warp.sync{.no_membermask_overlap} mask"
    whole = ("mask",)
    mask: OperandLike = source("u32")
    _: KW_ONLY
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP
