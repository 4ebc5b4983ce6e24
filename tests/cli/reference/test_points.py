"""Experts' questions, one command each. The answers were worked out by hand from the formulas of the PTX ISA."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.command_line import Cli
from tests.support.paths import DOCS

#: The words after `ptxgen`, and a line of the answer.
QUESTIONS = [
    # Which thread holds row 9, column 4 of a 16x256b load? t / 4 = 1, second half; 2 (t % 4) + r % 2 = 4.
    ("layout ld 16x256b at=9,4", "lane 9, column 4: thread 6, register 2, bits 0-31"),
    # Which cell does register 3 of thread 5 of a 32x32b load come from?
    ("layout ld 32x32b num=4 thread=5 register=3", "thread 5, register 3: bits 0-31, lane 5, column 3"),
    # Who holds D[19, 35] of a wgmma with N 64? Row 16 + 3, column 8 * 4 + 2 * 1 + 1.
    ("layout fragment of=wgmma-d n=64 at=19,35", "thread 45, warp 1, lane 13, register 17, bits 0-31"),
    # Who holds A[9, 5] of mma.m16n8k16? a3 of group 1, thread 2 of the group.
    ("layout fragment of=mma-a at=9,5", "row 9, column 5: thread 6, register 1, bits 16-31"),
    # What does register 1 of thread 7 hold of B? Rows 8 + 2 * 3 and the next, column 1.
    ("layout fragment of=mma-b thread=7 register=1", "thread 7, register 1: row 15, column 1, bits 16-31"),
    # Where does ldmatrix.trans put element 5 of the row at address 3?
    ("layout fragment of=ldmatrix trans at=3,5", "row 3, column 5: thread 21, register 0, bits 16-31"),
    # What is the byte of SFB[130, 2]? Second block of 512 bytes: 512 + 2 * 16 + 2; lane 2, column 4, byte 2.
    ("layout scales rows=256 at=130,2", "global_offset 546, shared_offset 546, lane 2, column 4, byte 2"),
    # Which thread supplies the address of row 3 of the matrix 2 of ldmatrix.x4? 8 * 2 + 3; row 3 and K 8 of A.
    (
        "layout row-addresses num=4 swizzle=128B at=2,3",
        "matrix 2, row 3: thread 19, tile_row 3, tile_byte 16, address 0x1a0, bank 8",
    ),
    # Which row does thread 21 of stmatrix.x4 address?
    ("layout row-addresses of=stmatrix thread=21", "thread 21: matrix 2, row 5"),
    # And scale 5 of row 37 of nvfp4? 512 + 5 * 16 + 4 + 1; column 1 + 4, byte 1; elements 80 to 95 of K.
    ("layout scales type=nvfp4 at=37,5", "global_offset 597, shared_offset 597, lane 5, column 5, byte 1"),
    # Where is (9, 20) of a K-major f16 tile with 128B? 1024 + 128 + 40, chunk 2 ^ 1.
    ("layout operand k 128B at=9,20", "row 9, k 20: address 0x4b8, bank 14"),
    # And of an MN-major one with 64B? 18 + 4 * 64 + 2 * 512, chunk 1 ^ 2.
    ("layout operand mn 64B at=9,20", "row 9, k 20: address 0x532"),
    # The index by name. Scale 5 is in the second block of 512 bytes.
    ("layout scales type=nvfp4 row=37 scale=5", "row 37, scale 5: global_offset 597"),
    # What is the offset of (3, 5) in a layout as CUTLASS prints it? 192 + 5, chunk 0 ^ 3 of 8 elements.
    ("layout cute Sw<3,4,3>osmem_ptr[16b](unset)o(_8,_64):(_64,_1) at=3,5", "i0 3, i1 5: offset 221"),
    # And at byte 0x4b80 of a tile that is as large as it must be? 18 groups of 1024, row 7, chunk 0 ^ 7.
    ("layout operand k 128B address=0x4b80", "address 0x4b80: row 151, k 56"),
    # Which row of 144 bytes has byte 0x2b64? 77 * 144 + 20.
    ("layout pitch bytes=128 pitch=144 address=0x2b64", "row 77, byte 20, bank 25"),
    # Which column does register 40 of a 32x32b load come from?
    ("layout ld thread=7 register=40", "thread 7, register 40: bits 0-31, lane 7, column 40"),
    # Which tcgen05 addresses do rows 62 and 63 of D have?
    ("layout accumulator m=128 n=64 at=62-63,5", "row 63, n 5: cta 0, lane 63, column 5, address 0x3f0005"),
    # How many columns of tensor memory must be allocated for N 192?
    ("layout accumulator m=128 n=192 at=0,0", "192 columns (tcgen05.alloc 256)"),
    # How many bytes does expect_tx count for a box of 64x9 f16 that takes every second row? 5 rows of 128 bytes.
    ("layout tma box=64x9 strides=2 at=0,4", "c0 0, c1 4: address 0x120, bank 8"),
    ("layout tma box=64x9 strides=2 at=0,4", "expect_tx 640 bytes"),
    # Who holds C[1, 5] of the second product of mma.m8n8k4 with f32? X = 1, column 4 + 1: thread 5, register 5.
    ("layout fragment of=mma-d m=8 k=4 bits=32 at=9,5", "row 9, column 5: thread 5, register 5"),
    # In which bits of its byte is an e2m1 of mma.sync?
    ("layout fragment of=mma-a bits=8 at=9,20", "e2m1 is in bits 2-5"),
    # Where is scale 2 of row 130 for .kind::mxf8f6f4, and of which elements of K?
    ("layout scales type=mxf8f6f4 rows=256 at=130,2", "lane 2, column 4, byte 2, address 0x20004, first_k 64"),
    # How large may a stride of a tensormap be, and how large its box?
    ("explain tensormap-limits", "strides          0      < 2^40 bytes    16, or 32"),
    ("explain TMEM-columns", "a power of two of 32 to 512 columns"),
    # What lies at 0x4b8 of it?
    ("layout operand k 128B address=0x4b8", "address 0x4b8: row 9, k 20"),
    # Where does this descriptor read (5, 3)? 0x400 + 640 + 6, chunk 0 ^ 5.
    ("layout descriptor 0x4000404000010040 at=5,3", "row 5, k 3: address 0x6d6"),
    # Where does byte 17 of row 3 go with 128B? 384 + 17, chunk 1 ^ 3.
    ("layout swizzle 128B at=3,17", "row 3, byte 17: address 0x1a1"),
    # Where does TMA put element (20, 3) of a box of 64x8 f16? 384 + 40, chunk 2 ^ 3.
    ("layout tma box=64x8 type=f16 at=20,3", "c0 20, c1 3: address 0x198"),
    # Where is D[70, 200] of a pair with M 128, N 256? Odd CTA, row 6, second half of N: lane 6 + 64, column 72.
    ("layout accumulator m=128 n=256 cta_group=2 at=70,200", "cta 1, lane 70, column 72, address 0x460048"),
    # And D[20, 5] with M 64? 16 rows in each quarter of the lanes.
    ("layout accumulator m=64 n=64 at=20,5", "cta 0, lane 36, column 5"),
    # Where does A[3, 5] of 16 bits lie in tensor memory?
    ("layout a m=128 bits=16 at=3,5", "lane 3, column 2, bits 16-31"),
    # Where does tcgen05.cp.32x128b.warpx4 put byte 6 of row 5, in the fourth quarter?
    ("layout cp 32x128b at=5,6", "row 5, byte 6: copy 3, lane 101, column 1, bits 16-23"),
    # Where is the metadata of chunk 5 of row 9, kind::f16? Lane 1 + 8, nibble 4 + 1.
    ("layout metadata f16 at=9,5", "copy 0, lane 9, column 0, bits 20-23"),
    # Whose register has the metadata of chunk 5 of row 3 of mma.sp.m16n8k32? The second thread of the selected pair.
    ("layout fragment of=mma-metadata k=32 selector=1 at=3,5", "thread 15, register 0, bits 4-7"),
    # Which byte of whose register scales row 9 of A with byte-id 2 and thread-id 1? Upper pair, second thread.
    ("layout fragment of=mma-scale-a scales=1 byte_id=2 thread_id=1 at=9,0", "thread 7, register 0, bits 16-23"),
    # Which pixel is number 6 of an im2col column, with a padding of 1 and a filter of 3?
    ("layout im2col size=5x4 lower=-1x-1 upper=-1x-1 at=6", "pixel 6: w 0, h 0, image 0"),
    # In which bank is byte 20 of row 3 with rows of 144 bytes? (432 + 20) / 4 % 32.
    ("layout pitch bytes=128 pitch=144 at=3,20", "address 0x1c4, bank 17"),
    # What is the offset of (3, 17) in a CuTe layout? 384 + 17, chunk 1 ^ 3.
    ("layout cute Swizzle<3,4,3>o(8,128):(128,1) at=3,17", "i0 3, i1 17: offset 417"),
    # Which parity does a fresh mbarrier's consumer wait for?
    # Which warp may access lane 70 of tensor memory? 70 // 32.
    ("explain TMEM-lanes", "Warp w of a warpgroup (w = %warpid % 4) can load and store lanes"),
    # How much shared memory has a CTA of a B200?
    ("explain shared-memory-limit", "up to 227 KiB"),
    # What must the strides of a tensormap be multiples of?
    ("explain globalStrides", "ultiples of 16 bytes"),
    # What is ue8m0's byte 0x7F?
    ("explain ue8m0", "0x7F"),
    # Where is row 27, column 3 of a wgmma's D? Warp 1, row 11 - 8, thread 3 * 4 + 1 of it.
    ("layout fragment of=wgmma-d at=27,3", "thread 45, warp 1, lane 13, register 3, bits 0-31"),
    # What does address 0x7f6 of an MN-major tile hold?
    ("layout operand mn 128B rows=64 k=16 address=0x7f6", "address 0x7f6: row 3, k 15, bank 29"),
    # In which column and half of tensor memory is K 13 of row 5 of a bf16 A?
    ("layout a at=5,13", "row 5, k 13: copy 0, lane 5, column 6, bits 16-31"),
    ("explain fresh-mbarrier", "wait parity 0   blocks until phase 0 completes      consumer (full barrier)"),
]


@pytest.mark.parametrize(("command", "line"), QUESTIONS)
def test_experts_questions(cli: Cli, command: str, line: str) -> None:
    outcome = cli(*command.split())
    assert (outcome.code, outcome.err) == (0, "")
    assert line in outcome.out


def test_words_in_other_forms(cli: Cli) -> None:
    expected = cli("layout", "ld", "16x256b", "at=9,4").out
    assert cli("layout", "ld", "--at", "9,4", "--shape", "16x256b").out == expected
    assert cli("layout", "ld", "--at=9,4", "16x256b").out == expected
    assert cli("layout", "ld", "16x256b", "at=0x9,0x4").out == expected
    assert "conflict" in cli("layout", "swizzle", "access=matrix", "at=16").out  # of an access, the byte


def test_an_option_of_another_layout(cli: Cli) -> None:
    outcome = cli("layout", "swizzle", "none", "pitch=136")
    assert outcome.code == 2
    assert "swizzle has no 'pitch'; it has mode" in outcome.err
    assert "; the layout pitch has it" in outcome.err


def test_json(cli: Cli) -> None:
    found = json.loads(cli("layout", "ld", "16x256b", "at=9,4", "--json").out)
    assert found["found"] == [{"thread": 6, "register": 2, "bit": 0, "lane": 9, "column": 4, "address": 9 << 16 | 4}]
    assert found["bits"] == 32


def test_many_rows_are_cut(cli: Cli) -> None:
    out = cli("layout", "operand", "rows=256", "row=3", "k=128").out
    assert out.count("row 3:") == 64
    assert "... and 64 more (--json has all)" in out


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("layout ld at=x,1", "at must be a number or FIRST-LAST, not 'x'"),
        ("layout ld at=1,2 --svg x.svg", "at= and columns ask for one element: without --svg and --diff"),
        ("layout ld at=99,1", "lane must be 0 to 31"),
        ("layout accumulator base=128", "base is for queries, which need at= or one of row=, n=, lane=, column="),
        ("layout accumulator n=256 base=300 at=0,0", "columns 300 to 555 from base 0x12c: there are 512"),
        ("layout ld base=0x700000 at=112,0", "lanes 112 to 143 from base 0x700000: there are 128"),
        ("layout cp base=512 at=0,0", "illegal TensorAddress 0x00000200: column must be an integer from 0 to 511"),
        ("layout a base=-1 at=0,0", "base must be an address of 32 bits, not -1"),
        (
            "layout swizzle 96B at=1,1",
            "mode must be one of 128B, 64B, 32B, none, 128B_atom_32B, 128B_atom_64B, not '96B'",
        ),
        ("layout operand k 128B_atom_64B at=1,1", "swizzle must be"),
        ("layout operand k 12x4", "operand takes no '12x4'; it has major"),
        ("layout ld at=3-1,1", "lane must be a number or FIRST-LAST, not 3-1"),
        ("layout fragment of=mma-d k=16 at=3,2", "k of mma-d must be 4 with m=8"),
        ("layout tma box=64x9 strides=2 at=0,3", "TMA box 64×9 of f16, swizzle 128B, element strides 1×2 has nothing"),
        ("layout tma box=64x9x2 strides=2x2x2", "strides must be 2 numbers for a box of 64×9×2, not '2x2x2'"),
    ],
)
def test_bad_input(cli: Cli, command: str, sentence: str) -> None:
    outcome = cli(*command.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {sentence}")


def test_the_page_shows_what_happens(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = (DOCS / "layouts.md").read_text()
    for part in "".join(re.findall(r"```console\n(.*?)```", page, re.DOTALL)).split("$ ptxgen ")[1:]:
        command, _, out = part.partition("\n")
        assert cli(*shlex.split(command)).out == out, command
    [block] = re.findall(r"```sh\n(ptxgen layout pitch.*?)```", page, re.DOTALL)
    for command in block.splitlines():
        assert cli(*shlex.split(command, comments=True)[1:]).code == 0, command
    monkeypatch.chdir(tmp_path)
    [python] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(python, names)
    assert names["found"] == {"thread": 6, "register": 2, "bit": 0, "lane": 9, "column": 4, "address": 0x90004}
