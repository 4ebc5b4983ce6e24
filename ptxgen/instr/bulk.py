"""Bulk copies: bytes in a row between global and shared memory, without registers. PTX ISA 9.7.9.25.4.

One thread asks for a copy; the async proxy does it. Loads complete on an mbarrier, stores in the bulk groups of the
thread. Addresses and sizes are multiples of 16 bytes.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal, get_args

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, immediate, source
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.model.targets import ALL, Availability

_SECTION = "9.7.9.25.4"
_MBARRIER = "complete_tx on the mbarrier, with the bytes copied"
_GROUP = "cp.async.bulk.wait_group"
_PROXY = "fence.proxy.async between generic accesses to the same memory and the copy"
#: Constants as sizes end at 2^20 bytes (measured, ptxas 13.5); registers have 32 bits.
_MOST = 2**20 - 16
_Scope = Literal["cta", "cluster", "gpu", "sys"]
#: What the copy reports to an mbarrier of layout v1: words, or elements, that have the value of what never arrived.
Report = Literal[
    "disabled",
    "validity::per_16bytes::80000000",
    "validity::per_16bytes::8000",
    "validity::per_16bytes::80",
    "validity::per_16bytes::8",
    "validity::per_element::ff",
]
REPORTS = {"report=" + name: Availability("9.4", "sm_107f") for name in get_args(Report)}
#: The CTAs of the cluster that get a copy are a mask of 16 bits, or of 32.
Multicast = Literal["cluster", "cluster::16b", "cluster::32b"]
MULTICASTS = {
    "multicast::cluster::16b": Availability("9.4", ALL),
    "multicast::cluster::32b": Availability("9.4", "sm_107f"),
}
_SEMANTICS = Availability("9.3", ALL)
_NEEDS = {"weak": _SEMANTICS, "relaxed": _SEMANTICS}


def mask_type(form: Any) -> str:
    """The type of a mask of CTAs."""
    return "u32" if form.multicast == "cluster::32b" else "u16"


def mask_limit(form: Any) -> int:
    """The largest mask of CTAs."""
    return 2**32 - 1 if form.multicast == "cluster::32b" else 2**16 - 1


def _semantics(form: Any) -> str | None:
    """.relaxed reads and writes atomic elements, so names a scope and their type."""
    if form.sem == "relaxed" and not (form.scope and form.b128):
        return ".relaxed requires a scope and .b128, as in .relaxed.gpu"
    if form.scope and form.sem != "relaxed":
        return f".{form.scope} requires .relaxed"
    if form.sem == "weak" and form.b128:
        return ".b128 requires .relaxed, not .weak"
    return None


class load(
    Instruction,
    opcode="cp.async.bulk",
    section=_SECTION + ".1",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_MBARRIER,
    fences=_PROXY,
):
    """Copy `size` bytes from global to shared memory, of this CTA or any of the cluster.

    `mask` has a bit for each CTA that gets a copy, at the same place. With `ignore_oob` the first `ignore_left` and the
    last `ignore_right` bytes, 0 to 15, may lie outside the allocation, and are undefined.
    """

    syntax = (
        "cp.async.bulk{.sem}{.scope}.dst.global.mbarrier::complete_tx::bytes{.report}{.multicast}{.hint}{.ignore_oob}"
        "{.b128} [dst_mem], [src_mem], size{, ignore_left}{, ignore_right}, [mbar]{, mask}{, policy}"
    )
    dst_mem: OperandLike = address("dst", memory="write")
    src_mem: OperandLike = address("global", narrow=True, memory="read")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    mbar: OperandLike = address("shared", memory="read-write")
    ignore_left: OperandLike = source("u32", low=0, high=15, when="ignore_oob", default=None)
    ignore_right: OperandLike = source("u32", low=0, high=15, when="ignore_oob", default=None)
    mask: OperandLike = source(mask_type, low=0, high=mask_limit, when="multicast", default=None)
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    sem: Literal["weak", "relaxed"] | None = None
    scope: _Scope | None = None
    dst: Literal["shared::cta", "shared::cluster"]
    report: Report | None = modifier("mbarrier::report::", default=None)
    multicast: Multicast | None = modifier("multicast::", default=None)
    hint: bool = flag("L2::cache_hint", default=False)
    ignore_oob: bool = False
    b128: bool = False
    needs = {
        **_NEEDS,
        **REPORTS,
        **MULTICASTS,
        "shared::cta": Availability("8.6", ALL),
        "relaxed shared::cluster": Availability("9.3", "sm_90a sm_100f sm_110f"),
        "ignore_oob": Availability("9.2", ALL),
    }
    _s = rule("semantics")(_semantics)

    @rule("own-cta")
    def _own_cta(self) -> str | None:
        """Multicast writes to peer CTAs; bytes outside are for the CTA's own copy."""
        if self.dst == "shared::cta" and self.multicast:
            return f".multicast::{self.multicast} requires .shared::cluster, not .shared::cta"
        if self.dst == "shared::cluster" and self.ignore_oob:
            return ".ignore_oob requires .shared::cta, not .shared::cluster"
        return None

    @rule("report-outside")
    def _report_outside(self) -> str | None:
        """What lies outside has no value to report."""
        if self.ignore_oob and self.report not in (None, "disabled"):
            return f".ignore_oob requires .mbarrier::report::disabled, not .mbarrier::report::{self.report}"
        return None


