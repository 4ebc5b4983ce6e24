"""Operations on multimem addresses, each of which stands for the same place in several GPUs. PTX ISA 9.7.9.14.

The emulator is one device, whose addresses are also those of a multicast object with that device alone: a reduction of
one value is that value. A GPU needs a multicast object over several GPUs, which these kernels have none of.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.inputs import words
from microtests.mbarrier import Word
from microtests.tma_store import operands, reduced
from ptxgen.instr import multimem
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.types import TYPES

_THREADS = 64
_NO_GPU = "a multicast object over several GPUs"


def _shape(made: Any) -> tuple[int, int]:
    """(elements of an access, bits of one)."""
    return int((getattr(made, "vec", None) or "v1")[1:]), TYPES[made.type].bits


def _register(bits: int) -> str:
    return f"b{bits}"


def _chosen(*forms: type[Instruction]) -> list[Word]:
    """Of the variants of each form some, among them every type, operation, vector, order and scope."""
    found = []
    for form in forms:
        seen: set[tuple[str, Any]] = set()
        for made in form.variants():
            values = {(slot.field, getattr(made, slot.field)) for slot in made.form.slots if slot.field}
            if not values <= seen:
                seen |= values
                found.append(Word(made))
    return found


@microtest(*_chosen(multimem.ld_reduce, multimem.ld_reduce_float), emulator_only=_NO_GPU)
def load(draft: Draft, word: Any) -> None:
    """Of one device the values that are there."""
    made = word.made
    count, bits = _shape(made)
    draft.launch(block=_THREADS)
    tid, size = draft.thread, count * bits // 8
    values = words(f"u{bits}", bits, _THREADS * count, np.random.default_rng(1)).reshape(_THREADS, count)
    registers = draft.regs(_register(bits), count)
    modifiers = {slot.field: getattr(made, slot.field) for slot in made.form.slots if slot.field}
    place = f"[{draft.offset(draft.input(values), tid, size)}]"
    draft(type(made)(registers if modifiers.get("vec") else registers[0], place, **modifiers))
    out = draft.offset(draft.output(values), tid, size)
    for number, register in enumerate(registers):
        draft.store(out, register, number * bits // 8)


def _given(draft: Draft, made: Any, values: np.ndarray) -> Any:
    """The thread's values in registers, as an operand."""
    count, bits = _shape(made)
    source = draft.offset(draft.input(values), draft.thread, count * bits // 8)
    registers = draft.regs(_register(bits), count)
    for number, register in enumerate(registers):
        draft.text(f"    ld.global.b{bits} {register}, [{source}+{number * bits // 8}];")
    return registers if getattr(made, "vec", None) else registers[0]


@microtest(*_chosen(multimem.st, multimem.st_float, multimem.st_async), emulator_only=_NO_GPU)
def store(draft: Draft, word: Any) -> None:
    """The values arrive, and nothing beside them."""
    made = word.made
    count, bits = _shape(made)
    draft.launch(block=_THREADS)
    tid, size = draft.thread, count * bits // 8
    values = words(f"u{bits}", bits, _THREADS * count, np.random.default_rng(2)).reshape(_THREADS, count)
    before = np.full((_THREADS, 2, count), 0xA5, values.dtype)
    after = before.copy()
    after[:, 1] = values
    modifiers = {slot.field: getattr(made, slot.field) for slot in made.form.slots if slot.field}
    place = draft.offset(draft.output(after, initial=before), tid, 2 * size)
    draft(type(made)(f"[{place}+{size}]", _given(draft, made, values), **modifiers))


_NUMBERS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@microtest(*_chosen(multimem.red, multimem.red_float, multimem.red_async), emulator_only=_NO_GPU)
def reduce(draft: Draft, word: Any) -> None:
    """Each thread combines its values with those of its own place."""
    made, op = word.made, getattr(word.made, "op", "add")
    count, bits = _shape(made)
    kind = made.type.removesuffix("x2").replace("b32", "u32").replace("b64", "u64")
    draft.launch(block=_THREADS)
    tid, size = draft.thread, count * bits // 8
    total = _THREADS * count * (2 if made.type.endswith("x2") else 1)
    old, new = (operands(kind, total, seed) for seed in (3, 4))
    element = np.dtype(_NUMBERS[kind]).itemsize if kind in _NUMBERS else int(kind[1:]) // 8
    after = reduced(op, kind, old.reshape(-1, element), new.reshape(-1, element)).reshape(-1)
    word_type: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}[bits // 8]
    modifiers = {slot.field: getattr(made, slot.field) for slot in made.form.slots if slot.field}
    place = draft.offset(draft.output(after.view(word_type), initial=old.view(word_type)), tid, size)
    draft(type(made)(f"[{place}]", _given(draft, made, new.view(word_type).reshape(_THREADS, count)), **modifiers))
