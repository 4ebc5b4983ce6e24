"""Questions of kernel authors, each answered by one command. The answers are derived beside each, not by ptxgen."""

from __future__ import annotations

import shlex

import pytest

from ptxgen.cli.reference.find import concept_of
from ptxgen.concepts.atoms import opcode_of
from ptxgen.instr import load_all
from ptxgen.instr.model.recognize import candidates
from tests.support.command_line import Cli

#: A command and what its answer must contain; the comment says how the answer is known.
LAYOUTS = [
    # 16x256b: 8 columns a row; thread t has row t / 4, columns 2 (t % 4) and the next; rows 8 to 15 come second.
    ("ld 16x256b at=9,4", "thread 6, register 2"),
    ("ld 16x256b num=4 at=9,20", "thread 6, register 10"),  # four registers for each 8 columns: 4 * 2 + 2
    ("ld 16x256b num=4 thread=6 register=10", "lane 9, column 20"),
    ("ld 16x128b at=9,2", "thread 6, register 1"),  # 4 columns a row: t = 4 (row % 8) + column
    ("ld 32x32b num=16 at=20,7", "thread 20, register 7"),  # a thread has a lane
    ("ld 32x32b num=8 pack at=3,9", "thread 3, register 4, bits 16-31"),  # two columns a register
    # D of wgmma: warp row / 16, lane 4 (row % 8) + column / 2 % 4; 4 registers for 8 columns, 2 for rows + 8.
    ("fragment of=wgmma-d n=128 at=37,77", "thread 86, warp 2, lane 22, register 37"),
    ("fragment of=wgmma-d n=256 thread=100 register=77", "row 49, column 153"),
    ("fragment of=mma-a at=9,12", "thread 6, register 3, bits 0-15"),  # PTX ISA 9.7.14.5.8, figure of A
    ("fragment of=mma-b at=9,3", "thread 12, register 1, bits 16-31"),  # t = 4 n + k / 2 % 4
    ("fragment of=mma-b bits=8 k=32 at=17,3", "thread 12, register 1, bits 8-15"),
    ("fragment of=mma-d thread=7 register=2", "row 9, column 6"),  # row t / 4 + 8, column 2 (t % 4)
    ("fragment of=mma-a bits=32 k=8 at=9,5", "thread 5, register 3"),
    ("row-addresses at=2,3", "thread 19,"),  # 8 * matrix + row
    # Layouts F, B and A of PTX ISA 9.7.16.10.5; an address is lane << 16 | column.
    ("accumulator m=64 n=256 at=20,3", "lane 36, column 3, address 0x240003"),
    ("accumulator m=128 n=256 at=127,255", "256 columns (tcgen05.alloc 256)"),
    ("accumulator m=128 n=256 cta_group=2 at=70,130", "cta 1, lane 70, column 2"),
    ("accumulator m=256 n=256 cta_group=2 at=200,130", "cta 1, lane 72, column 130"),
    ("a at=9,5", "lane 9, column 2, bits 16-31"),  # two f16 a column
    # 512 bytes for 128 rows and 4 scales: 16 (row % 32) + 4 (row / 32 % 4) + scale % 4.
    ("scales at=130,2", "global_offset 546,"),
    ("scales type=nvfp4 at=37,5", "global_offset 597,"),
    ("scales type=mxfp8 rows=256 along=8 at=200,6", "global_offset 1674,"),
    # A pair of M 256: rows 128 and up of A are in the odd CTA: 16 (72 % 32) + 4 (72 / 32) + 3. SFB is whole.
    ("scales type=mxfp8 of=a cta_group=2 at=200,3", "shared_offset 139, cta 1, lane 8, column 2, byte 3"),
    ("scales type=nvfp4 of=b cta_group=2 rows=256 at=200,1", "lane 8, column 6, byte 1"),
    ("scales type=nvfp4 of=b cta_group=2 rows=256 at=200,1", "both CTAs hold the scales of all of N"),
    # M 128: windows 0 and 1 have the first half of N, 2 and 3 the second; row 70 is 6 of the second, lanes 64 + 6.
    ("scales type=nvfp4 of=b m=128 cta_group=2 rows=128 at=70,1", "lane 70, column 0, byte 1"),
    # Addresses: row * row bytes, chunk ^ line of 128 bytes % 8 (128B) or line % 4 (64B).
    ("operand k 128B address=0x4b8", "row 9, k 20"),
    ("operand k none at=9,20", "address 0x298"),
    ("operand k 64B at=9,20", "address 0x268"),
    ("operand mn 128B rows=256 k=64 at=130,20", "address 0x4a44"),
    ("operand mn 128B rows=256 k=64 at=130,20", "LBO 8192, SBO 1024 bytes"),
    ("operand mn 64B rows=128 at=100,9", "address 0xe48"),
    ("descriptor 0x4000404000010040 at=5,3", "address 0x6d6"),
    ("swizzle 128B at=5,48", "address 0x2e0"),
    ("tma box=64x128 type=f16 at=10,100", "address 0x3254"),
    ("tma box=64x128 type=bf16 at=0,0", "expect_tx 16384 bytes"),  # 64 * 128 * 2
    ("cp 32x128b at=5,6", "copy 3, lane 101, column 1, bits 16-23"),
    ("im2col size=8x8 lower=-1x-1 upper=-1x-1 pixels=16 at=10", "w 1, h 0"),
    ("pitch bytes=128 pitch=144 at=5,20", "address 0x2e4, bank 25"),
    ("cute '((8,16),(64,1)):((64,512),(1,0))' at=10,5", "offset 645"),  # 10 = (2, 1): 2 * 64 + 512 + 5
    ("cute 'Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)' at=3,9", "offset 209"),
]

