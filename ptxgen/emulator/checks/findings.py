"""Collecting findings: one per cause, however many threads and lines break a rule in the same way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ptxgen.device.accept import Accept
from ptxgen.device.report import Access, Finding, Role, Severity, line_list
from ptxgen.emulator.checks.causes import DEADLOCK, LANES, Cause
from ptxgen.emulator.checks.registry import CHECKS, Check
from ptxgen.emulator.checks.uninitialized.suspects import UNJUDGED, Source, Suspects, Verdict, noted
from ptxgen.instr.model.symbols import CODES
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.state.names import Names

__all__ = ["Findings", "line_list"]

#: Different findings that are kept of one code and severity, and accesses that are kept of one finding.
_LIMIT, _ACCESSES = 20, 16
#: Why an error is but advice.
HARMLESS = "harmless here: rerunning with different bytes there changed nothing"
DEAD = "harmless here: rerunning with other values in place of what this load gets changed nothing"
DECIDED = (
    "harmless here: atomic operations decide again; reruns with older values in this load, and with the warps one "
    "after the other, left the same words in memory"
)
#: A warp that a message names (`HappensBefore.member_name`); only what `add` reports is compared as text.
_WARP = re.compile(r"\bwarp \d+(?: of the CTA of rank \d+)?")
#: Parts of rules that differ between the stages and rounds of a ring: indices, addresses, phases, and how the last wait
#: of a warp explains a race (`StaleWaits.why`).
_STAGE = re.compile(r"\[\d+(?:, \d+)*\]|\+?0x[0-9a-f]+|\b(?:phase|parity) -?\d+|(?<=^The last wait of its warp on ).*")


#: Mentions of lines in fixes.
_LINES = re.compile(r"\bline \d+")
_BETWEEN = re.compile(r"\bbetween line (\d+) and line (\d+)")
_BEFORE = re.compile(r"\bbefore line (\d+)")
#: Codes of races between the same two instructions (in either order, between warps or lanes): code -> codes that
#: follow from it.
_RACES = {
    "shared-race": ("shared-race",),
    "global-race": ("global-race",),
    "missing-fence": ("missing-fence",),
    "narrow-scope": ("narrow-scope",),
    "nc-load": ("nc-load", "global-race", "grid-race"),
}
#: Faults by an address, and what accesses by the same address register do before it is far enough off to fault.
_ADDRESS_FAULTS = ("out-of-bounds", "misaligned")
_BY_ADDRESS = ("shared-race", "global-race", "uninitialized-shared")
#: The base of an address operand.
_BASE = re.compile(r"\[\s*(%[\w$]+)")


@dataclass(slots=True)
class _Kept:
    """The first report of a finding, with the warps, lines and causes of later reports that say the same."""

    finding: Finding
    ends: bool
    #: True if every report is harmless when nothing depends on the value read.
    reads: bool
    #: Dropped if the launch ends in a deadlock.
    unless_deadlock: bool
    #: Lines of racing weak loads whose values may be dropped; None if a report has none.
    raced: frozenset[int] | None = None
    #: Warps (CTA, warp) of all reports; `named` are those in the text of the first.
    warps: set[Hashable] = field(default_factory=set)
    named: frozenset[Hashable] = frozenset()
    lines: set[int] = field(default_factory=set)
    #: The fixes of the same at other lines.
    fixes: set[str] = field(default_factory=set)
    causes: set[Hashable] = field(default_factory=set)
    #: Causes of other findings that explain this one; this finding explains none by them.
    after: set[Hashable] = field(default_factory=set)
    follows: _Kept | None = None
    #: Lines of the accesses, and the variable or array that they touch.
    pair: frozenset[int | None] = frozenset()
    place: str = ""

    def __post_init__(self) -> None:
        self.pair = frozenset(each.line for each in self.finding.accesses)
        self.place = _array(self.finding)

    @property
    def bases(self) -> frozenset[str]:
        """The address registers of the accesses."""
        instructions = (self.finding.instruction, *(each.instruction for each in self.finding.accesses))
        return frozenset(base for each in instructions for base in _BASE.findall(each))

    @property
    def between_lanes(self) -> bool:
        """True of a race between lanes of a warp: the barrier that orders warps orders them too."""
        return any(isinstance(each, tuple) and each[0] == LANES for each in self.causes)

    @property
    def root(self) -> _Kept:
        """The finding at the root of this one's chain of causes; itself if it has none."""
        kept = self
        while kept.follows is not None:
            kept = kept.follows
        return kept

    def whole(self, consequences: tuple[Finding, ...] = ()) -> Finding:
        """The finding, with the other lines and warps that it stands for, and with what follows from it.

        Consequences that say the same of other lines count as such lines.
        """
        same = [
            each for each in consequences if (each.code, each.severity) == (self.finding.code, self.finding.severity)
        ]
        fix = _one_fix([self.finding.fix, *self.fixes, *(each.fix for each in same)])
        lines = self.lines | {line for each in same for line in (each.line, *each.also_lines) if line is not None}
        return replace(
            self.finding,
            fix=fix,
            also_lines=tuple(sorted(lines - {self.finding.line})),
            also_warps=len(self.warps - self.named),
            consequences=consequences,
        )

    def explains(self, other: _Kept) -> bool:
        """Whether another finding follows from this one: its check says so, and they have a cause in common, it is a
        race between the same two instructions, or it comes from the address register by which this one faults.
        """
        if self.finding.severity == "advice" and other.finding.severity == "error":
            return False
        if self.ends and self.finding.code in _ADDRESS_FAULTS and other.finding.code in _BY_ADDRESS:
            return not self.bases.isdisjoint(other.bases)
        if self.between_lanes and not other.between_lanes:
            return False
        common = self.causes & (other.causes | other.after)
        if other.finding.code == self.finding.code:
            common -= {DEADLOCK}  # two causes of one
        if other.between_lanes and not self.between_lanes and not self.pair.isdisjoint(other.pair):
            # The barrier between the warps orders the lanes too. Lines of lanes are known by granule alone.
            return other.finding.code == self.finding.code and self.place == other.place
        caused = other.finding.code in CHECKS[self.finding.code].explains and bool(common)
        return caused or (
            other.finding.code in _RACES.get(self.finding.code, ())
            and bool(other.pair)
            and other.pair <= self.pair
            and other.place == self.place
        )


