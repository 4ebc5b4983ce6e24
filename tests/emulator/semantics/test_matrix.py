"""ldmatrix, stmatrix and movmatrix against loops written from the manual's words. PTX ISA 9.7.14.5.15 to 17."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.harness import codes, launch, poisoned

#: Shared memory from in0 (4096 bytes at 1024), a row offset for each thread from in1.
SETUP = """
    .shared .align 128 .b8 image[4096]; .reg .b32 %t, %w, %place, %r<8>; .reg .b64 %g, %o; .reg .pred %p;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %g, %t, 4;
    add.u64 %o, %in1, %g;
    ld.global.u32 %place, [%o];
    mov.u32 %w, image;
    add.u32 %place, %place, %w;
    mad.lo.u32 %w, %t, 64, %w;
    mul.wide.u32 %g, %t, 64;
    add.u64 %g, %g, %in0;
"""
FILL = SETUP + "\n".join(
    f"ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%g+{16 * i}]; st.shared.v4.u32 [%w+{16 * i}], {{%r0, %r1, %r2, %r3}};"
    for i in range(4)
)
SYNC = "\nbar.sync 0;\n"
THREADS = 64


def reader(instruction: str, count: int, address: str = "%place") -> str:
    names = ", ".join(f"%r{i}" for i in range(count))
    stores = "\n".join(f"st.global.u32 [%o+{4 * i}], %r{i};" for i in range(count))
    return (
        f"{FILL}{SYNC}{instruction} {{{names}}}, [{address}];\nmul.wide.u32 %g, %t, {4 * count};"
        f"add.u64 %o, %out0, %g;\n{stores}\nret;"
    )


def rows(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """An image, and for each thread of two warps the place of a row, no two the same in a warp."""
    rng = np.random.default_rng(seed)
    places = np.concatenate([rng.permutation(4096 // 16)[:32] * 16 for _ in range(2)])
    return rng.integers(0, 256, 4096, dtype=np.uint8), places.astype(np.uint32)


def load(instruction: str, count: int, seed: int, **options: Any) -> tuple[Any, NDArray[np.uint8], NDArray[np.uint8]]:
    """The report, the bytes of each thread's registers [2 warps, 32, 4 * count], the rows [2 warps, 32, 16]."""
    image, places = rows(seed)
    body = reader(instruction, count, options.pop("address", "%place"))
    report, (out,) = launch(body, [poisoned(THREADS * count)], block=THREADS, inputs=[image, places], **options)
    taken = np.stack([image[place : place + 16] for place in places]).reshape(2, 32, 16)
    return report, out.view(np.uint8).reshape(2, 32, 4 * count), taken


GENERIC = (
    "cvta.shared.u64 %o, image; cvt.u64.u32 %g, %place; mov.u32 %w, image; cvt.u64.u32 %in0, %w;"
    "sub.u64 %g, %g, %in0; add.u64 %g, %g, %o;"
)


LOADS = list(itertools.product((1, 2, 4), (False, True), (".shared", ".shared::cta")))


