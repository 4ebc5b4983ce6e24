"""Stores that do not wait. PTX ISA 9.7.9.12 and 9.7.9.13."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.memory import access
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, immediate, register, source, vector
from ptxgen.instr.model.targets import Availability

_Global = Literal["global"]
_Type = Literal["b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"]


def _not_16_bits(form: Any) -> bool:
    """ptxas makes a function of st.async.release, except of 16 bits (measured, ptxas 13.5)."""
    return not form.type.endswith("16")


class st_async(
    Instruction,
    opcode="st.async",
    section="9.7.9.12",
    ptx="8.1",
    targets="sm_90+",
    completed_by="the mbarrier",
):
    """Store b at a, in shared memory of a peer CTA of the cluster, asynchronously.

    On completion, its bytes are credited to the mbarrier in that CTA (complete_tx).
    """

    syntax = "st.async{.order}{.space}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar]"
    a: OperandLike = address("space", bits=(32, 64), variables=("shared",), memory="write")
    b: OperandLike = vector("type", access.elements, scalar=True, immediate=True)
    mbar: OperandLike = address("space", bits=(32, 64), variables=("shared",), memory="read-write")
    _: KW_ONLY
    order: Literal["weak", "cluster"] | None = None
    space: Literal["shared::cluster", "shared"] | None = None  # the second as ptxas 13.5 has it
    vec: Literal["v2", "v4"] | None = None
    type: Literal["b32", "b64", "b128", "u32", "u64", "s32", "s64", "f32", "f64"]
    needs = {"b128": Availability("9.2", "sm_90+")}
    _w = rule("width")(access.narrow)

    @rule("order")
    def _order(self) -> str | None:
        """.cluster does not go with .shared, which is the CTA's own (measured, ptxas 13.5)."""
        if self.order == "cluster" and self.space == "shared":
            return "st.async.cluster requires .shared::cluster, not .shared"
        return None


class st_async_release(
    Instruction,
    opcode="st.async",
    section="9.7.9.12",
    ptx="8.7",
    targets="sm_100+",
    completed_by="the end of the CTA",
):
    """Store b at a, in global memory, as st.release does, and do not wait for it."""

    syntax = "st.async.release.scope{.space}.type [a], b"
    a: OperandLike = address("space", variables=("global",), memory="write")
    b: OperandLike = source("type", sums=False, plain=_not_16_bits, float_sums=False)
    _: KW_ONLY
    scope: Literal["gpu", "sys"]
    space: _Global | None = None
    type: _Type


class st_async_mmio(st_async_release):
    """As st_async_release, to a device register, exactly once."""

    syntax = "st.async.mmio.release.scope{.space}.type [a], b"
    _: KW_ONLY
    scope: Literal["sys"]  # type: ignore[assignment]


class st_bulk(Instruction, opcode="st.bulk", section="9.7.9.13", ptx="8.6", targets="sm_100+"):
    """Fill `size` bytes of shared memory with zeros: a multiple of 8, at most 16 MiB."""

    syntax = "st.bulk{.weak}{.space} [a], size, value"
    # Of a variable with .shared::cta ptxas makes an add without registers, which it refuses (measured, 13.5).
    a: OperandLike = address(
        "space", bits=(32, 64), variables=("shared",), nameless=("shared::cta",), memory="write"
    )  # fmt: skip
    size: OperandLike = source("u64", low=0, high=2**24, multiple=8)
    value: OperandLike = immediate(0, 0)
    _: KW_ONLY
    weak: bool = False
    space: Literal["shared::cta"] | None = None


class st_bulk_32(st_bulk, ptx="9.0"):
    """As st_bulk, with `size` in a 32-bit register."""

    syntax = "st.bulk{.weak}{.space} [a], size, value"
    size: OperandLike = register("u32", sums=True, plain="or sum")