class Findings:
    """The findings of a launch: what ended it first, then the others in the order in which they came up.

    Without `checks` there is only the cause of its end. `names` has those of warps, CTAs and memory.
    """

    def __init__(self, checks: bool = True) -> None:
        #: False: only faults are recorded (checks=False).
        self.checks = checks
        self._accepts: tuple[Accept, ...] = ()
        self._kernel = ""
        self._used: set[Accept] = set()
        self._found: list[_Kept] = []
        self._records: dict[Hashable, _Kept] = {}
        self._kept: Counter[tuple[str, Severity]] = Counter()
        #: False once an error was dropped that is neither of a suspect read nor of a weak load that races.
        self._only_reads = self._only_raced = True
        #: True once an error was dropped because of `_LIMIT`.
        self._dropped = False
        #: Gaps of the checks, in words, in the order in which they came up.
        self.gaps: dict[str, None] = {} if checks else {"checks are off: only faults and deadlocks are reported": None}
        #: Suspect reads: of uninitialized data, which may be harmless.
        self.suspects = Suspects()
        self.names: Names | None = None
        #: Callback for each new finding.
        self.reported: Callable[[Finding], None] = lambda finding: None

    def accept(self, accepts: Sequence[Accept], kernel: str) -> None:
        """Keep none of these findings of a kernel, but for what ends the launch."""
        self._accepts, self._kernel = tuple(each for each in accepts if each.kernel in ("", kernel)), kernel

    def _accepted(self, finding: Finding) -> list[Accept]:
        """The entries that a finding matches, by the line of any of its accesses."""
        lines = {finding.line, *(each.line for each in finding.accesses)}
        return [each for each in self._accepts if each.matches(finding.code, finding.instruction, self._kernel, lines)]

    def leave_out(self, what: str) -> None:
        """Note that something was not checked, or not reported: the launch is then checked in part only."""
        self.gaps[what] = None

    @property
    def unused_accepts(self) -> list[Accept]:
        """What is accepted, but has not come up; a comment with a code that `ptxgen check` has too may be for that."""
        return [each for each in self._accepts if each not in self._used and not (each.place and each.code in CODES)]

    @property
    def used_accepts(self) -> list[Accept]:
        """What is accepted, and has come up."""
        return [each for each in self._accepts if each in self._used]

    def access(
        self,
        role: Role,
        statement: Statement | None,
        warp: int | None = None,
        *,
        lanes: int | None = None,
        slot: int | None = None,
        space: str = "",
        address: int | None = None,
        phase: int | None = None,
    ) -> Access:
        """A party of a finding: warp, CTA, rank, name and stage are looked up.

        `warp` is a number of the machine's (None: no warp, or unknown), bit i of `lanes` stands for lane i, `slot` is
        the CTA slot of the memory (the warp's own if None), `address` counts in bytes in the state space.
        """
        if self.names is None:
            line, text = (statement.line, statement.text.strip()) if statement is not None else (None, "")
            return Access(role, line, text, lanes=lanes, space=space, address=address, phase=phase)
        return self.names.access(
            role, statement, warp, lanes=lanes, slot=slot, space=space, address=address, phase=phase
        )

    def name(self, space: str, address: int) -> str:
        """What messages call an address: `full[2] (0x8410)`, or the address alone."""
        return self.names.place(space, address) if self.names is not None else f"{address:#x}"

    def report(
        self,
        check: Check,
        statement: Statement | None,
        *,
        summary: str,
        rule: str | None = None,
        fix: str | None = None,
        accesses: tuple[Access, ...] = (),
        severity: Severity | None = None,
        ends: bool = False,
        reads: bool = False,
        unless_deadlock: bool = False,
        cause: Cause = None,
        after: frozenset[Hashable] = frozenset(),
        raced: int | None = None,
    ) -> set[Hashable] | None:
        """Report a broken rule at a statement; `ptxgen.emulator.checks.registry` says what to pass. `after` are causes
        of findings that explain it, but not one that has the same besides. `raced`: the line of a weak load in a race;
        the finding is harmless if nothing depends on its value. Gives the warps that the finding is of, to which a
        check may add others itself; None if it is not kept.

        Findings with the same cause, or with the same parties but for warps, CTAs and addresses, are one.
        """
        made = check.finding(statement, summary=summary, rule=rule, fix=fix, accesses=accesses, severity=severity)
        return self.keep(
            made, ends=ends, reads=reads, unless_deadlock=unless_deadlock, cause=cause, after=after, raced=raced
        )

    def keep(
        self,
        finding: Finding,
        *,
        ends: bool = False,
        reads: bool = False,
        unless_deadlock: bool = False,
        cause: Cause = None,
        after: frozenset[Hashable] = frozenset(),
        raced: int | None = None,
    ) -> set[Hashable] | None:
        """Keep a finding, or count it to the one that says the same; gives its warps."""
        if not (self.checks or ends):
            return None
        accepted = self._accepted(finding) if self._accepts else []
        self._used.update(accepted)
        if accepted and not ends:
            return None
        code, severity, line = finding.code, finding.severity, finding.line
        warps, kind = _identity(finding, ends, cause)
        by_line = (code, severity, line, kind)
        anywhere = (code, severity, kind, None if finding.accesses and cause else warps)
        record = self._records.get(anywhere) or self._records.get(by_line)
        if record is None:
            self._kept[code, severity] += 1
            if self._kept[code, severity] > _LIMIT:
                self._dropped |= severity == "error"
                self._only_reads &= reads or severity == "advice"
                self._only_raced &= raced is not None or severity == "advice"
                self.leave_out(f"more than {_LIMIT} different findings of {code}")
                return None
            record = _Kept(finding, ends, reads, unless_deadlock, frozenset(), named=warps)
            self._found.append(record)
            self.reported(finding)
        record.ends |= ends
        record.reads &= reads
        record.unless_deadlock &= unless_deadlock
        record.raced = record.raced | {raced} if record.raced is not None and raced is not None else None
        record.warps |= warps
        record.lines.update([line] if line is not None else [])
        record.causes |= cause if isinstance(cause, frozenset) else {cause} - {None}
        record.after |= after
        if finding.fix != record.finding.fix and finding.rule == record.finding.rule:
            record.fixes.add(finding.fix)
        _add_accesses(record, finding)
        self._records.setdefault(by_line, record)
        self._records.setdefault(anywhere, record)
        return record.warps

    def deadlocked(self) -> None:
        """The launch ends as a deadlock."""
        self._found = [each for each in self._found if not each.unless_deadlock]

    def settle(self, verdicts: Mapping[Source, Verdict], *, failed: bool) -> None:
        """Turn suspect reads into findings, but for those that are dropped; `failed` says how the launch ended."""
        for finding, cause in self.suspects.settled(verdicts, failed=failed):
            self.keep(finding, cause=cause)

    def list(self) -> list[Finding]:
        """All findings that follow from no other, what ended the launch first, each with all that it stands for."""
        self._relate()
        ended = {id(each.root) for each in self._found if each.ends}
        ordered = sorted(self._found, key=lambda each: not each.ends)
        roots = sorted((each for each in ordered if each.follows is None), key=lambda each: id(each) not in ended)
        return [
            each.whole(tuple(other.whole() for other in ordered if other is not each and other.root is each))
            for each in roots
        ]

    def _relate(self) -> None:
        """Find out what follows from what: first from a finding of another check, else from one of the same."""
        for each in self._found:
            each.follows = None
        for same in (False, True):
            for number, each in enumerate(self._found):
                if each.follows is not None:
                    continue
                for index, other in enumerate(self._found):
                    alike = other.finding.code == each.finding.code
                    first = (
                        index < number
                        or other.follows is not None
                        or not other.causes.isdisjoint(each.after)
                        or each.between_lanes
                    )
                    if alike == same and (first or not alike) and other.explains(each) and other.root is not each:
                        each.follows = other
                        break

    @property
    def may_be_harmless(self) -> bool:
        """Whether some errors are harmless if nothing depends on what was read."""
        return self._only_reads and any(each.reads and each.finding.severity == "error" for each in self._found)

    def make_harmless(self) -> None:
        """Nothing depends on what was read: such errors become advice."""
        for each in self._found:
            if each.reads and each.finding.severity == "error":
                each.finding = replace(noted(each.finding, HARMLESS), severity="advice")

    def cut_off(self) -> None:
        """The launch is incomplete, and not rerun: errors that a rerun might have found harmless become advice."""
        unjudged = [each for each in self._found if (each.reads or each.raced) and each.finding.severity == "error"]
        if self.suspects.sources or unjudged:
            self.leave_out("whether suspect reads matter: an incomplete launch is not rerun")
        for each in unjudged:
            each.finding = replace(noted(each.finding, UNJUDGED), severity="advice")

    @property
    def raced_lines(self) -> frozenset[int]:
        """The lines of weak loads that race, of errors that are harmless if nothing depends on them."""
        if not self._only_raced:
            return frozenset()
        return frozenset[int]().union(*(each.raced or () for each in self._found if each.finding.severity == "error"))

    @property
    def raced_stores(self) -> frozenset[frozenset[int | None]]:
        """The pairs of lines whose stores of different bytes race with each other."""
        return frozenset(
            each.pair
            for each in self._found
            if each.finding.severity == "error" and {access.role for access in each.finding.accesses} == {"writer"}
        )

    def make_reads_harmless(self, lines: frozenset[int], why: str = DEAD, fix: str | None = None) -> None:
        """Nothing depends on what loads of these lines get: their races become advice, with this fix if it is given."""
        if self._dropped and not lines >= self.raced_lines:
            return  # what was not kept may be of the others
        for each in self._found:
            if each.raced and each.raced <= lines and each.finding.severity == "error":
                found = each.finding if fix is None else replace(each.finding, fix=fix)
                each.finding = replace(noted(found, why), severity="advice")

    def has_error(self, code: str) -> bool:
        """Whether there is an error of a code."""
        return any(each.finding.severity == "error" and each.finding.code == code for each in self._found)

    def has_other_error(self, code: str) -> bool:
        """Whether there is an error of another code."""
        return any(each.finding.severity == "error" and each.finding.code != code for each in self._found)

    @property
    def errors(self) -> bool:
        return any(each.finding.severity == "error" for each in self._found)


