"""The attention kernels by name: rungs of the ladders in `attention/ladder.toml` of each target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from ptxgen.attention.config import AttentionConfig
from ptxgen.attention.plan import AttentionPlan
from ptxgen.builder import KERNELS_FOLDER
from ptxgen.ladder import LADDER, Rung, read_folder, read_ladder
from ptxgen.options import PlanError


@dataclass(frozen=True)
class AttentionEntry(Rung):
    """An attention kernel by name."""

    config_type: ClassVar[type[Any]] = AttentionConfig

    def plan(self, **choices: Any) -> AttentionPlan:
        """The plan of a config: the rung's defaults with other choices. Raises PlanError."""
        config = self.config(**choices)
        made = AttentionPlan.of(config, self.template, design=self.design, target=self.target)
        return replace(made, name=self.title, settings=self.signature(config))


@cache
def kernels() -> dict[str, AttentionEntry]:
    """The packaged attention kernels by name, in the order of the ladders."""
    found: dict[str, AttentionEntry] = {}
    for path in sorted(KERNELS_FOLDER.glob(f"*/attention/{LADDER}")):
        found.update(read_ladder(path, found, AttentionEntry))
    return found


def find(name: str) -> AttentionEntry:
    """The attention kernel of this name or rung id, or of FOLDER#RUNG. Raises PlanError if there is none.

    >>> from ptxgen.attention import find
    >>> plan = find("hopper/attention-serial").plan(head_size=64)
    >>> plan.shared.bytes, ".target sm_90a" in plan.text
    (40984, True)
    """
    folder, hash, rung = name.partition("#")
    if hash:
        return read_folder(Path(folder), rung, kernels(), AttentionEntry)
    for entry in kernels().values():
        if name == entry.name or name in entry.rungs:
            return entry
    raise PlanError(f"there is no attention kernel {name!r}; there are: {', '.join(kernels())}")
