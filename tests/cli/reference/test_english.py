"""Questions in English, read as commands by `ptxgen explain`; their answers are derived beside each."""

from __future__ import annotations

import json

import pytest

from ptxgen.cli.reference.layout_questions import layout_command, unread
from ptxgen.cli.reference.questions import is_question, named_concepts
from tests.support.command_line import Cli

#: A question, the command that it is, and what the answer must contain.
ELEMENTS = [
    # Block of rows 1, block of scales 1 of 8: 9 * 512, row 8 of 32, group 2, scale 3: 8 * 16 + 2 * 4 + 3.
    (
        "where does scale 7 of row 200 of an mxfp8 matrix with K 1024 lie in global memory",
        "scales type=mxfp8 along=32 at=200,7",
        "global_offset 4747,",
    ),
    # 4096 / 128 * 7168 / 16 / 4 blocks of 512 bytes.
    (
        "what is the size of the NVFP4 scale factors of a 4096x7168 matrix",
        "scales type=nvfp4 rows=4096 along=448 at=0,0",
        "1,835,008 bytes",
    ),
    # Two groups of 64 columns lie 16 of K apart: 16 rows of 128 bytes.
    (
        "what is the LBO of an MN-major f16 operand with N 128, K 32 and 128B swizzle?",
        "operand mn 128B type=f16 rows=128 k=32 at=0,0",
        "LBO 4096, SBO 1024",
    ),
    (
        "what is the SBO of a 128x64 K-major bf16 tile with 128B swizzle",
        "operand k 128B type=bf16 rows=128 k=64 at=0,0",
        "SBO 1024",
    ),
    # Row 24 is row 8 of warp 1: threads 32 to 35 hold it in registers 2, 3, 6, 7, ... (9.7.15.5.1.1.1).
    (
        "which registers hold row 24 of wgmma m64n16 D?",
        "fragment of=wgmma-d n=16 row=24",
        "thread 32, warp 1, lane 0, register 2",
    ),
    # Column 3 of B: lanes 12 to 15, whose group is 3.
    (
        "which threads hold column 3 of B in mma.m16n8k32 s8",
        "fragment of=mma-b bits=8 k=32 column=3",
        "thread 12, register 0",
    ),
    # Element 40 of bf16 is byte 80, chunk 5, of row 17: 5 ^ 17 % 8 = 4.
    (
        "at which byte is element (17, 40) in a 128B swizzled bf16 tile",
        "operand k 128B type=bf16 at=17,40",
        "address 0x8c0",
    ),
    # Layout D: lane 40 is row 40, column 128 + 3 is n 3.
    (
        "what is the TMEM address of row 40, column 3 of an accumulator with M 128 and N 64 that begins at column 128?",
        "accumulator m=128 n=64 base=128 at=40,3",
        "lane 40, column 131, address 0x280083",
    ),
    (
        "which thread holds lane 41, column 140 of a 16x256b load that starts at 0x200080",
        "ld 16x256b base=0x200080 at=41,140",
        "thread 6, register 6",
    ),
    (
        "in a 128x256 accumulator with base 256, which column has n 17 of row 3",
        "accumulator m=128 n=256 base=256 at=3,17",
        "column 273, address 0x30111",
    ),
    # Row 9 is the second row of eight (registers 2 and 3), t = 4 (9 % 8) + 4 / 2 % 4.
    ("which thread holds row 9, column 4 of a 16x256b load", "ld 16x256b at=9,4", "thread 6, register 2"),
    (
        "in a tcgen05.ld.16x64b.x2, which thread holds lane 9, column 3?",
        "ld 16x64b num=2 at=9,3",
        "thread 7, register 1",
    ),
    (
        "what does register 6 of thread 13 hold after 16x128b.x4",
        "ld 16x128b num=4 thread=13 register=6",
        "lane 3, column 13",
    ),
    # CuTe's traits of SM100_TMEM_LOAD_16dp32b: lanes 16 to 31 hold the second half of the columns.
    ("which thread gets lane 3, column 5 of 32x32b.x16", "ld 32x32b num=16 at=3,5", "thread 3, register 5"),
    # 512 bytes for 128 rows and 4 scales: 16 (row % 32) + 4 (row / 32 % 4) + scale % 4.
    ("what is the byte of SFB[130, 2]", "scales at=130,2", "global_offset 546,"),
    ("which byte of the nvfp4 scales is row 37, scale 5", "scales type=nvfp4 at=37,5", "global_offset 597,"),
    (
        "where is scale 3 of row 200 of mxfp8 SFA in a 2-CTA pair",
        "scales type=mxfp8 of=a cta_group=2 at=200,3",
        "shared_offset 139, cta 1, lane 8, column 2, byte 3",
    ),
    (
        "how many TMEM columns does a 128x256 accumulator take?",
        "accumulator m=128 n=256 at=0,0",
        "256 columns (tcgen05.alloc 256)",
    ),
    # Layout B: each CTA has 64 rows, its upper lanes the second half of N.
    (
        "which CTA holds row 70, n 130 of a 128x256 accumulator of a pair",
        "accumulator m=128 n=256 cta_group=2 at=70,130",
        "cta 1, lane 70, column 2",
    ),
    # Layout E: 64 rows twice, the second half of N in lanes 64 and up.
    (
        "in which lane is row 40, column 70 of a 64x128 accumulator with tcgen05.mma.ws",
        "accumulator m=64 n=128 ws at=40,70",
        "lane 104, column 6",
    ),
    # D of wgmma: warp 37 / 16, lane 4 (37 % 8) + 77 / 2 % 4, 4 registers for 8 columns.
    (
        "which thread holds D[37, 77] of wgmma m64n128k16",
        "fragment of=wgmma-d n=128 at=37,77",
        "thread 86, warp 2, lane 22, register 37",
    ),
    (
        "what does register 77 of thread 100 hold after wgmma m64n256k16",
        "fragment of=wgmma-d n=256 thread=100 register=77",
        "row 49, column 153",
    ),
    (
        "which thread of wgmma holds A[37, 13] in registers",
        "fragment of=wgmma-a at=37,13",
        "thread 86, warp 2, lane 22, register 2, bits 16-31",
    ),
    # PTX ISA 9.7.14.5: fragments of m16n8k16 and m16n8k32.
    (
        "which register of the A fragment of mma.m16n8k16 holds row 9, column 12?",
        "fragment of=mma-a k=16 at=9,12",
        "thread 6, register 3, bits 0-15",
    ),
    (
        "which thread holds row 17, column 3 of operand B of m16n8k32 with s8",
        "fragment of=mma-b bits=8 k=32 at=17,3",
        "thread 12, register 1, bits 8-15",
    ),
    (
        "which element is in register 2 of thread 7 in the accumulator of m16n8k16",
        "fragment of=mma-d thread=7 register=2",
        "row 9, column 6",
    ),
    # .trans: thread t holds rows 2 (t % 4) and the next, column t / 4; matrix 2 begins at row 16.
    (
        "which thread of ldmatrix.x4.trans holds row 18, column 2",
        "fragment of=ldmatrix num=4 trans at=18,2",
        "thread 9, register 2",
    ),
    # Row of 128 bytes, chunk 3 ^ 5 = 6.
    ("at which address is row 5, byte 48 with the 128B swizzle", "swizzle 128B at=5,48", "address 0x2e0"),
    (
        "which row is address 0x4b8 of a K-major f16 tile with 128B swizzle in",
        "operand k 128B type=f16 address=0x4b8",
        "row 9, k 20",
    ),
    (
        "where does tcgen05.cp.64x128b.warpx2::02_13 put row 40, byte 5",
        "cp 64x128b multicast=warpx2::02_13 at=40,5",
        "copy 1, lane 104, column 1, bits 8-15",
    ),
    # Layout F: rows 32 to 47 of M 64 are in lanes 64 and up.
    ("which lane of TMEM holds row 40 of an M=64 accumulator", "accumulator m=64 at=40,0", "lane 72, column 0"),
    # PTX ISA 9.7.14.6: 4 bits a chunk; threads 0 and 1 of a quad hold 4 chunks of rows g (lower half) and g + 8.
    (
        "which metadata bits of mma.sp m16n8k32 hold row 9, chunk 3",
        "fragment of=mma-metadata k=32 at=9,3",
        "thread 4, register 0, bits 28-31",
    ),
    (
        "which thread supplies the address of row 3 of matrix 2 in ldmatrix.x4",
        "row-addresses of=ldmatrix num=4 at=2,3",
        "thread 19, tile_row 3, tile_byte 16",
    ),
    # 8 rows of 128 bytes; 64 * 128 elements of 2 bytes.
    (
        "what is the SBO of a K-major bf16 tile with 128B swizzle",
        "operand k 128B type=bf16 at=0,0",
        "LBO 0, SBO 1024 bytes",
    ),
    (
        "how many bytes does expect_tx need for a 64x128 bf16 box",
        "tma box=64x128 type=bf16 none at=0,0",
        "expect_tx 16384 bytes",
    ),
    # Rows of ldmatrix count through its matrices: 8 * 3 + 5; t = 4 * 5 + 6 / 2.
    (
        "which thread holds row 5, column 6 of matrix 3 loaded by ldmatrix.x4",
        "fragment of=ldmatrix num=4 at=29,6",
        "thread 23, register 3, bits 0-15",
    ),
    # .trans: t = 4 * column + row / 2, an odd row in the upper half.
    (
        "which thread stores row 3, column 5 of matrix 1 with stmatrix.x2.trans",
        "fragment of=stmatrix num=2 trans at=11,5",
        "thread 21, register 1, bits 16-31",
    ),
    # Lane t / 4 + 8 (t % 2), column t / 2 % 2 + 2 r.
    (
        "in tcgen05.ld.16x64b.x4, which lane and column does register 3 of thread 10 hold",
        "ld 16x64b num=4 thread=10 register=3",
        "lane 2, column 7",
    ),
    # 16 (77 % 32) + 4 (77 / 32) + 2.
    (
        "which byte of SFA holds the scale of row 77, K block 2 for mxf8",
        "scales type=mxfp8 at=77,2",
        "global_offset 218,",
    ),
    # K 80 is scale 80 / 16 = 5.
    ("where is the nvfp4 scale of row 37, k 80", "scales type=nvfp4 at=37,5", "global_offset 597,"),
    # 256 / 32 scales a row: 2 blocks of 512 bytes.
    (
        "how many bytes of scale factors has a 128x256 mxf4 tile",
        "scales type=mxf4 rows=128 along=8 at=0,0",
        "1,024 bytes",
    ),
    (
        "what SBO does a compact K-major bf16 tile with 64B swizzle need",
        "operand k 64B type=bf16 at=0,0",
        "SBO 512 bytes",
    ),
    # PTX ISA 9.7.14.3: thread-id 0 takes A's rows g and g + 8 from threads 4 g and 4 g + 1, B's column g from 4 g.
    (
        "which thread holds the scale of row 5 in mma.sync m16n8k32 mxf8f6f4 with block_scale on sm_120a",
        "fragment of=mma-scale-a scales=1 row=5",
        "thread 20, register 0, bits 0-7",
    ),
    (
        "which thread of mma.sync holds the nvfp4 scales of column 3 of B",
        "fragment of=mma-scale-b scales=4 row=3",
        "column 2, thread 12, register 0, bits 16-23",
    ),
    (
        "how many wavefronts does a column of 4-byte words in rows of 132 bytes take",
        "pitch bytes=128 pitch=132 access=column",
        "no conflict: 32 threads read 4 bytes each",
    ),
    # m16n8k16: 16 bits a row, g = row % 8 in thread 4 g + selector, rows 8 and up in the upper half.
    (
        "which thread supplies the metadata of row 12 of mma.sp m16n8k16 with f16 and selector 2",
        "fragment of=mma-metadata bits=16 k=16 selector=2 row=12",
        "column 0, thread 18, register 0, bits 16-19",
    ),
    (
        "does ldmatrix conflict on rows of 144 bytes",
        "pitch bytes=128 pitch=144 access=matrix",
        "no conflict: 8 rows of 16 bytes",
    ),
    (
        "how many bank conflicts does a column of f32 in rows of 128 bytes have",
        "pitch bytes=128 pitch=128 access=column",
        "32 wavefronts where 1 would do",
    ),
]