WORDS = [
    ("parity", "On a fresh mbarrier a consumer waits for parity 0"),  # PTX ISA 9.7.13.15.16
    ("LBO", "MN-major: between blocks of a swizzle row of MN with a swizzle"),  # CUTLASS mma_sm100_desc.hpp
    ("idesc", "bits 17-22  n"),  # PTX ISA table 42
    ("idesc", "bits 24-28  m"),
    (
        "idesc m=128 n=256 a=bf16 b=bf16 d=f32",
        "InstructionDescriptor 0x08400490",
    ),  # 1<<4 | 1<<7 | 1<<10 | 32<<17 | 8<<24
    ("idesc m=256 n=256 a=e4m3 b=e4m3 d=f32 --cta-group 2", "0x10400010 (kind=f8f6f4, cta_group=2"),
    ("idesc m=128 n=256 a=e2m1 b=e2m1 sf=ue4m3", "0x08400480 (kind=mxf4nvf4"),  # 1<<7 | 1<<10 | 32<<17 | 1<<27
    ("smem address=0x400 lbo=16 sbo=1024 swizzle=128B", "SmemDescriptor 0x4000404000010040"),
    ("wgmma address=0x400 sbo=1024 swizzle=128B", "WgmmaDescriptor 0x4000004000000040"),  # mode 1 in bits 62 and 63
    ("smem", "128B_atom_32B 1, 128B 2, 64B 4, 32B 6"),  # PTX ISA table 40
    ("st.async", "since PTX ISA 8.1, sm_90 or later"),  # PTX ISA 9.7.9.12
    ("tcgen05.ld.red", "the family of sm_103f"),
    ("tcgen05.ld.32x32b.x128", "128 registers of .b32"),
    ("tcgen05.ld.16x256b.x8", "32 registers of .b32"),  # 16 lanes * 8 * 8 columns / 32 threads
    ("'TMEM allocation'", "no CTA of the pair can allocate, free or relinquish alone"),  # PTX ISA table 46
    ("tcgen05.dealloc.cta_group::2.sync.aligned.b32", "warp, one in each CTA of the pair"),
    ("tcgen05.mma.cta_group::2.kind::f16", "thread, of one CTA of the pair"),
    ("0x12F0000000000000", "CUTLASS calls it TMA::CacheHintSm90::EVICT_FIRST"),
    ("policy primary=evict_last", "CachePolicy 0x14f0000000000000"),
    ("tmem column=300 lane=96", "TensorAddress 0x0060012c"),
    ("0xFEFFFFFF", "it names the even CTA of a pair"),
    ("tx-count", "from -(2^20 - 1) to 2^20 - 1"),  # PTX ISA 9.7.13.15.2
    ("noinc", "With .noinc the count of mbarrier.init includes these arrivals"),  # PTX ISA 9.7.13.15.15
    ("UTMALDG", "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes"),
    ("LDTM", "tcgen05.ld.sync.aligned"),
    ("SM100_TMEM_LOAD_16dp256b1x", "tcgen05.ld.sync.aligned.16x256b.x1.b32"),
    ("'K advance'", "K-major: + 32 bytes, 2 units"),
    ("warpgroup", "warp w of a warpgroup reaches lanes 32 (w % 4)"),  # PTX ISA 9.7.16.8.1
    ("stall_long_sb", "long scoreboard      global, local or texture data"),
]


