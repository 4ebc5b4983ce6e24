"""The record of predictions, and what docs/timing.md shows of it."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from bench.gpu.microbench import compare
from bench.gpu.microbench.compare import Launch
from bench.gpu.microbench.validate import RECORD as MEASURED
from bench.gpu.microbench.validate import held_out

LAUNCHES = compare.read()


def test_the_record_has_every_measured_launch() -> None:
    measured = [each for each in json.loads(MEASURED.read_text())["launches"] if "m" in each]
    named = {(each["spec"], each["m"], each["n"], each["k"]): (each["cycles"], held_out(each)) for each in measured}
    assert {(each.spec, each.m, each.n, each.k): (each.cycles, each.held_out) for each in LAUNCHES} == named


def test_the_page_and_the_plot_are_those_of_the_record() -> None:
    page = compare.PAGE.read_text(encoding="utf-8")
    assert compare.written(page, compare.tables(LAUNCHES)) == page
    assert compare.PLOT.read_text(encoding="utf-8") == compare.scatter(LAUNCHES)
    with pytest.raises(ValueError, match="one pair of markers of nothing"):
        compare.written(page, {"nothing": ""})


def test_the_plot_has_a_point_for_each_launch() -> None:
    """Above the diagonal what is predicted too slow; 10 % off lies on the edge of the band."""
    base = Launch("hopper/ring", 64, 64, 64, False, 10_000, 10_000, None, 1700)
    drawn = [base, replace(base, predicted=11_000), replace(base, cycles=100_000, predicted=90_000, held_out=True)]
    circles = ET.fromstring(compare.scatter(drawn)).findall("{http://www.w3.org/2000/svg}circle")
    points = [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in circles if len(each)]
    assert len(points) == 3
    assert points[0][0] == points[1][0] < points[2][0]
    assert points[1][1] < points[0][1]
    (x0, y0), _, (x2, y2) = points
    # Logarithmic, with one scale for both axes up to their lengths.
    horizontal, vertical = (x2 - x0) / math.log(10), (y0 - y2) / math.log(9)
    assert vertical / horizontal == pytest.approx((560 - 40 - 30) / (720 - 60 - 20), rel=0.01)


def test_figures_are_counted_by_part() -> None:
    base = Launch("hopper/ring", 64, 64, 64, True, 1000, 950, 2000, 1700)
    launches = [base, replace(base, predicted=1300), replace(base, held_out=False, predicted=1000)]
    rows = [re.split(r" *\| *", line)[1:-1] for line in compare.figures(launches).splitlines()[2:]]
    assert rows[0] == ["held out", "2", "17.5%", "+12.5%", "50%"]
    assert rows[2] == ["seen", "1", "0.0%", "+0.0%", "100%"]
    assert "| 2,000 |" not in compare.apart(launches)
    assert "| +100% |" in compare.apart(launches, 1)


def test_predictions_that_failed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "seen.jsonl"
    path.write_text(json.dumps({"spec": "hopper/ring", "error": "deadlock"}) + "\n")
    with pytest.raises(ValueError, match="no prediction of hopper/ring: deadlock"):
        compare.joined([path])
