"""The Jinja environment of kernel templates.

In a template every instruction is a call into the model: `{{ tcgen05.mma(d, a, b, idesc, accumulate, cta_group=1,
kind="f16") }}`. The call checks modifiers, operands, register types, target and PTX version, and prints the
instruction; an illegal one stops the rendering with the template's line and the rule. `reg`, `label`, `when`, `loop`
and `kernel` give registers, labels and structured control.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from ptxgen.builder.registers import Register, Registers
from ptxgen.instr import FAMILIES
from ptxgen.instr.control import bra
from ptxgen.instr.model.form import Instruction, InstructionError, errors
from ptxgen.instr.model.operands import Symbol
from ptxgen.instr.model.targets import parse_target, parse_version
from ptxgen.instr.model.types import TYPES

TEMPLATES = Path(__file__).parent.parent / "kernels" / "templates"


class TemplateError(ValueError):
    """A template that cannot be rendered: `template` and `line` say where, the message why."""

    def __init__(self, template: str, line: int, message: str) -> None:
        self.template, self.line = template, line
        super().__init__(f"{template}:{line}: {message}")


@cache
def environment(folder: Path = TEMPLATES) -> jinja2.Environment:
    """The environment over a folder of templates, by default the packaged ones.

    Those are kept compiled for later processes where that is safe.
    """
    try:
        kept = jinja2.FileSystemBytecodeCache() if folder == TEMPLATES else None
    except RuntimeError:  # no private temporary directory
        kept = None
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        bytecode_cache=kept,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        line_comment_prefix="##",
        autoescape=False,
        optimized=False,
    )


def render(template: str, *, target: str, version: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """The PTX of a template for a target (`sm_100a`) and PTX ISA version (`8.6`).

    `folder` is where the template and those that it imports are; `values` are the names that it sees. Raises
    TemplateError.
    """
    context = _Context(target, version)
    try:
        return environment(folder).get_template(template).render({**context.globals(), **values}).lstrip()
    except (InstructionError, jinja2.TemplateError, KeyError, TypeError, AttributeError, ValueError) as error:
        where = _template_frame(error, folder)
        if where is None:
            raise
        raise TemplateError(*where, str(error)) from error


def _template_frame(error: BaseException, folder: Path) -> tuple[str, int] | None:
    """The innermost template line in the traceback."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return str(error.name), error.lineno
    found = None
    trace = error.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if Path(filename).is_relative_to(folder):
            found = (Path(filename).relative_to(folder).as_posix(), trace.tb_lineno)
        trace = trace.tb_next
    return found


def _tidy(body: str) -> str:
    """Blank lines only before comments: macros leave others behind."""
    lines = [line for line in body.splitlines() if line.strip()]
    return "".join(
        ("\n" if line.lstrip().startswith("//") and index else "") + line + "\n" for index, line in enumerate(lines)
    )


class _Family:
    """A module of the model as templates see it: its declarations, checked against target and registers."""

    def __init__(self, name: str, context: _Context) -> None:
        self._module = importlib.import_module(f"ptxgen.instr.{name}")
        self._name, self._context = name, context
        self._calls: dict[str, Callable[..., Instruction]] = {}

    def __getattr__(self, name: str) -> Callable[..., Instruction]:
        declared = getattr(self._module, name, None)
        if not (isinstance(declared, type) and issubclass(declared, Instruction)):
            if name.startswith("__"):  # Python asks for these itself
                raise AttributeError(name)
            near = difflib.get_close_matches(name, [each for each in vars(self._module) if each[0] != "_"], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            # Jinja would turn an AttributeError into an undefined value.
            raise ValueError(f"ptxgen.instr.{self._name} declares no instruction {name}{hint}")

        def call(*operands: Any, **modifiers: Any) -> Instruction:
            made = declared(*operands, **modifiers)
            self._context.check(made)
            return made

        setattr(self, name, call)
        return call


class _Context:
    """What one rendering knows: target, version, and the registers made so far."""

    def __init__(self, target: str, version: str) -> None:
        self.target_text, self.version_text = target, version
        self.target, self.version = parse_target(target), parse_version(version)
        self.registers = Registers()

    def check(self, made: Instruction) -> None:
        problems = made.operand_problems(self.registers) + made.availability_problems(self.target, self.version)
        if problems := errors(problems):
            raise InstructionError(made.form.key, problems)

    def globals(self) -> Mapping[str, Any]:
        families = {name: _Family(name, self) for name in FAMILIES}
        return {
            **families,
            "reg": self.registers.one,
            "regs": self.registers.many,
            "label": self.registers.label,
            "when": self.when,
            "loop": self.loop,
            "kernel": self.kernel,
        }

    def _branch(self, target: str) -> bra:
        made = bra(target)
        self.check(made)
        return made

    def when(self, predicate: Register, name: str = "skip", *, negated: bool = False, caller: Callable[[], str]) -> str:
        """The block, for the threads in which the predicate holds."""
        end = self.registers.label(name)
        skip = self._branch(end).when(predicate, negated=not negated)
        return f"    {skip}\n{caller()}{end}:\n"

    def loop(self, name: str = "loop", *, caller: Callable[[str], str]) -> str:
        """A label before the block; the block gets the label to branch back to."""
        begin = self.registers.label(name)
        return f"{begin}:\n{caller(begin)}"

    def kernel(
        self,
        name: str,
        parameters: list[tuple[str, str]],
        *,
        threads: int,
        shared: tuple[str, int],
        caller: Callable[[], str],
    ) -> str:
        """The module around a kernel's body: directives, entry, register declarations.

        `parameters` are (declaration without name, name) such as (".param .u64", "c"); `shared` is the name and
        alignment of the dynamic shared memory.
        """
        for declaration, parameter in parameters:
            type = declaration.split(".")[-1].split()[0]
            self.registers.define(Symbol(parameter, "parameter", TYPES.get(type), "param"))
        self.registers.define(Symbol(shared[0], "variable", TYPES["b8"], "shared"))
        body = _tidy(caller())
        listed = ",\n".join(
            f"    {declaration} {parameter}" + ("[128]" if declaration.endswith(".b8") else "")
            for declaration, parameter in parameters
        )
        return (
            f".version {self.version_text}\n.target {self.target_text}\n.address_size 64\n\n"
            f".extern .shared .align {shared[1]} .b8 {shared[0]}[];\n\n"
            f".visible .entry {name}(\n{listed}\n)\n.reqntid {threads}, 1, 1\n{{\n"
            f"{self.registers.declarations()}\n\n{body}}}\n"
        )
