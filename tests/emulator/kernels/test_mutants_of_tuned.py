"""The kernels of the tuning table that are mutated: each structure has one, which is right and executes all of it."""

from __future__ import annotations

import pytest

from ptxgen.emulator import Emulator
from ptxgen.gemm import find
from tools.mutants.executed import executed, missed
from tools.mutants.structure import structure
from tools.mutants.tuned import TUNED, classes, representatives


def test_every_kernel_of_the_table_has_a_representative() -> None:
    """Where this fails, `python -m tools.mutants.tuned` prints what to add to tools/mutants/tuned.py."""
    known = representatives()
    lacking = [f"{row.kernel} {row.options}" for each, rows in classes().items() if each not in known for row in rows]
    assert not lacking


def test_structures_forget_sizes_and_nothing_else() -> None:
    rung = find("hopper/overlapped")

    def of(**options: object) -> tuple[str, ...]:
        return structure(rung.plan(cluster_m=1, n_tile=128, **options).text)

    own = of(stages=4)
    assert own == of(stages=6) == of(stages=4, dependent=True) == of(stages=4, a_hint="evict_first")
    assert own == structure(rung.plan(cluster_m=1, n_tile=192, stages=4).text)
    others = [
        {"consumers": "pingpong"},
        {"scheduler": "grid"},
        {"order": "hilbert", "panel": 0},
        {"scheduler": "stream"},
    ]
    assert len({own, *(of(stages=4, **each) for each in others)}) == 5


def test_what_repeats_counts_once() -> None:
    text = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {{ .reg .b32 %r<4>; {body} ret; }}"

    def of(body: str) -> tuple[str, ...]:
        return structure(text.format(body=body))

    one, two = "mov.b32 %r0, 1; add.u32 %r1, %r0, 2;", "mov.b32 %r2, 3; add.u32 %r1, %r2, 2;"
    assert of(one) == of(one + two) == of(one + two + one) == ("mov.b32", "add.u32", "ret")
    assert of(one + "bar.sync 0;" + two) != of(one + two + "bar.sync 0;")


@pytest.mark.parametrize("name", ["hopper-5, swapped, 64 rows, split K", "hopper/gemv, shared K"])
def test_they_are_right_and_execute_what_can_be_broken(name: str) -> None:
    rung = TUNED[name]
    with executed() as places:
        report, right, _ = rung.run(rung.plan.text, Emulator("sm_90a", "late"))
    assert right, report.summary()
    assert not report.findings
    left = [each.opcode.split(".")[0] for each in missed(rung.plan.text, places)]
    assert set(left) <= {"bra"}
