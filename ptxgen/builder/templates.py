"""Templates of kernels: plain PTX lines, with `{{ }}` only where the plan decides.

Registers need no declaration: their names say what they are (`%p_` predicate, `%rs_` 16 bits, `%r_` 32, `%rd_` 64,
`%rq_` 128, `%f_` and `%fd_` floating point), and `{{ registers }}` stands for the declarations. The rendered text is
checked, and an error is reported at the line of the template that it comes from, with the lines that called its block.
`.loc` directives name that line, so that findings of the emulator do, too.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.environment import TemplateModule

from ptxgen.files import KERNELS_FOLDER, escaped_path

#: Register types by the first part of the name, in the order of their declarations.
_REGISTERS = {"p": "pred", "rs": "b16", "r": "b32", "rd": "b64", "rq": "b128", "f": "f32", "fd": "f64"}
_REGISTER = re.compile(r"%(p|rs|r|rd|rq|f|fd)_\w+")
#: A line of a template: its name, and the number of the line.
Place = tuple[str, int]
#: Behind every line of a template: where it is from; before one that may call a block: the same, to bracket its output.
_MARK = re.compile("(?P<kind>[\x01\x05])(?P<name>[^\x01\x02]*):(?P<line>[0-9]+)\x02")
_DECLARATIONS = "\x03"
#: A PTX vector such as `{%r_a, %r_b}` begins like a statement of Jinja, which has white space after its `{%`.
_VECTOR = re.compile(r"{%(?=\w)")
_BRACE = "\x04"
_WIDTH = 100


class TemplateError(ValueError):
    """A template that cannot be rendered, or whose PTX is illegal: `template` and `line` say where.

    `callers` are the lines that called the block of that line, the innermost first. Line 0 is the whole template: there
    is none of that name.
    """

    def __init__(self, template: str, line: int, message: str, callers: Sequence[Place] = ()) -> None:
        self.template, self.line, self.message, self.callers = template, line, message, tuple(callers)
        super().__init__(template, line, message, self.callers)

    def __str__(self) -> str:
        calls = "".join(f"\n  called from {template}:{line}" for template, line in self.callers)
        return f"{self.template}{f':{self.line}' if self.line else ''}: {self.message}{calls}"


@dataclass(frozen=True)
class Rendered:
    """PTX; `origins` has where each of its lines is from, `callers` the calls that led there, the innermost first."""

    text: str
    origins: tuple[Place | None, ...]
    callers: tuple[tuple[Place, ...], ...]


@dataclass(frozen=True)
class Template:
    """A template by name, in `folder` or, where that is None or has no such file, among the packaged ones."""

    name: str
    folder: Path | None = None

    def render(self, *, target: str, version: str, locations: bool = True, **values: Any) -> str:
        """The PTX for a target (`sm_100a`) and PTX ISA version (`8.6`), checked. Raises TemplateError."""
        rendered = self.rendered(locations=locations, target=target, version=version, **values)
        if not rendered.origins:
            raise TemplateError(self.name, 0, "the template has no PTX")
        from ptxgen.instr.model.check import check
        from ptxgen.syntax import PtxSyntaxError, parse

        try:
            problems = [(each.line, each.message) for each in check(parse(rendered.text)) if each.severity == "error"]
        except PtxSyntaxError as error:
            problems = [(error.line, f"expected {error.expected}, found {error.found}")]
        for line, message in problems:
            last = min(line, len(rendered.origins)) - 1  # an error at the end is one line further down
            origin = rendered.origins[last] or (self.name, 0)
            shown = rendered.text.splitlines()[last].strip()
            raise TemplateError(*origin, f"{message}\n  {shown}", rendered.callers[last])
        return rendered.text

    def rendered(self, *, locations: bool = True, **values: Any) -> Rendered:
        """The PTX without the check. Raises TemplateError for errors of Jinja and Python in the template."""
        folders = (KERNELS_FOLDER,) if self.folder is None else (self.folder, KERNELS_FOLDER)
        try:
            text = environment(folders).get_template(self.name).render(registers=_DECLARATIONS, **values)
        except jinja2.TemplateError as error:  # whose own traceback is of Jinja's code alone
            where = template_frames(error, folders) or [(self.name, 0)]
            raise TemplateError(*where[0], _words(error, folders, values), where[1:]) from None
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            where = template_frames(error, folders)
            if not where:
                raise
            words = error.args[0] if isinstance(error, KeyError) and error.args else error  # whose str has quotes
            raise TemplateError(*where[0], str(words), where[1:]) from error
        return _finished(text, locations, self.folder)


@cache
def environment(folders: tuple[Path, ...] = (KERNELS_FOLDER,)) -> jinja2.Environment:
    """The environment over folders of templates; the first that has a name wins.

    Packaged templates are kept compiled for later processes where that is safe.
    """
    try:
        kept = jinja2.FileSystemBytecodeCache() if folders == (KERNELS_FOLDER,) else None
    except RuntimeError:  # no private temporary directory
        kept = None
    made = jinja2.Environment(
        loader=_MarkingLoader(folders),
        bytecode_cache=kept,
        undefined=_Undefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        line_comment_prefix="##",
        autoescape=False,
        optimized=False,
    )
    made.filters["hex"] = "0x{:x}".format
    return made


class _Undefined(jinja2.StrictUndefined):
    """An undefined name in a template; the message suggests similar names."""

    @property
    def _undefined_message(self) -> str:
        message, owner, name = super()._undefined_message, self._undefined_obj, self._undefined_name
        if owner is jinja2.utils.missing or not isinstance(name, str):
            return message
        if isinstance(owner, TemplateModule):
            message = f"{owner.__name__} has no macro {name!r}"
        known = owner if isinstance(owner, dict) else [each for each in dir(owner) if not each.startswith("_")]
        close = difflib.get_close_matches(name, map(str, known), n=1)
        return f"{message}; did you mean {close[0]}?" if close else message

    # Jinja lets Python refuse these, in words that name no variable.
    __index__ = jinja2.StrictUndefined.__int__


def _words(error: jinja2.TemplateError, folders: tuple[Path, ...], values: Iterable[str]) -> str:
    """An error of Jinja's, with the names that may be meant by one that there is not."""
    if isinstance(error, jinja2.TemplateNotFound):
        name, known = str(error.name), environment(folders).list_templates(extensions=["j2"])
        place = ", ".join(str(folder) for folder in folders if folder != KERNELS_FOLDER)
        message = f"there is no template {name!r}{f' in {place} or' if place else ''} among the packaged ones"
    elif found := re.fullmatch(r"'(\w+)' is undefined", str(error)):
        name, known, message = found[1], list(values), str(error)
    else:
        return str(error)
    close = difflib.get_close_matches(name, known, n=1)
    return f"{message}; did you mean {close[0]}?" if close else message


