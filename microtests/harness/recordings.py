"""What a GPU answered, in `microtests/recordings/FAMILY.json`: a line for each definition.

An output is kept as the hash of its bytes and its first bytes, whole (compressed) only where the emulator need not
have the same bits, or where the GPU differs from the reference. `inputs` identifies the inputs of the answer;
`fault` is what the driver said where the kernel must end in one.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from microtests.harness.definition import Definition
from microtests.harness.draft import Draft
from microtests.harness.run import Result, digest_of, wrong_elements

FOLDER = Path(__file__).parents[1] / "recordings"
#: Bytes of an output that are shown, and the most that are kept whole.
_SHOWN, _MOST = 16, 1 << 17


def entry(result: Result, draft: Draft) -> dict[str, Any]:
    """What is recorded of a run on a GPU."""
    if draft.fault and not result.outputs:
        return {"name": result.name, "inputs": result.digest, "outputs": {}, "fault": result.message}
    outputs: dict[str, Any] = {}
    for output in draft.outputs:
        data = result.outputs[output.name]
        kept: dict[str, Any] = {"sha": digest(data), "head": data[:_SHOWN].hex()}
        whole = (output.tolerance is not None and output.tolerance.recorded) or result.verdict == "wrong"
        if whole and len(data) <= _MOST:
            kept["data"] = base64.b64encode(zlib.compress(data, 9)).decode()
        outputs[output.name] = kept
    made: dict[str, Any] = {"name": result.name, "inputs": result.digest, "outputs": outputs}
    if result.verdict == "wrong":
        made["differs"] = result.message
    return made


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@functools.cache
def load(family: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The heading of a family's recordings (device, driver, date, ...) and its entries by name."""
    path = FOLDER / f"{family}.json"
    if not path.is_file():
        return {}, {}
    content = json.loads(path.read_text())
    return content["made"], {each["name"]: each for each in content["definitions"]}


def write(family: str, heading: dict[str, str], entries: Iterable[dict[str, Any]], known: Iterable[str]) -> None:
    """Record answers; those of other definitions of the family stay as far as the definitions exist."""
    _, old = load(family)
    merged = {**old, **{each["name"]: each for each in entries}}
    names = set(known)
    rows = [json.dumps(merged[name]) for name in sorted(merged) if name in names]
    FOLDER.mkdir(exist_ok=True)
    text = '{"made": ' + json.dumps(heading) + ',\n"definitions": [\n' + ",\n".join(rows) + "\n]}\n"
    (FOLDER / f"{family}.json").write_text(text)
    load.cache_clear()


def recorded(definition: Definition) -> dict[str, Any] | None:
    """The recording of a definition, if there is one."""
    return load(definition.family)[1].get(definition.name)


def difference(draft: Draft, result: Result, kept: dict[str, Any]) -> str:
    """How a run differs from a recording, in words; empty if it agrees."""
    if kept["inputs"] != digest_of(draft):
        return "the recording is of other inputs; record it again"
    if draft.fault or "fault" in kept:
        return "" if draft.fault and "fault" in kept else "only one of the emulator and the GPU ends in a fault"
    for output in draft.outputs:
        known, data = kept["outputs"].get(output.name), result.outputs[output.name]
        if known is None:
            return f"{output.name} is not in the recording; record it again"
        if digest(data) == known["sha"]:
            continue
        if "data" in known:
            answered = np.frombuffer(zlib.decompress(base64.b64decode(known["data"])), output.dtype)
            found = np.frombuffer(data, output.dtype)
            tolerance = output.tolerance if output.tolerance and output.tolerance.recorded else None
            wrong = wrong_elements(found, answered, tolerance)
            if not wrong.any():
                continue
            at = int(np.flatnonzero(wrong)[0])
            return (
                f"{output.name}: {int(wrong.sum())} of {found.size} differ from the GPU's, the first at {at}: "
                f"{found[at : at + 1].tobytes()[::-1].hex()}, not {answered[at : at + 1].tobytes()[::-1].hex()}"
            )
        return f"{output.name} differs from the GPU's: it begins {data[:_SHOWN].hex()}, not {known['head']}"
    return ""
