"""Boxes of tensors in the memory of other devices. PTX ISA 9.4 and later, 9.7.11.5.7 to 9.7.11.5.9.

The handle `[endpoint, offset]` takes the place of the tensor's address in `tensor_map`. No available manual has the
text of these sections: the forms are measured, ptxas 13.5; what they do is inferred from their names, from `operations`
and from the copies of `ptxgen.instr.tma`.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.fabric.operations import CHUNKS, COPIED, Operation, semantics_problem
from ptxgen.instr.model.form import OperandLike, rule
from ptxgen.instr.model.operands import address, register, source, vector
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.tma import lower_strides_of_override, sizes_of_override, upper_strides_of_override

_SECTION = "9.7.11.5"
_MORE = "{, sizes}{, lower_strides}{, upper_strides}"


def _dimensions(form: Any) -> int:
    return form.dim


class _Tensor(Operation, ptx="9.4", targets="sm_107f"):
    tensor_map: OperandLike = address(bits=(64,), variables=(), memory="read", memory_space="tensormap")
    offset: OperandLike = register("u64")
    coords: OperandLike = vector("s32", _dimensions, immediate=True, special=True, apart=True)
    bar: OperandLike = address("shared", memory="read-write")
    _: KW_ONLY
    dim: Literal[1, 2, 3, 4, 5] = modifier(suffix="d")
    load_mode: Literal["tile"] | None = None
    sem: Literal["relaxed"] | None = None
    scope: Literal["sys"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    override: Literal["global_dim", "global_dim_stride"] | None = modifier("override::", default=None)
    _s = rule("semantics")(semantics_problem)

    @rule("override")
    def _override(self) -> str | None:
        """A line has no strides, anything else has."""
        if self.override is None or (self.override == "global_dim") == (self.dim == 1):
            return None
        other = "global_dim" if self.dim == 1 else "global_dim_stride"
        return f".{self.dim}d requires .override::{other}, not .override::{self.override}"


class try_get_tensor(_Tensor, opcode="fabric.try_get.async.tensor", section=f"{_SECTION}.7 (9.4)", completed_by=COPIED):
    """Copy a box of a tensor at a handle to shared memory."""

    syntax = (
        "fabric.try_get.async.tensor.dim.shared::cta{.load_mode}.mbarrier::complete_tx::bytes"
        ".mbarrier::report::fabric{.sem}{.scope}{.hint}.b128.override::global_address{.override}"
        f" [dst], [tensor_map, endpoint, offset{_MORE}, coords], [bar]{{, policy}}"
    )
    dst: OperandLike = address("shared", memory="write")
    endpoint: OperandLike = source("u32", immediate=False, memory="read", memory_space="fabric")
    sizes: OperandLike = sizes_of_override()
    lower_strides: OperandLike = lower_strides_of_override()
    upper_strides: OperandLike = upper_strides_of_override()
    policy: OperandLike = source("u64", when="hint", default=None)


class _Sent(_Tensor):
    endpoint: OperandLike = source("u32", immediate=False, memory="write", memory_space="fabric")
    src: OperandLike = address("shared", memory="read")
    size: OperandLike = source("u32")
    sizes: OperandLike = sizes_of_override()
    lower_strides: OperandLike = lower_strides_of_override()
    upper_strides: OperandLike = upper_strides_of_override()
    policy: OperandLike = source("u64", when="hint", default=None)
    counter: OperandLike = source("u64", immediate=False, when="counted", default=None)
    _: KW_ONLY
    multimem: bool = False
    counted: bool = flag("counted::bytes", default=False)


class try_put_tensor(_Sent, opcode="fabric.try_put.async.tensor", section=f"{_SECTION}.8 (9.4)", completed_by=CHUNKS):
    """Copy a box from shared memory into a tensor at a handle; `size` and `counter` as in try_put."""

    syntax = (
        "fabric.try_put.async.tensor.dim.shared::cta{.load_mode}.mbarrier::complete_tx::16B.mbarrier::report::fabric"
        "{.multimem}{.counted}{.sem}{.scope}{.hint}.b128.override::global_address{.override}"
        f" [tensor_map, endpoint, offset{{, counter}}{_MORE}, coords], [src], size, [bar]{{, policy}}"
    )


class try_red_tensor(_Sent, opcode="fabric.try_red.async.tensor", section=f"{_SECTION}.9 (9.4)", completed_by=CHUNKS):
    """Reduce a box of shared memory, element by element, into a tensor at a handle; else as try_put_tensor."""

    syntax = (
        "fabric.try_red.async.tensor.dim.shared::cta{.load_mode}.mbarrier::complete_tx::16B.mbarrier::report::fabric"
        "{.multimem}{.counted}{.sem}{.scope}{.hint}.op.override::global_address{.override}"
        f" [tensor_map, endpoint, offset{{, counter}}{_MORE}, coords], [src], size, [bar]{{, policy}}"
    )
    endpoint: OperandLike = source("u32", immediate=False, memory="read-write", memory_space="fabric")
    _: KW_ONLY
    op: Literal["add", "min", "max", "and", "or", "xor"]
