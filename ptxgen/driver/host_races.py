"""Findings of the host's happens-before (native/order.c): operations of streams and the program that nothing orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxgen.device import Finding
from ptxgen.driver import sites
from ptxgen.driver.names import short_name
from ptxgen.emulator.checks.registry.host import HOST_RACE

if TYPE_CHECKING:
    from ptxgen.driver.memory import SharedMemory
    from ptxgen.driver.results import Launched


@dataclass(frozen=True)
class _Side:
    """One of two conflicting accesses: an operation of a stream, or the program itself."""

    what: str
    verb: str
    stream: int
    launch: int
    site: str

    @classmethod
    def of(cls, words: Sequence[str]) -> _Side:
        what, verb, stream, launch, site = words
        return cls(what, verb, int(stream), int(launch), sites.describe(site, what))

    @property
    def name(self) -> str:
        where = f"at {self.site}" if self.site else ""
        if not self.stream and not self.launch and self.what == "the program":
            return f"the program ({where})" if where else "the program"
        what = f"{short_name(self.what)} of launch {self.launch}" if self.launch else f"the {self.what}"
        stream = f"stream {self.stream}" if self.stream else "the default stream"
        return f"{what} ({', '.join(filter(None, (stream, f'issued {where}' if where else '')))})"

    @property
    def place(self) -> str:
        """The line of the program, `main.cu:12`, where that is known."""
        head = self.site.partition(" in ")[0]
        return head if ":" in head and head.rpartition(":")[2].isdigit() else ""


def host_race(text: str, memory: SharedMemory, launches: Sequence[Launched]) -> tuple[Finding, int]:
    """The finding that a message of the stand-in stands for, and the number of its launch (0: of none)."""
    kind, address, *words = text.split("\t")
    earlier, later = _Side.of(words[:5]), _Side.of(words[5:])
    at = int(address, 16)
    where = memory.describe(at)
    if kind == "nodes":
        rule = "Both are nodes of one graph, and no dependency orders them"
        fix = "a dependency: cudaGraphAddDependencies; in a capture cudaEventRecord and cudaStreamWaitEvent"
    elif kind == "host":
        rule = "The program has not waited for that stream"
        fix = "cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize before the access"
    else:
        rule = "Neither stream waits for the other"
        fix = "cudaEventRecord after the first in its stream, and cudaStreamWaitEvent before the second in the other"
        if later.what == "free" or earlier.what == "free":
            fix += "; or free it in the stream that used it last"
    finding = Finding(
        HOST_RACE.code,
        HOST_RACE.severity,
        f"{later.name} {later.verb} memory that {earlier.name} may still {_infinitive(earlier.verb)}: {where}",
        source=later.place or earlier.place,
        title=HOST_RACE.title,
        rule=rule,
        fix=fix,
    )
    return finding, later.launch or earlier.launch


def _infinitive(verb: str) -> str:
    return {"writes": "be writing", "reads": "be reading"}[verb]