#: A question about bits, the command that it is, and what the answer must contain.
BITS = [
    ("which bits of the tcgen05 matrix descriptor hold the swizzle mode", "smem fields", "bits 61-63"),
    ("what is the code of 64B swizzle in a wgmma descriptor", "wgmma fields", "none 0, 128B 1, 64B 2, 32B 3"),
    ("which bit of the instruction descriptor says that B is MN-major", "idesc fields", "bit 16 b_major"),
    ("which bits of the instruction descriptor hold N", "idesc fields", "bits 17-22 n"),
    # PTX ISA table 42: d s32 2 << 4, a and b signed 1 << 7 and 1 << 10, 64 / 8 << 17, 128 / 16 << 24.
    (
        "what is the instruction descriptor for kind::i8 m=128 n=64 s8 x s8",
        "idesc m=128 n=64 a=s8 b=s8 d=s32 kind=i8",
        "0x081004a0",
    ),
    # PTX ISA table 43: b e5m2 1 << 10, 128 / 8 << 17, ue8m0 1 << 23, 128 / 128 << 27.
    (
        "what is the instruction descriptor of kind::mxf8f6f4 m=128 n=128 with e4m3 and e5m2",
        "idesc m=128 n=128 a=e4m3 b=e5m2 sf=ue8m0 kind=mxf8f6f4",
        "0x08a00400",
    ),
    # 0x2000 / 16 | 512 / 16 << 32 | 2 << 62; 0x400 / 16 | 1 << 16 | 64 << 32 | 1 << 46 | 2 << 61
    (
        "what is the descriptor for wgmma at 0x2000 with SBO 512 and 64B swizzle",
        "wgmma address=0x2000 sbo=512 swizzle=64B",
        "0x8000002000000200",
    ),
    (
        "which tcgen05 matrix descriptor has address 0x400, LBO 16, SBO 1024 and 128B swizzle",
        "smem address=0x400 lbo=16 sbo=1024 swizzle=128B",
        "0x4000404000010040",
    ),
    # 1 << 4 | 1 << 7 | 1 << 10 | 1 << 16 | 256 / 8 << 17 | 256 / 16 << 24
    (
        "give me the instruction descriptor of a 256x256 bf16 pair, B is N-major?",
        "idesc m=256 n=256 a=bf16 b=bf16 d=f32 b_major=mn cta_group=2",
        "0x10410490",
    ),
]

