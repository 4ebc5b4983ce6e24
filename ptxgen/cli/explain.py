"""`ptxgen explain`: what the bits of a descriptor or tensormap mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ptxgen.cli.errors import InputError, choose

FORMATS = ("smem", "wgmma", "idesc", "tensormap")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Values")(explain)


def explain(
    format: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="smem (tcgen05 matrix descriptor), wgmma (its matrix descriptor), idesc (tcgen05.mma instruction "
            "descriptor, kind::f16) or tensormap.",
            show_default=False,
        ),
    ],
    value: Annotated[
        str,
        typer.Argument(
            metavar="VALUE",
            help="A number such as 0x4000404000010000; for tensormap 256 hex digits or a file of 128 bytes.",
            show_default=False,
        ),
    ],
) -> None:
    """Explain a descriptor: every field, its bits, its meaning, and how that is known."""
    from ptxgen.descriptors import InstructionDescriptor, SmemDescriptor, TensorMap, WgmmaDescriptor

    choose("FORMAT", format, FORMATS)
    if format == "tensormap":
        decoded = TensorMap.decode(_bytes(value))
    elif format == "idesc":
        decoded = InstructionDescriptor.decode(_number(value))
    else:
        decoded = (SmemDescriptor if format == "smem" else WgmmaDescriptor).decode(_number(value))
    print(decoded.explain())


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