def _one_fix(fixes: Sequence[str]) -> str:
    """The first of these fixes, with lines for which it is that of all others that differ from it in lines only.

    A barrier comes after the last access of the one kind and before the first of the other; in a loop another one
    orders the next turn, where the race of the other direction says so.
    """
    first = fixes[0]
    if in_loop := next((fix for fix in fixes if fix.startswith(f"{first}, and another after")), ""):
        return in_loop
    alike = [fix for fix in fixes if _LINES.sub("", fix) == _LINES.sub("", first)]
    if len(alike) == 1:
        return first
    if found := _BETWEEN.search(first):
        pairs = [each.groups() for fix in alike if (each := _BETWEEN.search(fix)) is not None]
        after, before = max(int(pair[0]) for pair in pairs), min(int(pair[1]) for pair in pairs)
        if after < before:
            return first.replace(found[0], f"between line {after} and line {before}")
    elif len(_LINES.findall(first)) == 1 and (found := _BEFORE.search(first)):
        line = min(int(each[1]) for fix in alike if (each := _BEFORE.search(fix)) is not None)
        return first.replace(found[0], f"before line {line}")
    return first


def _array(finding: Finding) -> str:
    """The variable or array that a finding is about."""
    return next((each.name.partition("[")[0].partition("+")[0] for each in finding.accesses if each.name), "")