#: A question, and the concept that answers it.
WORDS = {
    "which parity does a fresh mbarrier's consumer wait for": "parity",
    "what does LBO mean for an MN-major operand with 128B swizzle": "LBO",
    "when does an mbarrier phase complete?": "mbarrier phase",
    "how often does TMA fill out of bounds elements": "out-of-bounds fill",
    "why must a fence.proxy.async come before a TMA store": "async proxy",
    "what happens if nobody relinquishes the allocation permit": "TMEM allocation",
    "what is the base offset of a matrix descriptor": "base offset",
    "who may issue tcgen05.mma": "issue",
    "does TMA count out-of-bounds bytes in the transaction": "out-of-bounds fill",
    "what is the instruction descriptor": "instruction descriptor",
    "how many dimensions can a tensormap have": "tensormap limits",
    "how must the globalAddress of a tensormap be aligned": "tensormap limits",
    "which N does tcgen05.mma take with M 128": "MMA shapes",
    "how large is K of wgmma": "MMA shapes",
    "how many elements share a scale with mxf4nvf4 scale_vec::4X": "scale vector",
    "which bits of a shared::cluster address hold the CTA rank": "peer bit",
    "how many registers can two consumer warpgroups have if the producer keeps 40": "warp specialization",
    "which bits of the CLC response hold the ctaid": "CLC",
    "how many TMEM columns": "TMEM allocation",
    "which parity does a fresh mbarrier wait for": "parity",
    "what is the swizzle of a tensormap?": "swizzle",
}