class _MarkingLoader(jinja2.FileSystemLoader):
    """Marks every line of a template with where it is from."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, path, fresh = super().get_source(environment, template)
        return _marked(source, template), path, fresh


def _marked(source: str, template: str) -> str:
    source = _VECTOR.sub(_BRACE + "%", source)
    lines: list[str] = []
    inside = False
    calls: list[int] = []  # the lines of what is open: {{ over several lines, {% call %}
    for number, line in enumerate(source.split("\n"), 1):
        opened = len(re.findall(r"{[{%#]", line)) - len(re.findall(r"[}%#]}", line))
        stripped = line.strip()
        statement = stripped.startswith(("{%", "{#", "##")) or stripped.endswith(("%}", "#}"))
        if _CALL.match(stripped) and opened == 0:
            calls.append(number)
            line = _mark(template, number, opens=True) + stripped
        elif _END_CALL.match(stripped) and calls:
            line += _mark(template, calls.pop())
        elif not inside and opened > 0 and stripped.startswith("{{"):
            calls.append(number)
            line = _mark(template, number, opens=True) + line
        elif inside and opened < 0 and calls and stripped.endswith("}}"):
            line += _mark(template, calls.pop())
        elif stripped and not inside and opened <= 0 and not statement:
            prefix = _mark(template, number, opens=True) if "{{" in line else ""
            line = prefix + line + _mark(template, number)
        inside = (inside or opened > 0) and opened >= 0
        lines.append(line)
    return "\n".join(lines)


_CALL, _END_CALL = re.compile(r"{%[-+]?\s*call\b"), re.compile(r"{%[-+]?\s*endcall\b")


def _mark(template: str, number: int, *, opens: bool = False) -> str:
    return f"{chr(5) if opens else chr(1)}{template}:{number}{chr(2)}"


def template_frames(error: BaseException, folders: tuple[Path, ...]) -> list[Place]:
    """The template lines in the traceback, the innermost first."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return [(str(error.name), error.lineno)]
    found: list[Place] = []
    trace = error.__traceback__
    while trace is not None:
        filename = Path(trace.tb_frame.f_code.co_filename)
        for folder in folders:
            if filename.is_relative_to(folder) and filename.suffix == ".j2":
                found.append((filename.relative_to(folder).as_posix(), trace.tb_lineno))
        trace = trace.tb_next
    return found[::-1]


