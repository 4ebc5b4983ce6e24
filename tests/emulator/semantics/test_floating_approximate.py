"""Approximations: the manual's special values to the bit, and all others within its bounds (9.7.3.8, 9.7.3.13 to 22).

The bits themselves are an H200's: tests/emulator/arithmetic/test_functions.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptxgen.instr import floating
from tests.support.exact import float_edges
from tests.support.harness import ON_GPU, lanewise

NAN, INF, NEGATIVE_INF, ZERO, NEGATIVE_ZERO, ONE = (0x7FFFFFFF, 0x7F800000, 0xFF800000, 0, 0x80000000, 0x3F800000)
TINY = 2.0**-126
COUNT = 600


def unit(value: float) -> float:
    """A unit in the last place of .f32 at a value."""
    return 2.0 ** (max(math.frexp(value)[1] - 1, -126) - 23)


def ulps(count: float) -> Callable[[float, float], float]:
    return lambda x, exact: count * unit(exact)


def relative(power: float) -> Callable[[float, float], float]:
    return lambda x, exact: max(abs(exact) * 2.0**power, 2.0**-149)


def logarithm_bound(x: float, exact: float) -> float:
    return 2.0**-22 if 0.5 < x < 2 else abs(exact) * 2.0**-22


def circular_bound(x: float, exact: float) -> float:
    if abs(x) <= 2 * math.pi:
        return 2.0**-20.5
    return 2.0**-14.7 if abs(x) <= 100 * math.pi else 2.0


ROOTS = {NEGATIVE_INF: NAN, 0xBF800000: NAN, NAN: NAN}
ONE_OPERAND: dict[Any, tuple[Callable[[float], float], Callable[[float, float], float], dict[int, int]]] = {
    floating.rcp_approx: (
        lambda x: 1 / x, ulps(1),
        {NEGATIVE_INF: NEGATIVE_ZERO, NEGATIVE_ZERO: NEGATIVE_INF, ZERO: INF, INF: ZERO, NAN: NAN},
    ),
    floating.sqrt_approx: (
        math.sqrt, relative(-23), {**ROOTS, NEGATIVE_ZERO: NEGATIVE_ZERO, ZERO: ZERO, INF: INF},
    ),
    floating.rsqrt: (
        lambda x: 1 / math.sqrt(x), relative(-22.9), {**ROOTS, NEGATIVE_ZERO: NEGATIVE_INF, ZERO: INF, INF: ZERO},
    ),
    floating.lg2: (
        math.log2, logarithm_bound, {**ROOTS, NEGATIVE_ZERO: NEGATIVE_INF, ZERO: NEGATIVE_INF, INF: INF},
    ),
    floating.ex2: (
        lambda x: 2.0**x, ulps(2), {NEGATIVE_INF: ZERO, NEGATIVE_ZERO: ONE, ZERO: ONE, INF: INF, NAN: NAN},
    ),
    floating.sin: (
        math.sin, circular_bound,
        {NEGATIVE_INF: NAN, NEGATIVE_ZERO: NEGATIVE_ZERO, ZERO: ZERO, INF: NAN, NAN: NAN},
    ),
    floating.cos: (
        math.cos, circular_bound, {NEGATIVE_INF: NAN, NEGATIVE_ZERO: ONE, ZERO: ONE, INF: NAN, NAN: NAN},
    ),
    floating.tanh: (
        math.tanh, relative(-11),
        {NEGATIVE_INF: 0xBF800000, NEGATIVE_ZERO: NEGATIVE_ZERO, ZERO: ZERO, INF: ONE, NAN: NAN},
    ),
}  # fmt: skip


def legal(*forms: Any) -> list[Any]:
    return [each for form in forms for each in form.combinations() if not each.modifier_problems()]


def in_range(a: Any, op: Any) -> Any:
    """Most operands where the function is neither constant nor undefined."""
    value = a.view(np.float32)
    rng = np.random.default_rng(9)
    spread = rng.uniform(-1, 1, COUNT).astype(np.float32)
    if isinstance(op, floating.ex2):
        value[::2] = spread[::2] * 150
    elif isinstance(op, floating.sin | floating.cos):
        value[::2] = spread[::2] * np.where(np.arange(0, COUNT, 2) % 4, 2 * np.pi, 100 * np.pi)
    elif isinstance(op, floating.tanh):
        value[::2] = spread[::2] * 5
    elif not isinstance(op, floating.rcp_approx):
        value[::2] = np.abs(value[::2])
    return a


def check(found: Any, exact: Callable[..., float], bound: Callable[..., float], op: Any, *operands: Any) -> None:
    ftz, worst = getattr(op, "ftz", False), []
    for word, *words in zip(found.tolist(), *(each.tolist() for each in operands), strict=True):
        values = [float(np.uint32(each).view(np.float32)) for each in words]
        if ftz:
            values = [math.copysign(0.0, x) if abs(x) < TINY else x for x in values]
        try:
            wanted = exact(*values)
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if not all(map(math.isfinite, values)) or not math.isfinite(wanted):
            continue
        limit, given = bound(*values, wanted), float(np.uint32(word).view(np.float32))
        if abs(wanted) >= 2.0**128 - 2.0**103 or (math.isinf(given) and abs(wanted) + limit >= 2.0**128):
            assert given == math.copysign(math.inf, wanted), (op.opcode_text, values, given)
        elif ftz and abs(wanted) < TINY:
            assert abs(given) <= TINY, (op.opcode_text, values, given)
        elif not abs(given - wanted) <= limit:
            worst.append((abs(given - wanted) / limit, values, given, wanted))
    assert not worst, (op.opcode_text, len(worst), max(worst))


@pytest.mark.parametrize(
    "op", [op for op in legal(*ONE_OPERAND) if not getattr(op, "two_pi", False)], ids=lambda op: op.opcode_text
)
def test_functions(op: Any) -> None:
    exact, bound, special = ONE_OPERAND[type(op)]
    a = in_range(float_edges("f32", COUNT, 3), op)
    a[: len(special)] = list(special)
    if getattr(op, "ftz", False) and type(op) in (floating.rcp_approx, floating.rsqrt, floating.lg2):
        special = {**special, 0x80000001: special[NEGATIVE_ZERO], 0x007FFFFF: special[ZERO]}
        a[len(special) : len(special) + 2] = [0x80000001, 0x007FFFFF]
    found = lanewise(f"{op.opcode_text} %d, %a;", {"a": ("f32", a)}, {"d": "f32"})["d"]
    for word, result in zip(a.tolist(), found.tolist(), strict=True):
        if word in special:
            assert result == special[word], (op.opcode_text, hex(word), hex(result))
    check(found, exact, bound, op, a)


@pytest.mark.parametrize(
    "op", [op for op in legal(floating.sin, floating.cos) if op.two_pi and not ON_GPU], ids=lambda op: op.opcode_text
)
def test_turns(op: Any) -> None:
    """.2pi: quarters of a turn are exact, and whole ones do not matter."""
    quarters = np.arange(-8, 9)
    a = (quarters / 4).astype(np.float32)
    found = lanewise(
        f"{op.opcode_text} %d, %a;", {"a": ("f32", a.view("u4"))}, {"d": "f32"}, target="sm_100a", version="9.5"
    )["d"].view(np.float32)
    shift = 0 if isinstance(op, floating.sin) else 1
    assert found.tolist() == [[0, 1, 0, -1][(quarter + shift) % 4] for quarter in quarters.tolist()]


def quotient(a: float, b: float) -> float:
    return float(Fraction(a) / Fraction(b)) if abs(a) > 0 else a / b


@pytest.mark.parametrize("op", legal(floating.div_full, floating.div_approx), ids=lambda op: op.opcode_text)
def test_quotients(op: Any) -> None:
    fast = isinstance(op, floating.div_approx)
    a, b = float_edges("f32", COUNT, 5), float_edges("f32", COUNT, 6)
    special = [
        (0x40400000, 0, INF), (0x40400000, NEGATIVE_ZERO, NEGATIVE_INF), (0, 0, NAN), (INF, INF, NAN), (NAN, ONE, NAN),
        (ONE, NAN, NAN), (ONE, INF, 0), (ONE, NEGATIVE_INF, NEGATIVE_ZERO), (0, 0xC0000000, NEGATIVE_ZERO),
    ]  # fmt: skip
    if fast:  # above 2**126 the reciprocal is 0
        special += [(0x7F000000, 0x7F000000, 0), (INF, 0x7F000000, NAN), (0x7F000000, 0xFF000000, NEGATIVE_ZERO)]
    a[: len(special)], b[: len(special)] = ([each[i] for each in special] for i in (0, 1))
    found = lanewise(f"{op.opcode_text} %d, %a, %b;", {"a": ("f32", a), "b": ("f32", b)}, {"d": "f32"})["d"]
    for index, (x, y, result) in enumerate(special):
        assert found[index] == result, (op.opcode_text, hex(x), hex(y), hex(found[index]))
    defined = np.flatnonzero((np.abs(b.view(np.float32)) >= 2.0**-126) & (np.abs(b.view(np.float32)) <= 2.0**126))
    places = defined if fast else np.arange(COUNT)
    check(found[places], quotient, lambda x, y, exact: 2 * unit(exact), op, a[places], b[places])


GROSS = [(floating.rcp_approx_f64, lambda x: 1 / x), (floating.rsqrt_ftz_f64, lambda x: 1 / math.sqrt(x))]


@pytest.mark.parametrize(("form", "exact"), GROSS, ids=lambda each: getattr(each, "__name__", ""))
def test_upper_halves(form: Any, exact: Callable[[float], float]) -> None:
    """.f64 from 32 bits to 32 bits: no bound is given; 2**-18 is twice the 20 bits that there are."""
    (op,) = legal(form)
    a = float_edges("f64", 300, 8)
    nan, infinity, sign = 0x7FFFFFFF << 32, 0x7FF << 52, 1 << 63
    roots = form is floating.rsqrt_ftz_f64
    special = {
        infinity: 0, sign | infinity: nan if roots else sign, 0: infinity, sign: sign | infinity, 1 << 40: infinity,
        sign | 1 << 40: sign | infinity, infinity | 1: 0, infinity | 1 << 33: nan,
    }  # fmt: skip
    a[: len(special)] = list(special)
    found = lanewise(f"{op.opcode_text} %d, %a;", {"a": ("f64", a)}, {"d": "f64"})["d"]
    for word, result in zip(a.tolist(), found.tolist(), strict=True):
        assert not result & 0xFFFFFFFF
        if word in special:
            assert result == special[word], (op.opcode_text, hex(word), hex(result))
            continue
        x, given = (float(np.uint64(each).view(np.float64)) for each in (word, result))
        if not math.isfinite(x) or (roots and x < 0) or abs(x) < 2.0**-1022:
            continue
        wanted = exact(x)
        if abs(wanted) >= 2.0**-1022:
            assert abs(given - wanted) <= abs(wanted) * 2.0**-18, (op.opcode_text, x, given)


def test_reciprocal_root_in_f64() -> None:
    """No bound is given; hardware's routine is within some units in the last place, 2**-50 here."""
    a = float_edges("f64", 300, 12)
    found = lanewise("rsqrt.approx.f64 %d, %a;", {"a": ("f64", a)}, {"d": "f64"})["d"]
    for word, result in zip(a.tolist(), found.tolist(), strict=True):
        x, given = (float(np.uint64(each).view(np.float64)) for each in (word, result))
        if x != x or x < 0:
            assert given != given
        elif x == 0:
            assert given == math.copysign(math.inf, x)
        elif math.isinf(x):
            assert result == 0
        else:
            assert abs(given - 1 / math.sqrt(x)) <= 2.0**-50 / math.sqrt(x)
