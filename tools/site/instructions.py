"""Pages of the instruction families: for each declaration its syntax line, forms, targets, SASS, tests, evidence."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from itertools import islice

from ptxgen.cli.reference.find import evidence
from ptxgen.coverage import coverage
from ptxgen.instr import FAMILIES, load_all
from ptxgen.instr.model.call import example_of, signature_text
from ptxgen.instr.model.certified import certificates
from ptxgen.instr.model.explain import explain
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.glossary import meaning
from ptxgen.sass.index import index
from tools.site.api import prose
from tools.site.stage import toctree

#: Spellings of one declaration whose SASS is listed.
_LISTED = 8


def pages() -> dict[str, str]:
    """The pages by path."""
    made = {f"instructions/{family}.md": family_page(family) for family in FAMILIES}
    return {**made, "instructions/index.md": _index()}


@functools.cache
def _families() -> dict[str, list[type[Instruction]]]:
    """The declarations by family."""
    load_all()
    found: dict[str, list[type[Instruction]]] = {family: [] for family in FAMILIES}
    for forms in REGISTRY.values():
        for each in forms:
            found[each.form.key.partition(".")[0]].append(each)
    return found


def _index() -> str:
    families, rows = _families(), {row.family: row for row in coverage()}
    lines = [
        "# Instructions\n",
        "Every instruction of PTX, by family (a module of `ptxgen.instr`). `ptxgen explain OPCODE` prints one.\n",
        "| family | opcodes | declarations | forms | emulated |",
        "|---|---|---:|---:|---:|",
    ]
    for family, forms in families.items():
        opcodes = dict.fromkeys(f"`{each.form.opcode}`" for each in forms)
        row = rows[family]
        lines.append(
            f"| [{family}]({family}.md) | {', '.join(opcodes)} | {len(forms)} | {row.forms:,} | {row.emulated} |"
        )
    return "\n".join(lines) + "\n" + toctree(families)


def family_page(family: str) -> str:
    """The page of one family."""
    forms, row = _families()[family], next(row for row in coverage() if row.family == family)
    doc = inspect.getdoc(importlib.import_module(f"ptxgen.instr.{family}")) or ""
    lines = [f"# {family}\n", prose(doc), ""]
    lines.append(
        f"{row.declarations} declarations, {row.forms:,} legal forms, {row.assemblies:,} assemblies by ptxas "
        f"{row.ptxas}; "
        f"{row.emulated} are emulated, {row.microtested} have microtests, {row.recorded} have answers of an H200.\n"
    )
    for each in forms:
        lines += _declaration(each)
    return "\n".join(lines) + "\n"


def _declaration(cls: type[Instruction]) -> Iterator[str]:
    form = cls.form
    yield f"## {form.key.partition('.')[2]}\n"
    yield f"{prose(form.summary)}\n"
    yield f"```text\n{form.syntax}\n```\n"
    example = example_of(cls)
    said = explain(str(example))[0] if example is not None else None
    yield "| | |\n|---|---|"
    yield f"| manual | PTX ISA {form.section} |"
    yield f"| since | PTX ISA {form.availability.ptx} |"
    if said is not None and said.targets:
        yield f"| targets | {_words(said.targets)} (of the example) |"
    for name, text in (("issued by", form.issued_by), ("completed by", form.completed_by), ("fences", form.fences)):
        if text:
            yield f"| {name} | {_cell(text)} |"
    yield f"| Python | `{_cell(signature_text(cls))}` |"
    certificate = certificates().get(form.key)
    if certificate is not None:
        yield f"| forms | {certificate.forms:,} |"
    for name, text in evidence(form.key).items():
        yield f"| {name} | {_cell(text)} |"
    yield ""
    if example is not None:
        yield f"```ptx\n{example}\n```\n"
    yield from _modifiers(cls)
    yield from _sass(form.key)


def _modifiers(cls: type[Instruction]) -> Iterator[str]:
    form = cls.form
    slots = [slot for slot in form.slots if slot.field is not None]
    if not slots:
        return
    yield "| modifier | values |\n|---|---|"
    for slot in slots:
        tokens = [f"`.{token}`" for token in slot.spelled.values() if token]
        said = [meaning(form.key, slot.field or "", token) for token in slot.spelled.values() if token]
        words = f": {_cell(said[0])}" if len(tokens) == 1 and said[0] else ""
        yield f"| `{slot.field}` | {' '.join(tokens)}{words} |"
    yield ""


def _sass(key: str) -> Iterator[str]:
    found = index().forms.get(key, {})
    if not found:
        return
    targets = list(found)
    spellings = dict.fromkeys(spelling for each in found.values() for spelling in each)
    yield f"| form | {' | '.join(f'SASS {target}' for target in targets)} |"
    yield f"|---|{'---|' * len(targets)}"
    for spelling in islice(spellings, _LISTED):
        made = [_code(found[target].get(spelling)) for target in targets]
        yield f"| `{spelling}` | {' | '.join(made)} |"
    yield ""
    if len(spellings) > _LISTED:
        yield f"{len(spellings) - _LISTED} more forms are recorded; `ptxgen explain FORM` shows them.\n"


def _code(text: str | None) -> str:
    return "no such form" if text is None else f"`{_cell(text)}`" if text else "nothing"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _words(names: tuple[str, ...]) -> str:
    return " ".join(names)
