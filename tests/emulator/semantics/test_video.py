"""Video instructions (PTX ISA 9.7.18) against the manual's words in NumPy and against what an H200 gave.

tests/data/silicon/video.npz: 1,488 forms with random selectors, of 32 random and special inputs each, recorded on an
H200 (driver 580.159.04, ptxas 13.0.88, 2026-11-23) of kernels like the one here.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import codes, launch, module
from tests.support.paths import DATA

RECORDED = np.load(DATA / "silicon" / "video.npz")
FORMS: list[str] = RECORDED["forms"].tolist()
OPCODES = sorted({form.split(".")[0] for form in FORMS})
_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal
}  # fmt: skip
_COMPUTE = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
    "vavrg": lambda x, y: (x + y + (x + y >= 0)) >> 1,
}


def run(forms: list[str], given: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The word that each form gives of each triple of inputs (3, lanes): (forms, lanes)."""
    lanes = given.shape[1]
    emulator = Emulator("sm_90", checks=False)
    out = emulator.empty((len(forms), lanes), "u32")
    body = f"""
        .reg .b32 %a, %b, %c, %d, %t; .reg .b64 %in, %out, %at;
        ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
        mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4; add.u64 %in, %in, %at; add.u64 %out, %out, %at;
        ld.global.u32 %a, [%in]; ld.global.u32 %b, [%in+{4 * lanes}]; ld.global.u32 %c, [%in+{8 * lanes}];
    """
    for number, form in enumerate(forms):
        body += f"mov.u32 %d, 0x5A5A1234; {form}; st.global.u32 [%out+{4 * lanes * number}], %d;\n"
    kernel = Kernel.from_ptx(module(body + "ret;", ".param .u64 in, .param .u64 out", target="sm_90"))
    report = emulator.launch(kernel, 1, lanes, [emulator.array(given), out])
    assert report.status == "ok", report.summary()
    return out.numpy()


@pytest.mark.parametrize("opcode", OPCODES)
def test_as_silicon(opcode: str) -> None:
    chosen = [number for number, form in enumerate(FORMS) if form.split(".")[0] == opcode]
    found = run([FORMS[number] for number in chosen], RECORDED["inputs"])
    wrong = (found != RECORDED["words"][chosen]).any(axis=1)
    assert not wrong.any(), [FORMS[chosen[number]] for number in np.flatnonzero(wrong)[:5]]


def test_all_instructions_are_recorded() -> None:
    assert len(OPCODES) == 9 + 14


def parts(word: int, bits: int, signed: bool) -> list[int]:
    """The halves or bytes of a word, the lowest first."""
    found = [word >> at & (1 << bits) - 1 for at in range(0, 32, bits)]
    return [each - (1 << bits) if signed and each >> bits - 1 else each for each in found]


def packed(form: str, a: int, b: int, c: int) -> int:
    """A packed instruction by the manual's words, one part after the other in Python's integers."""
    opcode, *modifiers = form.split(" ")[0].split(".")
    name, count = opcode[:-1], int(opcode[-1])
    bits = 32 // count
    types = [each == "s32" for each in modifiers if each in ("u32", "s32")]
    target, *signs = types if name != "vset" else [False, *types]
    (d, a_text, b_text, _) = [operand.strip().partition(".")[2] for operand in form.split(" ", 1)[1].split(",")]
    default = {2: ("10", "32"), 4: ("3210", "7654")}[count]
    order = [[int(each) for each in reversed((text or f"x{other}")[1:])] for text, other in
             zip((a_text, b_text), default, strict=True)]  # fmt: skip
    sources = [(parts(a, bits, sign) + parts(b, bits, sign)) for sign in signs]
    result, total = parts(c, bits, False), c
    for at in map(int, d[1:]) if d else range(count):
        x, y = sources[0][order[0][at]], sources[1][order[1][at]]
        value = int(_COMPARE[modifiers[2]](x, y)) if name == "vset" else _COMPUTE[name](x, y)
        if "sat" in modifiers:
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if target else (0, (1 << bits) - 1)
            value = min(max(value, low), high)
        result[at], total = value & (1 << bits) - 1, total + value
    if "add" in modifiers:
        return total & 0xFFFFFFFF
    return sum(part << bits * number for number, part in enumerate(result))


def test_packed_instructions_by_the_manual() -> None:
    """Other inputs than the recorded ones."""
    forms = [form for form in FORMS if re.match(r"v\w+[24]\.", form)][::5]
    given = np.random.default_rng(4).integers(0, 2**32, (3, 32), dtype=np.uint32)
    found = run(forms, given)
    for number, form in enumerate(forms):
        expected = [packed(form, *map(int, given[:, lane])) for lane in range(32)]
        assert found[number].tolist() == expected, form


def test_what_ptxas_translates_in_its_own_way() -> None:
    """Saturation, minima and shifts of scalar instructions end as incomplete, with the reason."""
    for form in (
        "vadd.u32.u32.u32.sat %x, %x, %x",
        "vset.u32.u32.lt.max %x, %x, %x, %x",
        "vsub.s32.s32.s32 %x.h1, %x, %x, %x",
    ):
        report, _ = launch(f".reg .u32 %x; mov.u32 %x, 1; {form}; ret;")
        assert (report.status, codes(report)) == ("incomplete", ["not-modelled"]), report.summary()
        assert "differs from the manual" in report.findings[0].message