def _identity(finding: Finding, ends: bool, cause: Cause) -> tuple[frozenset[Hashable], Hashable]:
    """The warps that a finding is about, and what makes it the same as another but for warps, lines and addresses."""
    related = isinstance(cause, frozenset)
    if not finding.accesses:
        text = finding.summary
        warps = frozenset[Hashable](_WARP.findall(text))
        return warps, text if ends else _WARP.sub("warp", text)
    first, other = finding.accesses[0], tuple((each.role, each.line) for each in finding.accesses[1:])
    warps = frozenset[Hashable]((each.cta, each.warp) for each in finding.accesses if each.warp is not None)
    if ends:
        return warps, (cause, finding.summary)
    if cause is not None and not related:
        return warps, (cause, tuple(each.role for each in finding.accesses))
    rule = _STAGE.sub("", finding.rule)
    if cause:
        return warps, (first.role, rule, other)
    return warps, (first.role, first.space, rule, other)


def _add_accesses(record: _Kept, finding: Finding) -> None:
    """The parties of a finding that one stands for, where they are at other lines or touch something else."""
    have = {(each.role, each.line, each.name, each.stage) for each in record.finding.accesses}
    more = tuple(each for each in finding.accesses if (each.role, each.line, each.name, each.stage) not in have)
    room = _ACCESSES - len(record.finding.accesses)
    if more and room > 0:
        record.finding = replace(record.finding, accesses=record.finding.accesses + more[:room])
