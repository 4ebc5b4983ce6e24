"""The text of a module is analyzed once: `check` and all launches share scopes and recognized instructions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import ptxgen
from ptxgen import syntax
from ptxgen.emulator import Emulator
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.recognize import Recognized
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.symbols import TextureMode

TEXT = """
.version 9.0
.target sm_100a
.address_size 64

.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;

    ld.param.b64 %rd0, [out];
    mov.b32 %r0, 1;
    {
        .reg .b32 %r0;
        mov.b32 %r0, 2;
        add.s32 %r1, %r0, 0;
    }
    add.s32 %r2, %r0, %r1;
    st.global.b32 [%rd0], %r2;
    ret;
}
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()
    made, begin = Recognized.of, Scope.__init__

    def count_made(self: Recognized, statement: syntax.Instruction) -> object:
        counted[f"line {statement.line}"] += 1
        return made(self, statement)

    def count_scope(self: Scope, outer: Scope | None = None, texture_mode: TextureMode = "unified") -> None:
        counted["scopes"] += 1
        begin(self, outer, texture_mode)

    monkeypatch.setattr(Recognized, "of", count_made)
    monkeypatch.setattr(Scope, "__init__", count_scope)
    return counted


def test_three_schedules_share_one_analysis_with_check(counts: Counter[str]) -> None:
    kernel = ptxgen.Kernel.from_ptx(TEXT)
    assert kernel.diagnostics == []
    for schedule in ("eager", "late", "random"):
        device = Emulator("sm_100a", schedule)
        out = device.empty(1, np.uint32)
        report = device.launch(kernel, 1, 1, [out])
        assert report.status == "ok", report.summary()
        assert out.numpy()[0] == 3
    assert counts.pop("scopes") == 3  # the module, the entry, the inner block
    assert len(counts) == 7
    assert set(counts.values()) == {1}


def test_scopes_without_a_check(counts: Counter[str]) -> None:
    module = ptxgen.parse(TEXT)
    analysis, entry = Analysis(module), next(iter(module.entries))
    assert entry.body is not None
    inner = next(each for each in entry.body.statements if isinstance(each, syntax.Block))
    assert analysis.scope(inner).outer is analysis.scope(entry)
    assert analysis.scope(entry).outer is analysis.scope(module)
    assert counts == {"scopes": 3}
