"""Recorded kernels with approximate functions: every bit of their outputs is an H200's.

tests/data/silicon/kernels_h200.json has the hashes of the GPU's outputs, which two launches gave alike.
"""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest

from tests.support.paths import DATA
from tools.recorded.case import load

RECORDED: dict[str, dict[str, str]] = json.loads((DATA / "silicon/kernels_h200.json").read_text())["kernels"]
#: ptxas joins the last multiplication of div.full and an addition to one FFMA, which PTX permits; the emulator rounds
#: both. With `rcp.approx.ftz` and `fma.rn` in their place the outputs are equal.
FUSED = {
    "t35_90_rms_norm": ("r",),
    "t36_90_attention_bf16_wide": ("lse",),
    "t37_90_attention_causal_groups": ("lse",),
}
#: The other kernels take longer than two seconds.
QUICK = (
    "c48_90_softmax", "m12_90_row_sums", "t35_90_rms_norm", "t36_90_elementwise_math", "t36_90_layernorm",
    "t36_90_softmax", "t36_90_welford", "t37_90_cross_entropy", "t37_90_online_softmax", "wgmma_attention",
)  # fmt: skip


def digests(outputs: dict[str, np.ndarray]) -> dict[str, str]:
    return {
        name: hashlib.sha256(np.ascontiguousarray(each).tobytes()).hexdigest()[:16] for name, each in outputs.items()
    }


@pytest.mark.parametrize("name", QUICK)
def test_outputs(name: str) -> None:
    case = load(name)
    outcome = case.run(case.emulator())
    assert outcome.right
    found = digests(dict(outcome.outputs))
    assert found.keys() == RECORDED[name].keys()
    assert [each for each in found if found[each] != RECORDED[name][each]] == list(FUSED.get(name, ()))


@pytest.mark.parametrize("name", [name for name in FUSED if name in QUICK])
def test_outputs_with_the_contraction_of_ptxas(name: str) -> None:
    case = load(name)
    outcome = case.run(case.emulator(), contracted(case.text))
    assert digests(dict(outcome.outputs)) == RECORDED[name]


_DIVISION = re.compile(r"\tdiv\.full\.f32 \t(%\w+), (%\w+), (%\w+);\n")
_SUM = re.compile(r"\tadd\.f32 \t(%\w+), (%\w+), (%\w+);\n")


def contracted(text: str) -> str:
    """The text with fma.rn for each sum of a quotient and something else."""
    quotients = {match[1]: match for match in _DIVISION.finditer(text)}
    for total in list(_SUM.finditer(text)):
        for quotient, other in ((total[2], total[3]), (total[3], total[2])):
            if quotient in quotients:
                division = quotients[quotient]
                text = text.replace(division[0], f"\trcp.approx.ftz.f32 {quotient}, {division[3]};\n")
                text = text.replace(total[0], f"\tfma.rn.f32 {total[1]}, {quotient}, {division[2]}, {other};\n")
    return text
