"""What `ptxgen explain` shows besides an instruction's parts.

Forms by the beginning of an opcode, concepts, descriptors by their value alone, the Python call of a form, and what
vouches for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ptxgen.cli.errors import OK, WRONG

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ptxgen.concepts import Concept
    from ptxgen.descriptors.reading import Reading
    from ptxgen.instr.model.explain import Explanation
    from ptxgen.instr.model.find import Found, Search

#: Values of a modifier that are shown; more are counted.
_SHOWN_VALUES = 12
#: Columns that a summary needs beside a name.
_LEAST_ROOM = 24


def search(text: str) -> Search | None:
    """The forms that begin with a text, or are called like it; None for operands, and for a whole legal opcode."""
    from ptxgen.instr.model.find import find
    from ptxgen.instr.model.recognize import candidates

    word = text.strip().rstrip(";")
    if re.search(r"[\s@{\[]", word) or candidates(word):
        return None
    found = find(word)
    # Of a whole opcode that is illegal, or has a modifier that is none, the explanation of that says more.
    whole = any(not each.lacks and word.startswith(f"{each.opcode}.") for each in found)
    misspelt = bool(found.meant) and len(found.meant.split(".")) < len(word.split("."))
    return None if whole or misspelt else found or None


def concept_of(text: str) -> Concept | None:
    """The concept that is called so; None for a whole legal opcode, which is explained itself, and for check codes."""
    from ptxgen import concepts
    from ptxgen.emulator.checks.registry import CHECKS
    from ptxgen.instr.model.recognize import candidates

    found = concepts.find(text)
    return None if found is None or text in CHECKS or candidates(text.strip().rstrip(";")) else found


def show_concept(concept: Concept, text: str, as_json: bool) -> int:
    """A concept, and the instructions that begin with its name."""
    from ptxgen.cli.common.terminal import output
    from ptxgen.cli.reference.concepts import show

    word = text.strip()
    forms = search(word)
    begun = (
        forms is not None
        and not forms.meant
        and any(spelled.startswith(word) for each in forms for spelled in (each.opcode, *each.spellings))
    )
    if as_json:
        made = [each.as_dict() for each in forms] if forms is not None and begun else []
        print(json.dumps({"text": text, "meant": "", "concept": concept.as_dict(), "forms": made}, indent=2))
        return OK
    with output() as out:
        show(concept, out)
        if forms is not None and begun:
            out.print()
            _show_forms(forms, out)
    return OK


def suggested(text: str) -> str | None:
    """What to say of a text that is no instruction, but spelled like a concept or made of its words; else None."""
    import difflib

    from ptxgen import concepts
    from ptxgen.instr import load_all
    from ptxgen.instr.model.form import REGISTRY
    from ptxgen.instr.model.recognize import candidates

    word = concepts.normalized(text)
    first = text.split()[0]
    if re.search(r"[@{\[;,%]", text) or candidates(first):
        return None
    load_all()
    roots = {each.form.opcode.partition(".")[0] for forms in REGISTRY.values() for each in forms}
    if "." in first and first.partition(".")[0] in roots:
        return None  # an instruction, whose own explanation says more
    close = [concepts.find(each) for each in difflib.get_close_matches(word, concepts.names(), n=3, cutoff=0.75)]
    names = list(dict.fromkeys(each.name for each in close if each is not None))
    if not names and first not in roots:
        names = [each.name for each in concepts.sharing_words(word)]
    return f"PTX has no {text.strip()}; did you mean the concept {' or '.join(names)}?" if names else None


def completed(found: Search) -> str | None:
    """The one legal opcode that a text can be made, where it lacks only modifiers without a choice; else None."""
    if found.meant or len(found) != 1 or not found[0].lacks:
        return None
    (form,) = found
    alone = len(form.spellings) == 1 and not any("(" in each for each in form.lacks)
    return form.spellings[0] if alone else None


def show_search(found: Search, as_json: bool) -> int:
    """The forms in groups by opcode, one line each; the opcode itself with what it lacks, and two legal spellings."""
    from rich.text import Text

    from ptxgen import concepts
    from ptxgen.cli.common.terminal import output
    from ptxgen.cli.reference.concepts import link

    if as_json:
        print(
            json.dumps(
                {"text": found.text, "meant": found.meant, "forms": [each.as_dict() for each in found]}, indent=2
            )
        )
        return WRONG if found.meant else OK
    with output() as out:
        if found.meant:
            out.print(Text(f"PTX has no {found.text}; did you mean {found.meant}?", style="bold yellow"))
        _show_forms(found, out)
        if words := link(concepts.about("instructions", found.meant or found.text.strip().rstrip(".;"))):
            out.print(Text(f"concepts: {words}"))
    return WRONG if found.meant else OK


def _show_forms(found: Search, out: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen.cli.common.terminal import grid

    for index, (opcode, forms) in enumerate(found.groups()):
        if index:
            out.print()
        out.print(Text(opcode, style="bold"), soft_wrap=True)
        for each in _asked(found, opcode, forms):
            for line in _lacking(each, whole=not out.is_terminal):
                out.print(line, soft_wrap=out.is_terminal)
        where = {_where(each) for each in forms}
        if len(where) == 1:
            out.print(Text("  since ", style="dim").append(*where, style=""), soft_wrap=out.is_terminal)
        room = out.width - max(len(each.key) for each in forms) - 4
        if room < _LEAST_ROOM:  # names and summaries below each other
            for each in forms:
                out.print(Text(f"  {each.key}", style="cyan"), soft_wrap=True)
                out.print(Padding(Text(_cut(each.summary, 2 * out.width)), (0, 0, 0, 4)))
                if len(where) > 1:
                    out.print(Padding(Text(f"since {_where(each)}", style="dim"), (0, 0, 0, 4)))
            continue
        table = grid("cyan", "")
        for each in forms:
            # For a file or a pipe nothing is left out.
            summary = Text(_cut(each.summary, room) if out.is_terminal else each.summary)
            table.add_row(
                f"  {each.key}", summary.append(f"\nsince {_where(each)}", style="dim") if len(where) > 1 else summary
            )
        out.print(table)
    out.print()
    out.print(Text("ptxgen explain OPCODE.WITH.MODIFIERS explains one; help(ptxgen.instr.FAMILY.NAME) in Python"))


def _where(found: Found) -> str:
    return f"PTX ISA {found.since}, {found.where}"


def _asked(found: Search, opcode: str, forms: list[Found]) -> list[Found]:
    """Of the opcode that was asked for, the first form, where it lacks modifiers."""
    asked = found.meant or found.text.strip().rstrip(".;")
    return [each for each in forms if each.lacks][:1] if f"{asked}.".startswith(f"{opcode}.") else []


def _lacking(found: Found, *, whole: bool) -> list[Any]:
    from rich.text import Text

    lacks = " ".join(found.lacks if whole else map(_shortened, found.lacks))
    lines = [Text("  lacks ", style="yellow").append(lacks, style="")]
    return [*lines, *(Text("  legal ", style="dim").append(each, style="green") for each in found.spellings)]


def _shortened(lack: str) -> str:
    name, _, values = lack.partition(" (")
    words = values.rstrip(")").split()
    if len(words) <= _SHOWN_VALUES:
        return lack
    return f"{name} ({' '.join(words[:_SHOWN_VALUES])} and {len(words) - _SHOWN_VALUES} more)"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3].rsplit(' ', 1)[0]} ..."


def guesses(number: int) -> list[tuple[str, Reading]]:
    """The readings of a number as each kind of descriptor that has so many bits, the legal ones first."""
    from ptxgen import descriptors
    from ptxgen.descriptors.instruction import read_instruction

    bits = number % (1 << 64) if number >= -(1 << 63) else number
    found: list[tuple[str, Reading]] = []
    if -(1 << 31) <= number < 1 << 32:
        found.append(("idesc", read_instruction(number % (1 << 32))))
    found += [
        ("smem", descriptors.SmemDescriptor.read(bits)),
        ("wgmma", descriptors.WgmmaDescriptor.read(bits)),
        ("zero-mask", descriptors.ZeroColumnMask.read(bits)),
    ]
    if number in range(1 << 32) and not (address := descriptors.TensorAddress.read(number)).problems:
        found.append(("tmem", address))
    if bits >> 48 and not (policy := descriptors.CachePolicy.read(bits)).problems:
        found.insert(0, ("policy", policy))  # few numbers are one
    return sorted(found, key=lambda each: bool(each[1].problems))


def show_guesses(value: str, number: int, as_json: bool) -> int:
    """What a number means as each kind of descriptor; those that it cannot be in a line each."""
    from rich.text import Text

    from ptxgen.cli.common.terminal import output
    from ptxgen.cli.reference.reading import print_reading

    found = guesses(number)
    legal = [name for name, reading in found if not reading.problems]
    if as_json:
        print(json.dumps({name: reading.as_dict() for name, reading in found}, indent=2))
        return OK if legal else WRONG
    # A small number is hardly a 64-bit descriptor, a mask that is off hardly a mask.
    likely = (
        legal[:1]
        if {"idesc", "policy"} & {*legal}
        else [name for name in legal if name != "zero-mask" or number >> 39 & 1]
    )
    with output() as out:
        for name, reading in found:
            if name in likely:
                out.print(Text(f"as {name} (ptxgen explain {name} {value}):", style="bold"))
                print_reading(out, reading.text)
                out.print()
            elif name in legal:
                out.print(Text(f"also legal as {name}: ptxgen explain {name} {value}"))
            else:
                out.print(Text(f"no legal {name}: {reading.problems[0]}", style="dim"), soft_wrap=True)
    return OK if legal else WRONG


def show_sources(opcode: str, found: Mapping[str, Mapping[str, str]], as_json: bool) -> int:
    """The declarations that ptxas compiles to a SASS opcode, those with little else first."""
    from rich.text import Text

    from ptxgen.cli.common.terminal import output

    if as_json:
        print(json.dumps({"sass": opcode, "forms": found}, indent=2))
        return OK
    with output() as out:
        out.print(Text(opcode, style="bold").append("  SASS, of which ptxas makes it (each form in a small kernel):"))
        shown = list(found.items())[:_SHOWN_VALUES]
        width = max(len(key) for key, _ in shown)
        for key, targets in shown:
            for spelling in dict.fromkeys(targets.values()):
                where = ", ".join(each for each in targets if targets[each] == spelling)
                line = Text(f"  {key:<{width}}  ", style="cyan").append(spelling, style="")
                out.print(line.append(f"  ({where})", style="dim"), soft_wrap=True)
        if len(found) > _SHOWN_VALUES:
            out.print(f"and {len(found) - _SHOWN_VALUES} declarations more (--json has all)")
    return OK


def add_python(table: Table, found: Explanation) -> None:
    """Rows: the Python call that builds an instruction, its signature, its microtest and what vouches for the form."""
    from rich.text import Text

    table.add_row("Python", Text(found.call))
    table.add_row("signature", Text(found.signature))
    for name, words in evidence(found.key).items():
        table.add_row(name, Text(words))


def evidence(key: str) -> dict[str, str]:
    """Who has tried a declaration: ptxas, the emulator, a microtest, a GPU. Empty where the key is."""
    from ptxgen.coverage import microtest, microtested
    from ptxgen.emulator.arithmetic.described import APPROXIMATE
    from ptxgen.emulator.semantics import find as semantics
    from ptxgen.instr.model.certified import certificates, digest
    from ptxgen.instr.model.form import REGISTRY
    from ptxgen.silicon import OTHERS

    if not key:
        return {}
    form = next(each for forms in REGISTRY.values() for each in forms if each.form.key == key)
    certificate = certificates().get(key)
    rows: dict[str, str] = {}
    if certificate is not None and certificate.digest == digest(form):
        rows["certified"] = f"{certificate.forms:,} forms against ptxas {certificate.ptxas}, {certificate.date}"
    else:
        rows["certified"] = "not since it changed (make certify)"
    rows["emulated"] = "yes" if semantics(form) is not None else "no"
    if key in APPROXIMATE:
        rows["values"] = APPROXIMATE[key]
    tested, answered = microtested().get(key, (0, 0))
    command = f"python -m microtests '{microtest(key)}'"
    rows["microtest"] = f"{command} ({tested} in all)" if tested else "none"
    rows["hardware"] = f"an H200 has answered {answered} of its microtests" if answered else "none of ours"
    if key in OTHERS:
        rows["hardware"] += f"; on Blackwell others: {OTHERS[key]}"
    return rows
