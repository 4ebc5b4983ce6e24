"""Profiles of an H200: regressions planted in hopper/overlapped stand in the first three lines of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ncu_report")

from ptxgen.ncu import Comparison, Report, compare, read
from ptxgen.ncu.show import comparison_lines


@pytest.fixture(scope="module")
def reports(profiles: dict[str, Path]) -> dict[str, Report]:
    return {path.name.removesuffix(".ncu-rep"): read(path) for path in profiles.values() if path.suffix == ".ncu-rep"}


def first_lines(found: Comparison) -> str:
    return "\n".join(list(comparison_lines(found))[:3])


@pytest.mark.parametrize(
    ("a", "b", "named"),
    [
        ("base", "unswizzled", "explained by: shared-memory bank conflicts 39.4x (50 555 -> 1.992 M)"),
        ("base", "stages3", "launched with: dynamic shared memory 229.4 -> 180.3 KB"),
        ("base", "spill", "explained by: spill requests 0 -> 243.3 k (new); local-memory loads 0 -> 140.3 k (new)"),
        ("kept", "spill", "differs in: spill requests 0 -> 243.3 k (new); local-memory loads 0 -> 140.3 k (new)"),
    ],
)
def test_a_planted_regression_is_named_first(a: str, b: str, named: str, reports: dict[str, Report]) -> None:
    found = compare(reports[a], reports[b])
    assert not found.same
    assert named in first_lines(found)


def test_the_docs_show_what_is_printed(reports: dict[str, Report]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "ncu.md").read_text()
    shown = [line for line in page.splitlines() if ": duration " in line or line.startswith("  explained by: ")]
    printed: list[str] = []
    for name in ("unswizzled", "stages3", "spill"):
        printed += list(comparison_lines(compare(reports["base"], reports[name])))[:2]
    assert shown == printed


def test_two_profiles_of_one_kernel_are_the_same(reports: dict[str, Report]) -> None:
    found = compare(reports["base"], reports["again"])
    assert found.same
    assert "no significant difference, duration 1.00x" in first_lines(found)


def test_repeats_give_a_band_of_noise(reports: dict[str, Report]) -> None:
    (pair,) = compare(reports["base"], reports["stages3"]).pairs
    assert (len(pair.a), len(pair.b)) == (3, 3)
    assert pair.duration is not None
    assert 0 < pair.duration.noise < 0.02
    assert pair.time == pytest.approx(0.055, abs=0.02)
    conflicts = {each.key: each for each in pair.changes}["shared_conflicts"]
    assert not conflicts.significant


def test_pages_of_the_same_profiles_name_it_too(profiles: dict[str, Path]) -> None:
    for page in ("raw", "details"):
        a, b = (read(profiles[f"{name}.{page}.csv"]) for name in ("base", "spill"))
        assert "spill requests 0 -> 243.3 k (new)" in first_lines(compare(a, b))
