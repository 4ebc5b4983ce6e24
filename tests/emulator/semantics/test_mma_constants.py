"""Constants as elements of C of mma and wmma: the same results as registers of the same bits.

The bits that ptxas 13.5.37 puts in the registers are read off its SASS: MOV of an integer, of a float of 32 bits, of
the low half of a double; FADD of the value where the target has no MMA of 8-bit floats.
"""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen import Kernel, check
from ptxgen.emulator import Emulator
from ptxgen.instr import mma
from ptxgen.instr.model.form import InstructionError
from tests.support.harness import module, poisoned


def product(target: str, form: str, counts: tuple[int, int, int], c: list[str], tail: str = "") -> np.ndarray:
    """D in words for random A and B; `%z<word>` in C is a register that holds the word."""
    d, a, b = counts
    wide = "f64" in form
    bits = 64 if wide else 32
    rng = np.random.default_rng(3)
    values = rng.standard_normal((32, a + b)).astype(np.float32)
    if wide:
        words = values.astype(np.float64).view(np.uint64)
    else:
        halves = values.astype(np.float16).view(np.uint16).astype(np.uint32)
        words = halves * np.uint32(0x10001) & np.uint32(0xBFBFBFBF)
    registers = [each for each in c if each.startswith("%z")]
    lines = [f".reg .b{bits} %d<9>, %i<{a + b}>; .reg .b32 %t, %m; .reg .b64 %p, %q; mov.u32 %t, %tid.x;"]
    lines.append("mov.b32 %m, 0x44444444;")
    lines += [f".reg .b{bits} {each}; mov.b{bits} {each}, 0x{each[2:]};" for each in dict.fromkeys(registers)]
    size = bits // 8
    lines.append(f"ld.param.u64 %p, [in]; mul.wide.u32 %q, %t, {size * (a + b)}; add.u64 %p, %p, %q;")
    lines += [f"ld.global.b{bits} %i{i}, [%p+{size * i}];" for i in range(a + b)]
    vectors = [[f"%d{i}" for i in range(d)], [f"%i{i}" for i in range(a)], [f"%i{a + i}" for i in range(b)], c]
    lines.append(f"{form} {', '.join('{' + ', '.join(each) + '}' for each in vectors)}{tail};")
    lines.append(f"ld.param.u64 %p, [out]; mul.wide.u32 %q, %t, {size * d}; add.u64 %p, %p, %q;")
    lines += [f"st.global.b{bits} [%p+{size * i}], %d{i};" for i in range(d)]
    text = module("\n".join([*lines, "ret;"]), ".param .u64 out, .param .u64 in", target=target, version="9.1")
    assert not [each for each in check(text) if each.severity == "error"]
    device = Emulator(target)
    out = device.array(poisoned(32 * d, words.dtype).reshape(32, d))
    report = device.launch(Kernel.from_ptx(text), 1, 32, [out, device.array(words)])
    assert report.status == "ok", report.summary()
    return out.numpy()  # type: ignore[no-any-return]


BF16 = ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", (4, 4, 2))
F16 = ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", (2, 4, 2))
S8 = ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", (4, 4, 2))
E4M3 = ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", (4, 4, 2))
F64 = ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", (2, 1, 1))
SPARSE = ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 2, 2))
WMMA = ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", (8, 4, 4))
CASES = [
    ("sm_90a", BF16, ["0f00000000"] * 4, ["%z00000000"] * 4),
    ("sm_100a", BF16, ["0f3F800000", "%z40490FDB", "0f80000000", "0fC0000000"],
     ["%z3F800000", "%z40490FDB", "%z80000000", "%zC0000000"]),
    # 0d3FF123456789ABCD as bits: its low half.
    ("sm_90a", BF16, ["0d3FF1234540490FDB", "%z3F800000", "1.1", "0.0"],
     ["%z40490FDB", "%z3F800000", "%z9999999A", "%z00000000"]),
    ("sm_90a", BF16, ["0x13F800000", "%z3F800000", "-1082130432", "0"],
     ["%z3F800000", "%z3F800000", "%zBF800000", "%z00000000"]),
    ("sm_90a", F16, ["0x3C004000", "%z42003C00"], ["%z3C004000", "%z42003C00"]),
    ("sm_90a", F16, ["%z42003C00", "0f3C004000"], ["%z42003C00", "%z3C004000"]),
    ("sm_90a", S8, ["0", "-3", "0xffffffff", "1000"], ["%z00000000", "%zFFFFFFFD", "%zFFFFFFFF", "%z000003E8"]),
    ("sm_120a", E4M3, ["0f3F800000", "%z40490FDB", "1.1", "1.5"],
     ["%z3F800000", "%z40490FDB", "%z9999999A", "%z00000000"]),
    ("sm_90a", E4M3, ["0f3F800000", "%z40490FDB", "1.1", "1.5"],
     ["%z3F800000", "%z40490FDB", "%z3F8CCCCD", "%z3FC00000"]),
    ("sm_100a", F64, ["1.5", "-2.0"], ["%z3FF8000000000000", "%zC000000000000000"]),
    ("sm_90a", F64, ["5", "0x4008000000000000"], ["%z0000000000000005", "%z4008000000000000"]),
    ("sm_90a", SPARSE, ["0f3F800000", "0f00000000", "0f40000000", "0f00000000"],
     ["%z3F800000", "%z00000000", "%z40000000", "%z00000000"]),
    ("sm_90a", WMMA, ["0f3F800000"] + ["0f00000000"] * 7, ["%z3F800000"] + ["%z00000000"] * 7),
]  # fmt: skip