@pytest.mark.parametrize(("command", "answer"), LAYOUTS)
def test_where_an_element_lies(cli: Cli, command: str, answer: str) -> None:
    outcome = cli("layout", *shlex.split(command))
    assert (outcome.code, outcome.err) == (0, "")
    assert answer in outcome.out


@pytest.mark.parametrize(("command", "answer"), WORDS)
def test_what_something_is(cli: Cli, command: str, answer: str) -> None:
    outcome = cli("explain", *shlex.split(command))
    assert (outcome.code, outcome.err) == (0, "")
    assert answer in " ".join(outcome.out.split()) or answer in outcome.out


#: Names of CUTLASS include/cute/arch, with the opcodes of their inline assembly.
ATOMS = {
    "SM100_TMEM_LOAD_32dp32b32x_16b": "tcgen05.ld.sync.aligned.32x32b.x32.pack::16b.b32",
    "SM100_TMEM_STORE_16dp64b8x": "tcgen05.st.sync.aligned.16x64b.x8.b32",
    "SM100_UTCCP_4x32dp128bit_2cta": "tcgen05.cp.cta_group::2.32x128b.warpx4",
    "cute::SM90_TMA_LOAD_MULTICAST_3D":
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
    "SM90_TMA_STORE_4D": "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group",
    "SM75_U16x8_LDSM_T": "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
    "SM90_U32x2_STSM_N": "stmatrix.sync.aligned.m8n8.x2.shared.b16",
    "SM100_MMA_F16BF16_2x1SM_SS": "tcgen05.mma.cta_group::2.kind::f16",
    "SM100_MMA_MXF8F6F4_SS": "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale",
    "SM90_64x128x16_F32F16F16_SS": "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16",
    "SM90::GMMA::MMA_64x256x32_F32E4M3E5M2_RS_TN": "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e5m2",
    "SM80_16x8x16_F32BF16BF16F32_TN": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
}  # fmt: skip


@pytest.mark.parametrize(("name", "opcode"), ATOMS.items())
def test_atoms_of_cute(name: str, opcode: str) -> None:
    load_all()
    assert opcode_of(name) == opcode
    assert candidates(opcode)


def test_other_names_are_no_atoms() -> None:
    assert opcode_of("SM100_TMEM_LOAD_8dp8b1x") is None
    assert opcode_of("SM100_MMA_MXF4_SS") is None  # of two kinds