class copy(
    Instruction,
    opcode="cp.async.bulk",
    section=_SECTION + ".1",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_MBARRIER,
    fences=_PROXY,
):
    """Copy `size` bytes from this CTA's shared memory to that of a peer CTA, and complete on that CTA's mbarrier."""

    syntax = (
        "cp.async.bulk{.sem}{.scope}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{.b128}"
        " [dst_mem], [src_mem], size, [mbar]"
    )
    dst_mem: OperandLike = address("shared", memory="write")
    src_mem: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    mbar: OperandLike = address("shared", memory="read-write")
    _: KW_ONLY
    sem: Literal["weak", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    b128: bool = False
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class store(
    Instruction,
    opcode="cp.async.bulk",
    section=_SECTION + ".1",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_GROUP,
    fences=_PROXY,
):
    """Copy `size` bytes from shared to global memory; of each 16 bytes, those whose bit is set in `byte_mask`."""

    syntax = (
        "cp.async.bulk{.sem}{.scope}.global.shared::cta.bulk_group{.hint}{.cp_mask}{.b128}"
        " [dst_mem], [src_mem], size{, policy}{, byte_mask}"
    )
    dst_mem: OperandLike = address("global", narrow=True, memory="write")
    src_mem: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    policy: OperandLike = source("u64", when="hint", default=None)
    byte_mask: OperandLike = source("u16", when="cp_mask", default=None)
    _: KW_ONLY
    sem: Literal["weak", "relaxed"] | None = None
    scope: _Scope | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    cp_mask: bool = False
    b128: bool = False
    needs = {**_NEEDS, "cp_mask": Availability("8.6", "sm_100+")}
    _s = rule("semantics")(_semantics)


_Type = Literal["f16", "bf16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"]
_Op = Literal["add", "min", "max", "inc", "dec", "and", "or", "xor"]
_REDUCIBLE = {
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64", "f16", "bf16")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
}
_REDUCIBLE_SHARED = {
    "add": ("u32", "s32", "u64"),
    **dict.fromkeys(("min", "max"), ("u32", "s32")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), ("b32",)),
}
_REDUCE_NEEDS = {"relaxed": _SEMANTICS, "noftz type=f32": Availability("9.4", ALL)}


def _types(form: Any) -> str | None:
    """Each operation has its types."""
    legal = (_REDUCIBLE_SHARED if isinstance(form, reduce_shared) else _REDUCIBLE)[form.op]
    if form.type not in legal:
        return f".{form.op} requires {', '.join('.' + name for name in legal)}, not .{form.type}"
    return None


def _scoped(form: Any) -> str | None:
    """.relaxed names a scope; a scope without semantics does not exist."""
    if bool(form.sem) != bool(form.scope):
        return f"{form.form.opcode} requires both the semantics and the scope, as in .relaxed.gpu, or neither"
    return None


def _subnormal(form: Any) -> str | None:
    """Sums of half precision must say that they keep subnormal numbers; those of single precision may."""
    if form.noftz and (form.op != "add" or form.type not in ("f16", "bf16", "f32")):
        return f".noftz requires .add of .f16, .bf16 or .f32, not .{form.op} of .{form.type}"
    if not form.noftz and form.op == "add" and form.type in ("f16", "bf16"):
        return f".add of .{form.type} requires .noftz"
    return None


class reduce(
    Instruction,
    opcode="cp.reduce.async.bulk",
    section=_SECTION + ".2",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_GROUP,
    fences=_PROXY,
):
    """Combine `size` bytes of shared memory with as many of global memory, element by element, each atomically."""

    syntax = (
        "cp.reduce.async.bulk{.sem}{.scope}.global.shared::cta.bulk_group{.hint}.op{.noftz}.type"
        " [dst_mem], [src_mem], size{, policy}"
    )
    dst_mem: OperandLike = address("global", narrow=True, memory="read-write")
    src_mem: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: _Scope | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    op: _Op
    noftz: bool = False
    type: _Type
    needs = _REDUCE_NEEDS
    _c = rule("semantics")(_scoped)
    _t = rule("types")(_types)
    _n = rule("subnormal")(_subnormal)


