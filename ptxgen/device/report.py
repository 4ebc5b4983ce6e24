"""What a launch reports: findings and the accesses that they are about, as data and in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal

from ptxgen.device.accept import Accept
from ptxgen.device.compilers import Compiler
from ptxgen.names import readable, shown_name

Severity = Literal["error", "advice"]
#: Least severity that makes the exit code 1: errors, advice too, or nothing (`never`).
FailOn = Literal["error", "advice", "never"]
Status = Literal["ok", "findings", "incomplete", "deadlock", "fault"]
#: Role of an access in a finding: the two of a race, a wait, an arrival, the issue of asynchronous work.
Role = Literal["reader", "writer", "accessor", "waiter", "arriver", "issuer", "initializer", "allocator"]

#: Characters of an instruction that are shown under a finding.
_SHOWN_INSTRUCTION = 200
#: Stale values that a summary shows, and lines that a message lists.
_SHOWN_OLDER, _SHOWN_LINES = 8, 8
#: Parts of an opcode that a name of the instruction leaves out, with what follows: `2d`, `u32`, `shared::cta`, `sync`.
_DETAIL = re.compile(r"\d|[a-z]+\d+$|.*::|(sync|aligned)$")


def shortened(text: str, most: int) -> str:
    """A text of about so many characters: what is left out of a longer one is in the middle."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def line_list(numbers: Iterable[int]) -> str:
    """`line 4`, `lines 4, 7`, or the first of many `and 92 more`."""
    lines = sorted(set(numbers))
    more = f" and {len(lines) - _SHOWN_LINES} more" if len(lines) > _SHOWN_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:_SHOWN_LINES]))}{more}"


@dataclass(frozen=True)
class Access:
    """One party of a finding: who touches what, where.

    `line` and `instruction` are those of the PTX text, `source` is the line of what it was compiled from. `warp` counts
    within the CTA, bit i of `lanes` stands for lane i (None: the whole warp, or unknown), `cta` is %ctaid and `rank`
    %cluster_ctarank. `space` is the state space, `address` a byte offset there (a cell of tensor memory: its address),
    `name` what messages call it: a variable, a region of the plan, an array and its element. `stage` is the slot of a
    ring, `phase` that of an mbarrier, counted from 0.
    """

    role: Role
    line: int | None = None
    instruction: str = ""
    warp: int | None = None
    lanes: int | None = None
    cta: tuple[int, int, int] | None = None
    rank: int | None = None
    space: str = ""
    address: int | None = None
    name: str = ""
    stage: int | None = None
    phase: int | None = None
    source: str = ""

    def __str__(self) -> str:
        """`tcgen05.mma (line 98, warp 1, CTA 0)`, or `CTA (0, 1, 0)` in a grid of several dimensions."""
        facts = [] if self.line is None else [f"line {self.line}"]
        if self.warp is not None:
            facts.append(f"warp {self.warp}")
        if self.lanes is not None and self.lanes.bit_count() == 1:
            facts.append(f"lane {self.lanes.bit_length() - 1}")
        if self.cta is not None:
            facts.append(f"CTA {self.cta if any(self.cta[1:]) else self.cta[0]}")
        return f"{self.opcode} ({', '.join(facts)})" if facts else self.opcode

    @property
    def opcode(self) -> str:
        """What the instruction is called: its opcode up to types, scopes and the like; `access` where there is none."""
        return _short_opcode(self.instruction)

    @property
    def place(self) -> str:
        """What it touches, name first: `full[2] (0x8410)`."""
        if self.address is None:
            return self.name
        return f"{self.name} ({self.address:#x})" if self.name else f"{self.address:#x}"


@lru_cache(maxsize=4096)
def _short_opcode(instruction: str) -> str:
    words = instruction.split()
    if words and words[0].startswith("@"):
        words = words[1:]
    parts = words[0].rstrip(";").split(".") if words else ["access"]
    return ".".join([parts[0], *takewhile(lambda part: not _DETAIL.match(part), parts[1:])])


