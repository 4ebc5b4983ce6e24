"""Bulk copies, further: orders and scopes written out, hints, what may lie outside, multimem, sums that round.

References from PTX ISA 9.7.9.25.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.bulk import TYPES, between, random_bytes, to_global
from microtests.floating import extremum
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.inputs import words
from microtests.harness.numbers import FORMATS, add, decode, encode
from microtests.tma import Load
from microtests.tma_store import operands, reduced
from ptxgen.builder import Register
from ptxgen.instr import bulk, cache, memory, move

_SEMANTICS: dict[str, dict[str, Any]] = {
    "weak": {"sem": "weak"},
    **{f"relaxed.{scope}": {"sem": "relaxed", "scope": scope} for scope in ("cta", "cluster", "gpu", "sys")},
}


def _elements(options: dict[str, Any]) -> dict[str, Any]:
    """Relaxed copies name their elements."""
    return {**options, "b128": True} if options["sem"] == "relaxed" else options


def policy_of(draft: Draft) -> Register:
    """A policy for half of what is copied."""
    policy = draft.reg("b64", "policy")
    draft(cache.createpolicy_fractional(policy, 0.5, first="evict_last"))
    return policy


@microtest(*((name, dst) for name in _SEMANTICS for dst in ("shared::cta", "shared::cluster")))
def load_semantics(draft: Draft, name: str, dst: Any) -> None:
    """Weak, or relaxed in a scope, element by element."""
    data = random_bytes(512)
    kernel = Load(draft, 1024)
    expected = kernel.before.copy()
    expected[:512] = data
    source = draft.input(data)
    kernel.run(
        512,
        lambda to, bar: draft(
            bulk.load(f"[{to}]", f"[{source}]", 512, f"[{bar}]", dst=dst, **_elements(_SEMANTICS[name]))
        ),
        expected,
    )


@microtest(*_SEMANTICS, "hint", "hint relaxed.gpu")
def store_semantics(draft: Draft, name: str) -> None:
    """The same of stores; with a policy for the cache."""
    memory_, initial = random_bytes(512), random_bytes(512, 72)
    semantics = name.removeprefix("hint").strip()
    options = _elements(_SEMANTICS[semantics]) if semantics else {}
    if "hint" in name:
        options = {**options, "hint": True, "policy": policy_of(draft)}
    to_global(draft, initial, memory_, memory_, lambda to, of: draft(bulk.store(f"[{to}]", f"[{of}]", 512, **options)))


@microtest("weak", "relaxed.cta", "relaxed.cluster")
def copy_semantics(draft: Draft, name: str) -> None:
    """The same of copies to another CTA."""
    data = random_bytes(4 * 256).reshape(4, 256)
    options = _elements(_SEMANTICS[name])
    between(
        draft,
        256,
        data,
        random_bytes(4 * 256, 76).reshape(4, 256),
        np.roll(data, 1, 0),
        lambda to, of, bar: draft(bulk.copy(f"[{to}]", f"[{of}]", 256, f"[{bar}]", **options)),
    )


@microtest(*((scope, hint) for scope in ("cta", "cluster", "gpu", "sys", None) for hint in (False, True)))
def reduce_semantics(draft: Draft, scope: Any, hint: bool) -> None:
    """The same of reductions."""
    memory_, initial = operands("u32", 128, 74), operands("u32", 128, 75)
    expected = reduced("max", "u32", initial.reshape(-1, 4), memory_.reshape(-1, 4)).reshape(-1)
    options: dict[str, Any] = {"sem": "relaxed", "scope": scope} if scope else {}
    if hint:
        options.update(hint=True, policy=policy_of(draft))
    to_global(
        draft,
        initial,
        expected,
        memory_,
        lambda to, of: draft(bulk.reduce(f"[{to}]", f"[{of}]", 512, op="max", type="u32", **options)),
    )


@microtest("cta", "cluster")
def reduce_to_peer_semantics(draft: Draft, scope: Any) -> None:
    """The same of reductions into another CTA."""
    data, before = (operands("u32", 4 * 64, seed).reshape(4, 256) for seed in (77, 78))
    sent = np.roll(data, 1, 0)
    expected = np.array(
        [
            reduced("add", "u32", old.reshape(-1, 4), new.reshape(-1, 4)).reshape(-1)
            for old, new in zip(before, sent, strict=True)
        ]
    )
    between(
        draft,
        256,
        data,
        before,
        expected,
        lambda to, of, bar: draft(
            bulk.reduce_shared(f"[{to}]", f"[{of}]", 256, f"[{bar}]", op="add", type="u32", sem="relaxed", scope=scope)
        ),
    )


@microtest(*((left, right) for left, right in ((0, 0), (4, 0), (0, 7), (15, 15), (8, 1))))
def load_ignoring(draft: Draft, left: int, right: int) -> None:
    """Bytes at both ends may lie outside, and become anything; those between are copied."""
    data = random_bytes(256)
    kernel = Load(draft, 1024)
    expected = kernel.before.copy()
    expected[:256] = data
    source = draft.input(data)
    open_ends = [*range(left), *range(256 - right, 256)]

    def copy(to: Register, bar: Register) -> None:
        first, last = draft.scalar("u32", left), draft.scalar("u32", right)
        draft(
            bulk.load(
                f"[{to}]",
                f"[{source}]",
                256,
                f"[{bar}]",
                dst="shared::cta",
                ignore_oob=True,
                ignore_left=first,
                ignore_right=last,
            )
        )
        draft.wait(bar)
        for at in open_ends:  # so that what is undefined does not show
            draft(memory.st(f"[{to}+{at}]", int(expected[at]), space="shared", type="u8"))

    kernel.run(256, copy, expected)


@microtest()
def load_multicast_16b(draft: Draft) -> None:
    """The mask's width written out."""
    data = random_bytes(512)
    kernel = Load(draft, 1024, ctas=4, receivers=(0, 2))
    image = kernel.before.copy()
    image[:512] = data
    expected = np.array([image if rank in (0, 2) else kernel.before for rank in range(4)])
    source, mask = draft.input(data), draft.reg("b16", "mask")
    draft(move.mov(mask, 0b101, type="u16"))
    kernel.run(
        512,
        lambda to, bar: draft(
            bulk.load(
                f"[{to}]", f"[{source}]", 512, f"[{bar}]", mask=mask, dst="shared::cluster", multicast="cluster::16b"
            )
        ),
        expected,
    )


