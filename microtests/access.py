"""Loads and stores that say more: orders and scopes, volatile, device registers, caches and priorities.

None of it changes the value that one thread loads or stores (PTX ISA 9.7.9.8 to 9.7.9.11). Every type and vector of
each form, and every hint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.memory import KINDS, load, store
from ptxgen.instr import memory, move
from ptxgen.instr.model.types import TYPES

#: By form, what it must have.
_LOADS: dict[str, dict[str, Any]] = {
    "ld": {},
    "ld_keep": {"l1": "evict_last"},
    "ld_volatile": {},
    "ld_ordered": {"sem": "relaxed", "scope": "gpu"},
    "ld_nc": {},
    "ld_nc_keep": {"l1": "no_allocate"},
    "ldu": {},
    "ld_readonly": {},
    "ld_readonly_nc": {},
}
_STORES: dict[str, dict[str, Any]] = {
    "st": {},
    "st_keep": {"l1": "evict_last"},
    "st_volatile": {},
    "st_ordered": {"sem": "relaxed", "scope": "gpu"},
}
_L1 = ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
_L2 = ("evict_normal", "evict_first", "evict_last")
_VECTORS = (("v2", "u8"), ("v2", "b64"), ("v4", "f32"), ("v4", "s16"), ("v8", "u32"), ("v4", "f64"))
_HINTS = ("L1::32B", "L2::64B", "L2::128B", "L2::256B", "policy", "weak")
_SPACES: tuple[Any, ...] = (None, "global", "shared", "shared::cta", "shared::cluster")


def _hint(hint: str) -> dict[str, Any]:
    return {"policy": {"hint": True}, "weak": {"weak": True}}.get(hint, {"prefetch": hint})


def _has(name: str, field: str) -> bool:
    """Whether a form has such a modifier."""
    return field in {slot.field for slot in getattr(memory, name).form.slots}


def _hinted(name: str) -> list[str]:
    return [hint for hint in _HINTS if all(_has(name, field) for field in _hint(hint))]


def _takes(name: str, kind: str) -> bool:
    return kind != "b128" or "readonly" not in name


@microtest(*((name, kind) for name in _LOADS if name != "ld" for kind in KINDS if _takes(name, kind)))
def load_types(draft: Draft, name: str, kind: Any) -> None:
    """Every type."""
    load(draft, getattr(memory, name), kind, "global", **_LOADS[name])


@microtest(
    *(
        (name, vec, kind)
        for name in _LOADS
        if name != "ld"
        for vec, kind in _VECTORS
        if name != "ldu" or (vec, kind) not in _VECTORS[4:]
    )
)
def load_vectors(draft: Draft, name: str, vec: Any, kind: Any) -> None:
    """Vectors."""
    load(draft, getattr(memory, name), kind, "global", vec, **_LOADS[name])


@microtest(*((name, hint) for name in _LOADS for hint in _hinted(name)))
def load_hints(draft: Draft, name: str, hint: str) -> None:
    """How much more to bring into a cache; a policy; .weak, which is what a load is anyway."""
    load(draft, getattr(memory, name), "u32", "global", "v4", **_LOADS[name], **_hint(hint))


@microtest(
    *(
        (name, l2, vec, kind)
        for name in _LOADS
        if _has(name, "l2")
        for l2 in _L2
        for vec, kind in (("v8", "b32"), ("v4", "u64"))
    )
)
def load_l2(draft: Draft, name: str, l2: str, vec: Any, kind: Any) -> None:
    """Priorities in L2, of 256 bits."""
    load(draft, getattr(memory, name), kind, "global", vec, **_LOADS[name], l2=l2)


@microtest(*((name, l1) for name in ("ld_keep", "ld_ordered", "ld_nc_keep") for l1 in _L1))
def load_l1(draft: Draft, name: str, l1: str) -> None:
    """Priorities in L1."""
    load(draft, getattr(memory, name), "s16", "global", "v4", **{**_LOADS[name], "l1": l1})


@microtest(*(("ld", cop) for cop in ("ca", "cg", "cs", "lu", "cv")), *(("ld_nc", cop) for cop in ("ca", "cg", "cs")))
def load_cached(draft: Draft, name: str, cop: Any) -> None:
    """Cache operators."""
    load(draft, getattr(memory, name), "u32", "global", cop=cop)


@microtest(
    *((name, space) for name in ("ld_volatile", "ld_ordered") for space in _SPACES),
    *((name, None) for name in ("ld_keep", "ldu", "ld_readonly")),
)
def load_spaces(draft: Draft, name: str, space: Any) -> None:
    """Every state space."""
    load(draft, getattr(memory, name), "s8", space, **_LOADS[name])


@microtest("b8", "u32", "s64", "f64")
def volatile_local(draft: Draft, kind: Any) -> None:
    """Volatile stores and loads of the thread's own memory."""
    draft.launch(block=32)
    tid, size = draft.thread, TYPES[kind].bits // 8
    base, wide = draft.reg("b64", "base"), draft.reg(kind if kind[0] == "f" else "b64" if size == 8 else "b32")
    draft(move.mov(base, draft.variable("local", ".align 8 .b8 NAME[32]", "own"), type="u64"))
    values = np.random.default_rng(83).integers(0, 256, (32, size)).astype(np.uint8)
    word: Any = {1: np.uint8, 4: np.uint32, 8: np.uint64}[size]
    given = draft.offset(draft.input(values.view(word)), tid, size)
    draft(memory.ld(wide, f"[{given}]", space="global", type=kind))
    draft(memory.st_volatile(f"[{base}+{size}]", wide, space="local", type=kind))
    draft(memory.ld_volatile(wide, f"[{base}+{size}]", space="local", type=kind))
    draft(memory.st(f"[{draft.offset(draft.output(values.view(word)), tid, size)}]", wide, space="global", type=kind))