@dataclass(frozen=True)
class Finding:
    """One thing that a device found wrong ("error") or risky ("advice") in a kernel.

    `code` is stable and short (`ptxgen explain CODE` explains it). `summary` says what happened, with the accesses by
    name and line, `rule` why it is wrong, with the values, `fix` how to correct it, `section` where the PTX ISA has the
    rule. `line` counts from 1 in the PTX text (None: no single line), `instruction` is the source text of the
    instruction, empty where there is none, `source` the line of what the PTX was compiled from, if `.loc` names it:
    `kernel.py:12:5`. The same at other lines is in `also_lines`, by other warps in `also_warps` (a count). What follows
    from the same cause is in `consequences`.
    """

    code: str
    severity: Severity
    summary: str
    line: int | None = None
    instruction: str = ""
    source: str = ""
    title: str = ""
    rule: str = ""
    fix: str = ""
    section: str = ""
    accesses: tuple[Access, ...] = ()
    consequences: tuple[Finding, ...] = ()
    also_lines: tuple[int, ...] = ()
    also_warps: int = 0
    #: The source line of each of `also_lines`, empty where unknown.
    also_sources: tuple[str, ...] = ()
    #: The text of the line `source`, if its file was there.
    source_text: str = ""
    #: The order of an exploration that shows it; empty outside explorations.
    order: str = ""

    @property
    def message(self) -> str:
        """`<title>: <summary> <rule>`, then `fix: <fix>` on a line of its own; mangled names are demangled."""
        return readable(self._message)

    @property
    def _message(self) -> str:
        text = self.summary
        if self.title:
            text = f"{self.title}: {' '.join(map(_sentence, filter(None, (self.summary, self.rule))))}"
        if self.also_lines:
            one, lines = len(self.also_lines) == 1, self._other_lines()
            same = f"{'waits' if one else 'wait'} because of it" if self.code == "deadlock" else ""
            if same:
                text += f" ({lines} {same})"
            else:
                text += f" (also at {lines})" if any(self.also_sources) else f" (so do{'es' if one else ''} {lines})"
        if places := self._other_places():
            text += f" (also {places})"
        if self.also_warps:
            text += f" (the same of {self.also_warps} other warp{'s' if self.also_warps > 1 else ''})"
        return f"{text}\nfix: {self.fix}" if self.fix else text

    def _other_lines(self) -> str:
        """`also_lines` in words: those of other source lines with these, the copies of an unrolled loop as a count."""
        first: dict[str, int] = {}
        for line, source in zip(self.also_lines, self.also_sources, strict=False):
            first.setdefault(source, line)
        if not any(first):
            return line_list(self.also_lines)
        copies = self.also_sources.count(self.source)
        if copies > 1:
            first.pop(self.source, None)
        else:
            copies = 0
        parts = [f"line {line} ({source})" if source else f"line {line}" for source, line in first.items()]
        more = len(parts) - _SHOWN_LINES
        parts = [*parts[:_SHOWN_LINES], *([f"{more} more"] if more > 0 else [])]
        parts += [f"{copies} other instructions of this source line"] if copies else []
        return ", ".join(parts)

    def _other_places(self) -> str:
        """What the accesses touch that were folded into this one, by name; the summary names the first of each role."""
        first: dict[str, str] = {}
        more: dict[str, None] = {}
        for each in self.accesses:
            if each.place and first.setdefault(each.role, each.place) != each.place:
                more[each.place] = None
        names = list(more)
        rest = f" and {len(names) - _SHOWN_LINES} more" if len(names) > _SHOWN_LINES else ""
        return f"{', '.join(names[:_SHOWN_LINES])}{rest}"

    def flattened(self) -> Iterator[Finding]:
        """The finding, then its consequences."""
        yield self
        for each in self.consequences:
            yield from each.flattened()

    def __str__(self) -> str:
        lines = f"{self.head} {self.message}".splitlines()
        if self.source_text:
            lines.append(shortened(self.source_text, _SHOWN_INSTRUCTION))
        if self.instruction:
            lines.append(shortened(self.instruction, _SHOWN_INSTRUCTION))
        if self.order:
            lines.append(f"order: {self.order}")
        if self.consequences:
            lines.append(self.consequences_line)
        return "\n    ".join(lines)

    @property
    def head(self) -> str:
        """`line 12 (kernel.cu:3:5): error [shared-race]`."""
        place = "" if self.line is None else f"line {self.line}{f' ({self.source})' if self.source else ''}: "
        return f"{place}{self.severity} [{self.code}]"

    @property
    def consequences_line(self) -> str:
        """`+ 7 consequences: deadlock, shared-race`; empty if there are none."""
        count = len(self.consequences)
        codes = ", ".join(dict.fromkeys(each.code for each in self.consequences))
        return f"+ {count} consequence{'s' if count > 1 else ''}: {codes}" if count else ""

    def to_json(self) -> dict[str, Any]:
        """All fields, the message, and those of the consequences, as JSON takes them."""
        fields = asdict(self)
        fields["message"] = self.message
        fields["consequences"] = [each.to_json() for each in self.consequences]
        return fields


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