@pytest.mark.parametrize(("question", "command", "answer"), ELEMENTS)
def test_questions_about_elements(cli: Cli, question: str, command: str, answer: str) -> None:
    outcome = cli("explain", question)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"read as: ptxgen layout {command}\n")
    assert answer in " ".join(outcome.out.split())


@pytest.mark.parametrize(("question", "command", "answer"), BITS)
def test_questions_about_bits(cli: Cli, question: str, command: str, answer: str) -> None:
    outcome = cli("explain", question)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"read as: ptxgen explain {command}\n")
    assert answer in " ".join(outcome.out.split())
    assert cli("explain", *command.split()).out == outcome.out.partition("\n")[2]


@pytest.mark.parametrize(("question", "name"), WORDS.items())
def test_questions_about_concepts(cli: Cli, question: str, name: str) -> None:
    from ptxgen.cli.reference.find import concept_of

    wanted = concept_of(name)
    assert wanted is not None
    assert named_concepts(question)[0] == wanted.name
    outcome = cli("explain", *question.split())  # quotes may be forgotten
    assert outcome.code == 0
    assert outcome.out.startswith("read as: ptxgen explain ")
    assert "\n  rule" in outcome.out


def test_questions_about_sass(cli: Cli) -> None:
    asked = cli("explain", "which SASS does setmaxnreg become").out
    assert asked.startswith("read as: ptxgen explain setmaxnreg.")
    assert "USETMAXREG" in asked
    asked = cli("explain", "which PTX becomes UTCHMMA in SASS?").out
    assert "tcgen05.mma.cta_group::1.kind::f16" in asked


