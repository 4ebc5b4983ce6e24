"""Modifiers that ptxas 13.5 overlooks where no manual has them: `check` takes them with a warning.

Measured with each declaration in every place of the opcode (2026-11-22 and 2026-11-30, `python -m
tools.outside.probe`). Real kernels have them: CUDA-L2 writes `ldmatrix.sync.aligned.m8n8.x4.row.shared.b16`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from ptxgen.instr.model.form import REGISTRY, Form, Instruction


@dataclass(frozen=True, slots=True)
class Group:
    """Modifiers that ptxas overlooks on some instructions, up to `most` of them together."""

    tokens: frozenset[str]
    #: Opcodes without modifiers (`fence.proxy`), or declarations (`fence.fence_proxy_alias`); empty: all.
    on: frozenset[str] = frozenset()
    #: As `on`, or `mma.*` for all that begin with a word; these are left out.
    but: frozenset[str] = frozenset()
    most: int = 99
    #: Whether they must stand last.
    last: bool = False

    def covers(self, form: Form) -> bool:
        names = {form.opcode, form.key}
        if self.but.intersection((*names, f"{form.opcode.split('.')[0]}.*")):
            return False
        return not self.on or not self.on.isdisjoint(names)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TENSORMAP = _words(
    "box_dim element_stride elemtype fill_mode global_address global_dim global_stride interleave_layout rank "
    "swizzle_atomicity swizzle_mode"
)
_TESTP = _words("finite infinite normal notanumber number subnormal")
_ACCUMULATOR = _words("acc::f16 acc::f32")
_PACKED = _words("b4x16_p64 b6x16_p32 b8x16")

#: Modifiers that ptxas overlooks on nearly every instruction.
OVERLOOKED = _TENSORMAP | _TESTP | _ACCUMULATOR | _PACKED

#: Instructions that overlook the types of opaque variables and predicates; most others overlook .b2 instead.
_TYPED = _words(
    "abs add atom cos cp.reduce.async.bulk cvt cvt.pack ex2 fabric.try_atom.async fabric.try_get.async.tensor "
    "fabric.try_pullred.async fabric.try_put.async.tensor fabric.try_red.async fabric.try_red.async.tensor fma "
    "ldmatrix lg2 max min multimem.cp.reduce.async.bulk multimem.ld_reduce multimem.red multimem.st neg rcp red rsqrt "
    "set setp sin spcompress spdecompress sqrt sub tanh tcgen05.ld.red.spcompress tcgen05.ld.spcompress "
    "wgmma.mma_async wgmma.mma_async.sp wmma.mma "
    "alternate.mul floating.mul floating.mul_f32x2 half.mul mixed.mul_bf16x2 mixed.mul_f16x2 mixed.mul_halves"
)
_RESTRICTIONS = _words("sync_restrict::shared::cta sync_restrict::shared::cluster sync_restrict::shared::cluster::read")
#: Types that few matrix instructions have.
_NARROW = _words("b1 b2 b4 bf16 bf16x2 s2 s4 tf32 u2 u4")
_SPACES = _words("global shared shared::cta shared::cluster")

_GROUPS = (
    Group(_TENSORMAP, most=1),
    Group(_TESTP, most=1),
    Group(_ACCUMULATOR, most=1),
    Group(_PACKED),
    Group(_words("texref samplerref surfref pred"), on=_TYPED),
    Group(_words("b2"), but=_TYPED | _words("mma.* wmma.* movmatrix")),
    Group(
        _words("row col"),
        on=_words(
            "ldmatrix stmatrix movmatrix tcgen05.cp tcgen05.ld tcgen05.ld.red tcgen05.ld.red.spcompress "
            "tcgen05.ld.spcompress tcgen05.st wgmma.mma_async wgmma.mma_async.sp"
        ),
        most=2,
    ),
    Group(
        _words("cta cluster gpu sys"),
        on=_words("cp.async.bulk.tensor cp.reduce.async.bulk.tensor mbarrier.check_layout"),
        most=1,
    ),
    Group(_NARROW, on=_words("movmatrix mma.f64")),
    Group(
        _NARROW,
        on=_words(
            "mma.f16 mma.f16_m8n8k4 mma.f8 mma.f8f6f4 mma.i4 mma.i8 mma.mxf4 mma.mxf4nvf4 mma.mxf8f6f4 mma.sp_f16 "
            "mma.sp_f8 mma.sp_f8f6f4 mma.sp_mxf4 mma.sp_mxf4nvf4 mma.sp_mxf8f6f4"
        ),
        most=1,
        last=True,
    ),
    Group(_words("L1 L2 L2::evict_last L2::evict_normal"), on=_words("cache.prefetch_valid"), most=1),
    Group(
        _RESTRICTIONS - _words("sync_restrict::shared::cluster::read"),
        on=_words("bulk.wait_group fence.fence_mbarrier_init"),
        most=1,
    ),
    Group(
        _words("async"),
        on=_words("fence.fence fence.fence_acquire_shared fence.fence_release_shared fence.fence_mbarrier_init"),
        most=1,
    ),
    Group(
        _RESTRICTIONS,
        on=_words(
            "fence.fence_proxy_alias fence.fence_proxy_alias_ordered fence.fence_proxy_fabric fence.fence_proxy_async "
            "fence.fence_proxy_tensormap_release"
        ),
        most=1,
    ),
    Group(
        _SPACES,
        on=_words(
            "fence.fence_proxy_fabric fence.fence_proxy_async_acquire fence.fence_proxy_async_release "
            "fence.fence_proxy_async_release_reads fence.fence_proxy_tensormap_release"
        ),
        most=1,
    ),
)
#: Its modifier is part of its name to ptxas.
_TWO_WORDS = "fabric.submit_commit_group"
_EVERY = frozenset[str]().union(*(group.tokens for group in _GROUPS))


@lru_cache(maxsize=4096)
def overlooked(opcode: str, instruction: type[Instruction]) -> tuple[str, ...]:
    """The modifiers of an opcode, behind the words of its name, that ptxas reads over if it is this instruction."""
    form = instruction.form
    words = form.opcode.split(".")
    tokens = opcode.split(".")
    behind = tokens[len(words) :]
    for slot in form.slots[: form.leading]:
        if behind and behind[0] in slot.tokens:
            del behind[0]
        elif not slot.optional or not slot.tokens.keys().isdisjoint(behind):
            return ()
    if tokens[: len(words)] != words or _EVERY.isdisjoint(behind) or form.key == _TWO_WORDS:
        return ()
    spare: list[str] = []
    for group in _GROUPS:
        if not group.covers(form):
            continue
        found = [token for token in behind if token in group.tokens - _taken(instruction, form.key in group.on)]
        if len(found) > group.most or (found and group.last and found != behind[-1:]):
            return ()
        spare += found
    return tuple(token for token in behind if token in spare)


@cache
def _taken(instruction: type[Instruction], alone: bool) -> frozenset[str]:
    """The modifiers of an instruction, or of all with its opcode."""
    opcode = instruction.form.opcode
    every: Sequence[type[Instruction]] = [instruction] if alone else REGISTRY[opcode.split(".")[0]]
    forms = [each.form for each in every if each.form.opcode == opcode]
    return frozenset(token for form in forms for slot in form.slots for token in slot.tokens)