@dataclass(frozen=True, order=True)
class StaleValue:
    """A strong load (in `line`) found what was there before a strong store (in `store_line`), so many `times`.

    That may be (PTX ISA 8.10), since nothing orders the store before the load, and is right where the load polls.
    """

    line: int
    store_line: int
    times: int

    def __str__(self) -> str:
        times = "once" if self.times == 1 else f"{self.times} times"
        return f"line {self.line} found what was there before the store of line {self.store_line}, {times}"


@dataclass(frozen=True)
class Repeat:
    """A finding that an earlier launch of the same emulator had too: in a loop of launches it is shown once."""

    #: Number of the first launch that had it, counted from 1.
    first: int
    #: Launches that had it, up to and including this one.
    launches: int

    def __str__(self) -> str:
        return f"as in launch {self.first}, {self.launches} launches so far"


class LaunchFailedError(RuntimeError):
    """A launch did not end well; `report` says how, and the text of the error is its summary."""

    def __init__(self, report: LaunchReport) -> None:
        self.report = report
        super().__init__(report.summary(repeated=True))


@dataclass(repr=False)
class LaunchReport:
    """How one launch ended.

    `instructions` counts executed warp-instructions (0 on a GPU, which does not count them), `seconds` is the
    time that execution took: on the device for a GPU, of the emulation for the emulator. If results are wrong under
    `late` or `random` alone, look at `stale_values` first: fences may be missing there. `unused_accepts` are entries of
    the accepted findings for this kernel that have not come up. `compiler`: who wrote the module, if known.
    """

    status: Status
    findings: list[Finding] = field(default_factory=list)
    instructions: int = 0
    seconds: float = 0.0
    kernel: str = ""
    device: str = ""
    stale_values: list[StaleValue] = field(default_factory=list)
    unused_accepts: list[Accept] = field(default_factory=list)
    #: Entries of the accepted findings that have come up.
    used_accepts: list[Accept] = field(default_factory=list)
    #: Summary of an exploration: orders tried and left; empty outside explorations.
    explored: str = ""
    #: Reasons why a check is partial, in words; empty if everything was checked and reported.
    gaps: list[str] = field(default_factory=list)
    compiler: Compiler | None = None
    #: The paths of source files, by the names that findings have; empty without findings.
    source_files: dict[str, str] = field(default_factory=dict)
    #: By position in `findings`: those that an earlier launch of the same emulator had too.
    repeats: dict[int, Repeat] = field(default_factory=dict)

    @property
    def compiler_made(self) -> list[Finding]:
        """Advice that the compiler of the module causes by the code that it always emits."""
        accepts = self.compiler.accepts if self.compiler is not None else {}
        return [each for each in self.findings if each.severity == "advice" and each.code in accepts]

    @property
    def all_findings(self) -> list[Finding]:
        """The findings, each with its consequences after it."""
        return [each for finding in self.findings for each in finding.flattened()]

    @property
    def ok(self) -> bool:
        """Whether the kernel ran to its end with nothing worse than advice."""
        return self.status == "ok"

    @property
    def checked(self) -> Literal["complete", "partial"]:
        """`partial` if something was not checked or not reported: `gaps` says what."""
        return "partial" if self.gaps else "complete"

    @property
    def advised(self) -> str:
        """`2 pieces of advice: bank-conflicts, missing-tcgen05-wait`; empty without advice."""
        codes = [each.code for each in self.findings if each.severity == "advice"]
        if not codes:
            return ""
        return f"{len(codes)} piece{'s' * (len(codes) > 1)} of advice: {', '.join(dict.fromkeys(codes))}"

    def fails(self, on: FailOn = "error") -> bool:
        """Whether the launch went wrong; on advice too, if `on` is "advice".

        With "never" no finding counts: only a launch that did not run to its end fails.
        """
        if on == "never":
            return self.status not in ("ok", "findings")
        return not self.ok or (on == "advice" and bool(self.advised))

    def raise_for_status(self, advice: bool = False) -> LaunchReport:
        """The report itself if the launch went well, with `advice` only if there is no advice either.

        Raises LaunchFailedError, whose text is the summary.
        """
        if not self.ok or (advice and self.findings):
            raise LaunchFailedError(self)
        return self

    def __repr__(self) -> str:
        return f"<LaunchReport {self.summary()}>"

    def summary(self, *, consequences: bool = False, repeated: bool = False) -> str:
        """One line on the outcome, each finding below it, and one on stale values where they may be in results.

        With `consequences`, those of each finding follow it; without, the advice that a compiler causes is one line.
        What an earlier launch had too is one short line each, unless `repeated`.
        """
        what = " on ".join(part for part in (shown_name(self.kernel), self.device) if part)
        facts = [f"{self.seconds * 1e3:.3f} ms"]
        if self.instructions:
            facts.insert(0, f"{self.instructions} warp-instructions")
        for severity, plural in (("error", "errors"), ("advice", "advice")):
            count = sum(finding.severity == severity for finding in self.findings)
            if count:
                facts.append(f"{count} {severity if count == 1 else plural}")
        head = f"{what + ': ' if what else ''}{self.status} ({', '.join(facts)})"
        lines = [head, *([f"explored: {self.explored}"] if self.explored else [])]
        folded = [] if consequences else self.compiler_made
        for position, finding in enumerate(self.findings):
            if any(finding is each for each in folded):
                continue
            if position in self.repeats and not (repeated or consequences):
                lines.append(f"{finding.head} {self.repeats[position]}")
                continue
            lines.append(str(finding))
            if consequences:
                lines += [f"    + {line}" for each in finding.consequences for line in str(each).splitlines()]
        if folded and self.compiler is not None:
            counts = Counter(each.code for each in folded)
            kinds = ", ".join(f"{code}{f' {count} times' if count > 1 else ''}" for code, count in counts.items())
            lines.append(f"advice that {self.compiler.name} causes by the code that it always emits: {kinds}")
        if self.stale_values and self.status in ("ok", "findings"):  # else there are no results
            lines.append(self.stale_values_text)
        lines += [f"accepted, but not found any more: {each}" for each in self.unused_accepts]
        lines += [f"checked in part: {'; '.join(self.gaps)}"] if self.gaps else []
        return "\n".join(lines)

    @property
    def stale_values_text(self) -> str:
        """What the first of `stale_values` are, in words."""
        shown = "; ".join(map(str, self.stale_values[:_SHOWN_OLDER]))
        more = len(self.stale_values) - _SHOWN_OLDER
        rest = f"; and {more} more in stale_values" if more > 0 else ""
        return f"strong loads found stale values, which is right where they poll: {shown}{rest}"
