"""`ptxgen explain`: what an instruction is, and what the bits of a descriptor or tensormap mean."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.errors import OK, WRONG, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ptxgen.instr.explain import Explanation

FORMATS = ("smem", "wgmma", "idesc", "tensormap")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Values")(explain)


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="INSTRUCTION|FORMAT",
            help="An instruction, in quotes, with or without operands; or a format, with its VALUE: smem (tcgen05 "
            "matrix descriptor), wgmma (its matrix descriptor), idesc (tcgen05.mma instruction descriptor, kind::f16) "
            "or tensormap.",
            show_default=False,
        ),
    ],
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="[VALUE]",
            help="A number such as 0x4000404000010000; for tensormap 256 hex digits or a file of 128 bytes.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON. Instructions only.")] = False,
) -> int:
    """Explain an instruction (its parts, where it is legal, who issues it, what completes it) or a descriptor."""
    if value is None and what not in FORMATS:
        return _instruction(what, as_json)
    if what not in FORMATS:
        raise InputError(
            f"with a VALUE, FORMAT must be smem, wgmma, idesc or tensormap, not {what!r}; "
            "an instruction goes into one pair of quotes"
        )
    if value is None:
        raise InputError(f"explain {what} needs a VALUE")
    if as_json:
        raise InputError("--json is for instructions")
    return _descriptor(what, value)


def _descriptor(format: str, value: str) -> int:
    from ptxgen.descriptors import InstructionDescriptor, SmemDescriptor, TensorMap, WgmmaDescriptor

    if format == "tensormap":
        decoded = TensorMap.decode(_bytes(value))
    elif format == "idesc":
        decoded = InstructionDescriptor.decode(_number(value))
    else:
        decoded = (SmemDescriptor if format == "smem" else WgmmaDescriptor).decode(_number(value))
    print(decoded.explain())
    return OK


def _instruction(text: str, as_json: bool) -> int:
    from ptxgen.cli.terminal import output
    from ptxgen.instr.explain import explain as explanations
    from ptxgen.syntax import PtxSyntaxError

    try:
        found = explanations(text)
    except PtxSyntaxError as error:
        raise InputError(f"this is no PTX instruction: {error}") from None
    except ValueError as error:
        raise InputError(str(error)) from None
    if as_json:
        print(json.dumps([each.as_dict() for each in found], indent=2))
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

    from ptxgen.cli.terminal import grid

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
    out.print(Padding(table, (0, 0, 0, 2)))


def _number(value: str) -> int:
    try:
        return int(value, 0)
    except ValueError:
        raise InputError(f"VALUE must be a number such as 0x4000404000010000 or 272, not {value!r}") from None


def _bytes(value: str) -> bytes:
    """128 bytes given as hex digits or in a file."""
    from ptxgen.cli.files import reason

    digits = re.sub(r"[\s_]|^0x", "", value)
    if re.fullmatch(r"[0-9a-fA-F]{256}", digits):
        return bytes.fromhex(digits)
    path = Path(value)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"a tensormap is 256 hex digits (not {len(digits)}) or a file of 128 bytes; "
            f"cannot read {value[:60]}: {reason(error)}"
        ) from None
    if len(data) != 128:
        raise InputError(f"a tensormap has 128 bytes, but {value} has {len(data)}")
    return data
