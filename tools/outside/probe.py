"""Probe ptxas for modifiers that no declaration has: each known modifier in each place of each declaration.

Representative forms of a declaration, one for each value of each modifier, get one modifier more, in every place, or
another one in place of one of theirs. The modifiers are those that the strings of the ptxas binary and its messages
spell out, and those of all declarations. What ptxas accepts and `ptxgen check` refuses is reported, and so are leads:
modifiers of which ptxas complains only with the operands at hand ("Arguments mismatch").

    python -m tools.outside.probe [family ...] [--target sm_107a] [--forms N] [--seconds S] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.overlooked import OVERLOOKED
from ptxgen.toolchain import find_ptxas, ptxas_version
from tools.certify import cases
from tools.certify.irreconcilable import STRICTER
from tools.certify.judges import ours, ptxas

#: Lines in one run of ptxas, which judges thousands a second, as it stops most of them in its parser.
BATCH = 12_000
_STRING = re.compile(rb"(?<![ -~])\.([A-Za-z][A-Za-z0-9_]*(?:::[A-Za-z0-9_]+)*)(?![ -~])")
_NAMED = re.compile(r"'\.([A-Za-z][\w:]*)'")
#: Complaints about the operands alone: with others the line may be legal.
_LEAD = ("Arguments mismatch",)


@dataclass(slots=True)
class Found:
    """What one declaration's probes showed: counts, and by modifier a line that `check` alone refuses, and a lead."""

    form: str
    target: str
    probes: int = 0
    accepted: int = 0
    excused: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    leads: dict[str, str] = field(default_factory=dict)


def vocabulary(target: str) -> list[str]:
    """The modifiers of the binary, of its messages and of the declarations that ptxas knows as modifiers.

    Those that it overlooks on any instruction say nothing about one.
    """
    named = {match[1].decode() for match in _STRING.finditer(find_ptxas().read_bytes())}
    declared = {token for form in cases.declared() for slot in form.form.slots for token in slot.tokens}
    every = sorted(named | declared)
    said = ptxas([f"add.{each}.u32 %x_b32_0, %x_b32_1, %x_b32_2;" for each in every], target, cases.NEWEST)
    strange = ("Unknown modifier", "Parsing error", "Not a name")
    known = {token for token, each in zip(every, said, strict=True) if not each.startswith(strange)}
    known.update(match[1] for each in said if not each.startswith(strange) for match in _NAMED.finditer(each))
    return sorted(known - OVERLOOKED)


def representatives(form: type[Instruction], target: str, limit: int, rng: random.Random) -> list[Instruction]:
    """Few forms that together have every value of every modifier, as far as the target has them."""
    drawn = [made for made in form.sample(max(40, 4 * limit), rng) if target in cases.targets_of(made)]
    left = {token for made in drawn for token in made.modifiers}
    chosen: list[Instruction] = []
    while drawn and len(chosen) < limit and (left or not chosen):
        best = max(drawn, key=lambda made: len(left.intersection(made.modifiers)))
        if chosen and not left.intersection(best.modifiers):
            break
        chosen.append(best)
        left.difference_update(best.modifiers)
    return chosen


def probes(made: Instruction, tokens: Sequence[str], *, replace: bool) -> Iterator[tuple[str, str]]:
    """(modifier, line) for one modifier more in each place, or another one in place of one of the form's."""
    text = str(made)
    head = text.index(made.form.opcode)
    before, behind = text[:head], text[head + len(made.opcode_text) :]
    own = made.modifiers
    for token in tokens:
        for place in range(len(own) + 1):
            if token not in own:
                yield token, before + ".".join([made.form.opcode, *own[:place], token, *own[place:]]) + behind
            if replace and place < len(own) and token != own[place]:
                changed = ".".join([made.form.opcode, *own[:place], token, *own[place + 1 :]])
                yield token, before + changed + behind


def probe(
    form: type[Instruction], target: str, tokens: Sequence[str], limit: int, *, replace: bool, rng: random.Random
) -> Found:
    """All probes of one declaration on one target."""
    found = Found(form.form.key, target)
    lines: dict[str, str] = {}
    for made in representatives(form, target, limit, rng):
        lines.update((line, token) for token, line in probes(made, tokens, replace=replace))
    known = {token for each in cases.declared([form.form.key]) for slot in each.form.slots for token in slot.tokens}
    every = list(lines)
    for start in range(0, len(every), BATCH):
        part = every[start : start + BATCH]
        verdicts = ptxas(part, target, cases.NEWEST)
        taken = [line for line, said in zip(part, verdicts, strict=True) if not said]
        found.probes += len(part)
        found.accepted += len(taken)
        for line, objection in zip(taken, ours(taken, target, cases.NEWEST) if taken else (), strict=True):
            if objection and any(each.matches(form.form.key, line, objection) for each in STRICTER):
                found.excused += 1
            elif objection and lines[line] not in found.refused and not ptxas([line], target, cases.NEWEST)[0]:
                found.refused.setdefault(lines[line], line)
        for line, said in zip(part, verdicts, strict=True):
            if said.startswith(_LEAD) and lines[line] not in known:
                found.leads.setdefault(lines[line], line)
    return found


def run(
    families: Sequence[str], target: str, limit: int, *, replace: bool, seconds: float, seed: int = 0
) -> Iterator[Found]:
    """The declarations that a target has, one after another, until the time is over."""
    tokens = vocabulary(target)
    print(f"{len(tokens)} modifiers, {target}, ptxas {ptxas_version(find_ptxas())}", file=sys.stderr)
    end = time.monotonic() + seconds
    for form in cases.declared(families):
        if time.monotonic() > end:
            print(f"time is over before {form.form.key}", file=sys.stderr)
            return
        rng = random.Random(f"{seed} {form.form.key}")
        yield probe(form, target, tokens, limit, replace=replace, rng=rng)


def summary(every: Iterable[Found]) -> str:
    """Counts, then each line that only ptxas accepts, and the leads."""
    results = list(every)
    total = Counter[str]()
    text = ""
    for each in results:
        total.update(probes=each.probes, accepted=each.accepted, refused=len(each.refused), excused=each.excused)
        text += "".join(f"{each.form} [{each.target}] .{token}: {line}\n" for token, line in each.refused.items())
        if each.leads:
            text += f"{each.form} [{each.target}] leads: {' '.join(sorted(each.leads))}\n"
    counts = ", ".join(f"{total[name]:,} {name}" for name in ("probes", "accepted", "refused", "excused"))
    return f"{text}{len(results)} declarations: {counts}"


def main() -> int:
    """Print what was found; exit with 1 if `check` refuses anything that ptxas accepts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("families", nargs="*", help="families or declarations (integer, tcgen05.mma); all by default")
    parser.add_argument("--target", default="sm_107a")
    parser.add_argument("--forms", type=int, default=3, help="forms of each declaration, at most (default 3)")
    parser.add_argument("--replace", action="store_true", help="put modifiers in place of those of a form, too")
    parser.add_argument("--seconds", type=float, default=600, help="begin no declaration after this (default 600)")
    parser.add_argument("--json", type=Path, default=None, help="write all results to this file")
    arguments = parser.parse_args()
    results = list(
        run(arguments.families, arguments.target, arguments.forms, replace=arguments.replace, seconds=arguments.seconds)
    )
    print(summary(results))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in results], indent=1) + "\n")
    return 1 if any(each.refused for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
