"""A prediction as a trace for Perfetto (ui.perfetto.dev): Chrome's JSON, a microsecond a cycle."""

from __future__ import annotations

import json
from typing import Any

from ptxgen.timing.prediction import Prediction

_WARPS, _UNITS = 1, 2


def trace_of(prediction: Prediction) -> str:
    """Tracks of the first CTA's warps, and of the units of its SM, whose works may overlap."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": _WARPS, "name": "process_name", "args": {"name": f"{prediction.kernel}: warps"}},
        {"ph": "M", "pid": _UNITS, "name": "process_name", "args": {"name": "units of the SM"}},
    ]
    names = {warp: role.name for role in prediction.roles for warp in role.warps}
    for warp in range(prediction.warps_per_cta):
        name = (
            f"warp {warp} ({names[warp]})"
            if names.get(warp, "").split()[0] not in ("warp", "warps")
            else f"warp {warp}"
        )
        events.append({"ph": "M", "pid": _WARPS, "tid": warp, "name": "thread_name", "args": {"name": name}})
    for each in prediction.segments:
        if each.warp < prediction.warps_per_cta:
            name = "issue" if each.what == "issue" else f"wait for {each.what}"
            events.append(
                {
                    "ph": "X", "pid": _WARPS, "tid": each.warp, "ts": each.begin, "dur": each.end - each.begin,
                    "name": name, "args": {"line": each.line},
                }
            )  # fmt: skip
    for each in prediction.spans:
        if each.sm:
            continue
        common = {"pid": _UNITS, "cat": each.unit, "id": each.number, "name": f"{each.unit} (line {each.line})"}
        events.append({"ph": "b", "ts": each.begin, "args": {"bytes": each.bytes, "issued": each.issued}, **common})
        events.append({"ph": "e", "ts": each.end, **common})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
