"""`ptxgen explain`: instructions, the bits of descriptors and tensormaps, codes of findings, and how we know facts."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.errors import OK, WRONG, InputError, nearest
from ptxgen.cli.reference.checks import explain_checks
from ptxgen.cli.reference.concepts import add_links, explain_concepts
from ptxgen.cli.reference.find import (
    add_python,
    completed,
    concept_of,
    evidence,
    search,
    show_concept,
    show_guesses,
    show_search,
    show_sources,
    suggested,
)
from ptxgen.files import read_file

if TYPE_CHECKING:
    from rich.console import Console

    from ptxgen.descriptors.reading import Reading
    from ptxgen.instr.model.explain import Explanation

#: Formats whose names begin opcodes or are concepts, too: without a value those are meant.
_OPCODES = ("wgmma", "tensormap", "tmem")
#: Formats by the name a person gives, with their bytes.
FORMATS = {"smem": 8, "wgmma": 8, "idesc": 4, "zero-mask": 8, "policy": 8, "tmem": 4, "tensormap": 128}

_TAKES = {
    "kind": ("idesc",), "cta-group": ("idesc",), "ws": ("idesc",), "scale-vec": ("idesc",), "use": ("smem",),
    "major": ("smem", "wgmma"), "m": ("zero-mask",),
}  # fmt: skip


def register(app: typer.Typer) -> None:
    # A constant that PTX prints as a negative number is no option.
    app.command(rich_help_panel="Values", context_settings={"ignore_unknown_options": True})(explain)


def explain(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[INSTRUCTION|CONCEPT|CODE|FORMAT|facts|checks|concepts]",
            help="An instruction, in quotes, with or without operands, or the beginning of its opcode; a concept, such "
            "as SBO, parity or 'scale factors'; a number, which is tried as each descriptor; or a format, with its "
            "VALUE: smem (tcgen05 matrix descriptor), wgmma (its matrix descriptor), idesc (tcgen05.mma instruction "
            "descriptor), zero-mask (of tcgen05.mma.ws), policy (.L2::cache_hint), tmem (an address in tensor memory) "
            "or tensormap, whose bits it lists without one; or the facts that no manual states; or the CODE of a "
            "finding; or all checks or concepts; or a question, such as 'which thread holds row 9, column 4 of a "
            "16x256b load'.",
            show_default=False,
            autocompletion=completion.subjects,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="[VALUE|FILE]",
            help="A number such as 0x4000404000010000, or a file of its bytes, or fields that make one, such as m=128 "
            "n=256; for tensormap 256 hex digits or a file of 128 bytes; for facts, checks and concepts a word to look "
            "for.",
            show_default=False,
        ),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option("--diff", metavar="A B", help="Compare two values field by field.", show_default=False),
    ] = None,
    kind: Annotated[str, typer.Option("--kind", metavar="f16|mxf4|...", help="idesc: the .kind; else all.")] = "",
    cta_group: Annotated[int | None, typer.Option("--cta-group", metavar="1|2", help="idesc.")] = None,
    ws: Annotated[bool | None, typer.Option("--ws/--no-ws", help="idesc: of tcgen05.mma.ws.")] = None,
    scale_vec: Annotated[str, typer.Option("--scale-vec", metavar="1X|2X|4X", help="idesc with block scales.")] = "",
    use: Annotated[
        str,
        typer.Option(
            "--use",
            metavar="mma|cp|scales",
            help="smem: who reads the data.",
            autocompletion=completion.words("mma", "cp", "scales"),
        ),
    ] = "",
    major: Annotated[
        str,
        typer.Option(
            "--major", metavar="k|mn", help="smem, wgmma: major-ness.", autocompletion=completion.words("k", "mn")
        ),
    ] = "",
    m: Annotated[int | None, typer.Option("--m", metavar="32|64|128", help="zero-mask: M.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="facts, checks, concepts: print the page of docs/.")
    ] = False,
) -> int:
    """Explain an instruction (its parts, where it is legal, who issues it), a concept, a descriptor, or a finding."""
    for given in (what, value, *(diff or ())):
        if given and re.match(r"-[^\d]", given):
            raise InputError(f"no such option: {given} (see 'ptxgen explain --help')")
    if (question := _question(what, value, more)) and diff is None and not as_markdown:
        return answer_question(question, as_json)
    options = {
        "kind": kind,
        "cta-group": cta_group,
        "ws": ws,
        "scale-vec": scale_vec,
        "use": use,
        "major": major,
        "m": m,
    }
    given_options = {name: each for name, each in options.items() if each not in ("", None)}
    if value is not None and what not in (*FORMATS, "facts", "checks", "concepts") and diff is None:
        phrase = " ".join(filter(None, [what, value, *(more or [])]))
        if not given_options and (concept := concept_of(phrase)) is not None:  # a name without its quotes
            return show_concept(concept, phrase, as_json)
    if more and what in ("facts", "checks", "concepts"):
        value = " ".join([value or "", *more])
    elif more and not _is_fields(what, value):
        rest = " ".join(more)
        raise InputError(f"explain takes one VALUE, not {rest!r} too; an instruction goes into one pair of quotes")
    if as_json and as_markdown:
        raise InputError("choose one of --json and --markdown")
    if given_options and what is not None and diff is None and what not in FORMATS:
        option = next(iter(given_options))
        raise InputError(f"--{option} is for a value of {' and '.join(_TAKES[option])}, not for {what}")
    if as_markdown and value is not None and what in ("facts", "checks", "concepts"):
        raise InputError(f"--markdown prints the whole page; leave out {value!r}")
    if what == "facts" and diff is None:
        return _facts(value or "", as_json, as_markdown)
    if what == "checks" and diff is None:
        return explain_checks(value or "", as_json, as_markdown)
    if what == "concepts" and diff is None:
        return explain_concepts(value or "", as_json, as_markdown)
    if as_markdown:
        raise InputError("--markdown is for facts, checks and concepts")
    if diff is not None:
        if value is not None:
            raise InputError(f"--diff takes two values and at most a FORMAT before them, not {value!r} too")
        return _diff(what, diff, given_options, as_json)
    if what is None:
        raise InputError(
            "explain needs an INSTRUCTION, a CONCEPT, a FORMAT with a VALUE, or facts (see 'ptxgen explain --help')"
        )
    if value is None and (what not in FORMATS or what in _OPCODES):
        from ptxgen.concepts.atoms import opcode_of
        from ptxgen.sass.index import recorded, sources

        if not what.strip():
            raise InputError("explain needs an INSTRUCTION, a CONCEPT, a FORMAT with a VALUE, or facts; this is empty")
        if (opcode := opcode_of(what)) is not None:
            if not as_json:
                print(f"{what.strip()} of CuTe executes {opcode}")
            return _instruction(opcode, as_json)
        if (concept := concept_of(what)) is not None:
            return show_concept(concept, what, as_json)
        if re.fullmatch(r"[A-Z][A-Z0-9]*(\.\w+)*", what.strip()) and (opcode := recorded(what.strip())):
            if opcode != what.strip() and not as_json:
                print(f"no recorded form has {what.strip()}; of {opcode}:")
            return show_sources(opcode, sources(opcode), as_json)
        if ("." in what or "/" in what) and Path(what).is_file():
            raise InputError(
                f"{what} is a file: 'ptxgen check {what}' reads PTX, and a FORMAT before it a descriptor's bytes"
            )
        _question_code(what)
        return explain_checks(what, as_json, False) if _is_check(what) else _instruction(what, as_json)
    return _explain_value(what, [] if value is None else [value, *(more or [])], given_options, as_json)


def _explain_value(format: str, words: list[str], options: dict[str, Any], as_json: bool) -> int:
    """Explain a value of a format, or one that fields make; list the fields without a value."""
    from ptxgen.cli.common.terminal import output
    from ptxgen.cli.reference.formats import encoded, show_fields
    from ptxgen.cli.reference.reading import print_reading

    reader = _reader(format, options)
    if words in ([], ["fields"]):
        return show_fields(format, options, as_json)
    value = words[0]
    if _is_fields(format, value):
        number, options = encoded(format, words, options)
        value, reader = f"{number:#x}", _reader(format, options)
    reading = reader.read(value)
    also = reader.also(value)
    if as_json:
        print(json.dumps({**reading.as_dict(), "also": also}, indent=2))
    else:
        with output() as out:
            print_reading(out, reading.text)
        if also:
            print(f"also legal as {', '.join(also)}")
        if format in ("smem", "wgmma") and not reading.problems and options.get("use") != "scales":
            major = options.get("major", "k")
            print(f"drawn by: ptxgen layout descriptor {reading.bits} format={format} major={major} type=f16")
    return WRONG if reading.problems else OK


def _question(what: str | None, value: str | None, more: list[str] | None) -> str:
    """The question that the words are, with or without quotes; empty where they are none."""
    from ptxgen.cli.reference.questions import is_question

    text = " ".join(filter(None, [what, value, *(more or [])]))
    return text if is_question(text) and not re.search(r"[;{@%]", text) else ""


def answer_question(question: str, as_json: bool) -> int:
    """Answer a question in English by the command that it is read as. Raises InputError where it names nothing."""
    from ptxgen import concepts, descriptors
    from ptxgen.cli.reference.concepts import link
    from ptxgen.cli.reference.layout import layout
    from ptxgen.cli.reference.layout_questions import layout_command, unread
    from ptxgen.cli.reference.questions import instruction_of, named_concepts
    from ptxgen.cli.reference.value_questions import value_command
    from ptxgen.sass.index import sources

    def say(command: str) -> None:
        if not as_json:
            print(f"read as: ptxgen {command}")

    if words := value_command(question):
        say(f"explain {shlex.join(words)}")
        return _explain_value(words[0], words[1:], {}, as_json)
    if (words := layout_command(question)) is not None:
        command = f"layout {shlex.join(words)}"
        if left := unread(question, words):
            raise InputError(f"{' and '.join(left)} in the question is not read; without it: ptxgen {command}")
        say(command)
        try:
            return layout(words[0], words[1:], as_json=as_json)
        except descriptors.DescriptorError as error:
            raise InputError(f"{error} (ptxgen {command})") from None
    if (number := re.search(r"\b0x[0-9a-f_]{6,19}\b", question, re.I)) is not None:
        say(f"explain {number[0]}")
        return show_guesses(number[0], int(number[0], 16), as_json)
    if (instruction := instruction_of(question)) is not None:
        say(f"explain {shlex.quote(instruction)}")
        found = sources(instruction)
        return show_sources(instruction, found, as_json) if found else _instruction(instruction, as_json)
    names = named_concepts(question)
    if not names:
        raise InputError(
            "the question names no concept or layout: 'ptxgen explain concepts' and 'ptxgen layout' list them"
        )
    say(f"explain {shlex.quote(names[0])}")
    code = show_concept(concepts.concepts()[names[0]], names[0], as_json)
    if names[1:] and not as_json:
        print(f"it also names: {link([concepts.concepts()[each] for each in names[1:]])}")
    return code


def _is_fields(format: str | None, value: str | None) -> bool:
    """Whether a value is given by its fields: `m=128 n=256`."""
    return format in FORMATS and value is not None and re.match(r"[A-Za-z_]\w*=", value) is not None


@dataclass(frozen=True)
class _Reader:
    """How one format is read, with what the options say about it."""

    format: str
    facts: dict[str, Any]

    def read(self, value: str) -> Reading:
        """The reading of a value or file. Raises InputError and DescriptorError."""
        from ptxgen import descriptors
        from ptxgen.descriptors.instruction import read_instruction

        given = _given(self.format, value)
        if self.format == "idesc":
            return read_instruction(_as_number(given), **self.facts)
        formats: dict[str, Callable[..., Reading]] = {
            "smem": descriptors.SmemDescriptor.read,
            "wgmma": descriptors.WgmmaDescriptor.read,
            "zero-mask": descriptors.ZeroColumnMask.read,
            "policy": descriptors.CachePolicy.read,
            "tmem": descriptors.TensorAddress.read,
            "tensormap": descriptors.TensorMap.read,
        }
        return formats[self.format](given, **self.facts)

    def also(self, value: str) -> list[str]:
        """What else the bits may be: the other kinds of an instruction descriptor."""
        from ptxgen.descriptors.instruction import meanings

        if self.format != "idesc":
            return []
        words: dict[str, list[str]] = {}
        for each in meanings(_as_number(_given("idesc", value)), **self.facts)[1:]:
            stationary = ".ws" if getattr(each, "ws", False) else ""
            words.setdefault(f"kind::{each.kind}{stationary}", []).append(f"cta_group::{each.cta_group}")
        return [f"{name} ({' and '.join(groups)})" for name, groups in words.items()]


def _reader(format: str, options: dict[str, Any]) -> _Reader:
    if format not in FORMATS:
        names = f"{', '.join([*FORMATS][:-1])} or {[*FORMATS][-1]}"
        raise InputError(
            f"with a VALUE, FORMAT must be {names}, not {format!r}{nearest(format, FORMATS)}; "
            "an instruction goes into one pair of quotes"
        )
    for name in options:
        if format not in _TAKES[name]:
            raise InputError(f"--{name} is for {' and '.join(_TAKES[name])}, not for {format}")
    return _Reader(format, {name.replace("-", "_"): each for name, each in options.items()})


def _diff(format: str | None, values: tuple[str, str], options: dict[str, Any], as_json: bool) -> int:
    from ptxgen.cli.common.terminal import output
    from ptxgen.cli.reference.reading import print_reading
    from ptxgen.descriptors.reading import diff_dict, diff_text

    if format is None:
        guesses = [_guess(each) for each in values]
        matrices = [each for each in guesses if each in ("smem", "wgmma")]
        if guesses[0] != guesses[1] and len(matrices) == 2:
            return _diff_of_two(values, guesses, options, as_json)
        if guesses[0] != guesses[1]:
            one, other = (_FORMAT_WORDS[each] for each in guesses)
            raise InputError(f"the first value is {one}, the second {other}; they have no fields in common")
        format = guesses[0]
    reader = _reader(format, options)
    first, second = (reader.read(each) for each in values)
    if as_json:
        print(json.dumps(diff_dict(first, second), indent=2))
    else:
        with output() as out:
            print_reading(out, partial(diff_text, first, second))
    return WRONG if first.problems or second.problems else OK


_FORMAT_WORDS = {
    "smem": "a matrix descriptor of tcgen05 (smem)",
    "wgmma": "a matrix descriptor of wgmma (wgmma)",
    "idesc": "an instruction descriptor (idesc)",
    "tensormap": "a tensormap (tensormap)",
}


def _diff_of_two(values: tuple[str, str], formats: list[str], options: dict[str, Any], as_json: bool) -> int:
    """Compare the matrix descriptors of tcgen05 and wgmma: most of their fields are the same."""
    from ptxgen.cli.common.terminal import output
    from ptxgen.cli.reference.reading import print_reading
    from ptxgen.descriptors.reading import diff_dict, diff_text

    first, second = (
        _reader(each, {name: given for name, given in options.items() if each in _TAKES[name]}).read(value)
        for each, value in zip(formats, values, strict=True)
    )
    if as_json:
        print(json.dumps(diff_dict(first, second), indent=2))
    else:
        print("- is a descriptor of tcgen05, + of wgmma" if formats[0] == "smem" else "- is of wgmma, + of tcgen05")
        with output() as out:
            print_reading(out, partial(diff_text, first, second))
    return WRONG if first.problems or second.problems else OK


def _guess(value: str) -> str:
    """The format that a value looks like: by its size, and the two matrix descriptors by bits 46 to 48."""
    number = _number_or_none(value)
    if number is None and len(re.sub(r"[\s_]|^0x", "", value)) != 256 and not Path(value).is_file():
        found = "an instruction, which 'ptxgen explain' takes without --diff" if _is_instruction(value) else "none"
        raise InputError(
            f"--diff compares numbers, 256 hex digits of a tensormap, or files of these; {value!r} is {found}"
        )
    if number is None or len(re.sub(r"[\s_]|^0x", "", value)) == 256:
        return "tensormap"
    if -(1 << 31) <= number < 1 << 32:
        return "idesc"
    return "smem" if number >> 46 & 7 else "wgmma"


def _is_instruction(text: str) -> bool:
    """Whether a text begins like an instruction: with an opcode, and modifiers perhaps."""
    from ptxgen.instr import load_all
    from ptxgen.instr.model.form import REGISTRY

    load_all()
    return re.split(r"[.\s]", text.strip())[0] in REGISTRY


def _facts(word: str, as_json: bool, as_markdown: bool) -> int:
    from ptxgen.cli.common.terminal import grid, output
    from ptxgen.descriptors import facts

    if as_markdown:
        print(facts.markdown(), end="")
        return OK
    found = facts.find(word)
    if not found:
        also = ""
        if concept_of(word) is not None or _is_instruction(word):
            also = f"'ptxgen explain {word}' says what the manual has; "
        raise InputError(f"no fact is called or about {word!r}; {also}'ptxgen explain facts' lists all")
    if as_json:
        print(json.dumps([each.as_dict() for each in found], indent=2))
        return OK
    from rich.padding import Padding
    from rich.text import Text

    with output() as out:
        for index, each in enumerate(found):
            if index:
                out.print()
            out.print(Text(each.name, style="bold").append(f"  {each.subject}", style="dim"))
            table = grid("cyan", "")
            table.add_row("holds", each.statement)
            table.add_row("so", each.consequence)
            table.add_row(each.evidence.kind, each.evidence.source)
            if each.silicon is not None:
                table.add_row("Blackwell", each.silicon or "no public record; make blackwell tests it")
            add_links(table, "facts", each.name)
            out.print(Padding(table, (0, 0, 0, 2)))
    return OK


def _question_code(what: str) -> None:
    """Raises InputError for a misspelt code of a check: words with hyphens, as no instruction has."""
    from ptxgen import concepts
    from ptxgen.emulator.checks.registry import CHECKS
    from ptxgen.instr.model.symbols import CODES

    if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", what) and not _is_check(what):
        near = nearest(what, [*CHECKS, *sorted(CODES), *concepts.concepts()])
        raise InputError(f"no check is called {what!r}{near}; 'ptxgen explain checks' lists all")


def _is_check(word: str) -> bool:
    """Whether a word is the code of a check, but no instruction (trap is)."""
    from ptxgen.emulator.checks.registry import CHECKS
    from ptxgen.instr.model.symbols import CODES

    return word in CODES or (word in CHECKS and word != "trap")


def _instruction(text: str, as_json: bool) -> int:
    from ptxgen.cli.common.terminal import output
    from ptxgen.instr.model.explain import explain as explanations
    from ptxgen.syntax import PtxSyntaxError

    number = _number_or_none(text)
    if number is not None and -(1 << 63) <= number < 1 << 64:
        return show_guesses(text.strip(), number, as_json)
    if (forms := search(text)) is not None:
        whole = completed(forms)
        if whole is None or as_json:
            return show_search(forms, as_json)
        with output() as out:
            out.print(f"{forms.text.strip()} lacks {' '.join(forms[0].lacks)}; the only legal form:", markup=False)
        text = whole
    if (near := suggested(text)) is not None:
        raise InputError(near)
    try:
        found = explanations(text)
    except PtxSyntaxError as error:
        raise InputError(f"this is no PTX instruction: {error}") from None
    except ValueError as error:
        raise InputError(str(error)) from None
    if as_json:
        made = [{**each.as_dict(), "evidence": evidence(each.key), "sass": _sass(each)} for each in found]
        print(json.dumps(made, indent=2))
    else:
        with output() as out:
            for index, each in enumerate(found):
                if index:
                    out.print()
                _show(each, out)
    return WRONG if any(each.problems for each in found) else OK


def _show(found: Explanation, out: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen.cli.common.terminal import grid

    out.print(Text(found.text, style="bold"), soft_wrap=True)
    for problem in found.problems:
        style = "bold red" if problem.severity == "error" else "bold yellow"
        out.print(Text(f"  {problem.severity}: ", style=style).append(f"{problem.message} [{problem.code}]", style=""))
    if found.nearest:
        out.print(Text(f"  the nearest legal form is {found.nearest}"))
    if not found.key:
        return
    out.print(Padding(Text(found.summary.replace("\n\n", "\n")), (0, 0, 1, 2)))
    parts = grid("cyan", "dim", "")
    for part in found.modifiers:
        parts.add_row(part.text, part.name, part.meaning)
    for part in found.operands:
        parts.add_row(Text(part.text or part.name), part.name if part.text else "", part.meaning)
    out.print(Padding(parts, (0, 0, 1, 2)))
    table = grid("dim", "")
    table.add_row("syntax", Text(found.syntax))
    table.add_row("manual", f"PTX ISA {found.section}")
    table.add_row("issued by", found.issued_by)
    table.add_row("completed by", found.completed_by)
    table.add_row("fences", found.fences or "none of its own")
    table.add_row("since", f"PTX ISA {found.ptx}")
    table.add_row("targets", " ".join(found.targets) or "none")
    for target, text in _sass(found).items():
        table.add_row(f"SASS {target}", text)
    add_python(table, found)
    add_links(table, "instructions", found.text.split()[0].rstrip(";"))
    out.print(Padding(table, (0, 0, 0, 2)))


def _sass(found: Explanation) -> dict[str, str]:
    """What ptxas makes of an instruction, by target."""
    from ptxgen.sass.index import emitted

    return emitted(found.key, re.split(r"[\s;]", found.text, maxsplit=1)[0])


def _number_or_none(value: str) -> int | None:
    """A number as C, Python and PTX write it: any base, with or without U, L and underscores."""
    try:
        return int(re.sub(r"(?<=[0-9a-fA-F])[uUlL]{1,3}$", "", value.strip()), 0)
    except ValueError:
        return None


def _as_number(given: int | bytes) -> int:
    return int.from_bytes(given, "little") if isinstance(given, bytes) else given


def _given(format: str, value: str) -> int | bytes:
    """The number or the bytes that a person gave. Raises InputError."""
    if format == "tensormap":
        return _bytes(value)
    size = FORMATS[format]
    number = _number_or_none(value)
    if number is not None:
        # PTX prints constants with bit 63 set as negative numbers.
        return number + (1 << 8 * size) if -(1 << 8 * size - 1) <= number < 0 else number
    path = Path(value)
    if not path.is_file():
        raise InputError(f"VALUE must be a number such as 0x4000404000010000 or 272, not {value!r}")
    return _read(path, size, f"an {format} value" if format == "idesc" else f"a {format} value")


def _bytes(value: str) -> bytes:
    """128 bytes given as hex digits or in a file."""
    digits = re.sub(r"[\s_]|^0x", "", value)
    if re.fullmatch(r"[0-9a-fA-F]{256}", digits):
        return bytes.fromhex(digits)
    return _read(
        Path(value), 128, "a tensormap", f"a tensormap is 256 hex digits (not {len(digits)}) or a file of 128 bytes; "
    )


def _read(path: Path, size: int, what: str, before: str = "") -> bytes:
    from ptxgen.cli.common.files import reason

    try:
        data = read_file(path)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise InputError(f"{before}cannot read {str(path)[:60]}: {why}") from None
    if len(data) != size:
        raise InputError(f"{what} has {size} bytes, but {path} has {len(data)}")
    return data
