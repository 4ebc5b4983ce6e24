"""Warnings of ptxas that cost speed: in summaries, comparisons and thresholds."""

from __future__ import annotations

import pytest

from ptxgen.gemm import find
from ptxgen.sass import Listing, compare, load, summarize
from ptxgen.sass.show import broken_thresholds, comparison_lines, summary_lines
from ptxgen.toolchain import assemble

COMMIT = "    wgmma.commit_group.sync.aligned;\n"


@pytest.fixture(scope="module")
def text() -> str:
    return find("hopper/ring").plan().text


def listed(text: str, *options: str) -> Listing:
    return load(assemble(text, options=("-lineinfo", *options)))


@pytest.fixture(scope="module")
def clean(text: str) -> Listing:
    return listed(text)


@pytest.fixture(scope="module")
def waiting(text: str) -> Listing:
    """An accumulator is read while its wgmma is in flight."""
    return listed(text.replace(COMMIT, f"{COMMIT}    add.f32 %r_value0, %r_value0, %r_value1;\n", 1))


def test_a_wait_that_ptxas_injects(clean: Listing, waiting: Listing) -> None:
    assert summarize(clean.kernel(), clean).warnings == ()
    summary = summarize(waiting.kernel(), waiting)
    assert summary.warnings is not None
    (warning,) = summary.warnings
    assert warning.startswith("(C7517) wgmma.wait_group is injected in around line ")
    assert f"ptxas        {warning}" in list(summary_lines(summary))


def test_serialized_wgmma(text: str) -> None:
    second = text.index("    wgmma.mma_async", text.index("    wgmma.mma_async") + 1)
    entry = text.index(".visible .entry")
    called = f"{text[:entry]}.extern .func helper();\n{text[entry:second]}    call.uni helper, ();\n{text[second:]}"
    found = listed(called, "-c")
    said = "(C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized"
    assert any(each.startswith(said) for each in summarize(found.kernel(), found).warnings or ())


def test_a_new_warning_is_in_the_comparison(clean: Listing, waiting: Listing) -> None:
    worse, better = (list(comparison_lines(compare(*pair))) for pair in ((clean, waiting), (waiting, clean)))
    assert any(line.startswith("  + ptxas, B only: (C7517) wgmma.wait_group is injected") for line in worse)
    assert any(line.startswith("  - ptxas, A only: (C7517) wgmma.wait_group is injected") for line in better)
    assert not any("ptxas" in line for line in comparison_lines(compare(waiting, waiting)))
    (broken,) = broken_thresholds(compare(clean, waiting), "warnings")
    assert broken.startswith("warnings: 0 -> 1 in ")
    assert broken_thresholds(compare(waiting, clean), "warnings") == []


def test_warnings_of_a_cubin_are_not_known(text: str, clean: Listing) -> None:
    cubin = load(assemble(text).data)
    assert summarize(cubin.kernel(), cubin).warnings is None
    (broken,) = broken_thresholds(compare(clean, cubin), "warnings")
    assert broken.startswith("warnings: not known for ")


def test_warnings_of_another_function_are_left_out(waiting: Listing) -> None:
    from dataclasses import replace

    other = replace(waiting.kernel(), name="other")
    assert summarize(other, replace(waiting, functions=(other,))).warnings == ()
