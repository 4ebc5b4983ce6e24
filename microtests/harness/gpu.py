"""Running definitions on this machine's GPU in processes of their own, several at a time, each with a time limit."""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from microtests.harness.definition import Definition

ROOT = Path(__file__).parents[2]


class Batch:
    """Some definitions, run one after the other by worker processes: another where one ends early."""

    def __init__(
        self, names: Sequence[str], limit: float, report: Callable[[dict[str, Any]], None], whole: bool = False
    ) -> None:
        self.left, self.limit, self.report = list(names), limit, report
        self.command = [sys.executable, "-m", "microtests.harness.worker", *(["--whole"] if whole else [])]

    def run(self) -> None:
        """Run all; every name gets an answer."""
        starts = 0
        while self.left:
            before = len(self.left)
            self._one_process()
            starts = 0 if len(self.left) < before else starts + 1
            if starts == 2:
                self._answer({"verdict": "failed", "message": "no process could run it", "seconds": 0.0})

    def _one_process(self) -> None:
        process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write("\n".join(self.left))
        process.stdin.close()
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        errors: list[str] = []
        reader = threading.Thread(
            target=lambda: errors.append(process.stderr.read() if process.stderr else ""), daemon=True
        )
        reader.start()
        begun = ""
        while True:
            try:
                line = lines.get(timeout=self.limit if begun else self.limit + 60)
            except queue.Empty:
                process.kill()
                process.wait()
                if begun:
                    self._answer(
                        {"verdict": "failed", "message": f"no end within {self.limit:.0f} s", "seconds": self.limit}
                    )
                return
            if line is None:
                break
            answer = json.loads(line)
            if "begins" in answer:
                begun = answer["begins"]
            else:
                begun = ""
                self._answer(answer)
        process.wait()
        if process.returncode not in (0, 3):
            reader.join(5)
            words = " ".join("".join(errors).split())[-300:]
            if begun:
                self._answer({"verdict": "failed", "message": f"its process ended: {words}", "seconds": 0.0})
            elif self.left:
                self._answer({"verdict": "failed", "message": f"no process ran it: {words}", "seconds": 0.0})

    def _answer(self, answer: dict[str, Any]) -> None:
        name = self.left.pop(0)
        self.report({**answer, "name": name})


def _read(stream: Any, lines: queue.Queue[str | None]) -> None:
    for line in stream:
        if line.startswith("{"):
            lines.put(line)
    lines.put(None)


def run_on_gpu(
    definitions: Sequence[Definition],
    jobs: int,
    limit: float = 20.0,
    total: float | None = None,
    *,
    most: int = 80,
    whole: bool = False,
) -> Iterator[dict[str, Any]]:
    """An answer for each definition, as they come; none for what is not begun `total` seconds after the start.

    A process runs at most `most` definitions; `whole` keeps all words of questions.
    """
    answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
    names = [each.name for each in definitions]
    # Small batches, dealt out as processes get free: those with a hang do not hold up others.
    size = max(1, min(most, -(-len(names) // jobs)))
    batches: queue.Queue[list[str]] = queue.Queue()
    for start in range(0, len(names), size):
        batches.put(names[start : start + size])
    ends = None if total is None else time.monotonic() + total

    def work() -> None:
        while True:
            try:
                batch = batches.get_nowait()
            except queue.Empty:
                break
            if ends is not None and time.monotonic() > ends:
                for name in batch:
                    answers.put({"name": name, "verdict": "failed", "message": "no time was left", "seconds": 0.0})
                continue
            Batch(batch, limit, answers.put, whole).run()
        answers.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    working = len(threads)
    while working:
        answer = answers.get()
        if answer is None:
            working -= 1
            continue
        if "entry" in answer:
            answer["entry"] = json.loads(zlib.decompress(base64.b64decode(answer["entry"])))
        yield answer
