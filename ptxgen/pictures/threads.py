"""Pictures of register fragments: which thread and register holds each element of a matrix."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from ptxgen.layouts.fragments import (
    Fragment,
    a_fragment,
    accumulator_fragment,
    b_fragment,
    load_fragment,
    regrouped,
    store_fragment,
    wgmma_a_fragment,
    wgmma_accumulator_fragment,
)
from ptxgen.pictures.kinds import Number, When, kind, limit
from ptxgen.pictures.model import Axis, Cell, Legend, Panel, Picture

_MOST = 8192

Of = Literal["wgmma-d", "wgmma-a", "mma-a", "mma-b", "mma-d", "ldmatrix", "stmatrix"]

_MOVED, _MULTIPLIED = When("of", ("ldmatrix", "stmatrix")), When("of", ("mma-a", "mma-b"))
_AXES = {
    "wgmma-d": ("m", "n"),
    "mma-d": ("m", "n"),
    "mma-b": ("k", "n"),
    "ldmatrix": ("address", "element"),
    "stmatrix": ("address", "element"),
}


@kind("fragment")
def fragment(
    of: Annotated[Of, "the instruction and its operand"] = "wgmma-d",
    bits: Annotated[
        Literal["auto", "1", "4", "8", "16", "32", "64"],
        "of an element; auto: 32 for d, 8 for matrices of 8-bit elements, else 16",
    ] = "auto",
    m: Annotated[Number, "rows, of mma-a and mma-d", When("of", ("mma-a", "mma-d"))] = 16,
    n: Annotated[Number, "columns of D (wgmma-d; mma has 8)", When("of", ("wgmma-d",))] = 16,
    k: Annotated[Number, "K of mma-a and mma-b; 0: what four registers of A hold", _MULTIPLIED] = 0,
    shape: Annotated[Literal["m8n8", "m8n16", "m16n16", "m16n8"], "of ldmatrix and stmatrix", _MOVED] = "m8n8",
    num: Annotated[Number, "matrices of ldmatrix and stmatrix", _MOVED] = 1,
    trans: Annotated[bool, ".trans", _MOVED] = False,
    color: Annotated[Literal["thread", "register", "warp"], "what colors show"] = "thread",
) -> Picture:
    """A fragment of wgmma, mma.sync, ldmatrix or stmatrix: the matrix, and who holds each element."""
    natural = 32 if of in ("wgmma-d", "mma-d") else 8 if of in _MOVED.values and shape != "m8n8" else 16
    size = int(bits) if bits != "auto" else natural
    k = k or 256 // size
    limit("m", m, 8, 16)
    limit("n", n, 8, 256)
    limit("k", k, 1, 512)
    limit("num", num, 1, 4)
    found, title = _fragment(of, size, m, n, k, shape, num, trans)
    row, column = found
    rows, columns = int(row.max()) + 1, int(column.max()) + 1
    limit("elements of the picture", rows * columns, 1, _MOST)
    single = row.shape[2] == 1
    cells: list[list[Cell | None]] = [[None] * columns for _ in range(rows)]
    for t, r, e in np.ndindex(row.shape):
        name = f"t{t} r{r}" + ("" if single else f".{e}")
        group = {"thread": t // 4 % 8, "register": r % 16, "warp": t // 32}[color]
        cells[row[t, r, e]][column[t, r, e]] = Cell(name, int(group))
    along, across = _AXES.get(of, ("m", "k"))
    panel = Panel(
        "The matrix: who holds each element",
        Axis(along, tuple(map(str, range(rows)))),
        Axis(across, tuple(map(str, range(columns)))),
        tuple(map(tuple, cells)),
    )
    legend = {
        "thread": tuple((g, f"t{4 * g}-{4 * g + 3}") for g in range(8)),
        "register": tuple((g, f"r{g}") for g in range(min(row.shape[1], 16))),
        "warp": tuple((g, f"warp {g}") for g in range(row.shape[0] // 32)),
    }[color]
    name = {"thread": "threads of a warp", "register": "registers", "warp": "warps"}[color]
    holds = f"{row.shape[2]} element{'' if single else 's'} of {size} bits in one"
    threads = f"{row.shape[0]} threads, {row.shape[1]} registers each, {holds}"
    notes: tuple[str, ...] = ()
    if along == "address":
        notes = ("row r is the 16 bytes at the address that thread r gives",)
    elif row.shape[0] == 128:
        notes = ("warp w of the warpgroup holds rows 16w to 16w + 15",)
    within = "" if single else ", then the element from the low bits up"
    return Picture(
        title,
        f"t: thread, r: register{within}; {threads}",
        (panel,),
        (Legend(name, legend),),
        notes,
        {"axes": ["thread", "register", "element"], "row": row.tolist(), "column": column.tolist()},
    )


def _fragment(of: str, bits: int, m: int, n: int, k: int, shape: str, num: int, trans: bool) -> tuple[Fragment, str]:
    match of:
        case "wgmma-d":
            return wgmma_accumulator_fragment(n, bits), f"D of wgmma, 64×{n}, {bits} bits"
        case "wgmma-a":
            return wgmma_a_fragment(bits), f"A of wgmma in registers, 64×{256 // bits}, {bits} bits"
        case "mma-a":
            return a_fragment(m, k, bits), f"A of mma.sync, {m}×{k}, {bits} bits"
        case "mma-b":
            return b_fragment(k, 8, bits), f"B of mma.sync, {k}×8, {bits} bits"
        case "mma-d":
            return accumulator_fragment(m, 8, bits), f"C and D of mma.sync, {m}×8, {bits} bits"
        case "ldmatrix":
            made = load_fragment(shape, num, trans)  # type: ignore[arg-type]
        case _:
            made = store_fragment(shape, num, trans)  # type: ignore[arg-type]
    title = f"{of}.{shape}.x{num}{'.trans' if trans else ''}"
    if shape != "m8n8" and bits != 8:
        raise ValueError(f"{of}.{shape} has elements of 8 bits in registers, not of {bits}")
    moved = 32 // made[0].shape[2]
    return regrouped(made, moved, bits), title if bits == moved else f"{title}, elements of {bits} bits"
