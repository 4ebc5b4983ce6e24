"""How approximate functions are computed, in words, by the keys of their declarations; for `ptxgen explain`."""

from __future__ import annotations

from ptxgen.emulator.arithmetic.interpolator import LAYOUTS

_EQUAL = "bit for bit an H200's, for every operand (driver 580.159.04, 2026-11-27; on other chips inferred)"
_ALIKE = "bit for bit an H200's, for 2**32 operands tried (driver 580.159.04, 2026-11-27; on other chips inferred)"


def _table(name: str) -> str:
    layout = LAYOUTS[name]
    return f"{layout.segments} segments, quadratic in {layout.rest} bits with a truncated square"


_RECIPROCAL = f"MUFU.RCP ({_table('rcp')})"
_SUBNORMAL = "without .ftz subnormal operands are multiplied by 2**24 first"
_HALVES = "of the operand as .f32, cut off to the format"

#: Relation of results to the function, and the hardware structure behind it.
APPROXIMATE = {
    key: f"{equal}: {structure}; ptxgen explain facts mufu"
    for key, equal, structure in (
        ("floating.rcp_approx", _EQUAL, f"{_RECIPROCAL}; without .ftz very small and large operands are scaled"),
        ("floating.sqrt_approx", _EQUAL, f"MUFU.SQRT ({_table('sqrt')}); {_SUBNORMAL}"),
        ("floating.rsqrt", _EQUAL, f"MUFU.RSQ ({_table('rsqrt')}); {_SUBNORMAL}"),
        ("floating.lg2", _EQUAL, f"MUFU.LG2 ({_table('lg2')}); {_SUBNORMAL}"),
        (
            "floating.ex2",
            _EQUAL,
            f"MUFU.EX2 ({_table('ex2')}); without .ftz the square of that of a / 2 below -126",
        ),
        ("floating.sin", _EQUAL, f"MUFU.SIN ({_table('sin')} of a quarter turn) of a / (2 pi), rounded towards zero"),
        ("floating.cos", _EQUAL, f"MUFU.COS ({_table('sin')} of a quarter turn) of a / (2 pi), rounded towards zero"),
        ("floating.tanh", _EQUAL, f"MUFU.TANH ({_table('tanh')})"),
        ("floating.div_approx", _ALIKE, f"a * {_RECIPROCAL}; {_SUBNORMAL}, a too"),
        ("floating.div_full", _ALIKE, f"a * {_RECIPROCAL}, both scaled where b is very small or large"),
        ("floating.rcp_approx_f64", _EQUAL, f"MUFU.RCP64H: {_RECIPROCAL} of 20 bits of mantissa, cut off to 20"),
        ("floating.rsqrt_ftz_f64", _EQUAL, f"MUFU.RSQ64H: MUFU.RSQ ({_table('rsqrt')}) of 20 bits of mantissa"),
        ("floating.rsqrt_f64", _ALIKE, "MUFU.RSQ64H and one step of Householder's iteration"),
        ("half.tanh", _EQUAL, f"MUFU.TANH ({_table('tanh')}) {_HALVES}"),
        ("half.ex2", _EQUAL, f"MUFU.EX2 ({_table('ex2')}) {_HALVES}"),
        ("half.ex2_bf16", _EQUAL, f"MUFU.EX2 ({_table('ex2')}) {_HALVES}"),
    )
}
