"""What is covered: per family the declarations, what was certified against which ptxas, what the emulator runs, and
what has a microtest.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from ptxgen.instr import load_all
from ptxgen.instr.model.certified import certificates, digest
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.silicon import OTHERS, Witness, witness

#: File that `python -m microtests --coverage` writes: the number of microtests by declaration.
MICROTESTED = "microtested.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One family.

    `certified` counts the declarations whose certificate is of their present text; `forms`, `assemblies` (forms times
    targets) and `neighbors` are those of the certificates, `disagreements` the lines on which ptxas differed, and
    `excused` those on which it differs for a stated reason.
    `emulated` counts the declarations that have a meaning in the emulator, `missing` names the others. `microtested`
    counts those with a microtest, `recorded` those of them that a GPU has answered. `silicon` says for each declaration
    of tcgen05 who has seen it on Blackwell silicon.
    """

    family: str
    declarations: int
    certified: int
    forms: int
    assemblies: int
    neighbors: int
    excused: int
    disagreements: int
    ptxas: str
    emulated: int
    missing: tuple[str, ...]
    microtested: int
    recorded: int
    silicon: dict[str, Witness] = field(default_factory=dict)

    @property
    def witnessed(self) -> int:
        """How many of tcgen05's declarations somebody has seen on Blackwell silicon."""
        return sum(each != "none" for each in self.silicon.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@cache
def _records() -> dict[str, dict[str, Any]]:
    path = resources.files("ptxgen").joinpath(MICROTESTED)
    return {row["key"]: row for row in json.loads(path.read_text(encoding="utf-8"))} if path.is_file() else {}


@cache
def microtested() -> dict[str, tuple[int, int]]:
    """By declaration: how many microtests it has, and how many of them a GPU has answered."""
    return {key: (row["definitions"], row["recorded"]) for key, row in _records().items()}


def microtest(key: str) -> str:
    """The name of a microtest of a declaration, one that tests little else; empty where there is none."""
    return str(_records().get(key, {}).get("microtest", ""))


def coverage() -> list[Row]:
    """A row for each family, by name."""
    from ptxgen.emulator.semantics import find

    load_all()
    families: dict[str, list[type[Instruction]]] = defaultdict(list)
    for forms in REGISTRY.values():
        for form in forms:
            families[form.form.key.split(".")[0]].append(form)
    known, tested = certificates(), microtested()
    rows = []
    for family, forms in sorted(families.items()):
        found = [
            known[form.form.key]
            for form in forms
            if form.form.key in known and known[form.form.key].digest == digest(form)
        ]
        missing = sorted(form.form.key.partition(".")[2] for form in forms if find(form) is None)
        rows.append(
            Row(
                family,
                len(forms),
                len(found),
                sum(each.forms for each in found),
                sum(each.assemblies for each in found),
                sum(each.neighbors for each in found),
                sum(each.excused for each in found),
                sum(each.disagreements for each in found),
                ", ".join(sorted({each.ptxas for each in found})),
                len(forms) - len(missing),
                tuple(missing),
                sum(form.form.key in tested for form in forms),
                sum(tested.get(form.form.key, (0, 0))[1] > 0 for form in forms),
                _silicon(forms, tested),
            )
        )
    return rows


def _silicon(forms: list[type[Instruction]], tested: dict[str, tuple[int, int]]) -> dict[str, Witness]:
    keys = sorted(form.form.key for form in forms)
    found: dict[str, Witness] = {}
    for key in keys:
        seen = witness(key, tested.get(key, (0, 0))[1] > 0)
        if seen is not None:
            found[key] = seen
    return found


def page(rows: list[Row]) -> str:
    """The text of `docs/coverage.md`."""
    from ptxgen.emulator.semantics import reason

    left_out: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for name in row.missing:
            left_out[reason(f"{row.family}.{name}") or "not said"].append(f"{row.family}.{name}")
    why = "".join(f"- {words}: {', '.join(names)}\n" for words, names in left_out.items())
    silicon = "".join(
        f"| {key} | {each} | {OTHERS.get(key, '') if each == 'others' else ''} |\n"
        for row in rows
        for key, each in row.silicon.items()
    )
    return _PAGE.format(ptxas=total(rows).ptxas or "none yet", table=markdown(rows), silicon=silicon, why=why)


_PAGE = """\
# Coverage

Generated from the declarations and recordings by `make docs`. `ptxgen coverage` prints the same; `--json` adds the
names of what is missing.

- declared: declarations, one per syntax line of the manual; certified: those compared in their current form with
  ptxas {ptxas}, in both directions ([certification.md](certification.md));
- forms: legal combinations of modifiers and optional operands; assemblies: forms times the targets that have them;
  neighbors: lines with one thing changed, which both must reject or both accept;
- excused: lines on which the two differ for a stated reason ([exceptions.md](exceptions.md)); differing: without one;
- emulated: declarations that the emulator executes; microtest: those with a microtest; recorded: those with recorded
  results of an H200; silicon: those of tcgen05 with evidence from Blackwell silicon.

{table}
## Blackwell silicon

Evidence for each declaration of tcgen05 from a B200 or B300: ours (a recording by `make blackwell`), others (a public
repository at a commit; recorded: it publishes results, held: its tests ran there), or none. [facts.md](facts.md)
lists the behavior observed.

| declaration | witness | source |
|---|---|---|
{silicon}
## Not emulated

{why}"""


def markdown(rows: list[Row]) -> str:
    """The table of `docs/coverage.md`."""
    head = (
        "family",
        "declared",
        "certified",
        "forms",
        "assemblies",
        "neighbors",
        "excused",
        "differing",
        "emulated",
        "microtest",
        "recorded",
        "silicon",
    )
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for row in [*rows, total(rows)]:
        counts = (
            row.declarations,
            row.certified,
            row.forms,
            row.assemblies,
            row.neighbors,
            row.excused,
            row.disagreements,
            row.emulated,
            row.microtested,
            row.recorded,
            row.witnessed,
        )
        lines.append(f"| {row.family} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    return "\n".join(lines) + "\n"


def total(rows: list[Row]) -> Row:
    """All families together."""

    def added(name: str) -> int:
        return sum(getattr(row, name) for row in rows)

    return Row(
        family="all",
        declarations=added("declarations"),
        certified=added("certified"),
        forms=added("forms"),
        assemblies=added("assemblies"),
        neighbors=added("neighbors"),
        excused=added("excused"),
        disagreements=added("disagreements"),
        ptxas=", ".join(sorted({row.ptxas for row in rows if row.ptxas})),
        emulated=added("emulated"),
        missing=(),
        microtested=added("microtested"),
        recorded=added("recorded"),
        silicon={key: each for row in rows for key, each in row.silicon.items()},
    )
