"""Communication among the threads of a warp. PTX ISA 9.7.9.5, 9.7.9.6 and 9.7.13.8 to 14.

All but the forms `..._without_sync` wait until every thread of `mask` is here, and are undefined for a thread that is
not in its own mask. Bit n of a mask is lane n.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.expanded import ExpandedBeforeHopper
from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import is_sink, predicate, register, source
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.targets import ALL, Availability, Target

#: A promise about the masks of threads that wait at the same time; in no manual. ptxas 13.5.37 takes it in every place
#: of these instructions, but not of elect.sync, on all targets, and names the PTX version (measured, 2026-11-27).
NO_OVERLAP = {"no_membermask_overlap": Availability("8.4", ALL)}
#: Since when, and where, the forms without .sync are gone.
_GONE = Availability("6.4", "sm_70+")


def _one_result(form: Any) -> bool:
    return form.p is None or is_sink(form.d) or is_sink(form.p)


class shfl(ExpandedBeforeHopper, section="9.7.9.6", ptx="6.0", targets="sm_30+", issued_by="warp"):
    """d = a of another lane, chosen by `mode` and b within the segments that c describes; p = whether there is one."""

    syntax = "shfl.sync{.no_membermask_overlap}.mode.b32 d{|p}, a, b, c, mask"
    whole = ("d", "a", "b", "c", "mask")
    d: OperandLike = register("b32")
    a: OperandLike = source("b32", float_sums=_one_result)
    b: OperandLike = source("b32", float_sums=_one_result)
    c: OperandLike = source("b32", float_sums=_one_result)
    mask: OperandLike = source("u32")
    p: OperandLike = predicate(sink=True, default=None)
    _: KW_ONLY
    mode: Literal["up", "down", "bfly", "idx"]
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP


class shfl_without_sync(
    Instruction, opcode="shfl", section="9.7.9.5", ptx="3.0", targets="sm_30+", removed=_GONE, issued_by="warp"
):
    """As shfl.sync among the active threads of the warp."""

    syntax = "shfl.mode.b32 d{|p}, a, b, c"
    d: OperandLike = register("b32")
    a: OperandLike = source("b32")
    b: OperandLike = source("b32")
    c: OperandLike = source("b32")
    p: OperandLike = predicate(sink=True, default=None)
    _: KW_ONLY
    mode: Literal["up", "down", "bfly", "idx"]


class vote(ExpandedBeforeHopper, section="9.7.13.9", ptx="6.0", targets="sm_30+", issued_by="warp"):
    """d = whether a is true in all threads of `mask`, in any, or the same in all (`uni`)."""

    syntax = "vote.sync{.no_membermask_overlap}.mode.pred d, a, mask"
    whole = ("mask",)
    d: OperandLike = predicate()
    a: OperandLike = predicate(negatable=True, immediate=True)
    mask: OperandLike = source("u32")
    _: KW_ONLY
    mode: Literal["all", "any", "uni"]
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP


class vote_ballot(
    ExpandedBeforeHopper, opcode="vote", section="9.7.13.9", ptx="6.0", targets="sm_30+", issued_by="warp"
):
    """d = the mask of the threads of `mask` in which a is true."""

    syntax = "vote.sync{.no_membermask_overlap}.ballot.b32 d, a, mask"
    whole = ("mask",)
    d: OperandLike = register("b32")
    a: OperandLike = predicate(negatable=True, immediate=True)
    mask: OperandLike = source("u32")
    _: KW_ONLY
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        yield from super().expansion_problems(target, resolve)
        # The result may be an element from sm_80 on, but not with no_membermask_overlap (measured, ptxas 13.5.37).
        if target.number < (90 if self.no_membermask_overlap else 80):
            yield from self.whole_problems(("d",), target, resolve)


class vote_without_sync(
    Instruction, opcode="vote", section="9.7.13.8", ptx="1.2", targets="sm_12+", removed=_GONE, issued_by="warp"
):
    """As vote.sync among the active threads of the warp."""

    syntax = "vote.mode.pred d, a"
    d: OperandLike = predicate()
    a: OperandLike = predicate(negatable=True, immediate=True)
    _: KW_ONLY
    mode: Literal["all", "any", "uni"]


class vote_ballot_without_sync(
    Instruction, opcode="vote", section="9.7.13.8", ptx="1.2", targets=ALL, removed=_GONE, issued_by="warp"
):
    """As vote.sync.ballot among the active threads of the warp."""

    syntax = "vote.ballot.b32 d, a"
    d: OperandLike = register("b32")
    a: OperandLike = predicate(negatable=True, immediate=True)


class match_any(
    ExpandedBeforeHopper, opcode="match", section="9.7.13.10", ptx="6.0", targets="sm_70+", issued_by="warp"
):
    """d = the mask of the threads of `mask` that have the same a as this one."""

    syntax = "match.any.sync{.no_membermask_overlap}.type d, a, mask"
    whole = ("a", "mask")
    d: OperandLike = register("u32")
    a: OperandLike = source("type")
    mask: OperandLike = source("u32")
    _: KW_ONLY
    type: Literal["b32", "b64"]
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP


class match_all(
    ExpandedBeforeHopper, opcode="match", section="9.7.13.10", ptx="6.0", targets="sm_70+", issued_by="warp"
):
    """p = whether all threads of `mask` have the same a; d = the mask of them then, else 0."""

    syntax = "match.all.sync{.no_membermask_overlap}.type d{|p}, a, mask"
    whole = ("a", "mask")
    d: OperandLike = register("u32", sink=True)
    a: OperandLike = source("type", float_sums=_one_result)
    mask: OperandLike = source("u32")
    p: OperandLike = predicate(sink=True, default=None)
    _: KW_ONLY
    type: Literal["b32", "b64"]
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP


class activemask(Instruction, section="9.7.13.11", ptx="6.2", targets="sm_30+", issued_by="warp"):
    """d = the mask of the threads of the warp that execute this together."""

    syntax = "activemask.b32 d"
    d: OperandLike = register("b32")


class redux(ExpandedBeforeHopper, section="9.7.13.12", ptx="7.0", targets="sm_80+", issued_by="warp"):
    """d = the sum, minimum or maximum of a over the threads of `mask`."""

    syntax = "redux.sync{.no_membermask_overlap}.op.type d, a, mask"
    whole = ("d", "a", "mask")
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    mask: OperandLike = source("u32")
    _: KW_ONLY
    op: Literal["add", "min", "max"]
    type: Literal["u32", "s32"]
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP


class redux_bits(
    ExpandedBeforeHopper, opcode="redux", section="9.7.13.12", ptx="7.0", targets="sm_80+", issued_by="warp"
):
    """d = the bitwise combination of a over the threads of `mask`; floats are refused (measured, ptxas 13.5)."""

    syntax = "redux.sync{.no_membermask_overlap}.op.b32 d, a, mask"
    whole = ("d", "a", "mask")
    d: OperandLike = register("u32")
    a: OperandLike = source("u32")
    mask: OperandLike = source("u32")
    _: KW_ONLY
    op: Literal["and", "or", "xor"]
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP


class redux_float(Instruction, opcode="redux", section="9.7.13.12", ptx="8.6", targets="sm_100f", issued_by="warp"):
    """d = the minimum or maximum of a, or of |a|, over the threads of `mask`; with NaN, a NaN makes it NaN."""

    syntax = "redux.sync{.no_membermask_overlap}.op{.abs}{.NaN}.f32 d, a, mask"
    d: OperandLike = register("f32")
    a: OperandLike = source("f32")
    mask: OperandLike = source("u32")
    _: KW_ONLY
    op: Literal["min", "max"]
    abs: bool = False
    NaN: bool = False
    no_membermask_overlap: bool = False
    needs = NO_OVERLAP


class elect(Instruction, section="9.7.13.14", ptx="8.0", targets="sm_90+", issued_by="warp"):
    """p = true in one thread of `mask`, the same one each time; d = its lane."""

    syntax = "elect.sync d|p, mask"
    d: OperandLike = register("u32", sink=True)
    p: OperandLike = predicate()
    mask: OperandLike = source("u32")