@pytest.mark.parametrize(("num", "trans", "space"), LOADS)
def test_load(num: int, trans: bool, space: str) -> None:
    """Thread t gets elements 2(t%4) and the next of row t/4; with .trans of the transposed matrix."""
    instruction = f"ldmatrix.sync.aligned.m8n8.x{num}{'.trans' if trans else ''}{space}.b16"
    report, found, taken = load(instruction, num, num)
    assert report.status == "ok", report.summary()
    for warp, matrix in itertools.product(range(2), range(num)):
        elements = taken[warp, 8 * matrix : 8 * matrix + 8].view(np.uint16)
        if trans:
            elements = elements.T
        for t in range(32):
            pair = found[warp, t, 4 * matrix : 4 * matrix + 4].view(np.uint16)
            assert pair.tolist() == [elements[t // 4, 2 * (t % 4)], elements[t // 4, 2 * (t % 4) + 1]]


def test_generic_addresses() -> None:
    image, places = rows(9)
    body = reader("ldmatrix.sync.aligned.m8n8.x4.b16", 4, "%g").replace(SYNC, SYNC + GENERIC)
    report, (out,) = launch(body, [poisoned(THREADS * 4)], block=THREADS, inputs=[image, places])
    assert report.status == "ok", report.summary()
    _, found, _ = load("ldmatrix.sync.aligned.m8n8.x4.shared.b16", 4, 9)
    assert (out.view(np.uint8).reshape(found.shape) == found).all()


@pytest.mark.parametrize("num", [1, 2])
def test_load_of_bytes(num: int) -> None:
    """16x16 bytes: after the transposition a thread has 4 consecutive columns of rows t/4 and t/4 + 8."""
    report, found, taken = load(f"ldmatrix.sync.aligned.m16n16.x{num}.trans.shared.b8", 2 * num, num)
    assert report.status == "ok", report.summary()
    for warp, matrix in itertools.product(range(2), range(num)):
        elements = taken[warp, 16 * matrix : 16 * matrix + 16].T
        for t, register in itertools.product(range(32), range(2)):
            at = 8 * matrix + 4 * register
            expected = elements[t // 4 + 8 * register, 4 * (t % 4) : 4 * (t % 4) + 4]
            assert (found[warp, t, at : at + 4] == expected).all()


def codes_of(row: NDArray[np.uint8], bits: int) -> list[int]:
    """16 codes of 6 or 4 bits, from the lowest bits of 16 bytes up."""
    whole = int.from_bytes(row.tobytes(), "little")
    return [whole >> bits * i & ((1 << bits) - 1) for i in range(16)]


@pytest.mark.parametrize(("source", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
def test_unpacking(source: str, bits: int) -> None:
    for num in (1, 2, 4):
        report, found, taken = load(f"ldmatrix.sync.aligned.m8n16.x{num}.shared.b8x16.{source}", num, num)
        assert report.status == "ok", report.summary()
        for warp, matrix, t in itertools.product(range(2), range(num), range(32)):
            row = codes_of(taken[warp, 8 * matrix + t // 4], bits)
            assert found[warp, t, 4 * matrix : 4 * matrix + 4].tolist() == row[4 * (t % 4) : 4 * (t % 4) + 4]
    for num in (1, 2):
        report, found, taken = load(f"ldmatrix.sync.aligned.m16n16.x{num}.trans.shared.b8x16.{source}", 2 * num, num)
        assert report.status == "ok", report.summary()
        for warp, matrix, t, register in itertools.product(range(2), range(num), range(32), range(2)):
            elements = [codes_of(row, bits) for row in taken[warp, 16 * matrix : 16 * matrix + 16]]
            at = 8 * matrix + 4 * register
            expected = [elements[4 * (t % 4) + j][t // 4 + 8 * register] for j in range(4)]
            assert found[warp, t, at : at + 4].tolist() == expected


def stored(instruction: str, count: int, seed: int) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Of both warps: bytes of the registers [32, 4 * count], rows in memory after it [8 * count, 16].

    The rest of memory is as before.
    """
    image, _ = rows(seed)
    rng = np.random.default_rng(seed)
    places = np.concatenate([rng.permutation(128)[:32], 128 + rng.permutation(128)[:32]]).astype(np.uint32) * 16
    registers = rng.integers(0, 1 << 32, (THREADS, count), dtype=np.uint32)
    names = ", ".join(f"%r{i}" for i in range(count))
    body = FILL + SYNC + f"mul.wide.u32 %g, %t, {4 * count}; add.u64 %g, %g, %in2;"
    body += "\n".join(f"ld.global.u32 %r{i}, [%g+{4 * i}];" for i in range(count))
    body += f"{instruction} [%place], {{{names}}}; bar.sync 0; mul.wide.u32 %g, %t, 64; add.u64 %o, %out0, %g;"
    body += "\n".join(
        f"ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%w+{16 * i}];"
        f"st.global.v4.u32 [%o+{16 * i}], {{%r0, %r1, %r2, %r3}};"
        for i in range(4)
    )
    report, (out,) = launch(body + "ret;", [poisoned(1024)], block=THREADS, inputs=[image, places, registers])
    assert report.status == "ok", report.summary()
    found, expected = out.view(np.uint8), image.copy()
    for warp in range(2):
        own = places[32 * warp : 32 * warp + 8 * count]
        for place in own:
            expected[place : place + 16] = found[place : place + 16]
        after = np.stack([found[place : place + 16] for place in own])
        yield registers[32 * warp : 32 * warp + 32].view(np.uint8), after
    assert (found == expected).all()


@pytest.mark.parametrize(("num", "trans"), [(n, t) for n in (1, 2, 4) for t in (False, True)])
def test_store(num: int, trans: bool) -> None:
    instruction = f"stmatrix.sync.aligned.m8n8.x{num}{'.trans' if trans else ''}.shared.b16"
    for registers, after in stored(instruction, num, num):
        for matrix, t in itertools.product(range(num), range(32)):
            elements = after[8 * matrix : 8 * matrix + 8].view(np.uint16)
            if trans:
                elements = elements.T
            pair = registers[t, 4 * matrix : 4 * matrix + 4].view(np.uint16)
            assert pair.tolist() == [elements[t // 4, 2 * (t % 4)], elements[t // 4, 2 * (t % 4) + 1]]


@pytest.mark.parametrize("num", [1, 2, 4])
def test_store_of_bytes(num: int) -> None:
    """16x8 bytes, held as accumulators are: rows t/4 and 8 below, columns 2(t%4) and the next; columns become rows."""
    for registers, after in stored(f"stmatrix.sync.aligned.m16n8.x{num}.trans.shared.b8", num, num):
        for matrix, t, e in itertools.product(range(num), range(32), range(4)):
            row, column = t // 4 + 8 * (e // 2), 2 * (t % 4) + e % 2
            assert after[8 * matrix + column, row] == registers[t, 4 * matrix + e]


def test_transpose() -> None:
    body = """
        .reg .b32 %t, %a, %b; .reg .b64 %g;
        mov.u32 %t, %tid.x;
        mul.wide.u32 %g, %t, 4;
        add.u64 %in0, %in0, %g;
        add.u64 %out0, %out0, %g;
        ld.global.u32 %a, [%in0];
        movmatrix.sync.aligned.m8n8.trans.b16 %b, %a;
        st.global.u32 [%out0], %b;
        ret;
    """
    words = np.random.default_rng(4).integers(0, 1 << 32, 96, dtype=np.uint32)
    report, (out,) = launch(body, [poisoned(96)], block=96, inputs=[words])
    assert report.status == "ok", report.summary()
    for warp in range(3):
        given = words[32 * warp : 32 * warp + 32].view(np.uint16).reshape(8, 8)
        assert (out[32 * warp : 32 * warp + 32].view(np.uint16).reshape(8, 8) == given.T).all()


def test_what_goes_wrong() -> None:
    """Misaligned rows, rows outside, divergent warps, races: each with what is right beside it."""
    image, places = rows(3)
    body = reader("ldmatrix.sync.aligned.m8n8.x1.shared.b16", 1)
    for place, code in ((8, "misaligned"), (1 << 20, "out-of-bounds")):
        wrong = places.copy()
        wrong[3] = place
        report, _ = launch(body, [poisoned(THREADS)], block=THREADS, inputs=[image, wrong])
        assert (report.status, codes(report)) == ("fault", [code])
        wrong = places.copy()
        wrong[8:32] = place  # not taken with .x1
        report, _ = launch(body, [poisoned(THREADS)], block=THREADS, inputs=[image, wrong])
        assert report.status == "ok"
    report, _ = launch(body.replace(SYNC, ""), [poisoned(THREADS)], block=THREADS, inputs=[image, places])
    assert set(codes(report)) == {"shared-race"}
    half = body.replace("ldmatrix", "setp.lt.u32 %p, %t, 50; @%p ldmatrix")
    report, _ = launch(half, [poisoned(THREADS)], block=THREADS, inputs=[image, places])
    assert codes(report) == ["divergent-warp"]
    outside = reader("ldmatrix.sync.aligned.m8n8.x1.b16", 1, "%in0")
    report, _ = launch(outside, [poisoned(THREADS)], block=THREADS, inputs=[image, places])
    assert codes(report) == ["not-shared"]
