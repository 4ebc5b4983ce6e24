"""Write the folder that the GPU runs, or record what it answered."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
from pathlib import Path

from ptxgen.descriptors.tensormap.tables import SWIZZLE_CODES, TYPES
from tests.bugs import BUGS
from tests.bugs.bug import COLUMNS, DATA, ROWS, Bug
from tests.bugs.sanitizer import RECORD, verdicts
from tools.sanitizer.live import ROOM, live

#: The sides of each bug: the suffix of a job's name and whether it is the right twin.
SIDES = (("bug", False), ("twin", True))


def bugs() -> list[Bug]:
    """The bugs that a GPU of sm_90 can run."""
    return [bug for bug in BUGS if bug.target == "sm_90a"]


def entry(name: str) -> str:
    """The name of a kernel's entry, by which a tool's reports are told apart."""
    return "k_" + re.sub(r"\W", "_", name)


def export(folder: Path) -> None:
    """Write every bug and twin as PTX with its launch, and beside them the two scripts that run them."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs: dict[str, dict[str, object]] = {}
    for bug in bugs():
        for side, right in SIDES:
            name = f"{bug.name}.{side}"
            texts = {f"{name}.before": bug.before_text(right=right)} if bug.before else {}
            texts[name] = bug.text(right=right)
            for each, text in texts.items():
                named = live(text, DATA).replace(".entry kernel(", f".entry {entry(each)}(")
                (folder / f"{each}.ptx").write_text(named)
            jobs[name] = {
                "kernels": {each: entry(each) for each in texts},
                "grid": bug.grid,
                "block": bug.block,
                "cluster": bug.cluster or 0,
                "map_type": list(TYPES).index(bug.map_type),
                "box": list(bug.box),
                "swizzle": list(SWIZZLE_CODES).index(bug.swizzle),
                "extents": [ROWS, COLUMNS],
                "bytes": DATA + ROOM,
            }
    (folder / "jobs.json").write_text(json.dumps(jobs, indent=1))
    for script in ("launch.py", "sweep.py"):
        shutil.copy(Path(__file__).with_name(script), folder)


def expected(bug: Bug) -> str:
    """The hash of what the right twin leaves in `data` in the emulator, as launch.py computes it."""
    data = bug.outcome("eager", right=True, seed=0)[1]
    return hashlib.sha256(data.tobytes()).hexdigest()[:16]


def record(results: Path) -> None:
    """Write the verdicts on a GPU's results where docs/bugs.md reads them."""
    answer = json.loads(results.read_text(encoding="utf-8"))
    found = {bug.name: verdicts(answer["results"], bug.name) for bug in bugs()}
    made = answer["made"]
    differing = [
        bug.name
        for bug in bugs()
        if (hashes := set(answer["results"][f"{bug.name}.twin"].get("gpu", {}).get("hashes", [])))
        and hashes != {expected(bug)}
    ]
    made["twins_unlike_the_emulator"] = differing
    RECORD.write_text(json.dumps({"made": made, "verdicts": found}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.sanitizer", description=__doc__)
    commands = parser.add_subparsers(required=True)
    written = commands.add_parser("export", help="write the folder that the GPU runs")
    written.add_argument("path", type=Path, help="folder to write")
    written.set_defaults(run=export)
    answered = commands.add_parser("record", help="record what the GPU answered")
    answered.add_argument("path", type=Path, help="results that sweep.py wrote")
    answered.set_defaults(run=record)
    options = parser.parse_args()
    options.run(options.path)


if __name__ == "__main__":
    main()