#: Names of CUTLASS, Triton, Gluon, FlashAttention and Nsight Compute, titles of the manual: the concept each finds.
NAMES = {
    "K of tcgen05.mma": "MMA shapes", "wgmma shapes": "MMA shapes", "sm_103a": "target suffix",
    "TMA alignment": "alignment", "SWIZZLE_128B_BASE32B": "swizzle atom", "tmem capacity": "TMEM",
    "max cluster size": "cluster",
    "PipelineTmaAsync": "pipeline", "producer_acquire": "pipeline", "empty barrier": "pipeline",
    "tmem_full": "pipeline", "cutlass::arch::ClusterTransactionBarrier": "mbarrier",
    "fence_barrier_init": "mbarrier initialization", "fence_view_async_shared": "async proxy",
    "warpgroup_reg_alloc": "setmaxnreg", "ping-pong": "warp specialization", "PingPong": "warp specialization",
    "warp_specialize": "warp specialization", "TiledMMA": "TiledMMA", "EVT": "epilogue",
    "epilogue subtile": "epilogue", "threadblock swizzle": "tile order", "2-SM": "cta_group::2",
    "wave quantization": "wave quantization", "masked grouped gemm": "grouped GEMM", "1D2D": "promotion",
    "NVMMASharedLayout": "NVMMASharedLayout", "BlockedLayout": "linear layout", "ttng.tmem_alloc": "TMEM allocation",
    "TensorMemoryLayout": "TensorMemoryLayout", "TensorDescriptor": "tensormap", "lazy rescaling": "online softmax",
    "mio throttle": "warp stall", "stall_long_sb": "warp stall", "smsp": "sub-partition", "wHalo": "im2col",
    "im2col::w::128": "im2col", "causality order": "happens before", "coherence order": "memory model axioms",
    "no thin air": "memory model axioms", "cache operators": "cache operators",
    "eviction priority": "cache operators", "completion mechanism": "completion mechanism",
    "rounding mode": "rounding", "%cluster_ctarank": "special registers", "kernel parameter": "kernel parameter",
    ".loc": "directives", ".minnctapersm": "occupancy", "suspendTimeHint": "try_wait",
    "calling convention": "function call", "b4x16_p64": "padded elements", "16U4_ALIGN16B": "padded elements",
    "column-major": "major-ness", "UMMA::SmemDescriptor": "matrix descriptor",
    "lane access restrictions": "lane rights", "independent thread scheduling": "divergence",
    "vectorized load": "vectorized access", "mma_v5": "tcgen05",
}  # fmt: skip


@pytest.mark.parametrize(("name", "concept"), NAMES.items())
def test_names_that_people_use(name: str, concept: str) -> None:
    found = concept_of(name)
    assert found is not None
    assert found.name == concept


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("idesc m=128 n=300 a=f16 b=f16 d=f32", "n must be a multiple of 8 from 8 to 256"),
        ("idesc m=128 n=256 a=e2m1", "idesc also needs d_type, b_type: ptxgen explain idesc m=128"),
        ("idesc foo=1", "idesc has no field 'foo'"),
        ("idesc m=128 256", "idesc takes FIELD=VALUE after the first one, not '256'"),
        ("smem address=17", "start_address must be a multiple of 16"),
        ("idesc --kind f64", "kind must be f16,"),
        ("tensormap dims=4", "explain tensormap needs a VALUE"),
        ("policy primary=never", "primary must be one of evict_unchanged, evict_first, evict_last, evict_normal"),
        ("smem --kind f16", "--kind is for idesc, not for smem"),
    ],
)
def test_fields_that_make_no_value(cli: Cli, words: str, error: str) -> None:
    outcome = cli("explain", *words.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert error in outcome.err


def test_sizes_of_m_are_named(cli: Cli) -> None:
    words = ("layout", "scales", "cta_group=2", "at=3,3")
    assert "of must be a or b with cta_group=2" in cli(*words).err
    assert (
        "M must be 256 for SFA of a pair (M 128 leaves each CTA 64 rows), not 128" in cli(*words, "of=a", "m=128").err
    )
    assert "M must be 128 or 256" in cli("layout", "accumulator", "m=64", "cta_group=2").err
    assert "M must be 32, 64 or 128" in cli("layout", "accumulator", "m=256", "ws").err