class reduce_shared(
    Instruction,
    opcode="cp.reduce.async.bulk",
    section=_SECTION + ".2",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_MBARRIER,
    fences=_PROXY,
):
    """As reduce, with the shared memory of a peer CTA; completes on that CTA's mbarrier."""

    syntax = (
        "cp.reduce.async.bulk{.sem}{.scope}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type"
        " [dst_mem], [src_mem], size, [mbar]"
    )
    dst_mem: OperandLike = address("shared", memory="read-write")
    src_mem: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    mbar: OperandLike = address("shared", memory="read-write")
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    op: _Op
    type: Literal["b32", "u32", "s32", "u64"]
    needs = _REDUCE_NEEDS
    _c = rule("semantics")(_scoped)
    _t = rule("types")(_types)


class multimem_store(
    Instruction,
    opcode="multimem.cp.async.bulk",
    section=_SECTION + ".4",
    ptx="9.1",
    targets="sm_90+",
    completed_by=_GROUP,
    fences=_PROXY,
):
    """As store, to the memory of every GPU behind a multimem address."""

    syntax = (
        "multimem.cp.async.bulk{.sem}{.scope}.global.shared::cta.bulk_group{.cp_mask}{.b128}"
        " [dst_mem], [src_mem], size{, byte_mask}"
    )
    dst_mem: OperandLike = address("global", narrow=True, memory="write")
    src_mem: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    byte_mask: OperandLike = source("u16", when="cp_mask", default=None)
    _: KW_ONLY
    sem: Literal["weak", "relaxed"] | None = None
    scope: _Scope | None = None
    cp_mask: bool = False
    b128: bool = False
    needs = {**_NEEDS, "cp_mask": Availability("9.1", "sm_100+")}
    _s = rule("semantics")(_semantics)


class multimem_reduce(
    Instruction,
    opcode="multimem.cp.reduce.async.bulk",
    section=_SECTION + ".5",
    ptx="9.1",
    targets="sm_90+",
    completed_by=_GROUP,
    fences=_PROXY,
):
    """As reduce, with the memory of every GPU behind a multimem address."""

    syntax = (
        "multimem.cp.reduce.async.bulk{.sem}{.scope}.global.shared::cta.bulk_group.op{.noftz}.type"
        " [dst_mem], [src_mem], size"
    )
    dst_mem: OperandLike = address("global", narrow=True, memory="read-write")
    src_mem: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: _Scope | None = None
    op: _Op
    noftz: bool = False
    type: _Type
    needs = _REDUCE_NEEDS
    _c = rule("semantics")(_scoped)
    _t = rule("types")(_types)
    _n = rule("subnormal")(_subnormal)


class prefetch(
    Instruction,
    opcode="cp.async.bulk.prefetch",
    section=_SECTION + ".3",
    ptx="8.0",
    targets="sm_90+",
    completed_by="nothing: it is a hint",
):
    """Bring `size` bytes of global memory to the L2 cache, perhaps; `evict_last` keeps them there long."""

    syntax = "cp.async.bulk.prefetch.L2.global{.hint}{.evict_last} [src_mem], size{, policy}"
    src_mem: OperandLike = address("global", narrow=True, memory="none")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    hint: bool = flag("L2::cache_hint", default=False)
    evict_last: bool = flag("L2::evict_last", default=False)
    needs = {"L2::evict_last": Availability("9.4", "sm_107f")}

    @rule("one-policy")
    def _one_policy(self) -> str | None:
        """A policy says what is evicted last."""
        return "one of .L2::cache_hint and .L2::evict_last is enough" if self.hint and self.evict_last else None


class applypriority(
    Instruction,
    opcode="applypriority.async.bulk",
    section="9.7.10.18 (9.4)",
    ptx="9.4",
    targets="sm_107f",
    completed_by=_GROUP,
):
    """Let `size` bytes in the L2 cache be evicted as usual again, from an address on a multiple of 128 bytes."""

    syntax = "applypriority.async.bulk{.space}.bulk_group.L2::evict_normal [a], size"
    a: OperandLike = address("space", memory="none")
    size: OperandLike = source("u32", low=0, high=_MOST, multiple=16)
    _: KW_ONLY
    space: Literal["global"] | None = None


class commit_group(
    Instruction, opcode="cp.async.bulk.commit_group", section="9.7.9.25.6.1", ptx="8.0", targets="sm_90+"
):
    """Commit this thread's bulk copies with bulk_group completion since the last commit to a group."""

    syntax = "cp.async.bulk.commit_group"


class wait_group(
    Instruction,
    opcode="cp.async.bulk.wait_group",
    section="9.7.9.25.6.2",
    ptx="8.0",
    targets="sm_90+",
    synchronizes=True,
):
    """Wait until at most `pending` of this thread's latest groups are not done; `read`: have not read their sources."""

    syntax = "cp.async.bulk.wait_group{.read} pending"
    pending: OperandLike = immediate(-(2**63), 2**63 - 1)
    _: KW_ONLY
    read: bool = False
