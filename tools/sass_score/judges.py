"""The two judges of a pair: `ptxgen.sass.compare`, and NVIDIA/cccl's script on the output of cuobjdump."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ptxgen.sass import Function, Listing, compare
from ptxgen.toolchain import find_nvdisasm


@dataclass(frozen=True)
class Verdict:
    """Whether a pair was reported as different, and whether the place was named where one was expected."""

    reported: bool
    located: bool = False


@dataclass(frozen=True)
class Judged:
    """A pair with the verdicts on it.

    `refused`: nvdisasm makes no listing of the changed cubin, or ptxas made other code of what should be an equal pair.
    `by_line_table`: ptxas's line table, too, leads from a reported instruction to the edited line of PTX.
    """

    kind: str
    what: str
    ours: Verdict
    cccl: Verdict | None = None
    refused: bool = False
    equal: bool = False
    by_line_table: bool = True

    @property
    def fault(self) -> str:
        """What is wrong with our verdict; empty if nothing is."""
        if self.equal:
            if self.refused:
                return ""
            return "false report" if self.ours.reported else ""
        return "miss" if not self.ours.reported else "" if self.ours.located else "not located"

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Judged:
        """The opposite of `dataclasses.asdict`."""
        ours, cccl = Verdict(**row["ours"]), Verdict(**row["cccl"]) if row["cccl"] else None
        return cls(**{**row, "ours": ours, "cccl": cccl})

    @property
    def right(self) -> bool:
        return not self.fault


def ours(a: Listing, b: Listing, one: Function, other: Function, index: int) -> Verdict:
    """What `compare` says of two functions of which one instruction was changed."""
    found = compare(replace(a, functions=(one,)), replace(b, functions=(other,)))
    places = {each.a for pair in found.pairs for each in pair.differences}
    return Verdict(not found.same, not found.same and index in places)


@dataclass(frozen=True)
class Cccl:
    """NVIDIA/cccl's script, from the folder of a checkout, and the cuobjdump whose output it reads."""

    script: Path
    cuobjdump: Path

    @functools.cached_property
    def module(self) -> ModuleType:
        specification = importlib.util.spec_from_file_location("compare_sass", self.script)
        assert specification is not None
        assert specification.loader is not None
        made = importlib.util.module_from_spec(specification)
        sys.modules["compare_sass"] = made  # dataclasses look their module up
        specification.loader.exec_module(made)
        return made

    def kernels(self, data: bytes) -> dict[str, list[str]]:
        """The script's normalized text of a cubin, by kernel, the name left out."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.cubin"
            path.write_bytes(data)
            environment = {**os.environ, "NVDISASM_PATH": str(find_nvdisasm().parent)}
            done = subprocess.run(
                [str(self.cuobjdump), "-sass", str(path)], env=environment, capture_output=True, text=True, check=True
            )
        found: dict[str, list[str]] = {}
        for text in self.module.normalized_text(done.stdout).values():
            for part in text.split("Function : ")[1:]:
                name, *lines = part.rstrip("\n").split("\n")
                found[name] = lines
        return found

    def judge(self, one: list[str], other: list[str], index: int) -> Verdict:
        """Whether two kernels differ, and whether the line of the changed instruction is in the script's diff."""
        if one == other:
            return Verdict(False)
        matcher = difflib.SequenceMatcher(None, one, other)
        places = {i for tag, start, end, _, _ in matcher.get_opcodes() if tag != "equal" for i in range(start, end)}
        return Verdict(True, index in places)
