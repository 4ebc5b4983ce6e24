"""A prediction as one self-contained page: a timeline of the warps and units of an SM, to zoom and hover."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any

from ptxgen.timing.prediction import Prediction

#: Rows of units, in order, with their titles.
_UNITS = {"tma": "TMA", "tensor": "tensor core", "tensor memory": "tensor memory", "store": "stores"}
#: Slices of a page, at most: the first of the launch.
_MOST = 40_000


def page_of(prediction: Prediction) -> str:
    """HTML without references to anything outside."""
    data = json.dumps(_data(prediction)).replace("</", "<\\/")
    title = f"{prediction.kernel} on {prediction.machine.title}"
    head = f"{prediction.cycles:,.0f} cycles, {prediction.microseconds:.2f} µs at {prediction.clock:.0f} MHz"
    if prediction.flop:
        head += f", {prediction.tflops:.0f} TFLOPS"
    head += f"; bound by {prediction.bound_by}. {prediction.simulated}; L2 {prediction.l2}."
    page = resources.files("ptxgen.timing").joinpath("page.html").read_text(encoding="utf-8")
    return page.replace("@TITLE@", html.escape(title)).replace("@HEAD@", html.escape(head)).replace("@DATA@", data)


def _data(prediction: Prediction) -> dict[str, Any]:
    text = prediction.text.splitlines()
    rows: list[dict[str, Any]] = []
    used = set[int]()
    for role in prediction.roles:
        for warp in role.warps:
            slices = [
                [round(each.begin), round(each.end), each.what, each.line]
                for each in prediction.segments
                if each.warp == warp
            ]
            rows.append({"name": f"{warp} {role.name.partition(' (')[0]}", "slices": slices[:_MOST], "kind": "warp"})
    for unit, title in _UNITS.items():
        spans = [each for each in prediction.spans if each.unit == unit and each.sm == 0]
        if spans:
            slices = [[round(each.begin), round(each.end), f"#{each.number}", each.line, each.bytes] for each in spans]
            rows.append({"name": title, "slices": slices[:_MOST], "kind": "unit"})
    for row in rows:
        used.update(each[3] for each in row["slices"])
    hottest = sorted(prediction.line_cycles.items(), key=lambda each: -each[1])[:40]
    used.update(line for line, _ in hottest)
    return {
        "rows": rows,
        "lines": {line: text[line - 1].strip() for line in used if 0 < line <= len(text)},
        "hot": [[line, round(cycles)] for line, cycles in hottest],
        "end": round(prediction.parts["simulated"]),
    }
