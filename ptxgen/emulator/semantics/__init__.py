"""The semantics of instructions. Modules are named as those of `ptxgen.instr`; each function there gives one
declaration its semantics.

It is a function `(instruction, binder, statement) -> run`, where `run(group)` executes it for all warps of a group.
Kinds: `plain` does something and goes on; a `blocking` one may hold lanes back (it returns the lanes that may pass, and
is tried again when they are woken); a `terminator` decides where the lanes go next.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.instr import FAMILIES
from ptxgen.instr.model.form import Instruction

#: Declarations without semantics, by key or family, and why. A kernel that reaches one ends as incomplete.
LEFT_OUT = {
    **dict.fromkeys(
        ("texture.txq_sampler", "texture.txq_unnormalized", "texture.istypep"),
        "a launch has texture objects, but no .texref and .samplerref variables (PTX ISA 5.3)",
    ),
    **dict.fromkeys(
        ("surface.sust_formatted", "surface.sured", "surface.sured_formatted"),
        "CUDA C++ has no such surface functions, and no compiled kernel to hold it against was found (PTX ISA 9.7.11)",
    ),
    "fabric": "memory of other devices; the emulator has one device",
    "fence.fence_proxy_fabric": "memory of other devices; the emulator has one device",
    "conversion.cvt_ue5m3x2": "no available manual defines the bits of ue5m3 (PTX ISA 9.4, sm_107)",
    "conversion.cvt_ue5m3x2_pair": "no available manual defines the bits of ue5m3 (PTX ISA 9.4, sm_107)",
    **dict.fromkeys(
        ("mixed.add_f16x2", "mixed.sub_f16x2", "mixed.mul_f16x2"),
        "the manual does not say which subnormal numbers .ftz flushes (PTX ISA 9.4, 9.7.5, sm_107)",
    ),
    "mixed.mul_halves": "the manual does not say how the conversion of c rounds (PTX ISA 9.4, 9.7.5.4, sm_107)",
    "matrix.ldmatrix_m8n16_signed": "no available manual says where the rows of .s4 lie (PTX ISA 9.4)",
    **dict.fromkeys(
        ("tcgen05.mma_lut", "tcgen05.mma_lut_ts", "tcgen05.mma_scaled_lut", "tcgen05.mma_scaled_lut_ts"),
        "the manual draws the lookup table in figures only (PTX ISA 9.4, 9.7.18.10.8, sm_107)",
    ),
    "sparse": "sm_107 only (PTX ISA 9.4); no hardware and no compiled kernel to hold it against",
    "tcgen05.ld_spcompress": "sm_107 only (PTX ISA 9.4); no hardware and no compiled kernel to hold it against",
    "tcgen05.ld_red_spcompress": "sm_107 only (PTX ISA 9.4); no hardware and no compiled kernel to hold it against",
    "tensormap.query_alloc_class_large": "queries the driver's allocator, which the emulator does not have",
}

Kind = Literal["plain", "blocking", "terminator"]

#: The modules of semantics that do not have the name of the declaration's family.
_ELSEWHERE = {"barrier.bar_warp_sync": "warp", "mbarrier.cp_async_arrive": "async_copy"}

#: The modules that give semantics.
MODULES = tuple(family for family in FAMILIES if family not in LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Semantics:
    """How a declaration runs; `leaves` marks terminators after which nothing follows in the text."""

    kind: Kind
    bind: Callable[..., Callable[..., Any]]
    leaves: bool = False


_SEMANTICS: dict[type[Instruction], Semantics] = {}


def semantics(*forms: type[Instruction], kind: Kind = "plain", leaves: bool = False) -> Callable[[Any], Any]:
    """Decorator: the function gives these declarations their semantics."""

    def register(function: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
        for form in forms:
            if form in _SEMANTICS:
                raise TypeError(f"{form.form.key} has semantics already")
            _SEMANTICS[form] = Semantics(kind, function, leaves)
        return function

    return register


@functools.cache
def load_all() -> None:
    """Import every module of semantics; a family that has none yet is left out."""
    for module in MODULES:
        _load(module)


@functools.cache
def _load(module: str) -> None:
    name = f"{__name__}.{module}"
    if importlib.util.find_spec(name) is not None:
        importlib.import_module(name)


def find(form: type[Instruction]) -> Semantics | None:
    """The semantics of a declaration, None if it has none yet. Of modules only its own is imported."""
    found = _SEMANTICS.get(form)
    if found is None and hasattr(form, "form"):  # a base class declares nothing
        module = _ELSEWHERE.get(form.form.key) or form.__module__.removeprefix("ptxgen.instr.").partition(".")[0]
        if module in MODULES:
            _load(module)
            found = _SEMANTICS.get(form)
    return found


def reason(key: str) -> str | None:
    """Why a declaration has no semantics; None if no reason is recorded."""
    return LEFT_OUT.get(key) or LEFT_OUT.get(key.partition(".")[0])


def missing() -> list[str]:
    """Keys of the declarations without semantics."""
    from ptxgen import instr
    from ptxgen.instr.model.form import REGISTRY

    load_all()
    instr.load_all()
    return sorted(form.form.key for forms in REGISTRY.values() for form in forms if form not in _SEMANTICS)
