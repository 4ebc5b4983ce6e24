"""Tensormaps made on the device. References: the driver's bytes (the codec that tests hold against the driver).

From PTX ISA 9.7.9.28 and 9.7.13.16. Numbers of element types are PTX's, not the driver's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.tma import Load, strides_of, tensor_of
from ptxgen.builder import Register
from ptxgen.descriptors import TensorMap
from ptxgen.instr import barrier, fence, integer, logic, memory, predicate, tensormap, tma
from ptxgen.instr.model.form import Instruction

_ADDRESS = 0x12345000
#: A map of rank 3, and what differs from it after each replacement.
_BASE: dict[str, Any] = {
    "dtype": "u16",
    "address": _ADDRESS,
    "dims": (64, 32, 8),
    "strides": (128, 4096),
    "box": (32, 8, 2),
    "element_strides": (1, 1, 1),
    "swizzle": "none",
    "oob_fill": "none",
}


#: A shape that every interleaving takes.
_SLICES: dict[str, Any] = {"dims": (64, 32, 8), "strides": (128, 4096), "box": (16, 8, 2), "swizzle": "32b"}


def _map(**changes: Any) -> TensorMap:
    given = {**_BASE, **changes}
    return TensorMap.tiled(
        given["dtype"],
        given["address"],
        given["dims"],
        given["strides"],
        given["box"],
        swizzle=given["swizzle"],
        element_strides=given["element_strides"],
        oob_fill=given["oob_fill"],
        interleave=given.get("interleave", "none"),
    )


#: Bytes in which the driver keeps what follows from other fields; instructions leave them alone.
_DRIVERS = np.r_[64:68, 72:76]
Make = Callable[[Draft, str, Any], Instruction]


def _dimension(field: Any, ordinal: int, value: int, wide: bool = False) -> Make:
    kind: Any = "b64" if wide else "b32"
    return lambda draft, place, space: tensormap.replace_dimension(
        place, ordinal, draft.scalar("u64" if wide else "u32", value), field=field, space=space, type=kind
    )


def _choice(field: Any, value: int) -> Make:
    return lambda draft, place, space: tensormap.replace_choice(place, value, field=field, space=space)


#: name -> (the replacement, what changes in the map before, what changes after).
_CASES: dict[str, tuple[Make, dict[str, Any], dict[str, Any]]] = {
    "global_address": (
        lambda draft, place, space: tensormap.replace(
            place, draft.scalar("u64", 0x7F0012340000), field="global_address", space=space, type="b64"
        ),
        {},
        {"address": 0x7F0012340000},
    ),
    "box_dim0": (_dimension("box_dim", 0, 16), {}, {"box": (16, 8, 2)}),
    "box_dim1": (_dimension("box_dim", 1, 256), {}, {"box": (32, 256, 2)}),
    "global_dim0": (_dimension("global_dim", 0, 61), {}, {"dims": (61, 32, 8)}),
    "global_dim2": (_dimension("global_dim", 2, 2**31), {}, {"dims": (64, 32, 2**31)}),
    "global_stride0": (_dimension("global_stride", 0, 256, True), {}, {"strides": (256, 4096)}),
    "global_stride1": (_dimension("global_stride", 1, 2**36, True), {}, {"strides": (128, 2**36)}),
    "element_stride1": (_dimension("element_stride", 1, 2), {}, {"element_strides": (1, 2, 1)}),
    "swizzle_32b": (_choice("swizzle_mode", 1), {"box": (16, 8, 2)}, {"swizzle": "32b"}),
    "swizzle_64b": (_choice("swizzle_mode", 2), {}, {"swizzle": "64b"}),
    "swizzle_128b": (_choice("swizzle_mode", 3), {}, {"swizzle": "128b"}),
    "swizzle_none": (_choice("swizzle_mode", 0), {"swizzle": "128b"}, {"swizzle": "none"}),
    "fill_nan": (_choice("fill_mode", 1), {"dtype": "f16"}, {"oob_fill": "nan"}),
    "fill_zero": (_choice("fill_mode", 0), {"dtype": "f16", "oob_fill": "nan"}, {"oob_fill": "none"}),
    **{
        f"elemtype_{dtype}": (
            _choice("elemtype", number),
            {"dtype": "u16" if dtype != "u16" else "s32"},
            {"dtype": dtype},
        )
        for number, dtype in enumerate(
            ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16", "tf32", "tf32_ftz")
        )
    },
    **{
        f"interleave_{to}": (
            _choice("interleave_layout", number),
            {**_SLICES, "interleave": of},
            {**_SLICES, "interleave": to},
        )
        for of, number, to in (("none", 1, "16b"), ("none", 2, "32b"), ("32b", 0, "none"), ("16b", 2, "32b"))
    },
    **{
        f"atomicity_{number}": (_choice("swizzle_atomicity", number), {"swizzle": "128b"}, {"swizzle": to})
        for number, to in enumerate(("128b", "128b_atom_32b", "128b_atom_32b_flip_8b", "128b_atom_64b"))
    },
}


@microtest(*_CASES)
def replace(draft: Draft, name: str) -> None:
    """One field replaced in shared memory; the map is copied to global memory and compared."""
    make, before, after = _CASES[name]
    draft.launch(block=32)
    assert draft.thread
    box = draft.shared(128, 128)
    start, expected = (np.frombuffer(_map(**each).encode(), np.uint8).copy() for each in (before, {**before, **after}))
    expected[_DRIVERS] = start[_DRIVERS]
    draft.copy_in(box, start)
    out = draft.output(expected)
    skip = draft.label("replaced")
    draft.branch(skip, draft.is_thread(0), negated=True)
    draft(make(draft, f"[{box}]", "shared::cta"))
    draft.place(skip)
    draft(barrier.bar_warp_sync(0xFFFFFFFF))
    draft(tensormap.cp_fenceproxy(f"[{out}]", f"[{box}]", 128, scope="gpu"))


_IN_PLACE: dict[str, tuple[Callable[[Draft, str, Any], Instruction], dict[str, Any]]] = {
    "dimension": (
        lambda draft, place, space: tensormap.replace_dimension(
            place, 0, draft.scalar("u32", 50), field="global_dim", space=space, type="b32"
        ),
        {"dims": (50, 32, 8)},
    ),
    "address": (
        lambda draft, place, space: tensormap.replace(
            place, draft.scalar("u64", 0x7F0012340000), field="global_address", space=space, type="b64"
        ),
        {"address": 0x7F0012340000},
    ),
    "choice": (
        lambda draft, place, space: tensormap.replace_choice(place, 2, field="swizzle_mode", space=space),
        {"swizzle": "64b"},
    ),
}


@microtest(*((name, space) for name in _IN_PLACE for space in ("global", "shared::cta", None)))
def replace_in_place(draft: Draft, name: str, space: Any) -> None:
    """In global memory, in shared memory, and by a generic address."""
    make, change = _IN_PLACE[name]
    _replaced(draft, _map(), _map(**change), lambda place: draft(make(draft, f"[{place}]", space)), space)


@microtest(*((name, space) for name in _CASES for space in ("global", None)))
def replace_in_global_memory(draft: Draft, name: str, space: Any) -> None:
    """Every field, by either spelling."""
    make, before, after = _CASES[name]
    _replaced(
        draft, _map(**before), _map(**{**before, **after}), lambda place: draft(make(draft, f"[{place}]", space)), space
    )


def _replaced(draft: Draft, before: TensorMap, after: TensorMap, replace: Any, space: Any) -> None:
    """Thread 0 changes a map in a state space."""
    draft.launch(block=32)
    assert draft.thread
    start, expected = (np.frombuffer(each.encode(), np.uint8).copy() for each in (before, after))
    expected[_DRIVERS] = start[_DRIVERS]
    out = draft.output(expected, initial=start)
    place: Register = out
    if space == "shared::cta":
        place = draft.shared(128, 128)
        draft.copy_in(place, start)
    skip = draft.label("replaced")
    draft.branch(skip, draft.is_thread(0), negated=True)
    replace(place)
    draft.place(skip)
    if space == "shared::cta":
        draft.copy_out(place, out, 128)


@microtest()
def replace_rank(draft: Draft) -> None:
    """A tensor of rank 3 whose last dimension has one element becomes one of rank 2, once its last stride is 0."""
    _rank(draft, "shared::cta")


@microtest("global", None)
def replace_rank_in_global_memory(draft: Draft, space: Any) -> None:
    """The same, by either spelling."""
    _rank(draft, space)


def _rank(draft: Draft, space: Any) -> None:
    shape: dict[str, Any] = {"dims": (64, 32, 1), "box": (32, 8, 1)}
    flat: dict[str, Any] = {"dims": (64, 32), "box": (32, 8), "strides": (128,), "element_strides": (1, 1)}

    def replace(place: Register) -> None:
        options: dict[str, Any] = {"space": space}
        draft(tensormap.replace(f"[{place}]", draft.scalar("u32", 1), field="rank", type="b32", **options))
        draft(
            tensormap.replace_dimension(
                f"[{place}]", 1, draft.scalar("u64", 0), field="global_stride", type="b64", **options
            )
        )

    _replaced(draft, _map(**shape), _map(**flat), replace, space)


@microtest("cta", "cluster", "gpu", "sys")
def used(draft: Draft, scope: Any) -> None:
    """A map that is changed on the device, released, acquired, and used for a copy."""
    _used(draft, _dimension("global_dim", 0, 40), 40, scope)


#: What a map of rank 2 may have in the dimensions that it has not: fields, and how many dimensions have them.
_BEYOND: dict[str, Make] = {
    **{f"global_stride{n}": _dimension("global_stride", n, 0xFFFFFFFF0, True) for n in (1, 2, 3)},
    **{f"global_dim{n}": _dimension("global_dim", n, 3) for n in (2, 3, 4)},
    **{f"box_dim{n}": _dimension("box_dim", n, 5) for n in (2, 3, 4)},
    **{f"element_stride{n}": _dimension("element_stride", n, 3) for n in (2, 3, 4)},
}


@microtest(*_BEYOND)
def beyond_the_rank(draft: Draft, name: str) -> None:
    """What is said of dimensions that a map does not have makes no difference."""
    _used(draft, _BEYOND[name], 64, "gpu")


def _used(draft: Draft, change: Make, width: int, scope: Any) -> None:
    """A map of rank 2 is changed in shared memory, and used for a copy of a tensor that is so wide then."""
    dims, box, start = (64, 16), (32, 8), (16, 2)
    tensor = tensor_of(dims, 2)
    inside = np.array([[16 + x if 16 + x < width else -1 for x in range(32)]] * 8)
    rows = np.arange(2, 10)[:, None] * 64
    indices = np.where(inside >= 0, inside + rows, -1)
    kernel = Load(draft, 512)
    expected = boxes.loaded(kernel.before, tensor, indices, "none", bytes(2))
    given = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), box), tensor.reshape(-1)
    )
    made = draft.input(np.zeros(256, np.uint8))
    work = draft.shared(128, 128)
    aligned = draft.reg("b64", "aligned")
    draft(integer.add(aligned, made, 127, type="u64"), logic.and_(aligned, aligned, 2**64 - 128, type="b64"))
    outside = draft.label("made")
    warp = draft.reg("pred", "warp")
    draft(predicate.setp(warp, draft.thread, 32, compare="lt", type="u32"))
    draft.branch(outside, warp, negated=True)
    word, at = draft.reg("b32"), draft.offset(work, draft.thread, 4)
    draft(memory.ld(word, f"[{draft.offset(given, draft.thread, 4)}]", type="b32"))
    draft(memory.st(f"[{at}]", word, space="shared", type="b32"), barrier.bar_warp_sync(0xFFFFFFFF))
    changed = draft.label("changed")
    draft.branch(changed, draft.is_thread(0), negated=True)
    draft(change(draft, f"[{work}]", "shared::cta"))
    draft.place(changed)
    draft(barrier.bar_warp_sync(0xFFFFFFFF))
    draft(tensormap.cp_fenceproxy(f"[{aligned}]", f"[{work}]", 128, scope=scope))
    draft.place(outside)

    def copy(place: Register, bar: Register) -> None:
        draft(fence.fence_proxy_tensormap_acquire(f"[{aligned}]", 128, scope=scope))
        where = [draft.scalar("s32", each) for each in start]
        draft(tma.load(f"[{place}]", f"[{aligned}]", where, f"[{bar}]", dim=2, dst="shared::cluster"))

    kernel.run(512, copy, expected)
