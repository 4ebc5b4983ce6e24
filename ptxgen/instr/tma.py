"""The tensor memory accelerator: bulk tensor copies. PTX ISA 9.7.9.27.

Loads and stores in tile mode are here; reductions, prefetches, im2col and plain bulk copies are not here yet.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, flag, modifier, rule
from ptxgen.instr.operands import address, source, vector
from ptxgen.instr.targets import Availability

_A_TARGETS = "sm_100f sm_110f"


def _coordinates(form: Any) -> int:
    return 5 if form.load_mode == "tile::gather4" else form.dim


class load(
    Instruction, opcode="cp.async.bulk.tensor", section="9.7.9.27.1.2", ptx="8.0", targets="sm_90+",
    completed_by="complete_tx on the mbarrier, with the bytes of the whole box",
):  # fmt: skip
    """Copy a box of a tensor from global to shared memory, asynchronously, by one thread.

    `coords` are the box's first element, innermost dimension first, as 32-bit integers that may lie outside
    the tensor; `mask` has a bit for each CTA of the cluster that gets a copy; gather4 takes one column and four rows.
    """

    syntax = (
        "cp.async.bulk.tensor.dim.dst.global{.load_mode}.mbarrier::complete_tx::bytes{.multicast}{.cta_group}{.hint}"
        " [dst_mem], [tensor_map, coords], [mbar]{, mask}{, policy}"
    )
    dst_mem: OperandLike = address("dst")
    tensor_map: OperandLike = address(variables=("global",))
    coords: OperandLike = vector("b32", _coordinates, immediate=True)
    mbar: OperandLike = address("shared")
    mask: OperandLike = source("u16", low=0, high=65535, when="multicast", default=None)
    policy: OperandLike = source("u64", when="hint", immediate=False, default=None)
    _: KW_ONLY
    dim: Literal[1, 2, 3, 4, 5] = modifier(suffix="d")
    dst: Literal["shared::cluster", "shared::cta"]
    load_mode: Literal["tile", "tile::gather4"] | None = None
    multicast: bool = flag("multicast::cluster", default=False)
    cta_group: Literal[1, 2] | None = modifier("cta_group::", default=None)
    hint: bool = flag("L2::cache_hint", default=False)
    needs = {
        "shared::cta": Availability("8.6", "sm_90+"),
        "tile::gather4": Availability("8.6", "sm_100+"),
        "tile::gather4 shared::cluster": Availability("8.6", _A_TARGETS),
        "cta_group::1": Availability("8.6", _A_TARGETS),
        "cta_group::2": Availability("8.6", _A_TARGETS),
    }

    @rule("gather")
    def _gather(self) -> str | None:
        """gather4 reads a two-dimensional tensor."""
        if self.load_mode == "tile::gather4" and self.dim != 2:
            return f".tile::gather4 takes .2d, not .{self.dim}d"
        return None

    @rule("own-cta")
    def _own_cta(self) -> str | None:
        """Multicast writes to other CTAs."""
        if self.dst == "shared::cta" and self.multicast:
            return ".multicast::cluster takes .shared::cluster, not .shared::cta"
        return None


def _stored_coordinates(form: Any) -> int:
    return 5 if form.load_mode == "tile::scatter4" else form.dim


class store(
    Instruction, opcode="cp.async.bulk.tensor", section="9.7.9.27.1.2", ptx="8.0", targets="sm_90+",
    completed_by="cp.async.bulk.wait_group",
):  # fmt: skip
    """Copy a box from shared memory to a tensor in global memory, asynchronously, by one thread.

    Elements outside the tensor are dropped; scatter4 takes one column and four rows.
    """

    syntax = (
        "cp.async.bulk.tensor.dim.global.shared::cta{.load_mode}.bulk_group{.hint}"
        " [tensor_map, coords], [src_mem]{, policy}"
    )
    tensor_map: OperandLike = address(variables=("global",))
    coords: OperandLike = vector("b32", _stored_coordinates, immediate=True)
    src_mem: OperandLike = address("shared")
    policy: OperandLike = source("u64", when="hint", immediate=False, default=None)
    _: KW_ONLY
    dim: Literal[1, 2, 3, 4, 5] = modifier(suffix="d")
    load_mode: Literal["tile", "tile::scatter4"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    needs = {"tile::scatter4": Availability("8.6", _A_TARGETS)}

    @rule("scatter")
    def _scatter(self) -> str | None:
        """scatter4 writes a two-dimensional tensor."""
        if self.load_mode == "tile::scatter4" and self.dim != 2:
            return f".tile::scatter4 takes .2d, not .{self.dim}d"
        return None