@pytest.mark.parametrize(("target", "form", "constants", "registers"), CASES)
def test_constants_are_as_registers_of_their_bits(
    target: str, form: tuple[str, tuple[int, int, int]], constants: list[str], registers: list[str]
) -> None:
    tail = ", %m, 0" if "sp::" in form[0] else ""
    found = product(target, *form, constants, tail)
    expected = product(target, *form, registers, tail)
    np.testing.assert_array_equal(found, expected)
    zeros = product(target, *form, ["%z" + "0" * (16 if "f64" in form[0] else 8)] * len(registers), tail)
    assert set(registers) == {"%z00000000"} or (found != zeros).any()


@pytest.mark.parametrize(
    ("element", "words"),
    [("1.5", "low 32 bits of the double 1.5, 0x00000000; write 0f3FC00000"), ("-0.0", "write 0f80000000"),
     ("1e300", "too large"), ("0.0", ""), ("0f3FC00000", "")],
)  # fmt: skip
def test_a_warning_names_the_bits_that_ptxas_takes(element: str, words: str) -> None:
    line = (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, "
        f"{{%f0, {element}, %f2, %f3}};"
    )
    text = module(f".reg .f32 %f<4>; .reg .b32 %r<6>; {line} ret;", "", target="sm_90a", version="9.0")
    found = check(text)
    assert [each.severity for each in found] == (["warning"] if words else [])
    assert all(words in str(each) and "constant-bits" in str(each) for each in found)


def test_a_typed_call_takes_constants() -> None:
    d, a, b = ["%f0", "%f1", "%f2", "%f3"], ["%r0", "%r1", "%r2", "%r3"], ["%r4", "%r5"]
    made = mma.bf16(d, a, b, ["0f00000000", 1.5, "%f2", 0.0], shape="m16n8k16")
    assert str(made).endswith("{%r4, %r5}, {0f00000000, 0f3FC00000, %f2, 0f00000000};")
    double = mma.f64(["%fd0", "%fd1"], ["%fd2"], ["%fd3"], [1.5, "%fd4"], shape="m8n8k4")
    assert str(double).endswith("{%fd3}, {0d3FF8000000000000, %fd4};")
    with pytest.raises(InstructionError, match="must be floats, as in 0f00000000, not 0"):
        mma.bf16(d, a, b, [0, 0, 0, 0], shape="m16n8k16")


#: Lines with constants in braces, and the same lines with registers that hold the constants.
ELEMENTS = [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, ZERO, ONES, %r4}, {%r5, ZERO},"
    " {%f1, %f2, %f3, %f4};",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8},"
    " {%r1, ZERO, ONES, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, ZERO, %r6, ONES, %r8},"
    " {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};",
    "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%row], {%r1, ONES, ZERO, %r4};",
    "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [tile], {%r1, ONES, %r3, ZERO};",
]


@pytest.mark.parametrize("line", ELEMENTS, ids=lambda line: line.partition(".sync")[0])
def test_constants_beside_registers_as_elements(line: str) -> None:
    """ptxas 13.5 takes constants as elements of A, of B and of what is stored, beside registers (measured)."""

    def results(zero: str, ones: str) -> np.ndarray:
        lines = [".reg .b32 %r<9>, %f<9>, %t, %row, %z, %o; .reg .b64 %p, %q; .shared .align 128 .b8 tile[1024];"]
        lines.append("mov.u32 %t, %tid.x; mov.b32 %z, 0; mov.b32 %o, 0x3C003C00;")
        lines.append("ld.param.u64 %p, [in]; mul.wide.u32 %q, %t, 32; add.u64 %p, %p, %q;")
        lines += [f"ld.global.b32 %r{i}, [%p+{4 * i - 4}]; mov.b32 %f{i}, %r{i};" for i in range(1, 9)]
        lines.append("mov.u32 %row, tile; mad.lo.u32 %row, %t, 32, %row;")
        lines += [f"st.shared.b32 [%row+{4 * i}], 0;" for i in range(8)]
        lines.append("bar.warp.sync -1; mov.u32 %row, tile; mad.lo.u32 %row, %t, 16, %row;")
        lines.append(line.replace("ZERO", zero).replace("ONES", ones))
        lines.append("bar.warp.sync -1; ld.param.u64 %p, [out]; mul.wide.u32 %q, %t, 64; add.u64 %p, %p, %q;")
        lines.append("mov.u32 %row, tile; mad.lo.u32 %row, %t, 32, %row;")
        for i in range(1, 9):
            lines.append(f"st.global.b32 [%p+{4 * i - 4}], %f{i};")
            lines.append(f"ld.shared.b32 %r{i}, [%row+{4 * i - 4}]; st.global.b32 [%p+{28 + 4 * i}], %r{i};")
        text = module("\n".join([*lines, "ret;"]), ".param .u64 out, .param .u64 in", target="sm_90a", version="8.0")
        device = Emulator("sm_90a")
        out = device.array(poisoned(32 * 16, np.dtype(np.uint32)).reshape(32, 16))
        halves = np.random.default_rng(4).standard_normal((32, 16)).astype(np.float16)
        report = device.launch(Kernel.from_ptx(text), 1, 32, [out, device.array(halves)])
        assert report.status == "ok", report.summary()
        return out.numpy()

    constant, held = results("0", "0x3C003C00"), results("%z", "%o")
    np.testing.assert_array_equal(constant, held)
    assert (held != results("%o", "%z")).any()
