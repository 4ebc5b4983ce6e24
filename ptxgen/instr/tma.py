"""The tensor memory accelerator: bulk tensor copies. PTX ISA 9.7.9.25.5.

One thread issues the copy of a box of a tensor that a tensormap describes; `coords` is where the box begins, the
innermost dimension first. gather4 and scatter4 take one column and four rows of a matrix; the im2col modes take the
pixels that a filter sees.

From PTX 9.4 on, an instruction can override the tensormap: `base` is the address of the tensor, `sizes` are its
dimensions, a byte each, `lower_strides` and the packed `upper_strides` the low 32 and the high 4 bits of strides / 16.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.bulk import MULTICASTS, REPORTS, Multicast, Report, mask_limit, mask_type
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, source, vector
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.syntax import Expression, Immediate, Vector

_SECTION = "9.7.9.25.5"
_MBARRIER = "complete_tx on the mbarrier, with the bytes of the whole box"
_GROUP = "cp.async.bulk.wait_group"
_PROXY = "fence.proxy.async between generic accesses to the same memory and the copy"
_FAMILIES = "sm_100f sm_110f"
_RUBIN = "sm_107f"
_Dim = Literal[1, 2, 3, 4, 5]
_STRIDES = "override=global_dim_stride"
_Override = Literal["global_dim", "global_dim_stride"]
_Im2col = Literal["im2col", "im2col::w", "im2col::w::128"]
_OVERRIDES = {"override::global_address": Availability("9.4", _RUBIN)}
_LOAD_NEEDS = {
    **REPORTS,
    **MULTICASTS,
    **_OVERRIDES,
    "shared::cta": Availability("8.6", ALL),
    "cta_group::1": Availability("8.6", _FAMILIES),
    "cta_group::2": Availability("8.6", _FAMILIES),
}
_STORE_NEEDS = {
    **_OVERRIDES,
    "tile::scatter4": Availability("8.6", _FAMILIES),
    "im2col_no_offs::w": Availability("9.4", _RUBIN),
}
_IM2COL_W = {f"im2col::w{width}": Availability("8.6", _FAMILIES) for width in ("", "::128")}


def _coordinates(form: Any) -> int:
    return 5 if form.load_mode in ("tile::gather4", "tile::scatter4") else form.dim


def _offsets(form: Any) -> int:
    return form.dim - 2 if form.load_mode == "im2col" else 2


def _base() -> Any:
    return source("u64", immediate=False, when="override_address", default=None)


def sizes_of_override() -> Any:
    return vector("u8", lambda form: form.dim, immediate=True, apart=True, bits=(8, 16), when="override", default=None)


def lower_strides_of_override() -> Any:
    return vector("b32", lambda form: form.dim - 1, mixed=True, special=True, apart=True, when=_STRIDES, default=None)


def upper_strides_of_override() -> Any:
    return source("u16", immediate=False, when=_STRIDES, default=None)


def _dimensions(form: Any) -> str | None:
    """Four rows are rows of a matrix; pixels have at least width and channels, in a batch."""
    mode = form.load_mode or "tile"
    if mode in ("tile::gather4", "tile::scatter4") and form.dim != 2:
        return f".{mode} requires .2d, not .{form.dim}d"
    if mode.startswith("im2col") and form.dim < 3:
        return f".{mode} requires .3d, .4d or .5d, not .{form.dim}d"
    return None


def _own_cta(form: Any) -> str | None:
    """Multicast writes to peer CTAs."""
    if form.dst == "shared::cta" and form.multicast:
        return f".multicast::{form.multicast} requires .shared::cluster, not .shared::cta"
    return None


def override_problem(form: Any) -> str | None:
    """Another size makes another tensor, at another address; a line has no strides, anything else has."""
    if not form.override:
        return None
    written = f".override::{form.override}"
    if not form.override_address:
        return f"{written} requires .override::global_address"
    if (form.override == "global_dim") != (form.dim == 1):
        other = "global_dim" if form.dim == 1 else "global_dim_stride"
        return f".{form.dim}d requires .override::{other}, not {written}"
    if form.load_mode not in (None, "tile"):
        return f"{written} requires .tile, not .{form.load_mode}"
    if getattr(form, "multicast", None) not in (None, "cluster::32b"):
        return f"{written} requires .multicast::cluster::32b, not .multicast::{form.multicast}"
    return None


def _origin(form: Any) -> str | None:
    """Boxes of a tensor that is overridden begin at its origin."""
    if form.override and isinstance(form.coords, Vector):
        constants = [each for each in form.coords.elements if isinstance(each, Immediate | Expression)]
        if any(each.evaluate() != 0 for each in constants):
            return f".override::{form.override} requires coordinates of 0, not {form.coords}"
    return None


def _one_policy(form: Any) -> str | None:
    """A policy says what is evicted last."""
    return "one of .L2::cache_hint and .L2::evict_last is enough" if form.hint and form.evict_last else None


class load(
    Instruction,
    opcode="cp.async.bulk.tensor",
    section=_SECTION + ".2",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_MBARRIER,
    fences=_PROXY,
):
    """Copy a box of a tensor from global to shared memory; elements outside the tensor get a fill value.

    `mask` has a bit for each CTA of the cluster that gets a copy, at the same place. With `cta_group` 2 the mbarrier
    may be that of the peer CTA of the pair.
    """

    syntax = (
        "cp.async.bulk.tensor.dim.dst.global{.load_mode}.mbarrier::complete_tx::bytes{.report}{.multicast}{.cta_group}"
        "{.hint}{.override_address}{.override}"
        " [dst_mem], [tensor_map{, base}{, sizes}{, lower_strides}{, upper_strides}, coords], [mbar]{, mask}{, policy}"
    )
    dst_mem: OperandLike = address("dst", memory="write")
    tensor_map: OperandLike = address(narrow=True, variables=("global",), memory="read", memory_space="tensormap")
    coords: OperandLike = vector(
        "s32", _coordinates, immediate=True, special=True, apart=True, memory="read", memory_space="global"
    )
    mbar: OperandLike = address("shared", memory="read-write")
    mask: OperandLike = source(mask_type, low=0, high=mask_limit, when="multicast", default=None)
    policy: OperandLike = source("u64", when="hint", default=None)
    base: OperandLike = _base()
    sizes: OperandLike = sizes_of_override()
    lower_strides: OperandLike = lower_strides_of_override()
    upper_strides: OperandLike = upper_strides_of_override()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    dst: Literal["shared::cluster", "shared::cta"]
    load_mode: Literal["tile", "tile::gather4"] | None = None
    report: Report | None = modifier("mbarrier::report::", default=None)
    multicast: Multicast | None = modifier("multicast::", default=None)
    cta_group: Literal[1, 2] | None = modifier("cta_group::", default=None)
    hint: bool = flag("L2::cache_hint", default=False)
    override_address: bool = flag("override::global_address", default=False)
    override: _Override | None = modifier("override::", default=None)
    needs = {
        **_LOAD_NEEDS,
        "tile::gather4": Availability("8.6", "sm_100+"),
        "tile::gather4 shared::cluster": Availability("8.6", _FAMILIES),
    }
    _d = rule("dimensions")(_dimensions)
    _c = rule("own-cta")(_own_cta)
    _o = rule("override")(override_problem)
    _z = rule("origin", reads_operands=True)(_origin)


class load_im2col(
    Instruction,
    opcode="cp.async.bulk.tensor",
    section=_SECTION + ".2",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_MBARRIER,
    fences=_PROXY,
):
    """As load, of the pixels that a filter sees at one of its elements.

    `offsets` are those of the element, one for each of width, height and depth; in the `w` modes how many pixels more
    there are at the end of a row (0 to 511, or 31 with 128), and the offset in width (0 to 31).
    """

    syntax = (
        "cp.async.bulk.tensor.dim.dst.global.load_mode.mbarrier::complete_tx::bytes{.report}{.multicast}{.cta_group}"
        "{.hint}{.override_address} [dst_mem], [tensor_map{, base}, coords], [mbar], offsets{, mask}{, policy}"
    )
    dst_mem: OperandLike = address("dst", memory="write")
    tensor_map: OperandLike = address(narrow=True, variables=("global",), memory="read", memory_space="tensormap")
    coords: OperandLike = vector(
        "s32", _coordinates, immediate=True, special=True, apart=True, memory="read", memory_space="global"
    )
    mbar: OperandLike = address("shared", memory="read-write")
    offsets: OperandLike = vector("u16", _offsets, immediate=True, apart=True)
    mask: OperandLike = source(mask_type, low=0, high=mask_limit, when="multicast", default=None)
    policy: OperandLike = source("u64", when="hint", default=None)
    base: OperandLike = _base()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    dst: Literal["shared::cluster", "shared::cta"]
    load_mode: _Im2col
    report: Report | None = modifier("mbarrier::report::", default=None)
    multicast: Multicast | None = modifier("multicast::", default=None)
    cta_group: Literal[1, 2] | None = modifier("cta_group::", default=None)
    hint: bool = flag("L2::cache_hint", default=False)
    override_address: bool = flag("override::global_address", default=False)
    needs = {
        **_LOAD_NEEDS,
        "im2col::w": Availability("8.6", "sm_100+"),
        "im2col::w shared::cluster": Availability("8.6", _FAMILIES),
        "im2col::w::128": Availability("8.6", _FAMILIES),
    }
    _d = rule("dimensions")(_dimensions)
    _c = rule("own-cta")(_own_cta)


class store(
    Instruction,
    opcode="cp.async.bulk.tensor",
    section=_SECTION + ".2",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_GROUP,
    fences=_PROXY,
):
    """Copy a box from shared memory to a tensor in global memory; elements outside the tensor are dropped."""

    syntax = (
        "cp.async.bulk.tensor.dim.global.shared::cta{.load_mode}.bulk_group{.hint}{.override_address}{.override}"
        " [tensor_map{, base}{, sizes}{, lower_strides}{, upper_strides}, coords], [src_mem]{, policy}"
    )
    tensor_map: OperandLike = address(narrow=True, variables=("global",), memory="read", memory_space="tensormap")
    coords: OperandLike = vector(
        "s32", _coordinates, immediate=True, special=True, apart=True, memory="write", memory_space="global"
    )
    src_mem: OperandLike = address("shared", memory="read")
    policy: OperandLike = source("u64", when="hint", default=None)
    base: OperandLike = _base()
    sizes: OperandLike = sizes_of_override()
    lower_strides: OperandLike = lower_strides_of_override()
    upper_strides: OperandLike = upper_strides_of_override()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    load_mode: Literal["tile", "tile::scatter4", "im2col_no_offs", "im2col_no_offs::w"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    override_address: bool = flag("override::global_address", default=False)
    override: _Override | None = modifier("override::", default=None)
    needs = _STORE_NEEDS
    _d = rule("dimensions")(_dimensions)
    _o = rule("override")(override_problem)
    _z = rule("origin", reads_operands=True)(_origin)


class reduce(
    Instruction,
    opcode="cp.reduce.async.bulk.tensor",
    section=_SECTION + ".3",
    ptx="8.0",
    targets="sm_90+",
    completed_by=_GROUP,
    fences=_PROXY,
):
    """Combine a box in shared memory with a tensor in global memory, element by element, each atomically.

    ptxas takes scatter4 too, which the manual does not have (measured, ptxas 13.5).
    """

    syntax = (
        "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{.load_mode}.bulk_group{.hint}{.override_address}"
        "{.override} [tensor_map{, base}{, sizes}{, lower_strides}{, upper_strides}, coords], [src_mem]{, policy}"
    )
    tensor_map: OperandLike = address(narrow=True, variables=("global",), memory="read", memory_space="tensormap")
    coords: OperandLike = vector(
        "s32", _coordinates, immediate=True, special=True, apart=True, memory="read-write", memory_space="global"
    )
    src_mem: OperandLike = address("shared", memory="read")
    policy: OperandLike = source("u64", when="hint", default=None)
    base: OperandLike = _base()
    sizes: OperandLike = sizes_of_override()
    lower_strides: OperandLike = lower_strides_of_override()
    upper_strides: OperandLike = upper_strides_of_override()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    op: Literal["add", "min", "max", "inc", "dec", "and", "or", "xor"]
    load_mode: Literal["tile", "tile::scatter4", "im2col_no_offs", "im2col_no_offs::w"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    override_address: bool = flag("override::global_address", default=False)
    override: _Override | None = modifier("override::", default=None)
    needs = _STORE_NEEDS
    _d = rule("dimensions")(_dimensions)
    _o = rule("override")(override_problem)
    _z = rule("origin", reads_operands=True)(_origin)


class prefetch(
    Instruction,
    opcode="cp.async.bulk.prefetch.tensor",
    section=_SECTION + ".4",
    ptx="8.0",
    targets="sm_90+",
    completed_by="nothing: it is a hint",
):
    """Bring a box of a tensor to the L2 cache, perhaps; `evict_last` keeps it there long."""

    syntax = (
        "cp.async.bulk.prefetch.tensor.dim.L2.global{.load_mode}{.hint}{.evict_last}{.override_address}{.override}"
        " [tensor_map{, base}{, sizes}{, lower_strides}{, upper_strides}, coords]{, policy}"
    )
    tensor_map: OperandLike = address(narrow=True, variables=("global",), memory="read", memory_space="tensormap")
    coords: OperandLike = vector("s32", _coordinates, immediate=True, special=True, apart=True)
    policy: OperandLike = source("u64", when="hint", default=None)
    base: OperandLike = _base()
    sizes: OperandLike = sizes_of_override()
    lower_strides: OperandLike = lower_strides_of_override()
    upper_strides: OperandLike = upper_strides_of_override()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    load_mode: Literal["tile", "tile::gather4"] | None = None
    hint: bool = flag("L2::cache_hint", default=False)
    evict_last: bool = flag("L2::evict_last", default=False)
    override_address: bool = flag("override::global_address", default=False)
    override: _Override | None = modifier("override::", default=None)
    needs = {
        **_OVERRIDES,
        "tile::gather4": Availability("8.6", _FAMILIES),
        "L2::evict_last": Availability("9.4", _RUBIN),
    }
    _d = rule("dimensions")(_dimensions)
    _o = rule("override")(override_problem)
    _p = rule("one-policy")(_one_policy)
    _z = rule("origin", reads_operands=True)(_origin)


class prefetch_im2col(
    Instruction,
    opcode="cp.async.bulk.prefetch.tensor",
    section=_SECTION + ".4",
    ptx="8.0",
    targets="sm_90+",
    completed_by="nothing: it is a hint",
):
    """As prefetch, of the pixels that load_im2col takes."""

    syntax = (
        "cp.async.bulk.prefetch.tensor.dim.L2.global.load_mode{.hint}{.evict_last}{.override_address}"
        " [tensor_map{, base}, coords], offsets{, policy}"
    )
    tensor_map: OperandLike = address(narrow=True, variables=("global",), memory="read", memory_space="tensormap")
    coords: OperandLike = vector("s32", _coordinates, immediate=True, special=True, apart=True)
    offsets: OperandLike = vector("u16", _offsets, immediate=True, apart=True)
    policy: OperandLike = source("u64", when="hint", default=None)
    base: OperandLike = _base()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    load_mode: _Im2col
    hint: bool = flag("L2::cache_hint", default=False)
    evict_last: bool = flag("L2::evict_last", default=False)
    override_address: bool = flag("override::global_address", default=False)
    needs = {**_OVERRIDES, **_IM2COL_W, "L2::evict_last": Availability("9.4", _RUBIN)}
    _d = rule("dimensions")(_dimensions)
    _p = rule("one-policy")(_one_policy)


class applypriority(
    Instruction,
    opcode="applypriority.async.bulk.tensor",
    section="9.7.10.19 (9.4)",
    ptx="9.4",
    targets=_RUBIN,
    completed_by=_GROUP,
):
    """Let a box of a tensor that is in the L2 cache be evicted as usual again."""

    syntax = (
        "applypriority.async.bulk.tensor.dim{.space}.bulk_group{.load_mode}.L2::evict_normal{.override_address}"
        "{.override} [tensor_map{, base}{, sizes}{, lower_strides}{, upper_strides}, coords]"
    )
    tensor_map: OperandLike = address("space", narrow=True, memory="read", memory_space="tensormap")
    coords: OperandLike = vector("s32", _coordinates, immediate=True, special=True, apart=True)
    base: OperandLike = _base()
    sizes: OperandLike = sizes_of_override()
    lower_strides: OperandLike = lower_strides_of_override()
    upper_strides: OperandLike = upper_strides_of_override()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    space: Literal["global"] | None = None
    load_mode: Literal["tile", "tile::gather4"] | None = None
    override_address: bool = flag("override::global_address", default=False)
    override: _Override | None = modifier("override::", default=None)
    _d = rule("dimensions")(_dimensions)
    _o = rule("override")(override_problem)
    _z = rule("origin", reads_operands=True)(_origin)


class applypriority_im2col(
    Instruction,
    opcode="applypriority.async.bulk.tensor",
    section="9.7.10.19 (9.4)",
    ptx="9.4",
    targets=_RUBIN,
    completed_by=_GROUP,
):
    """As applypriority, of the pixels that load_im2col takes."""

    syntax = (
        "applypriority.async.bulk.tensor.dim{.space}.bulk_group.load_mode.L2::evict_normal{.override_address}"
        " [tensor_map{, base}, coords], offsets"
    )
    tensor_map: OperandLike = address("space", narrow=True, memory="read", memory_space="tensormap")
    coords: OperandLike = vector("s32", _coordinates, immediate=True, special=True, apart=True)
    offsets: OperandLike = vector("u16", _offsets, immediate=True, apart=True)
    base: OperandLike = _base()
    _: KW_ONLY
    dim: _Dim = modifier(suffix="d")
    space: Literal["global"] | None = None
    load_mode: _Im2col
    override_address: bool = flag("override::global_address", default=False)
    _d = rule("dimensions")(_dimensions)
