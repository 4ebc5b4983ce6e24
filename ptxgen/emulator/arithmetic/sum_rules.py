"""How mma.sync and wmma sum floats on each generation of tensor cores: `tensor_sums.Rule`, and products per sum.

Blackwell and Hopper: see `tensor_sums`. Before Hopper the bits, and the products that one sum has, are those of two
models that agree and that their authors compared with hardware: MMA-Sim (Xie et al., arXiv 2511.10909;
github.com/microsoft/MMA-Sim c785138, mmasim/simulator/nv_ptx.py) and Khattak and Mikaitis (arXiv 2512.07004;
github.com/north-numerical-computing/MATLAB-tensor-core b12b5a7, models V100TC, A100TC, AdaTC), the floors those of the
latter. All 120,000 words that its authors recorded on V100, A100, A2, L40S and Ada agree with these rules. For Turing
there is MMA-Sim alone, and no floor is known. The instructions of the SASS (ptxas 13.5: HMMA.884, .1688, .16816) have
as many products as a sum or twice as many. Nothing is published of sparse sums: they are taken to have as many stored
products (inferred).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptxgen.emulator.arithmetic.tensor_sums import Rule
from ptxgen.instr.model.targets import Target


@dataclass(frozen=True, slots=True)
class Generation:
    """The sums of one generation of tensor cores."""

    name: str
    rule: Rule
    #: The most products of a sum, by the type of A: longer rows are summed in steps. Other types have no limit.
    steps: Mapping[str, int]
    #: The rule of 8-bit floats, where the tensor core has them; None where ptxas makes products of .f16 of them.
    f8: Rule | None = None
    #: True: mma.m8n8k4 of .f16 runs on the tensor core; False: a routine computes it.
    quads: bool = False

    def rule_of(self, type: str) -> Rule:
        """The rule of products with an A of this type."""
        return self.f8 if self.f8 is not None and type in F8 else self.rule


#: The 8-bit floats.
F8 = frozenset(("e4m3", "e5m2"))

_AMPERE_FLOORS = {("bf16", "f32"): -132, ("tf32", "f32"): -132, ("f16", "f16"): -20}
_AMPERE_STEPS = {"f16": 8, "bf16": 8, "tf32": 4}

VOLTA = Generation("Volta", Rule(23, floors={("f16", "f16"): -19}), {"f16": 4}, quads=True)
TURING = Generation("Turing", Rule(24, floors={}), {"f16": 8}, quads=True)
AMPERE = Generation("Ampere", Rule(24, floors=_AMPERE_FLOORS), _AMPERE_STEPS)
ADA = Generation(
    "Ada", Rule(24, floors=_AMPERE_FLOORS), {**_AMPERE_STEPS, **dict.fromkeys(F8, 16)}, f8=Rule(13, 13, floors={})
)
HOPPER = Generation("Hopper", Rule(), {})
BLACKWELL = Generation("Blackwell", Rule(), {})
RTX_BLACKWELL = Generation("RTX Blackwell", Rule(), {}, f8=Rule())


def generation_of(target: Target) -> Generation | None:
    """The generation of a target's tensor cores; None if it has none (sm_70 was the first that does)."""
    number = target.number
    if number < 70:
        return None
    if number < 80:
        return VOLTA if number < 75 else TURING
    if number < 90:
        return AMPERE if number < 89 else ADA
    if number < 100:
        return HOPPER
    return RTX_BLACKWELL if target.major == 12 else BLACKWELL
