"""The kit: everything that is run on a GPU of one generation, in one compressed file that `ptxgen verify` reads.

A gzip file of JSON lines: a heading (kit, target, device, driver, ptxas, date), an answer of each microtest that the
target has (as in recordings; questions with all their words), and the tensormaps that the driver encodes.
"""

from __future__ import annotations

import base64
import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from microtests.harness import recordings
from microtests.harness.definition import Definition, definitions
from microtests.harness.draft import Draft, NotThereError
from microtests.harness.gpu import run_on_gpu
from microtests.harness.questions import is_question
from microtests.harness.run import Result, run
from microtests.harness.tensormaps import tensormaps
from ptxgen.emulator import Emulator
from ptxgen.files import read_file

#: Targets of each kit; the emulator takes the first.
KITS = {"blackwell": ("sm_100a", "sm_103a", "sm_120a", "sm_110a", "sm_121a"), "hopper": ("sm_90a",)}
#: Seconds after which a GPU begins nothing more; the emulator in its place runs everything.
SECONDS = {"blackwell": 480.0, "hopper": 240.0}
#: The most that a file may have, and what its answers may take of it before they are kept as hashes.
MOST_BYTES, _WHOLE_BYTES = 20_000_000, 12_000_000
_FORMAT = 1

Answer = dict[str, Any]


class KitError(ValueError):
    """A file that is no kit's."""


@dataclass(frozen=True)
class Kit:
    """What a file holds."""

    heading: dict[str, Any]
    answers: list[Answer]
    tensormaps: list[Answer]


def order(found: Sequence[Definition]) -> list[Definition]:
    """Questions first, then what only some targets have, then the rest."""
    own = ("tcgen05", "mma_scaled", "launch_control", "wgmma", "tensor_sums")
    here = [each for each in found if not each.emulator_only]
    return sorted(here, key=lambda each: (not is_question(each), not each.family.startswith(own)))


def entry(result: Result, draft: Draft) -> Answer:
    """An answer, with the words of a question."""
    made = recordings.entry(result, draft)
    for output in draft.outputs:
        if "fault" not in made:
            data = zlib.compress(result.outputs[output.name], 9)
            made["outputs"][output.name]["data"] = base64.b64encode(data).decode()
    return made


def on_gpu(found: Sequence[Definition], jobs: int, seconds: float) -> Iterator[Answer]:
    """Answers of this machine's GPU: each question in a process of its own, which a fault or a hang ends."""
    ends = time.monotonic() + seconds
    asked = [each for each in found if is_question(each)]
    others = [each for each in found if not is_question(each)]
    yield from run_on_gpu(asked, jobs, total=seconds, most=1, whole=True)
    yield from run_on_gpu(others, jobs, total=max(0.0, ends - time.monotonic()))


def emulated(found: Sequence[Definition], target: str, jobs: int = 1, seconds: float | None = None) -> Iterator[Answer]:
    """Answers of the emulator in the place of a GPU, whole unless `seconds` end it early."""
    ends = None if seconds is None else time.time() + seconds
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        names = [each.name for each in found]
        if pool is None:
            answers = map(_emulate, names, repeat(target), repeat(ends))
        else:
            answers = pool.map(_emulate, names, repeat(target), repeat(ends), chunksize=20)
        yield from (answer for answer in answers if answer["verdict"] != "absent")


def _emulate(name: str, target: str, ends: float | None) -> Answer:
    """One answer; `ends` is a time of the clock, which all processes share."""
    made: Answer = {"name": name, "verdict": "failed", "message": "no time was left", "seconds": 0.0}
    if ends is not None and time.time() > ends:
        return made
    definition = definitions()[name]
    try:
        draft = definition.draft(target)
    except NotThereError as reason:
        return made | {"verdict": "absent", "message": str(reason)}
    result = run(definition, Emulator(target), draft)
    made |= {"verdict": result.verdict, "message": result.message, "seconds": result.seconds}
    if result.outputs or (draft.fault and result.verdict == "passed"):
        made["entry"] = entry(result, draft) if is_question(definition) else recordings.entry(result, draft)
    return made


def write(path: Path, heading: dict[str, Any], answers: Iterable[Answer], encode: Callable[[Any], bytes] | None) -> int:
    """Write a file; `encode` is the driver's encoding of a tensormap, None without a GPU. Returns its bytes."""
    lines, kept = [json.dumps({"format": _FORMAT, **heading})], 0
    for answer in answers:
        if answer["verdict"] == "absent":
            continue
        made = {name: value for name, value in answer.items() if name != "entry"} | answer.get("entry", {})
        for output in made.get("outputs", {}).values():
            if "data" in output:
                kept += len(output["data"])
                if kept > _WHOLE_BYTES:
                    del output["data"]
        lines.append(json.dumps(made))
    lines += [json.dumps(each) for each in tensormaps(encode)]
    data = gzip.compress(("\n".join(lines) + "\n").encode(), 9)
    if len(data) > MOST_BYTES:
        raise KitError(f"the file would have {len(data):,} bytes, more than {MOST_BYTES:,}")
    path.write_bytes(data)
    return len(data)


def read(path: Path) -> Kit:
    """What a file holds. Raises KitError where it is no file of a kit."""
    try:
        heading, *rows = [json.loads(line) for line in gzip.decompress(read_file(path)).decode().splitlines()]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, ValueError) as error:
        raise KitError(f"{path} is not a file of `python -m microtests --kit`: {error}") from error
    if heading.get("format") != _FORMAT or "target" not in heading:
        raise KitError(f"{path} is not a file of `python -m microtests --kit` that this version reads")
    return Kit(heading, [row for row in rows if "tensormap" not in row], [row for row in rows if "tensormap" in row])
