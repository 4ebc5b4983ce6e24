"""Run every job of a folder on the GPU, alone and under each tool of compute-sanitizer: `sweep.py FOLDER RESULTS`.

Standard library only: the folder that `python -m tools.sanitizer export` writes can be carried to any machine with an
NVIDIA GPU of sm_90, compute-sanitizer and ptxas. A kernel that hangs or faults ends its process, and the next ones go
on in another. RESULTS is a JSON file whose "results" has an outcome for each job and each of "gpu" and the tools; what
the time limit leaves out is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("racecheck", "synccheck", "memcheck", "initcheck")
#: Launches of one bare process: a race may show in some only.
REPEATS = 50
#: Limits of one launch, in seconds: bare, and under a tool, which makes kernels slower.
HANG, TOOL_HANG = 2.0, 6.0
#: What a process may take beyond its launches, in seconds: loading the driver and the tool.
START = 30.0
#: Jobs of one process, until one hangs or faults: most of a small launch is the making of a context.
BATCH = 12
#: Of the output of a tool only this is kept.
LINES, WIDTH = 3, 160

#: What a report begins with: its first line has no more than one blank after the marks.
_REPORT = re.compile(r"^========= (?=\S)", re.MULTILINE)


@dataclass(frozen=True)
class Sweep:
    """What every process of a sweep needs."""

    folder: Path
    #: Job -> the launch that jobs.json describes.
    jobs: dict[str, dict]
    sanitizer: str
    #: time.monotonic() after which no process is started.
    end: float

    def run(self, names: list[str], how: str) -> dict[str, dict[str, object]]:
        """The outcomes of some jobs, bare (`gpu`) or under a tool, by name; a job that ends its process is the last."""
        outcomes: dict[str, dict[str, object]] = {}
        left = list(names)
        while left and time.monotonic() < self.end:
            text, killed = output(self._command(left, how), START + len(left) * (1 if how == "gpu" else 3))
            said = [json.loads(line) for line in text.splitlines() if line.startswith('{"job"')]
            ended = {each.pop("job"): each for each in said}
            if len(ended) < len(left) and all(each["end"] == "ok" for each in ended.values()):
                # The process was lost in the job after the last that it reported.
                ended[left[len(ended)]] = {"end": "killed" if killed else "died", "error": text[-WIDTH:]}
            for name, outcome in ended.items():
                outcomes[name] = outcome | ({} if how == "gpu" else self.reports(name, text))
            left = left[len(ended) :]
        return outcomes

    def _command(self, names: list[str], how: str) -> list[str]:
        script = str(Path(__file__).with_name("launch.py"))
        repeats, hang = (REPEATS, HANG) if how == "gpu" else (1, TOOL_HANG)
        command = [sys.executable, "-S", script, str(self.folder), str(repeats), str(hang), *names]
        tool = [self.sanitizer, "--tool", how, "--report-api-errors", "no", "--print-limit", "100000"]
        return command if how == "gpu" else [*tool, *command]

    def reports(self, name: str, text: str) -> dict[str, object]:
        """What a tool reports of a job: the number of errors and warnings, and the first. None without a summary."""
        if "SUMMARY" not in text:
            return {"errors": None, "warnings": None}
        entries = [re.escape(entry) for entry in self.jobs[name]["kernels"].values()]
        own = re.compile(rf"\b(?:{'|'.join(entries)})\b")
        reports = [each for each in _REPORT.split(text) if own.search(each)]
        warnings = [each for each in reports if each.startswith("Warning")]
        first = [line.removeprefix("=========").strip()[:WIDTH] for line in (reports or [""])[0].splitlines()[:LINES]]
        return {"errors": len(reports) - len(warnings), "warnings": len(warnings), "lines": first}


def output(command: list[str], seconds: float) -> tuple[str, bool]:
    """What a process and its children print, and whether they had to be killed after some seconds."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    )
    try:
        return process.communicate(timeout=seconds)[0], False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            return process.communicate(timeout=10)[0], True
        except subprocess.TimeoutExpired:
            return "", True


def refused(folder: Path, ptxas: str, workers: int) -> dict[str, str]:
    """Assemble every text of a folder beside it; the names of those that ptxas refuses, with its first words."""

    def one(text: Path) -> str:
        command = [ptxas, "-arch=sm_90a", "-lineinfo", str(text), "-o", str(text.with_suffix(".cubin"))]
        said = subprocess.run(command, check=False, capture_output=True, text=True)
        return said.stderr.strip()[:WIDTH] if said.returncode else ""

    texts = sorted(folder.glob("*.ptx"))
    with ThreadPoolExecutor(workers) as pool:
        return {text.stem: words for text, words in zip(texts, pool.map(one, texts), strict=True) if words}


def version(command: list[str], pattern: str) -> str:
    """What a pattern finds in the output of a command."""
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError as error:
        return str(error)
    found = re.search(pattern, text)
    return found[1] if found else text.strip()[:80]


def main() -> None:
    """Run all, bare first, and write what came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seconds", type=float, default=3600, help="start nothing after these")
    parser.add_argument("--runs", default=",".join(("gpu", *TOOLS)), help="what to run, in this order")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--sanitizer", default=shutil.which("compute-sanitizer") or "compute-sanitizer")
    parser.add_argument("--ptxas", default=shutil.which("ptxas") or "ptxas")
    given = parser.parse_args()
    begun = time.monotonic()
    jobs = json.loads((given.folder / "jobs.json").read_text())
    without = refused(given.folder, given.ptxas, given.workers)
    sweep = Sweep(given.folder, jobs, given.sanitizer, begun + given.seconds)
    results: dict[str, dict[str, object]] = {name: {} for name in jobs}
    results |= {name: {"gpu": {"end": "refused", "error": words}} for name, words in without.items()}
    names = sorted(set(jobs) - set(without))
    batches = [names[start : start + BATCH] for start in range(0, len(names), BATCH)]
    work = [(batch, how) for how in given.runs.split(",") for batch in batches]
    with ThreadPoolExecutor(given.workers) as pool:
        for (_, how), outcomes in zip(work, pool.map(lambda each: sweep.run(*each), work), strict=True):
            for name, outcome in outcomes.items():
                results[name][how] = outcome
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    made = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "gpu": version(query, r"(.+)"),
        "compute-sanitizer": version([given.sanitizer, "--version"], r"Version ([\d.]+)"),
        "ptxas": version([given.ptxas, "--version"], r"V([\d.]+)"),
        "repeats": REPEATS,
        "tools": ", ".join(each for each in given.runs.split(",") if each != "gpu"),
        "seconds": round(time.monotonic() - begun, 1),
        "left_out": sum(how not in results[name] for batch, how in work for name in batch),
    }
    given.results.write_text(json.dumps({"made": made, "results": results}, indent=0))
    print(made)


if __name__ == "__main__":
    main()
