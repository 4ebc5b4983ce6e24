"""A sample of what `tools.certify` compares: the model and ptxas, both ways. The whole runs by hand."""

import pytest

from tools import certify
from tools.certify import Case


def test_sample_agrees() -> None:
    counts, differing = certify.certify(neighbours=45, forms=40, seed=20261120)
    assert not differing, "\n".join(map(str, differing))
    assert sum(number for (_, kind), number in counts.items() if kind == "form") > 800
    assert sum(number for (_, kind), number in counts.items() if kind == "neighbour") > 3000


def test_a_sample_of_a_seed_is_always_the_same() -> None:
    def cases() -> list[Case]:
        (form,) = certify.declared(["logic.shl"])
        return certify.neighbours_of(form, 50, certify.random.Random(7))

    assert cases() == cases()
    assert {case.topic for case in cases()} == {"modifier", "operand", "gate"}


#: Lines in one module, of which some are wrong: by a message with a line, by a syntax error, by a crash of ptxas.
MIXED = [
    ("add.u32 %x_b32_0, %x_b32_1, 1;", True),
    ("add.u32 %x_b32_0, %x_b64_1, 1;", False),
    ("add.u32 %x_b32_0, , 1;", False),
    ("st.param.b32 [%x_b64_0], %x_b32_1;", False),
    ("bar.sync 16;", False),
    ("bar.sync 15;", True),
]


@pytest.mark.parametrize("judge", [certify.ours, certify.ptxas])
def test_each_line_of_a_module_has_its_own_verdict(judge: type) -> None:
    lines = [line for line, _ in MIXED]
    assert [not verdict for verdict in judge(lines, "sm_90a", "8.6")] == [legal for _, legal in MIXED]


def test_disagreement_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "ours", lambda lines, target, version: ["refused"] * len(lines))
    case = Case("logic.shl", "form", "shl.b32 %x_b32_0, %x_b32_1, 1;", "sm_90a")
    (found,) = certify.compare([case], jobs=1)
    assert str(found).split("\n")[1:] == ["    ptxgen: refused", "    ptxas:  legal"]