@microtest()
def prefetch_hint(draft: Draft) -> None:
    """A prefetch with a policy."""
    draft.launch(block=32)
    out, policy = draft.offset(draft.output(np.arange(32, dtype=np.uint32)), draft.thread, 4), draft.reg("b64")
    draft(cache.createpolicy_fractional(policy, 0.5, first="evict_last"))
    draft(bulk.prefetch(f"[{draft.input(random_bytes(1024))}]", 1024, policy, hint=True))
    draft.store(out, draft.thread)


@microtest(None, "global")
def applypriority(draft: Draft, space: Any) -> None:
    """The normal priority again, for many lines."""
    draft.launch(block=32)
    out = draft.offset(draft.output(np.arange(32, dtype=np.uint32)), draft.thread, 4)
    draft(bulk.applypriority(f"[{draft.input(random_bytes(1024))}]", 1024, space=space), bulk.commit_group())
    draft(bulk.wait_group(0))
    draft.store(out, draft.thread)


@microtest("f16", "bf16", "f32", "f64")
def reduce_rounding(draft: Draft, kind: Any) -> None:
    """Sums of any floats, rounded to nearest; subnormal numbers stay, of .f32 too (measured, H100)."""
    format, size = FORMATS[kind], FORMATS[kind].bits // 8
    rng = np.random.default_rng(79)
    memory_, initial = (words(kind, format.bits, 1024 // size, rng) for _ in range(2))
    initial[0], memory_[0] = format.infinity, format.infinity | format.sign
    expected = np.array(
        [
            encode(add(decode(int(x), format), decode(int(y), format), "rn"), format)
            for x, y in zip(initial, memory_, strict=True)
        ],
        initial.dtype,
    )
    # Which NaN comes is open.
    nan = Tolerance("which NaN a reduction gives is open", np.float64) if kind == "f64" else None
    to_global(
        draft,
        initial,
        expected,
        memory_.view(np.uint8),
        lambda to, of: draft(
            bulk.reduce(f"[{to}]", f"[{of}]", 1024, op="add", noftz=kind in ("f16", "bf16"), type=kind)
        ),
        nan,
    )


@microtest(*((op, kind) for op in ("min", "max") for kind in ("f16", "bf16")))
def reduce_extremes(draft: Draft, op: Any, kind: Any) -> None:
    """The smaller or larger of any floats: NaNs lose, -0 is below 0."""
    format = FORMATS[kind]
    rng = np.random.default_rng(80)
    memory_, initial = (words(kind, 16, 512, rng) for _ in range(2))
    expected = np.array(
        [extremum(_Plain, format, op == "min", False, int(x), int(y)) for x, y in zip(initial, memory_, strict=True)],
        np.uint16,
    )
    to_global(
        draft,
        initial,
        expected,
        memory_.view(np.uint8),
        lambda to, of: draft(bulk.reduce(f"[{to}]", f"[{of}]", 1024, op=op, type=kind)),
    )


class _Plain:
    """What `extremum` requires of a form: no modifiers."""

    NaN = False


_RELAXED = tuple(("relaxed", scope) for scope in ("cta", "cluster", "gpu", "sys"))


@microtest(
    *((sem, scope) for sem, scope in ((None, None), ("weak", None), *_RELAXED)),
    emulator_only="a multicast object over several GPUs",
)
def multimem_store(draft: Draft, sem: Any, scope: Any) -> None:
    """A store to a multimem address, of one device."""
    memory_, initial = random_bytes(256), random_bytes(256, 83)
    options = {"sem": sem, "scope": scope, "b128": sem == "relaxed"}
    to_global(
        draft,
        initial,
        memory_,
        memory_,
        lambda to, of: draft(bulk.multimem_store(f"[{to}]", f"[{of}]", 256, **options)),
    )


@microtest(
    *((op, kind) for op, kinds in TYPES.items() for kind in kinds), emulator_only="a multicast object over several GPUs"
)
def multimem_reduce(draft: Draft, op: Any, kind: Any) -> None:
    """A reduction at a multimem address, of one device."""
    plain = kind.replace("b", "u") if kind != "bf16" else kind
    size = 2 if plain in ("f16", "bf16") else int(plain[1:]) // 8
    memory_, initial = operands(plain, 512 // size, 84), operands(plain, 512 // size, 85)
    expected = reduced(op, plain, initial.reshape(-1, size), memory_.reshape(-1, size)).reshape(-1)
    to_global(
        draft,
        initial,
        expected,
        memory_,
        lambda to, of: draft(
            bulk.multimem_reduce(f"[{to}]", f"[{of}]", 512, op=op, noftz=op == "add" and size == 2, type=kind)
        ),
    )