def test_questions_about_instructions(cli: Cli) -> None:
    asked = cli("explain", "how many registers does tcgen05.ld.32x32b.x128 need").out
    assert asked.startswith("read as: ptxgen explain tcgen05.ld.32x32b.x128\n")
    assert "128 registers of .b32" in " ".join(asked.split())
    asked = cli("explain", "which warp may call tcgen05.dealloc").out
    assert asked.startswith("read as: ptxgen explain tcgen05.dealloc\n")


def test_questions_about_numbers(cli: Cli) -> None:
    asked = cli("explain", "is 0x4000404000010000 a legal descriptor for tcgen05.mma?").out
    assert asked.startswith("read as: ptxgen explain 0x4000404000010000\n")
    assert "stride_byte_offset 0x40 1024 bytes" in " ".join(asked.split())


def test_questions_that_have_no_answer(cli: Cli) -> None:
    outcome = cli("explain", "what colour has the cat got")
    assert (outcome.code, outcome.out) == (2, "")
    assert "the question names no concept or layout" in outcome.err
    wrong = cli("explain", "which thread holds row 40, column 4 of a 16x256b load")
    assert wrong.code == 2
    assert "ptxgen layout ld 16x256b at=40,4" in wrong.err + wrong.out


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("which TMEM address has row 17, column 33 of an M=64 accumulator that starts at column 128", []),
        ("which thread holds row 5, column 6 of stage 3 loaded by ldmatrix.x4", ["stage 3"]),
        ("at which address is row 3, byte 20 with the 64B swizzle of tile 2 at 0x4000", ["tile 2", "at 0x4000"]),
        ("which CTA holds row 70, n 130 of a 128x256 accumulator of a 2-CTA pair on sm_100a", []),
        ("which row is address 0x4b8 of a K-major f16 tile with 128B swizzle in", []),
    ],
)
def test_numbers_that_are_not_read_are_named(cli: Cli, question: str, left: list[str]) -> None:
    """A command that leaves out a part of the question would answer another one."""
    words = layout_command(question)
    assert words is not None
    assert unread(question, words) == left
    outcome = cli("explain", question)
    assert outcome.code == (2 if left else 0)
    if left:
        assert outcome.err.startswith(
            f"error: {' and '.join(left)} in the question is not read; without it: ptxgen layout"
        )


def test_json_is_that_of_the_command(cli: Cli) -> None:
    found = json.loads(cli("explain", "which thread holds row 9, column 4 of a 16x256b load", "--json").out)
    assert (found["found"][0]["thread"], found["found"][0]["register"]) == (6, 2)


@pytest.mark.parametrize("text", ["isspacep.global %p, %rd1", "scale factors", "add.f32 %f1, %f2, %f3;", "what"])
def test_what_is_no_question(text: str) -> None:
    assert not is_question(text)


def test_a_question_without_a_place_names_no_element() -> None:
    assert layout_command("which swizzle has the 128b mode of an mn-major operand") is None
