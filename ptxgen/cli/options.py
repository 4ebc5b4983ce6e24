"""Options that several commands share: what a person can choose about a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ptxgen.kernels import GemmPlan

KernelName = Annotated[str, typer.Argument(metavar="KERNEL", help="A name from 'ptxgen kernels'.", show_default=False)]
DType = Annotated[str, typer.Option("--dtype", metavar="bf16|f16", help="Type of A and B.")]
CDType = Annotated[
    str | None,
    typer.Option("--c-dtype", metavar="bf16|f16|f32", help="Type of C: that of A and B, or f32.", show_default=False),
]
MTile = Annotated[int, typer.Option("--m-tile", metavar="64|128", help="Rows of C per CTA.")]
NTile = Annotated[int, typer.Option("--n-tile", metavar="32..256", help="Columns of C per CTA, in steps of 16.")]
PtxFile = Annotated[str, typer.Argument(metavar="FILE.ptx", help="PTX text; - is standard input.", show_default=False)]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="sm_NNN", help="Instead of the text's own .target.", show_default=False),
]

#: The configuration as `ptxgen kernels` lists it: option, values, meaning.
CONFIG_HELP = (
    ("--dtype", "bf16, f16", "type of A and B; bf16 unless given"),
    ("--c-dtype", "as --dtype, or f32", "type of C; as --dtype unless given"),
    ("--m-tile", "64, 128", "rows of C per CTA; 128 unless given"),
    ("--n-tile", "32 to 256, step 16", "columns of C per CTA; 128 unless given"),
)


def make_plan(kernel: str, dtype: str, c_dtype: str | None, m_tile: int, n_tile: int) -> GemmPlan:
    """The plan of a kernel by name. Raises InputError for an unknown name, PlanError for what does not fit."""
    from ptxgen.cli.errors import InputError, nearest
    from ptxgen.kernels import KERNELS

    if kernel not in KERNELS:
        raise InputError(f"there is no kernel {kernel!r} (known: {', '.join(KERNELS)}){nearest(kernel, KERNELS)}")
    return KERNELS[kernel].plan(dtype=dtype, c_dtype=c_dtype, m_tile=m_tile, n_tile=n_tile)
