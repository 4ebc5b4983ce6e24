"""Every spelling of bulk copies and reductions that the declarations allow, but for those of sm_107 alone.

What they do is tested in bulk and bulk_forms; here orders, scopes, policies, masks and multicast come together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.bulk import between, random_bytes, to_global
from microtests.bulk_forms import policy_of
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.tma import Load, ranks
from microtests.tma_store import operands, reduced
from ptxgen.builder import Register
from ptxgen.instr import bulk, memory

_SIZE = 256


def _legal(form: Any) -> dict[str, dict[str, Any]]:
    """The modifiers of every legal combination, by opcode."""
    found = {}
    for each in form.combinations():
        given = {slot.field: getattr(each, slot.field) for slot in form.form.slots if slot.field}
        newer = given.get("report") is not None or given.get("multicast") == "cluster::32b"
        if not newer and not each.modifier_problems():
            found[each.opcode_text] = given
    return found


_LOADS, _STORES, _COPIES = _legal(bulk.load), _legal(bulk.store), _legal(bulk.copy)
_REDUCTIONS, _SHARED = _legal(bulk.reduce), _legal(bulk.reduce_shared)


@microtest(*_LOADS)
def load(draft: Draft, opcode: str) -> None:
    """From global memory: to the own CTA, or to two of four."""
    options = dict(_LOADS[opcode])
    receivers, ctas = ((0, 2), 4) if options["multicast"] else ((0,), 1)
    data = random_bytes(_SIZE)
    kernel = Load(draft, 1024, ctas=ctas, receivers=receivers)
    image = kernel.before.copy()
    image[:_SIZE] = data
    expected = np.array([image if rank in receivers else kernel.before for rank in range(ctas)])
    source = draft.input(data)
    left = right = 3 if options["ignore_oob"] else 0
    if options["multicast"]:
        options["mask"] = ranks(draft, receivers)
    if options["hint"]:
        options["policy"] = policy_of(draft)
    if options["ignore_oob"]:
        options |= {"ignore_left": draft.scalar("u32", left), "ignore_right": draft.scalar("u32", right)}

    def copy(to: Register, bar: Register) -> None:
        draft(bulk.load(f"[{to}]", f"[{source}]", _SIZE, f"[{bar}]", **options))
        if options["ignore_oob"]:  # what is undefined does not show
            draft.wait(bar)
            for at in (*range(left), *range(_SIZE - right, _SIZE)):
                draft(memory.st(f"[{to}+{at}]", int(data[at]), space="shared", type="u8"))

    kernel.run(_SIZE, copy, expected)


@microtest(*_STORES)
def store(draft: Draft, opcode: str) -> None:
    """To global memory; some bytes of each 16 with a mask."""
    options, mask = dict(_STORES[opcode]), 0x5A3C
    data, initial = random_bytes(_SIZE), random_bytes(_SIZE, 73)
    expected = data
    if options["hint"]:
        options["policy"] = policy_of(draft)
    if options["cp_mask"]:
        chosen = np.array([bool(mask >> at % 16 & 1) for at in range(_SIZE)])
        expected = np.where(chosen, data, initial)
        options["byte_mask"] = draft.scalar("u16", mask)
    to_global(draft, initial, expected, data, lambda to, of: draft(bulk.store(f"[{to}]", f"[{of}]", _SIZE, **options)))


@microtest(*_COPIES)
def copy(draft: Draft, opcode: str) -> None:
    """To the next CTA."""
    data, before = (random_bytes(4 * _SIZE, seed).reshape(4, _SIZE) for seed in (71, 76))
    between(
        draft,
        _SIZE,
        data,
        before,
        np.roll(data, 1, 0),
        lambda to, of, bar: draft(bulk.copy(f"[{to}]", f"[{of}]", _SIZE, f"[{bar}]", **_COPIES[opcode])),
    )


def _kind(name: str) -> tuple[str, int]:
    """A type of NumPy's kind, and its bytes; bits are unsigned."""
    plain = name if name == "bf16" else name.replace("b", "u")
    return plain, 2 if plain == "bf16" else int(plain[1:]) // 8


@microtest(*_REDUCTIONS)
def reduce(draft: Draft, opcode: str) -> None:
    """Into global memory."""
    options = dict(_REDUCTIONS[opcode])
    kind, size = _kind(options["type"])
    given, initial = (operands(kind, _SIZE // size, seed) for seed in (74, 75))
    expected = reduced(options["op"], kind, initial.reshape(-1, size), given.reshape(-1, size)).reshape(-1)
    if options["hint"]:
        options["policy"] = policy_of(draft)
    to_global(
        draft, initial, expected, given, lambda to, of: draft(bulk.reduce(f"[{to}]", f"[{of}]", _SIZE, **options))
    )


@microtest(*_SHARED)
def reduce_to_peer(draft: Draft, opcode: str) -> None:
    """Into the shared memory of the next CTA."""
    options = _SHARED[opcode]
    kind, size = _kind(options["type"])
    given, before = (operands(kind, 4 * _SIZE // size, seed).reshape(4, _SIZE) for seed in (77, 78))
    expected = np.array(
        [
            reduced(options["op"], kind, old.reshape(-1, size), new.reshape(-1, size)).reshape(-1)
            for old, new in zip(before, np.roll(given, 1, 0), strict=True)
        ]
    )
    between(
        draft,
        _SIZE,
        given,
        before,
        expected,
        lambda to, of, bar: draft(bulk.reduce_shared(f"[{to}]", f"[{of}]", _SIZE, f"[{bar}]", **options)),
    )
