"""The index of how PTX becomes SASS: a sample is made again and must be what is recorded."""

from __future__ import annotations

import random

from ptxgen.sass.index import TARGETS, emitted, index
from tools.certify import cases
from tools.certify.emitted import Form, chosen
from tools.certify.emitted import emitted as made_again


def test_a_sample_is_made_again() -> None:
    rng = random.Random(0)
    declarations = {each.form.key: each for each in cases.declared()}
    for target in TARGETS:
        keys = sorted(key for key, targets in index().forms.items() if target in targets)
        forms: list[Form] = []
        for key in rng.sample(keys, 12):
            recorded = [
                each for each in chosen(declarations[key], target) if each.spelling in index().forms[key][target]
            ]
            forms += recorded[:2]
        assert len(forms) > 10
        found = made_again(forms, target)
        assert len(found) == len(forms)
        for form, text in found:
            assert index().forms[form.key][target][form.spelling] == text, form


def test_what_is_known_without_ptxas() -> None:
    """Names of SASS that NVIDIA's own documents use for these instructions."""
    for key, spelling, target, opcode in (
        ("tcgen05.mma", "tcgen05.mma.cta_group::1.kind::f16", "sm_100a", "UTCHMMA"),
        ("tcgen05.ld", "tcgen05.ld.sync.aligned.32x32b.x1.b32", "sm_100a", "LDTM"),
        ("wgmma.mma_async_f16", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "sm_90a", "HGMMA.64x8x16.F32"),
        ("texture.tex", "tex.2d.v4.f32.f32", "sm_90a", "TEX."),
        ("miscellaneous.setmaxnreg", "setmaxnreg.inc.sync.aligned.u32", "sm_90a", "USETMAXREG.TRY_ALLOC"),
        ("miscellaneous.setmaxnreg", "setmaxnreg.dec.sync.aligned.u32", "sm_100a", "USETMAXREG.DEALLOC"),
        ("tcgen05.wait", "tcgen05.wait::ld.sync.aligned", "sm_100a", "NOP"),
        ("matrix.ldmatrix_m8n16_signed", "ldmatrix.sync.aligned.m8n16.x1.s8.s4", "sm_100a", "nvdisasm does not name"),
        ("surface.sust", "sust.b.2d.b32.trap", "sm_100a", "SUST.D."),
    ):
        assert opcode in emitted(key, spelling)[target]
    assert "sm_90a" not in emitted("tcgen05.mma", "tcgen05.mma.cta_group::1.kind::f16")


def test_every_declaration_that_a_target_has_is_there() -> None:
    """Except those that ptxas refuses outside the test bench of certification."""
    missing: list[str] = []
    for declaration in cases.declared():
        for target in TARGETS:
            if target in index().forms.get(declaration.form.key, {}):
                continue
            if any(target in cases.targets_of(made) for made in declaration.sample(20, random.Random(0))):
                missing.append(f"{declaration.form.key} {target}")
    assert len(missing) <= 4, missing
