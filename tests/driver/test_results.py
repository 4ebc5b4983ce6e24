"""What is printed of launches: advice that a compiler always causes is in the summary alone."""

from __future__ import annotations

import io
from typing import Any

import pytest

from ptxgen.device import Finding, LaunchReport
from ptxgen.device.compilers import COMPILERS
from ptxgen.device.sources import by_source_lines
from ptxgen.driver import Options
from ptxgen.driver.protocol import LaunchRequest
from ptxgen.driver.results import Results

REQUEST = LaunchRequest(0, (1, 1, 1), (32, 1, 1), None, 0, 0, 0, b"", "")
FINDINGS = [
    Finding("missing-tcgen05-fence", "advice", "first"),
    Finding("missing-tcgen05-fence", "advice", "second"),
    Finding("bank-conflicts", "advice", "third"),
    Finding("missing-tcgen05-fence", "error", "fourth"),
]


def shown(findings: list[Finding], **options: Any) -> tuple[str, str, Results]:
    """What two equal launches print at once and in the end."""
    out = io.StringIO()
    results = Results(Options(target="sm_100a", **options), out)
    for _ in range(2):
        results.add(REQUEST, "kernel", LaunchReport("ok", findings, compiler=COMPILERS[0]), 1)
    (summary,) = results.summary()
    return out.getvalue(), summary, results


def test_advice_of_the_compiler_is_one_part_of_the_summary() -> None:
    said, summary, results = shown(FINDINGS)
    assert "third" in said
    assert "fourth" in said
    assert "first" not in said
    assert summary.endswith(
        "missing-tcgen05-fence ×2, bank-conflicts (advice) ×2; advice that Triton causes by the code that it always "
        "emits: missing-tcgen05-fence ×4"
    )
    assert len(results.to_json()["launches"][0]["findings"]) == 4


def test_nothing_else_was_found() -> None:
    said, summary, results = shown(FINDINGS[:2])
    assert said == ""
    assert "; advice that Triton causes" in summary
    assert not results.failed


@pytest.mark.parametrize("options", [{"verbose": True}, {"fail_on": "advice"}])
def test_all_of_it_is_printed_where_it_counts(options: dict[str, Any]) -> None:
    said, summary, _ = shown(FINDINGS, **options)
    assert "first" in said
    assert "missing-tcgen05-fence (advice) ×4" in summary


def test_a_program_that_only_calls_libraries_of_machine_code_fails() -> None:
    out = io.StringIO()
    results = Results(Options(), out)
    results.failing_libraries.append("libcublas.so.13")
    assert results.failed
    results.add(REQUEST, "kernel", LaunchReport("ok", []), 1)
    assert not results.failed  # it may do without the library, as XLA does
    results.finish(0)
    assert "what the program does by libcublas.so.13 was not run" in out.getvalue()


def test_a_kernel_that_ran_when_the_program_was_ended() -> None:
    results = Results(Options(), io.StringIO())
    results.unfinished = "spin"
    assert list(results.summary()) == ["spin: 1 launch that did not end"]


def test_an_error_is_printed_beside_advice_of_its_code_and_place() -> None:
    """The place is a line of the source, which several instructions have."""
    advice = Finding("global-race", "advice", "equal stores", line=75, source="mvt.cu:115:4")
    error = Finding("global-race", "error", "a load", line=79, source="mvt.cu:115:4")
    out = io.StringIO()
    results = Results(Options(target="sm_100a"), out)
    results.add(REQUEST, "kernel", LaunchReport("ok", [advice, error]), 1)
    assert out.getvalue().count("error [global-race] a load") == 1
    assert "equal stores" not in out.getvalue()
    out = io.StringIO()
    results = Results(Options(target="sm_100a"), out)
    for findings in ([advice], [error], [advice], [error]):
        results.add(REQUEST, "kernel", LaunchReport("ok", findings), 1)
    assert (out.getvalue().count("equal stores"), out.getvalue().count("a load")) == (1, 1)


def test_the_fix_of_a_race_within_one_source_line() -> None:
    finding = Finding("global-race", "error", "", line=79, source="mvt.cu:115:4")
    said = by_source_lines("fix: bar.sync between line 79 and line 79", finding, {})
    assert said.startswith(
        "fix: bar.sync between the two accesses of mvt.cu:115:4, in statements of their own; or an atomic"
    )
