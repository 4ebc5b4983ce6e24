"""The measurement: each form on each target, mutations of the legal ones, and counts of all differences."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.outside.forms import Form
from tools.outside.judge import TARGETS, Difference, Ptxas, compare
from tools.outside.mutate import mutations, parts

#: Targets on which an opcode without operands is tried, in order.
ORDER = ("sm_107a", "sm_100a", "sm_90a", "sm_120a", "sm_103a", "sm_121a", "sm_110a", "sm_80")


@dataclass(slots=True)
class Result:
    """Counts of one half of the forms, and the lines on which the two judges differ."""

    forms: int = 0
    #: Forms that ptxas accepts on some target.
    legal: int = 0
    #: Pairs of a line and a target that were judged.
    judged: int = 0
    mutations: int = 0
    differences: list[Difference] = field(default_factory=list)
    of_mutations: list[Difference] = field(default_factory=list)
    sources: dict[str, set[str]] = field(default_factory=dict)

    def counts(self, mutations: bool = False) -> Counter[str]:
        """Differing lines by direction; the ones for which a reason is known under "explained"."""
        chosen = self.of_mutations if mutations else self.differences
        lines: dict[str, str] = {}
        for each in chosen:
            lines.setdefault(each.line, "explained" if each.reason else each.direction)
        return Counter(lines.values())


def measure(forms: Sequence[Form], ptxas: Ptxas, each: int = 2, quiet: bool = True) -> Result:
    """Judge forms on all targets, and `each` mutations of every legal one on one target."""
    result = Result(forms=len(forms))
    homes: dict[str, list[str]] = defaultdict(list)
    for form, line in zip(forms, _chosen(forms, ptxas, quiet), strict=True):
        result.sources.setdefault(line, set()).update(form.sources)
    lines = list(result.sources)
    for target in TARGETS:
        _progress(quiet, f"{len(lines)} forms on {target}")
        result.differences += compare(lines, target, ptxas)
        result.judged += len(lines)
        said = ptxas(lines, target)
        for line in lines:
            if not said[line]:
                homes[line].append(target)
    result.legal = len(homes)
    words: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        root, modifiers, _ = parts(line)
        words[root].update(modifiers)
    by_home: dict[str, list[str]] = defaultdict(list)
    for line, having in homes.items():
        home = having[int(hashlib.sha256(line.encode()).hexdigest(), 16) % len(having)]
        by_home[home] += mutations(line, sorted(words[parts(line)[0]]), each)
    for target, changed in by_home.items():
        _progress(quiet, f"{len(changed)} mutations on {target}")
        result.of_mutations += compare(changed, target, ptxas)
        result.mutations += len(changed)
    return result


def _chosen(forms: Sequence[Form], ptxas: Ptxas, quiet: bool) -> list[str]:
    """The line of each form: of several candidates the first that ptxas accepts somewhere, else the first."""
    accepted: dict[str, str] = {}
    for attempt in range(1, max((len(form.candidates) for form in forms), default=0) + 1):
        for target in ORDER:
            left = [form for form in forms if len(form.candidates) >= max(attempt, 2) and form.key not in accepted]
            _progress(quiet, f"operands {attempt} of {len(left)} opcodes on {target}")
            said = ptxas([form.candidates[attempt - 1] for form in left], target)
            accepted.update(
                (form.key, form.candidates[attempt - 1]) for form in left if not said[form.candidates[attempt - 1]]
            )
    return [accepted.get(form.key, form.candidates[0]) for form in forms]


def _progress(quiet: bool, text: str) -> None:
    if not quiet:
        print(text, file=sys.stderr, flush=True)