@microtest(
    *(
        (sem, scope, space)
        for sem in ("relaxed", "acquire")
        for scope in ("cta", "cluster", "gpu", "sys")
        for space in (None, "global", "shared")
    )
)
def load_ordered(draft: Draft, sem: Any, scope: Any, space: Any) -> None:
    """Orders and scopes."""
    load(draft, memory.ld_ordered, "b32", space, "v2", sem=sem, scope=scope)


@microtest(
    *((sem, space, kind) for sem in ("relaxed", "acquire") for space in (None, "global") for kind in KINDS),
    only_if=lambda sem, space, kind: space is None or kind == "u32" or sem == "relaxed",
)
def load_mmio(draft: Draft, sem: Any, space: Any, kind: Any) -> None:
    """Loads of device registers, here of memory."""
    load(draft, memory.ld_mmio, kind, space, sem=sem)


@microtest(*((name, kind) for name in _STORES if name != "st" for kind in KINDS))
def store_types(draft: Draft, name: str, kind: Any) -> None:
    """Every type."""
    store(draft, getattr(memory, name), kind, "global", **_STORES[name])


@microtest(*((name, vec, kind) for name in _STORES if name != "st" for vec, kind in _VECTORS))
def store_vectors(draft: Draft, name: str, vec: Any, kind: Any) -> None:
    """Vectors."""
    store(draft, getattr(memory, name), kind, "global", vec, **_STORES[name])


@microtest(*((name, hint) for name in _STORES for hint in _hinted(name)))
def store_hints(draft: Draft, name: str, hint: str) -> None:
    """A policy; .weak, which is what a store is anyway."""
    store(draft, getattr(memory, name), "u32", "global", "v4", **_STORES[name], **_hint(hint))


@microtest(*((name, l2, vec, kind) for name in _STORES for l2 in _L2 for vec, kind in (("v8", "b32"), ("v4", "u64"))))
def store_l2(draft: Draft, name: str, l2: str, vec: Any, kind: Any) -> None:
    """Priorities in L2, of 256 bits."""
    store(draft, getattr(memory, name), kind, "global", vec, **_STORES[name], l2=l2)


@microtest(*((name, l1) for name in ("st_keep", "st_ordered") for l1 in _L1))
def store_l1(draft: Draft, name: str, l1: str) -> None:
    """Priorities in L1."""
    store(draft, getattr(memory, name), "b16", "global", "v4", **{**_STORES[name], "l1": l1})


@microtest("wb", "cg", "cs", "wt")
def store_cached(draft: Draft, cop: Any) -> None:
    """Cache operators."""
    store(draft, memory.st, "u32", "global", cop=cop)


@microtest(*((name, space) for name in ("st_volatile", "st_ordered") for space in _SPACES), ("st_keep", None))
def store_spaces(draft: Draft, name: str, space: Any) -> None:
    """Every state space."""
    store(draft, getattr(memory, name), "u8", space, **_STORES[name])


@microtest(
    *(
        (sem, scope, space)
        for sem in ("relaxed", "release")
        for scope in ("cta", "cluster", "gpu", "sys")
        for space in (None, "global", "shared")
    )
)
def store_ordered(draft: Draft, sem: Any, scope: Any, space: Any) -> None:
    """Orders and scopes."""
    store(draft, memory.st_ordered, "b64", space, "v2", sem=sem, scope=scope)


@microtest(
    *((sem, space, kind) for sem in ("relaxed", "release") for space in (None, "global") for kind in KINDS),
    only_if=lambda sem, space, kind: space is None or kind == "u32" or sem == "relaxed",
)
def store_mmio(draft: Draft, sem: Any, space: Any, kind: Any) -> None:
    """Stores to device registers, here to memory."""
    store(draft, memory.st_mmio, kind, space, sem=sem)


_ASYNC = tuple(kind for kind in KINDS if kind != "b128")


@microtest(
    *(
        (name, scope, space, kind)
        for name, scope in (("st_async_release", "gpu"), ("st_async_release", "sys"), ("st_async_mmio", "sys"))
        for space, kind in ((None, "u16"), *(("global", kind) for kind in _ASYNC))
    )
)
def store_async(draft: Draft, name: str, scope: Any, space: Any, kind: Any) -> None:
    """Stores that nobody waits for; the end of the kernel does."""
    store(draft, getattr(memory, name), kind, space, exact=True, scope=scope)
