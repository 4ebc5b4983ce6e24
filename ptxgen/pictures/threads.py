"""Pictures of register fragments: which thread and register holds each element of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.fragments import (
    WARP_ROWS,
    Fragment,
    MatrixShape,
    a_fragment,
    accumulator_fragment,
    b_fragment,
    load_fragment,
    metadata_places,
    quad_a_fragment,
    quad_accumulator_fragment,
    quad_b_fragment,
    quad_products,
    regrouped,
    row_threads,
    scale_places,
    store_fragment,
    wgmma_a_fragment,
    wgmma_accumulator_fragment,
)
from ptxgen.pictures.kinds import Number, When, kind, limit
from ptxgen.pictures.model import Axis, Cell, Legend, Panel, Picture

_MOST = 8192

Of = Literal[
    "wgmma-d", "wgmma-a", "mma-a", "mma-b", "mma-d", "ldmatrix", "stmatrix", "mma-metadata", "wgmma-metadata",
    "mma-scale-a", "mma-scale-b",
]  # fmt: skip
Shape = Literal["m8n8", "m8n16", "m16n16", "m16n8"]
Bits = Literal["auto", "1", "4", "8", "16", "32", "64"]
Layout = Literal["auto", "row", "col"]

MOVED = When("of", ("ldmatrix", "stmatrix"))
METADATA = When("of", ("mma-metadata", "wgmma-metadata"))
SCALED = When("of", ("mma-scale-a", "mma-scale-b"))
K_OF = When("of", ("mma-a", "mma-b", "mma-d", *METADATA.values))
ORDERED = When("of", ("mma-a", "mma-b"))
_AXES = {
    "wgmma-d": ("m", "n"),
    "mma-d": ("m", "n"),
    "mma-b": ("k", "n"),
    "ldmatrix": ("address", "element"),
    "stmatrix": ("address", "element"),
    "mma-metadata": ("m", "chunk of K"),
    "wgmma-metadata": ("m", "chunk of K"),
    "mma-scale-a": ("m", "scale"),
    "mma-scale-b": ("n", "scale"),
}


@dataclass(frozen=True)
class Held:
    """A matrix in registers: arrays of one shape with row, column, thread, register and lowest bit of each element.

    `bits` is the width of an element, `axes` what rows and columns are, `threads` and `registers` how many there are,
    `notes` what holds for all elements.
    """

    title: str
    axes: tuple[str, str]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    thread: NDArray[np.int64]
    register: NDArray[np.int64]
    bit: NDArray[np.int64]
    bits: int
    threads: int
    registers: int
    notes: tuple[str, ...] = ()


@kind("fragment")
def fragment(
    of: Annotated[Of, "the instruction and its operand"] = "wgmma-d",
    bits: Annotated[Bits, "of an element; auto: 32 for d, 8 for matrices of 8-bit elements, else 16"] = "auto",
    m: Annotated[Number, "rows, of mma-a and mma-d", When("of", ("mma-a", "mma-d"))] = 16,
    n: Annotated[Number, "columns of D (wgmma-d; mma has 8)", When("of", ("wgmma-d",))] = 16,
    k: Annotated[
        Number, "K of mma-a, mma-b, metadata; 0: four registers of A, 64 bytes of a sparse A; 4: mma-d of m8n8k4", K_OF
    ] = 0,
    layout: Annotated[Layout, "mma-a and mma-b of m8n8k4 with .f16; auto: A row, B col", ORDERED] = "auto",
    shape: Annotated[Shape, "of ldmatrix and stmatrix", MOVED] = "m8n8",
    num: Annotated[Number, "matrices of ldmatrix and stmatrix", MOVED] = 1,
    trans: Annotated[bool, ".trans", MOVED] = False,
    selector: Annotated[Number, "the sparsity selector", METADATA] = 0,
    scales: Annotated[Literal["1", "2", "4"], "scales a row: .scale_vec", SCALED] = "1",
    byte_id: Annotated[Number, "of the scales", SCALED] = 0,
    thread_id: Annotated[Number, "of the scales", SCALED] = 0,
    color: Annotated[Literal["thread", "register", "warp"], "what colors show"] = "thread",
) -> Picture:
    """A fragment of wgmma, mma.sync, ldmatrix or stmatrix: the matrix, and who holds each element."""
    limit("num", num, 1, 4)
    found = held(of, bits, m, n, k, layout, shape, num, trans, selector, scales, byte_id, thread_id)
    rows, columns = int(found.row.max()) + 1, int(found.column.max()) + 1
    limit("elements of the picture", rows * columns, 1, _MOST)
    per = 32 // found.bits if found.bits < 32 else 1
    cells: list[list[Cell | None]] = [[None] * columns for _ in range(rows)]
    for place in np.ndindex(found.row.shape):
        t, r, bit = int(found.thread[place]), int(found.register[place]), int(found.bit[place])
        name = f"t{t} b{bit}" if of in (*METADATA.values, *SCALED.values) else f"t{t} r{r}"
        if per > 1 and name.endswith(f" r{r}"):
            name += f".{bit // found.bits}"
        group = {"thread": t // 4 % 8, "register": r % 16, "warp": t // 32}[color]
        cells[found.row[place]][found.column[place]] = Cell(name, group)
    panel = Panel(
        "The matrix: who holds each element",
        Axis(found.axes[0], tuple(map(str, range(rows)))),
        Axis(found.axes[1], tuple(map(str, range(columns)))),
        tuple(map(tuple, cells)),
    )
    legend = {
        "thread": tuple((g, f"t{4 * g}-{4 * g + 3}") for g in range(8)),
        "register": tuple((g, f"r{g}") for g in range(min(found.registers, 16))),
        "warp": tuple((g, f"warp {g}") for g in range(found.threads // 32)),
    }[color]
    name = {"thread": "threads of a warp", "register": "registers", "warp": "warps"}[color]
    return Picture(
        found.title,
        _subtitle(found, of, per),
        (panel,),
        (Legend(name, legend),),
        _notes(found, of),
        _data(found, of),
    )


def _subtitle(found: Held, of: str, per: int) -> str:
    if of in (*METADATA.values, *SCALED.values):
        return f"t: thread, b: lowest bit of {found.bits} in its register; threads that are not named are ignored"
    within = "" if per == 1 else ", then the element from the low bits up"
    holds = f"{per} element{'' if per == 1 else 's'} of {found.bits} bits in one"
    return f"t: thread, r: register{within}; {found.threads} threads, {found.registers} registers each, {holds}"


def _notes(found: Held, of: str) -> tuple[str, ...]:
    if of in MOVED.values:
        return ("row r is the 16 bytes at the address that thread r gives",)
    if of in METADATA.values:
        return ("a chunk is 4 elements of K (2 of 32 bits, 8 of 4 bits), half of them stored",)
    if found.threads == 128:
        return ("warp w of the warpgroup holds rows 16w to 16w + 15",)
    return found.notes


def _data(found: Held, of: str) -> dict[str, list[str] | list[int]]:
    """The map for JSON: by thread, register and element; by row and column where registers are partly unused."""
    if of in (*METADATA.values, *SCALED.values):
        return {"axes": ["row", "column"], "thread": found.thread.tolist(), "bit": found.bit.tolist()}
    return {"axes": ["thread", "register", "element"], "row": found.row.tolist(), "column": found.column.tolist()}


def held(
    of: Of,
    bits: Bits,
    m: int,
    n: int,
    k: int,
    layout: Layout,
    shape: MatrixShape,
    num: int,
    trans: bool,
    selector: int,
    scales: str,
    byte_id: int,
    thread_id: int,
) -> Held:
    """The matrix that an operand is, and who holds its elements. Raises ValueError for what does not exist."""
    natural = 32 if of in ("wgmma-d", "mma-d") else 8 if of in MOVED.values and shape != "m8n8" else 16
    size = int(bits) if bits != "auto" else natural
    limit("m", m, 8, 16)
    limit("n", n, 8, 256)
    limit("k", k, 0, 512)
    if of in SCALED.values:
        if bits != "auto":
            raise ValueError(f"scales have 8 bits: bits must be auto, not {bits}")
        operand: Literal["a", "b"] = "a" if of == "mma-scale-a" else "b"
        thread, byte = scale_places(operand, int(scales), byte_id, thread_id)
        title = f"Scale factors of {operand.upper()} of mma.sync, {scales}X, byte-id {byte_id}, thread-id {thread_id}"
        return _by_place(title, _AXES[of], thread, 8 * byte, 8, 32)
    if of in METADATA.values:
        rows = 64 if of == "wgmma-metadata" else WARP_ROWS
        k = k or 512 // size
        thread, bit = metadata_places(k, size, selector, rows)
        name = of.removesuffix("-metadata")
        title = f"Metadata of {name}.sp, {rows}×{k} elements of {size} bits, selector {selector}"
        return _by_place(title, _AXES[of], thread, bit, 4, 2 * rows)
    if of in ORDERED.values and k == 4 and size == 16:
        return _quads(of, size, layout)
    if of == "mma-d" and m == 8 and (size == 16 or (k == 4 and size == 32)):
        return _quads(of, size, layout)  # no other shape with 8 rows has an accumulator of .f16
    _require_size(of, size, m, k)
    if layout != "auto":
        raise ValueError("layout is of m8n8k4 with .f16: elsewhere A is .row and B is .col")
    if of == "mma-d" and k and (m, size) != (8, 64):
        raise ValueError("k of mma-d must be 4 with m=8 (m8n8k4 of .f16), or 0: other accumulators depend on m alone")
    (row, column), title = _fragment(of, size, m, n, k or 256 // size, shape, num, trans)
    return _held(title, _AXES.get(of, ("m", "k")), (row, column), size, _CONTAINERS if _contains(of, size) else ())


#: Sizes of elements that an operand can have, in bits.
_SIZES = {"mma-d": (16, 32, 64), "wgmma-d": (16, 32), "wgmma-a": (1, 8, 16, 32)}
#: Bits of a row of A in the shapes of mma, by rows and by whether elements have 64 bits (PTX ISA 9.7.14.5).
_ROW_BITS = {(16, False): (128, 256), (16, True): (256, 512, 1024), (8, False): (128,), (8, True): (256,)}


def _require_size(of: Of, bits: int, m: int, k: int) -> None:
    """Raises ValueError for elements or a K that no instruction has for this operand."""
    sizes = _SIZES.get(of, (bits,))
    if bits not in sizes:
        raise ValueError(f"{of} has elements of {' or '.join(map(str, sizes))} bits, not {bits}")
    if of == "mma-a" and m == 8 and bits in (16, 32):
        raise ValueError(f"mma.sync of {bits} bits with 8 rows is m8n8k4 of .f16 alone: give bits=16 k=4")
    if of == "mma-a" and k:
        legal = [each // bits for each in _ROW_BITS.get((m, bits == 64), ())]
        if legal and k not in legal:
            raise ValueError(
                f"A of mma.sync with {m} rows of {bits} bits has K {' or '.join(map(str, legal))}, not {k}"
            )


_CONTAINERS = ("with .kind::f8f6f4, e2m1 is in bits 2-5 of its 8 bits, e2m3 and e3m2 are in bits 0-5",)


def _contains(of: Of, bits: int) -> bool:
    """Whether elements may be narrower than the bits that they fill."""
    return of in ORDERED.values and bits == 8


def _quads(of: Of, bits: int, layout: Layout) -> Held:
    """A, B or D of the four products that mma.m8n8k4 with .f16 computes, one below the other (B: side by side)."""
    product = 8 * quad_products()[:, None, None]
    if of == "mma-b":
        chosen = "row" if layout == "row" else "col"
        row, column = quad_b_fragment(chosen)
        fragment, what = (row, column + product), f"B, 4×8, .{chosen}"
    else:
        chosen = "col" if layout == "col" else "row"
        row, column = quad_a_fragment(chosen) if of == "mma-a" else quad_accumulator_fragment(bits)
        fragment, what = (row + product, column), f"A, 8×4, .{chosen}" if of == "mma-a" else "C and D, 8×8"
    indexes = "columns" if of == "mma-b" else "rows"
    note = f"product p, of threads 4p to 4p + 3 and 4p + 16 to 4p + 19, has {indexes} 8p to 8p + 7"
    return _held(
        f"{what}, {bits} bits, of the four products of mma.m8n8k4", _AXES.get(of, ("m", "k")), fragment, bits, (note,)
    )


def _held(title: str, axes: tuple[str, str], fragment: Fragment, bits: int, notes: tuple[str, ...]) -> Held:
    """A matrix whose fragment has arrays [threads, registers, elements]."""
    row, column = fragment
    threads, registers, _ = row.shape
    t, r, e = _indexes(row.shape)
    return Held(title, axes, row, column, t, r, e * bits, bits, threads, registers, notes)


def _indexes(shape: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """The index of each element along each axis."""
    return [np.asarray(each, np.int64) for each in np.indices(shape)]


def _by_place(
    title: str, axes: tuple[str, str], thread: NDArray[np.int64], bit: NDArray[np.int64], bits: int, threads: int
) -> Held:
    """A matrix whose elements lie in one register of some threads: arrays [rows, columns]."""
    row, column = _indexes(thread.shape)
    return Held(title, axes, row, column, thread, np.zeros_like(thread), bit, bits, threads, 1)


def _fragment(
    of: str, bits: int, m: int, n: int, k: int, shape: MatrixShape, num: int, trans: bool
) -> tuple[Fragment, str]:
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
            row_threads("ldmatrix", shape, num)  # says which shapes and numbers there are
            made = load_fragment(shape, num, trans)
        case _:
            row_threads("stmatrix", shape, num)
            made = store_fragment(shape, num, trans)
    title = f"{of}.{shape}.x{num}{'.trans' if trans else ''}"
    if shape != "m8n8" and bits != 8:
        raise ValueError(f"{of}.{shape} has elements of 8 bits in registers, not of {bits}")
    moved = 32 // made[0].shape[2]
    return regrouped(made, moved, bits), title if bits == moved else f"{title}, elements of {bits} bits"
