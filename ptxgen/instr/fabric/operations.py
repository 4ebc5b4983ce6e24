"""The fabric: asynchronous accesses to the memory of other devices. PTX ISA 9.3 and later, 9.7.10.5.

A handle `[endpoint, offset]` names a place: a logical endpoint, a number of 32 bits, and an offset in bytes into its
memory. With .multimem the endpoint is one of several devices, of which this is one. Operations are issued, then
submitted by their thread, and complete on an mbarrier of layout v1 in the CTA's shared memory, which also gets a report
of what failed. Sizes, offsets and addresses are multiples of 16 bytes.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, immediate, register, source
from ptxgen.instr.model.operands.specification import value_of
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.model.targets import Availability
from ptxgen.syntax import Operand

_SECTION = "9.7.10.5"
_TARGETS = "sm_100+"
COPIED = "complete_tx on the mbarrier, with the bytes copied, once fabric.submit has submitted it"
CHUNKS = "complete_tx on the mbarrier, with the bytes copied / 16, once fabric.submit has submitted it"
_RESULT = "complete_tx on the mbarrier, once fabric.submit has submitted it"
_PROXY = "fence.proxy.async between generic accesses to the same shared memory and the operation"
_FAMILIES = Availability("9.3", "sm_100f sm_110f sm_120f")
_INTEGERS = ("u32", "s32", "u64", "s64")


class Operation(Instruction, section=_SECTION, ptx="9.3", targets=_TARGETS, fences=_PROXY):
    """What all operations have in common."""


def semantics_problem(form: Any) -> str | None:
    """.relaxed names its scope."""
    if form.sem and not form.scope:
        return ".relaxed requires its scope, .sys"
    return None


def _op_type(form: Any, added: tuple[str, ...], ordered: tuple[str, ...]) -> str | None:
    """Sums are of types that `added` names, minima of those that `ordered` names, all else of bits."""
    bits = ("b32", "b64", "b128") if form.op in ("exch", "cas") else ("b32", "b64")
    legal = {"add": added, "min": ordered, "max": ordered}.get(form.op, bits)
    if form.type in legal:
        return None
    return f".{form.op} requires {', '.join('.' + each for each in legal)}, not .{form.type}"


class submit(Instruction, opcode="fabric.submit", section=_SECTION + ".5", ptx="9.3", targets=_TARGETS):
    """Submit the operations that this thread has issued, or those of them that fetch: try_get and try_pullred."""

    syntax = "fabric.submit{.op_restrict}"
    _: KW_ONLY
    op_restrict: Literal["fetching"] | None = modifier("op_restrict::", default=None)


class submit_commit_group(Instruction, opcode="fabric.submit", section=_SECTION + ".5", ptx="9.5", targets=_TARGETS):
    """Submit the operations that this thread has issued, and make a group of them, for wait_group."""

    syntax = "fabric.submit.commit_group"


class wait(Instruction, opcode="fabric.wait", section=_SECTION + ".6", ptx="9.3", targets=_TARGETS, synchronizes=True):
    """Wait until the operations that this thread has submitted have read what they need of shared memory."""

    syntax = "fabric.wait.sync_restrict::reads"


class wait_group(
    Instruction, opcode="fabric.wait", section=_SECTION + ".6", ptx="9.3", targets=_TARGETS, synchronizes=True
):
    """As wait, for all but the latest `n` groups."""

    syntax = "fabric.wait.sync_restrict::reads n"
    n: OperandLike = immediate(0, 2**31 - 1, advice=True)


class try_get(Operation, opcode="fabric.try_get.async", section=_SECTION + ".1", completed_by=COPIED):
    """Copy `size` bytes from a handle to shared memory."""

    syntax = (
        "fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric{.sem}{.scope}{.hint}"
        ".b128 [dst], [endpoint, offset], size, [bar]{, policy}"
    )
    dst: OperandLike = address("shared", memory="write")
    endpoint: OperandLike = address(bits=(32,), variables=(), memory="read", memory_space="fabric")
    offset: OperandLike = register("u64")
    size: OperandLike = source("u32")
    bar: OperandLike = address("shared", memory="read-write")
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: Literal["sys"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    _s = rule("semantics")(semantics_problem)


class try_put(Operation, opcode="fabric.try_put.async", section=_SECTION + ".2", completed_by=CHUNKS):
    """Copy `size` bytes from shared memory to a handle.

    `mask` has a bit for each byte of every 16 that is to be written. `counter` is the offset, a multiple of 256, of a
    counter of 64 bits beside the destination, which counts the bytes that have arrived.
    """

    syntax = (
        "fabric.try_put.async{.multimem}.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric{.counted}"
        "{.cp_mask}{.sem}{.scope}{.hint}.b128 [endpoint, offset, counter], [src], size, [bar]{, mask}{, policy}"
    )
    endpoint: OperandLike = address(bits=(32,), variables=(), memory="write", memory_space="fabric")
    offset: OperandLike = register("u64")
    src: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32")
    bar: OperandLike = address("shared", memory="read-write")
    counter: OperandLike = source("u64", immediate=False, when="counted", default=None)
    mask: OperandLike = source("u16", when="cp_mask", default=None)
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    multimem: bool = False
    counted: bool = flag("counted::bytes", default=False)
    cp_mask: bool = False
    sem: Literal["relaxed"] | None = None
    scope: Literal["sys"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    _s = rule("semantics")(semantics_problem)

    @rule("counted-mask")
    def _counted_mask(self) -> str | None:
        """What is counted is written whole."""
        if self.counted and self.cp_mask:
            return ".counted::bytes and .cp_mask exclude each other"
        return None


class try_red(Operation, opcode="fabric.try_red.async", section=_SECTION + ".3", completed_by=CHUNKS):
    """Reduce `size` bytes of shared memory, element by element, into a handle; `counter` as in try_put."""

    syntax = (
        "fabric.try_red.async{.multimem}.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric{.counted}"
        "{.sem}{.scope}{.hint}.op.type [endpoint, offset, counter], [src], size, [bar]{, policy}"
    )
    endpoint: OperandLike = address(bits=(32,), variables=(), memory="read-write", memory_space="fabric")
    offset: OperandLike = register("u64")
    src: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32")
    bar: OperandLike = address("shared", memory="read-write")
    counter: OperandLike = source("u64", immediate=False, when="counted", default=None)
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    multimem: bool = False
    counted: bool = flag("counted::bytes", default=False)
    sem: Literal["relaxed"] | None = None
    scope: Literal["sys"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    op: Literal["add", "min", "max", "and", "or", "xor"]
    type: Literal["b32", "b64", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64"]
    _s = rule("semantics")(semantics_problem)

    @rule("op-type")
    def _types(self) -> str | None:
        """Each operation has its types."""
        ordered = (*_INTEGERS, "f16", "bf16")
        added = ("u32", "u64", "f16", "bf16", "f32", "f64")
        return _op_type(self, added, ordered)


class try_pullred(
    Operation, opcode="fabric.try_pullred.async", section=_SECTION + ".4", issued_by="warp", completed_by=COPIED
):
    """Copy `size` bytes to shared memory, each element reduced over all devices of the endpoint.

    `acc` is the precision of the sum. `membermask` must be that of all threads.
    """

    syntax = (
        "fabric.try_pullred.async.multimem.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric{.sem}"
        "{.scope}.op{.acc}.type.sync [dst], [endpoint, offset], size, [bar], membermask"
    )
    dst: OperandLike = address("shared", memory="write")
    endpoint: OperandLike = address(bits=(32,), variables=(), memory="read", memory_space="fabric")
    offset: OperandLike = register("u64")
    size: OperandLike = source("u32")
    bar: OperandLike = address("shared", memory="read-write")
    #: 0xFFFFFFFF, which -1 is too (measured, ptxas 13.5).
    membermask: OperandLike = immediate(-1, 2**32 - 1, multiple=2**32)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: Literal["sys"] | None = None
    op: Literal["add", "min", "max", "and", "or", "xor"]
    acc: Literal["f16", "f32"] | None = modifier("acc::", default=None)
    type: Literal["b32", "b64", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "e4m3", "e5m2"]
    needs = {"acc::f16": _FAMILIES, "acc::f32": _FAMILIES, "e4m3": _FAMILIES, "e5m2": _FAMILIES}
    _s = rule("semantics")(semantics_problem)

    @rule("op-type")
    def _types(self) -> str | None:
        """Each operation has its types."""
        eight = ("e4m3", "e5m2")
        ordered = (*_INTEGERS, "f16", "bf16", *eight)
        added = ("u32", "u64", "f16", "bf16", "f32", *eight)
        return _op_type(self, added, ordered)

    @rule("accumulator")
    def _accumulator(self) -> str | None:
        """Small floats are summed in more precision than they have."""
        legal = {"f16": ("f32",), "bf16": ("f32",), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32")}
        if self.acc is None:
            small = self.op == "add" and self.type in ("e4m3", "e5m2")
            return f".add of .{self.type} requires .acc::f16 or .acc::f32" if small else None
        if self.op == "add" and self.acc in legal.get(self.type, ()):
            return None
        return (
            ".acc::f16 requires .add of .e4m3 or .e5m2, .acc::f32 for these and .f16 and .bf16, "
            f"not .acc::{self.acc} for .{self.op} of .{self.type}"
        )


class try_atom(Operation, opcode="fabric.try_atom.async", section=_SECTION, ptx="9.4", completed_by=_RESULT):
    """One atomic operation on a handle: `old` gets the value before, `operand` has the operand.

    All are places in shared memory; for cas, `operand` has the value to compare with as well.
    """

    syntax = (
        "fabric.try_atom.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys{.hint}"
        ".op.type [endpoint, offset], [old], [operand], [bar]{, policy}"
    )
    endpoint: OperandLike = address(bits=(32,), variables=(), memory="read-write", memory_space="fabric")
    offset: OperandLike = register("u64")
    old: OperandLike = address("shared", memory="write")
    operand: OperandLike = address("shared", memory="read")
    bar: OperandLike = address("shared", memory="read-write")
    policy: OperandLike = source("u64", when="hint", default=None)
    _: KW_ONLY
    hint: bool = flag("L2::cache_hint", default=False)
    op: Literal["add", "min", "max", "and", "or", "xor", "exch", "cas"]
    type: Literal["b32", "b64", "b128", "u32", "s32", "u64", "s64", "f16x2", "bf16x2", "f32", "f64"]

    @rule("op-type")
    def _types(self) -> str | None:
        """Each operation has its types."""
        ordered = (*_INTEGERS, "f16x2", "bf16x2")
        added = ("u32", "u64", "f16x2", "bf16x2", "f32", "f64")
        return _op_type(self, added, ordered)


class createpolicy_range(
    Operation, opcode="createpolicy.range", section="9.7.9.18", ptx="9.4", targets=_TARGETS, fences=""
):
    """policy = `first` for `primary` bytes from a handle, `second` for the others of `total` bytes around them."""

    syntax = "createpolicy.range.fabric{.space}.first{.second}.b64 policy, [endpoint, offset], primary, total"
    policy: OperandLike = register("u64")
    endpoint: OperandLike = address(bits=(32,), variables=(), memory="none")
    offset: OperandLike = register("u64")
    primary: OperandLike = source("u32")
    total: OperandLike = source("u32")
    _: KW_ONLY
    space: Literal["global"] | None = None
    first: Literal["evict_last", "evict_normal", "evict_first", "evict_unchanged"] = modifier("L2::")
    second: Literal["evict_last", "evict_normal", "evict_first", "evict_unchanged"] | None = modifier(
        "L2::", default=None
    )

    @rule("second")
    def _second(self) -> str | None:
        """What lies around is no better kept than usual."""
        if self.second in ("evict_last", "evict_normal"):
            return f"the second priority is .L2::evict_first or .L2::evict_unchanged, not .L2::{self.second}"
        return None

    @rule("range", reads_operands=True)
    def _range(self) -> str | None:
        """The primary range lies in the total."""
        first, whole = (value_of(each) if isinstance(each, Operand) else None for each in (self.primary, self.total))
        # Cut to 32 bits, as the operands are (measured, ptxas 13.5).
        if not (isinstance(first, int) and isinstance(whole, int)) or first % 2**32 <= whole % 2**32:
            return None
        return f"the primary range must not exceed the total, but {self.primary} is more than {self.total}"