@dataclass
class _Line:
    """A line of rendered text: without marks, where it is from, and who called the block of that."""

    text: str
    at: Place | None
    callers: tuple[Place, ...]


def _lines(text: str) -> Iterator[_Line]:
    """The lines without what a call of a macro leaves behind, and without second blank lines."""
    calls: list[Place] = []
    blank = True
    for line in text.split("\n"):
        at, marks, callers = None, list(_MARK.finditer(line)), tuple(calls)
        for mark in marks:
            place = (mark["name"], int(mark["line"]))
            if mark["kind"] == chr(5):
                calls.append(place)
                continue
            if place in calls:
                del calls[len(calls) - 1 - calls[::-1].index(place) :]
            if at is None:
                at, callers = place, tuple(calls[::-1])
        bare = _MARK.sub("", line).replace(_BRACE, "{").rstrip()
        if not bare.strip() and (marks or blank):
            continue
        blank = not bare.strip()
        yield _Line(bare, at, callers)


def macro_lines(text: str) -> list[str]:
    """The lines of what a macro gives, without marks and indented as the body of an entry."""
    made: list[str] = []
    depth = 1
    for line in _lines(text):
        bare = line.text.strip()
        depth -= bare.startswith("}")
        made.append(bare if _is_label(bare) or not bare else "    " * depth + bare)
        depth += bare.startswith("{") and bare.endswith("{")
    return made


def prefix_type(name: str) -> str | None:
    """The PTX type of a register by the first part of its name: `%r_lane` is b32; None for other names."""
    found = _REGISTER.fullmatch(name)
    return _REGISTERS[found[1]] if found else None


def registers_in(lines: Iterable[str]) -> list[str]:
    """The registers that lines of PTX name and whose names say their types, in order."""
    return list(dict.fromkeys(found[0] for line in lines for found in _REGISTER.finditer(line.partition("//")[0])))


def _finished(text: str, locations: bool, folder: Path | None) -> Rendered:
    """Without marks, indented, with declarations, `.file` and `.loc`; templates of `folder` have their whole path."""
    kept = list(_lines(text))
    files = {name: index for index, name in enumerate(dict.fromkeys(each.at[0] for each in kept if each.at), 1)}
    made: list[_Line] = []
    depth, located = 0, None
    for line in kept:
        at, bare = line.at, line.text.strip()
        if bare.startswith(_DECLARATIONS):
            made += [_Line(declared, at, line.callers) for declared in declarations(each.text for each in kept)]
            continue
        if bare.startswith("}"):
            depth -= 1
        body = depth > 0 and bare not in "{}" and not bare.startswith("//") and not _is_label(bare)
        if locations and body and bare and not bare.startswith(".") and at is not None and at != located:
            made.append(_Line(f"    .loc {files[at[0]]} {at[1]} 0", at, line.callers))
            located = at
        written = line.text[: len(line.text) - len(line.text.lstrip())]
        indent = written if depth == 0 else "" if _is_label(bare) else "    " * depth
        made.append(_Line(indent + bare if bare else "", at, line.callers))
        if bare.startswith("{") and bare.endswith("{"):
            depth += 1
        if locations and bare.startswith(".address_size"):
            paths = {index: _path(name, folder) for name, index in files.items()}
            made += [_Line(f'.file {index} "{escaped_path(path)}"', None, ()) for index, path in paths.items()]
    while made and not made[-1].text:
        made.pop()
    return Rendered(
        "\n".join(each.text for each in made) + "\n",
        tuple(each.at for each in made),
        tuple(each.callers for each in made),
    )


def _path(name: str, folder: Path | None) -> str:
    """The path of a template for those who read the PTX: as it is if it is a packaged one, which are found by name."""
    found = folder.absolute() / name if folder is not None else None
    return str(found) if found is not None and found.is_file() else name


def _is_label(line: str) -> bool:
    return line.startswith("$") and line.endswith(":")


def declarations(lines: Any) -> list[str]:
    """The `.reg` lines of all registers that lines of PTX name, one type after the other."""
    by_type: dict[str, list[str]] = {type: [] for type in _REGISTERS.values()}
    for name in registers_in(lines):
        by_type[prefix_type(name) or ""].append(name)
    made = []
    for type, names in by_type.items():
        start = f"    .reg .{type:<5}"
        line = start
        for index, name in enumerate(names):
            end = ";" if index == len(names) - 1 else ","
            if len(line) + len(name) + 2 > _WIDTH:
                made.append(line)
                line = " " * len(start)
            line += f" {name}{end}"
        if names:
            made.append(line)
    return made
