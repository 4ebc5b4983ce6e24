"""The floor under the exponent at which tensor cores cut sums: products of tiny numbers, C zero.

Hopper's floor is recorded (H200); Blackwell's for bf16 and tf32 only (by others, tests/data/silicon).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness import matrices, sums
from microtests.harness.draft import Draft
from microtests.harness.questions import question
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from microtests.mma import kinds_of, load_registers, shape_of, store_registers
from microtests.wgmma import Product, instruction, k_of
from ptxgen.instr import integer, mma

#: Floors that are distinguished, the emulator's first: so far below the normal numbers of D. A floor of the least
#: subnormal number is as none. 8-bit floats have no product that is small enough to show one.
RULES = ("7 below", "none", "0 below", "3 below")
_TILES = 8
_ASKS = "What is the least exponent at which a sum is cut?"


def least(rule: str, dtype: str) -> int:
    """The floor of a candidate, for D of a type."""
    return sums.NO_FLOOR if rule == "none" else sums.FORMATS[dtype][1] - int(rule.split()[0])


def probes(dtype: str, rows: int, columns: int, k: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A [rows, k] and B [columns, k]: a result on the edge, and a product so small that the floor decides if it counts.

    Into f32, which is cut: the least number less 2**-1, 2**-2, ... of it by row, and its multiples. Into f16, which is
    rounded: half of the least number, a tie, and a bit more.
    """
    a, b = np.zeros((rows, k)), np.zeros((columns, k))
    depth = 1 + (first + np.arange(rows)) % 30
    if dtype == "f32":
        b[:] = 2.0 ** (-75 + np.arange(columns) % 4)[:, None]
        a[:, 0], a[:, 1] = 2.0**-74, -(2.0 ** (-74.0 - depth))
        return a, b
    depth = np.minimum(depth, 23)
    b[:, 0], b[:, 1], b[:, 3] = 2.0**-11, 2.0**-14, 2.0**-24
    small = depth > 13  # of two subnormal factors
    a[:, 0] = 2.0**-14
    a[:, 1], a[:, 3] = np.where(small, 0, 2.0 ** (-11.0 - depth)), np.where(small, 2.0 ** (-1.0 - depth), 0)
    return a, b


def has_floor(kinds: tuple[str, str, str]) -> bool:
    """Whether these types have products that are small enough."""
    return kinds in (("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"))


@question(_ASKS, RULES, *(word for word in each(mma.f16, mma.bf16, mma.tf32) if has_floor(kinds_of(word.made))))
def warp(draft: Draft, rule: str, word: Word) -> None:
    """mma.sync, a product in each of several warps."""
    made: Any = word.made
    m, n, k = shape_of(made)
    atype, btype, dtype = kinds_of(made)
    lists: list[list[np.ndarray]] = [[], [], [], []]
    for tile in range(_TILES):
        (a, b), c = probes(dtype, m, n, k, tile * m), np.zeros((m, n))
        d = sums.total(a, b, c, (atype, btype, dtype), sums.Rule(least=least(rule, dtype)))
        operands = matrices.a_registers(atype, a), matrices.a_registers(btype, b)
        made_words = *operands, matrices.d_registers(dtype, c), matrices.d_registers(dtype, d)
        for some, words in zip(lists, made_words, strict=True):
            some.append(words)
    draft.launch(grid=_TILES, block=32)
    thread = draft.reg("b32", "thread")
    draft(integer.mad(thread, draft.special("ctaid.x"), 32, draft.thread, type="u32", half="lo"))
    given = [load_registers(draft, np.concatenate(some, 1), thread) for some in lists[:3]]
    found = [draft.reg(register.type, "d") for register in given[2]]
    draft(like(made, found, *given))
    store_registers(draft, np.concatenate(lists[3], 1), found, thread)


@question(_ASKS, RULES, ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"))
def warpgroup(draft: Draft, rule: str, atype: Any, btype: Any, dtype: Any) -> None:
    """wgmma, D zero."""
    n, k = 64, k_of(atype)
    product = Product(draft, n, dtype)
    (a, b), c = probes(dtype, 64, n, k), np.zeros((64, n))
    da, db, d = product.operand(atype, a, 128), product.operand(btype, b, 128), product.accumulators(c)
    product.multiply(d, instruction(atype, btype, dtype, n)(d, da, db, 1))
    product.finish(d, sums.total(a, b, c, (atype, btype, dtype), sums.Rule(least=least(rule, dtype))))
