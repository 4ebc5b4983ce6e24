"""Templates of kernels: plain PTX lines, with `{{ }}` only where the plan decides.

Registers need no declaration: their names say what they are (`%p_` predicate, `%rs_` 16 bits, `%r_` 32, `%rd_` 64,
`%rq_` 128, `%f_` and `%fd_` floating point), and `{{ registers }}` stands for the declarations. The rendered text is
checked, and an error is reported at the line of the template that it comes from. `.loc` directives name that line, so
that findings of the emulator do, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

_PACKAGE = Path(__file__).parent.parent
#: The templates of the package: `ptxgen/kernels` where it is installed, `kernels` next to it in a checkout.
KERNELS_FOLDER = next(
    (folder for folder in (_PACKAGE / "kernels", _PACKAGE.parent / "kernels") if (folder / "blocks").is_dir()),
    _PACKAGE / "kernels",
)

#: Register types by the first part of the name, in the order of their declarations.
_REGISTERS = {"p": "pred", "rs": "b16", "r": "b32", "rd": "b64", "rq": "b128", "f": "f32", "fd": "f64"}
_REGISTER = re.compile(r"%(p|rs|r|rd|rq|f|fd)_\w+")
#: Behind every line of a template: where it is from.
_MARK = re.compile("\x01([^\x01\x02]*):([0-9]+)\x02")
_DECLARATIONS = "\x03"
#: A PTX vector such as `{%r_a, %r_b}` begins like a statement of Jinja, which has white space behind its `{%`.
_VECTOR = re.compile(r"{%(?=\w)")
_BRACE = "\x04"
_WIDTH = 100


class TemplateError(ValueError):
    """A template that cannot be rendered, or whose PTX is illegal: `template` and `line` say where."""

    def __init__(self, template: str, line: int, message: str) -> None:
        self.template, self.line, self.message = template, line, message
        super().__init__(template, line, message)

    def __str__(self) -> str:
        return f"{self.template}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Rendered:
    """PTX, and for each of its lines the template and line that it is from."""

    text: str
    origins: tuple[tuple[str, int] | None, ...]


@dataclass(frozen=True)
class Template:
    """A template by name, in `folder` or, where that is None or has no such file, among the packaged ones."""

    name: str
    folder: Path | None = None

    def render(self, *, target: str, version: str, locations: bool = True, **values: Any) -> str:
        """The PTX for a target (`sm_100a`) and PTX ISA version (`8.6`), checked. Raises TemplateError."""
        rendered = self.rendered(locations=locations, target=target, version=version, **values)
        from ptxgen.instr.model.check import check
        from ptxgen.syntax import PtxSyntaxError, parse

        try:
            problems = [(each.line, each.message) for each in check(parse(rendered.text)) if each.severity == "error"]
        except PtxSyntaxError as error:
            problems = [(error.line, f"expected {error.expected}, found {error.found}")]
        for line, message in problems:
            origin = rendered.origins[line - 1] or (self.name, 0)
            shown = rendered.text.splitlines()[line - 1].strip()
            raise TemplateError(*origin, f"{message}\n  {shown}")
        return rendered.text

    def rendered(self, *, locations: bool = True, **values: Any) -> Rendered:
        """The PTX without the check. Raises TemplateError for errors of Jinja and Python in the template."""
        folders = (KERNELS_FOLDER,) if self.folder is None else (self.folder, KERNELS_FOLDER)
        try:
            text = environment(folders).get_template(self.name).render(registers=_DECLARATIONS, **values)
        except (jinja2.TemplateError, KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            where = _template_frame(error, folders)
            if where is None:
                raise
            raise TemplateError(*where, str(error)) from error
        return _finished(text, locations)


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
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        line_comment_prefix="##",
        autoescape=False,
        optimized=False,
    )
    made.filters["hex"] = "0x{:x}".format
    return made


class _MarkingLoader(jinja2.FileSystemLoader):
    """Marks every line of a template with where it is from."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, path, fresh = super().get_source(environment, template)
        return _marked(source, template), path, fresh


def _marked(source: str, template: str) -> str:
    source = _VECTOR.sub(_BRACE + "%", source)
    lines, inside = [], False
    for number, line in enumerate(source.split("\n"), 1):
        opened = len(re.findall(r"{[{%#]", line)) - len(re.findall(r"[}%#]}", line))
        inside = inside or opened > 0
        stripped = line.strip()
        statement = stripped.startswith(("{%", "{#", "##")) or stripped.endswith(("%}", "#}"))
        if stripped and not inside and not statement:
            line += f"\x01{template}:{number}\x02"
        if opened < 0:
            inside = False
        lines.append(line)
    return "\n".join(lines)


def _template_frame(error: BaseException, folders: tuple[Path, ...]) -> tuple[str, int] | None:
    """The innermost template line in the traceback."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return str(error.name), error.lineno
    found = None
    trace = error.__traceback__
    while trace is not None:
        filename = Path(trace.tb_frame.f_code.co_filename)
        for folder in folders:
            if filename.is_relative_to(folder) and filename.suffix == ".j2":
                found = (filename.relative_to(folder).as_posix(), trace.tb_lineno)
        trace = trace.tb_next
    return found


def _finished(text: str, locations: bool) -> Rendered:
    """Without marks, indented, with declarations, `.file` and `.loc`."""
    kept: list[tuple[str, tuple[str, int] | None]] = []
    for line in text.split("\n"):
        mark = _MARK.search(line)
        bare = _MARK.sub("", line).replace(_BRACE, "{").rstrip()
        if not bare.strip() and (mark or not kept or not kept[-1][0].strip()):
            continue  # what a call of a macro leaves behind, or a second blank line
        kept.append((bare, (mark[1], int(mark[2])) if mark else None))
    files = {name: index for index, name in enumerate(dict.fromkeys(at[0] for _, at in kept if at), 1)}
    lines: list[str] = []
    origins: list[tuple[str, int] | None] = []

    def add(line: str, at: tuple[str, int] | None) -> None:
        lines.append(line)
        origins.append(at)

    depth, located = 0, None
    for line, at in kept:
        bare = line.strip()
        if bare.startswith(_DECLARATIONS):
            for declared in declarations(line for line, _ in kept):
                add(declared, at)
            continue
        if bare.startswith("}"):
            depth -= 1
        body = depth > 0 and bare not in "{}" and not bare.startswith("//") and not _is_label(bare)
        if locations and body and bare and not bare.startswith(".") and at is not None and at != located:
            add(f"    .loc {files[at[0]]} {at[1]} 0", at)
            located = at
        indent = line[: len(line) - len(line.lstrip())] if depth == 0 else "" if _is_label(bare) else "    " * depth
        add(indent + bare if bare else "", at)
        if bare.startswith("{") and bare.endswith("{"):
            depth += 1
        if locations and bare.startswith(".address_size"):
            for name, index in files.items():
                add(f'.file {index} "{name}"', None)
    while lines and not lines[-1]:
        lines.pop()
        origins.pop()
    return Rendered("\n".join(lines) + "\n", tuple(origins))


def _is_label(line: str) -> bool:
    return line.startswith("$") and line.endswith(":")


def declarations(lines: Any) -> list[str]:
    """The `.reg` lines of all registers that lines of PTX name, one type after the other."""
    by_type: dict[str, dict[str, None]] = {name: {} for name in _REGISTERS}
    for line in lines:
        for found in _REGISTER.finditer(line.partition("//")[0]):
            by_type[found[1]][found[0]] = None
    made = []
    for prefix, names in by_type.items():
        start = f"    .reg .{_REGISTERS[prefix]:<5}"
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
