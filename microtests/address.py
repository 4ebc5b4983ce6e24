"""Generic addresses of every state space, and back. References from PTX ISA 9.7.9.19 and 9.7.9.20."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.builder import Register
from ptxgen.instr import address, barrier, memory, move, predicate

_THREADS = 32
_SPACES: tuple[Any, ...] = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "const",
    "param",
    "param::entry",
)
#: The word that memory of each kind holds.
_WORD = 0x1234567


def _plain(draft: Draft, kind: str) -> Register:
    """The address of a word of _WORD in a state space of this kind."""
    if kind == "param":
        return draft.scalar_at(_WORD)
    found = draft.reg("b64", kind)
    declaration = ".align 8 .b32 NAME[2]" + (f" = {{{_WORD}, 0}}" if kind in ("const", "global") else "")
    if kind == "shared":
        place = draft.shared(8)
        draft(memory.st(f"[{place}]", _WORD, space="shared", type="u32"), barrier.bar_sync(0))
        draft.text(f"    cvt.u64.u32 {found}, {place};")
        return found
    name = draft.variable(kind, declaration, f"{kind}_word")
    draft(move.mov(found, name, type="u64"))
    if kind == "local":
        draft(memory.st(f"[{found}]", _WORD, space="local", type="u32"))
    return found


def _kind(space: str) -> str:
    return space.partition("::")[0]


@microtest(*_SPACES)
def cvta(draft: Draft, space: Any) -> None:
    """The generic address reads the same word; cvta.to leads back to the address in the state space."""
    draft.launch(block=_THREADS)
    tid, plain = draft.thread, _plain(draft, _kind(space))
    generic, back = draft.reg("b64", "generic"), draft.reg("b64", "back")
    first, second, same = draft.reg("b32"), draft.reg("b32"), draft.reg("pred")
    draft(address.cvta(generic, plain, space=space, size="u64"), memory.ld(first, f"[{generic}]", type="b32"))
    draft(address.cvta_to(back, generic, space=space, size="u64"))
    draft(memory.ld(second, f"[{back}]", space=_kind(space), type="b32"))  # type: ignore[arg-type]
    draft(predicate.setp(same, plain, back, compare="eq", type="u64"))
    rows = np.tile(np.array([_WORD, _WORD, 1], np.uint32), (_THREADS, 1))
    out = draft.offset(draft.output(rows), tid, 12)
    for number, word in enumerate((first, second, draft.as_word(same))):
        draft.store(out, word, 4 * number)


_KINDS = ("global", "shared", "local", "const", "param")


@microtest(*((space, kind) for space in _SPACES for kind in _KINDS))
def isspacep(draft: Draft, space: Any, kind: Any) -> None:
    """Whether an address of each kind lies in each window."""
    draft.launch(block=_THREADS)
    tid, generic, found = draft.thread, draft.reg("b64", "generic"), draft.reg("pred")
    draft(address.cvta(generic, _plain(draft, kind), space=kind, size="u64"))
    draft(address.isspacep(found, generic, space=space))
    # Parameters of a kernel lie within the window of .global (9.7.9.19).
    inside = kind == _kind(space) or (space, kind) == ("global", "param")
    expected = np.full(_THREADS, inside, np.uint32)
    draft.store(draft.offset(draft.output(expected), tid, 4), draft.as_word(found))


@microtest(*(space for space in _SPACES if space != "global"))
def isspacep_32(draft: Draft, space: Any) -> None:
    """An address in a register of 32 bits lies below all windows."""
    draft.launch(block=_THREADS)
    found = draft.reg("pred")
    draft(address.isspacep_32(found, draft.thread, space=space))
    expected = np.zeros(_THREADS, np.uint32)
    draft.store(draft.offset(draft.output(expected), draft.thread, 4), draft.as_word(found))


@microtest("shared", "shared::cta", "shared::cluster")
def wide_shared(draft: Draft, space: Any) -> None:
    """A shared address in a register of 64 bits is truncated to 32 (6.4.1), so that a generic one will do."""
    draft.launch(block=_THREADS)
    tid, plain = draft.thread, _plain(draft, "shared")
    generic, low = draft.reg("b64", "generic"), draft.reg("b32", "low")
    first, second, same = draft.reg("b32"), draft.reg("b32"), draft.reg("pred")
    draft(address.cvta(generic, plain, space="shared", size="u64"))
    draft(memory.ld(first, f"[{generic}]", space=space, type="b32"))
    draft.text(f"    cvt.u32.u64 {low}, {generic};")
    draft(memory.ld(second, f"[{low}]", space=space, type="b32"))
    draft(predicate.setp(same, first, second, compare="eq", type="u32"))
    rows = np.tile(np.array([_WORD, _WORD, 1], np.uint32), (_THREADS, 1))
    out = draft.offset(draft.output(rows), tid, 12)
    for number, word in enumerate((first, second, draft.as_word(same))):
        draft.store(out, word, 4 * number)
