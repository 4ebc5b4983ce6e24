"""Kernels, parameter blocks, launch shapes and reports: what all devices share."""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen.device import (
    DeviceArray,
    DeviceArrayError,
    Finding,
    Kernel,
    KernelArgumentError,
    KernelError,
    Launch,
    LaunchError,
    LaunchReport,
    LaunchShape,
    ParameterInfo,
    StaleValue,
    Status,
    array_shape,
    pack_arguments,
)
from ptxgen.instr.model.check import check
from ptxgen.toolchain import assemble


class HostArray(DeviceArray):
    """A device array whose memory is a bytearray."""

    def __init__(self, values: np.ndarray, address: int = 0x7F0000001000) -> None:
        super().__init__(address, values.shape, values.dtype)
        self.memory = values.tobytes()

    def read_bytes(self) -> bytes:
        return self.memory

    def write_bytes(self, data: bytes) -> None:
        self.memory = data


class Map:
    """Encodes as a tensormap does."""

    def __init__(self, size: int = 128) -> None:
        self.size = size

    def encode(self) -> bytes:
        return bytes(range(self.size))


def kernel_of(*parameters: str, target: str = "sm_100a") -> Kernel:
    """A kernel with the given parameters, such as ".u64 a", that does nothing."""
    declared = ",\n    ".join(f".param {each}" for each in parameters)
    head = f".version 8.6\n.target {target}\n.address_size 64\n"
    return Kernel.from_ptx(f"{head}.visible .entry k(\n    {declared})\n{{\n    ret;\n}}\n")


def layout(kernel: Kernel) -> list[tuple[str, int, int, int]]:
    return [(info.name, info.offset, info.size, info.align) for info in kernel.parameters]


def layout_of_cubin(kernel: Kernel) -> list[tuple[int, int]]:
    """(offset, size) of each parameter as ptxas wrote them into the cubin (EIATTR_KPARAM_INFO)."""
    data = assemble(kernel.text).data
    found = {}
    for match in re.finditer(rb"\x04\x17\x0c\x00", data):
        _, ordinal, offset, packed = struct.unpack_from("<IHHI", data, match.end())
        found[ordinal] = (offset, packed >> 18)
    return [found[ordinal] for ordinal in sorted(found)]


def test_parameters_are_laid_out_as_a_c_struct() -> None:
    kernel = kernel_of(".u8 a", ".u64 b", ".u16 c", ".align 64 .b8 map[128]", ".u8 d", ".f32 e", ".f64 f")
    assert layout(kernel) == [
        ("a", 0, 1, 1),
        ("b", 8, 8, 8),
        ("c", 16, 2, 2),
        ("map", 64, 128, 64),
        ("d", 192, 1, 1),
        ("e", 196, 4, 4),
        ("f", 200, 8, 8),
    ]
    assert kernel.parameter_bytes == 208


@pytest.mark.parametrize(
    "parameters",
    [
        [".u8 a", ".u64 b", ".u16 c", ".align 64 .b8 map[128]", ".u8 d", ".f32 e", ".f64 f"],
        [".align 128 .b8 a[128]", ".u32 n", ".align 64 .b8 b[128]", ".b16 t"],
        [
            ".u8 a",
            ".b8 s[3]",
            ".s16 b",
            ".align 4 .b8 q[12]",
            ".b32 words[3]",
            ".u64 .ptr .global .align 16 p",
        ],
        [
            ".u8 a",
            ".align 2 .b32 low[2]",
            ".v2 .b8 v[3]",
            ".align 2 .b64 scalar",
            ".u8 z",
            ".b128 wide",
            ".u8 end",
        ],
        [".u64 p"],
    ],
)
def test_parameters_lie_where_ptxas_puts_them(parameters: list[str]) -> None:
    # On sm_100a the driver's block is aligned to 128 bytes, so that offsets are those of PTX.
    kernel = kernel_of(*parameters)
    assert [(info.offset, info.size) for info in kernel.parameters] == layout_of_cubin(kernel)


def test_the_alignment_of_a_pointer_is_not_that_of_its_parameter() -> None:
    assert layout(kernel_of(".u64 .ptr .global .align 128 p", ".u32 n")) == [("p", 0, 8, 8), ("n", 8, 4, 4)]


def test_parameters_without_a_layout_are_refused() -> None:
    with pytest.raises(KernelError, match=r"parameter t has type \.texref, which has no size"):
        kernel_of(".texref t").parameters  # noqa: B018
    with pytest.raises(KernelError, match=r"parameter m of k is an array without a size"):
        kernel_of(".b8 m[]").parameters  # noqa: B018


def test_a_kernel_without_parameters() -> None:
    kernel = Kernel.from_ptx(".version 8.0\n.target sm_90a\n.address_size 64\n.entry k()\n{\nret;\n}\n")
    assert (kernel.parameters, kernel.parameter_bytes, pack_arguments(kernel, [])) == ([], 0, b"")


def test_entries_are_picked_by_name() -> None:
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry one()\n{\nret;\n}\n.entry two()\n{\nret;\n}\n"
    assert Kernel.from_ptx(text, "two").name == "two"
    with pytest.raises(KernelError, match=r"it has 2: one, two; name one, or a part of its name, with entry="):
        Kernel.from_ptx(text)
    with pytest.raises(KernelError, match=r"no entry 'three'; it has one, two"):
        Kernel.from_ptx(text, "three")
    with pytest.raises(KernelError, match=r"it has none"):
        Kernel.from_ptx(".version 8.0\n.target sm_90a\n.address_size 64\n")


def test_entries_are_picked_by_a_part_of_their_name() -> None:
    names = ("_Z4gemmILi64EEvPf", "_Z4gemmILi128EEvPf", "_Z3sumPf", "_Z3sumPfi")
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
    text = head + "".join(f".entry {each}()\n{{\nret;\n}}\n" for each in names)
    assert Kernel.from_ptx(text, "Li128E").name == names[1]
    assert Kernel.from_ptx(text, "_Z3sumPf").name == names[2]  # a name, though another contains it
    with pytest.raises(
        KernelError, match=r"2 entries .* 'gemm' in their names: void gemm<64>\(float\*\), void gemm<128>\(float\*\)$"
    ):
        Kernel.from_ptx(text, "gemm")
    with pytest.raises(KernelError, match=r"no entry 'Li32E'; it has void gemm<64>\(float\*\), "):
        Kernel.from_ptx(text, "Li32E")


def test_a_kernel_keeps_its_text(load: Callable[[str], Kernel]) -> None:
    kernel = load("tma_load")
    assert str(kernel.module) == kernel.text
    assert kernel.entry.name == kernel.name == "tma_load"


def test_every_kind_of_argument() -> None:
    kernel = kernel_of(".u64 p", ".align 64 .b8 map[128]", ".u32 n", ".f32 x", ".f64 y", ".b16 h", ".s32 i", ".b8 s[3]")
    array = HostArray(np.zeros(4))
    block = pack_arguments(kernel, [array, Map(), 5, 1.5, -2.0, np.float16(0.25), -7, b"abc"])
    assert len(block) == kernel.parameter_bytes
    for info, expected in zip(
        kernel.parameters,
        [
            struct.pack("<Q", array.address),
            bytes(range(128)),
            struct.pack("<I", 5),
            struct.pack("<f", 1.5),
            struct.pack("<d", -2.0),
            struct.pack("<e", 0.25),
            struct.pack("<i", -7),
            b"abc",
        ],
        strict=True,
    ):
        assert block[info.offset : info.offset + info.size] == expected, info
    assert block[8:64] == bytes(56)


@pytest.mark.parametrize(
    ("declared", "value", "packed"),
    [
        (".u32 n", np.int32(-1), b"\xff\xff\xff\xff"),
        (".u32 n", 2**32 - 1, b"\xff\xff\xff\xff"),
        (".s32 n", -(2**31), b"\x00\x00\x00\x80"),
        (".u8 n", 255, b"\xff"),
        (".u8 n", True, b"\x01"),
        (".b32 n", np.float32(1.0), b"\x00\x00\x80\x3f"),
        (".b16 n", ml_dtypes.bfloat16(1.0), b"\x80\x3f"),
        (".f32 n", 3, b"\x00\x00\x40\x40"),
        (".f32 n", float("inf"), b"\x00\x00\x80\x7f"),
        (".u64 n", np.int64(-2), b"\xfe" + b"\xff" * 7),
        (".b8 n[4]", bytearray(b"wxyz"), b"wxyz"),
        (".b32 n[2]", memoryview(b"abcdefgh"), b"abcdefgh"),
    ],
)
def test_scalars(declared: str, value: object, packed: bytes) -> None:
    assert pack_arguments(kernel_of(declared), [value]) == packed


@pytest.mark.parametrize(
    ("declared", "value", "words"),
    [
        (".u32 n", 2**32, "the int 4294967296 is outside 0..4294967295"),
        (".u32 n", -1, "the int -1 is outside 0..4294967295; numpy.int32(-1) passes its bits"),
        (".s32 n", 2**31, "the int 2147483648 is outside -2147483648..2147483647"),
        (".u8 n", -129, "outside 0..255"),
        (".u32 n", 1.5, "the float 1.5 was given, which needs an .f32 or .f64 parameter"),
        (".f32 n", 1e300, "the float 1e+300 is out of range of .f32"),
        pytest.param(".f32 n", 10**400, "out of range of .f32", id="a huge int"),
        (".u64 n", np.int32(1), "(8 bytes), but a NumPy int32 of 4 bytes was given"),
        (".u32 n", HostArray(np.zeros(1)), "a device array was given, whose address has 8 bytes"),
        (".align 64 .b8 n[128]", HostArray(np.zeros(1)), ".b8 n[128] (128 bytes), but a device array"),
        (".align 64 .b8 n[128]", 5, "an array parameter takes bytes"),
        (".align 64 .b8 n[128]", Map(64), "a Map of 64 bytes was given"),
        (".align 64 .b8 n[128]", b"short", "bytes of 5 bytes was given"),
        (".u64 n", np.zeros(3), "a NumPy array of shape (3,) was given; copy it to the device with .array()"),
        (".u64 n", "text", "a str was given"),
        (".u64 n", None, "a NoneType was given"),
    ],
)
def test_what_does_not_fit_is_refused(declared: str, value: object, words: str) -> None:
    with pytest.raises(KernelArgumentError) as caught:
        pack_arguments(kernel_of(".u8 first", declared), [0, value])
    assert str(caught.value).startswith(f"argument 1 of k is for {declared.removeprefix('.align 64 ')} (")
    assert words in str(caught.value)


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(KernelArgumentError, match=r"k takes 2 arguments \(0: \.u64 p, 1: \.b8 m\[128\]\), but 1 were"):
        pack_arguments(kernel_of(".u64 p", ".align 64 .b8 m[128]"), [0])


def test_long_names_are_cut_in_messages() -> None:
    name = "_ZN7cutlass13device_kernel" + "I4gemm" * 80
    declared = ", ".join(f".param .u64 {name}_param_{index}" for index in range(3))
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
    kernel = Kernel.from_ptx(f"{head}.entry {name}({declared})\n{{\nret;\n}}\n")
    with pytest.raises(KernelArgumentError) as caught:
        pack_arguments(kernel, [0])
    assert str(caught.value).startswith("_ZN7cutlass13device_kernelI4gemm ... ")
    assert all(f"{index}: .u64 param_{index}" in str(caught.value) for index in range(3))
    assert len(str(caught.value)) < 350
    with pytest.raises(KernelArgumentError, match=r"^argument 2 of _ZN7cutlass13.* \.\.\. .*param_2 \(8 by") as caught:
        pack_arguments(kernel, [0, 0, "text"])
    assert len(str(caught.value)) < 350


def test_declarations() -> None:
    assert ParameterInfo("m", 128, 64, 0, "b8", is_array=True).declaration == ".b8 m[128]"
    assert ParameterInfo("m", 12, 4, 0, "b32", is_array=True).declaration == ".b32 m[3]"


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_arrays_keep_values(dtype: np.dtype) -> None:
    values = np.arange(6).reshape(2, 3).astype(dtype)
    array = HostArray(values)
    assert (array.size, array.nbytes) == (6, 6 * values.itemsize)
    np.testing.assert_array_equal(array.numpy(), values)
    array.write(values.T.reshape(2, 3))
    np.testing.assert_array_equal(array.numpy(), values.T.reshape(2, 3))
    array.numpy()[0, 0] = 5  # a copy that may be written
    np.testing.assert_array_equal(array.numpy(), values.T.reshape(2, 3))


def test_arrays_refuse_other_shapes_and_dtypes() -> None:
    array = HostArray(np.zeros((2, 3), np.float32))
    with pytest.raises(DeviceArrayError, match=r"shape \(2, 3\) and dtype float32.*shape \(3, 2\)"):
        array.write(np.zeros((3, 2), np.float32))
    with pytest.raises(DeviceArrayError, match="float64"):
        array.write(np.zeros((2, 3)))


def test_empty_arrays() -> None:
    assert HostArray(np.zeros((0, 3), np.float32)).numpy().shape == (0, 3)


def test_launch_shapes_are_completed() -> None:
    shape = LaunchShape.of(8, (32, 4), cluster=[2], shared_bytes=16)
    assert shape == LaunchShape((8, 1, 1), (32, 4, 1), (2, 1, 1), 16)
    assert LaunchShape.of(np.int64(3), 1).grid == (3, 1, 1)


@pytest.mark.parametrize(
    ("grid", "block", "cluster", "shared", "words"),
    [
        (0, 32, None, 0, r"grid's x must be in 1\.\.2147483647, but it is 0"),
        ((1, 65536), 32, None, 0, r"grid's y"),
        (1, (1, 1, 65), None, 0, r"block's z must be in 1\.\.64, but it is 65"),
        (1, (64, 32), None, 0, r"at most 1024 threads, but \(64, 32, 1\) has 2048"),
        (1, (1, 1, 1, 1), None, 0, r"1 to 3 dimensions"),
        (1, (), None, 0, r"1 to 3 dimensions"),
        ((6, 4), 32, (4, 1), 0, r"multiple of the cluster's: grid \(6, 4, 1\), cluster \(4, 1, 1\)"),
        ((8, 8), 32, (8, 4), 0, r"at most 16 CTAs, but \(8, 4, 1\) has 32"),
        (1, 32, None, -1, r"0 or more, but it is -1"),
    ],
)
def test_impossible_launch_shapes(grid, block, cluster, shared: int, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        LaunchShape.of(grid, block, cluster, shared)


def test_summaries() -> None:
    race = Finding("race", "error", "two threads write 4 bytes", 12, "st.shared.u32 [%r1], %r2;")
    hint = Finding("bank-conflict", "advice", "8-way")
    report = LaunchReport("findings", [race, hint], instructions=1234, seconds=0.5, kernel="k", device="Emulator")
    assert report.summary() == (
        "k on Emulator: findings (1234 warp-instructions, 500.000 ms, 1 error, 1 advice)\n"
        "line 12: error [race] two threads write 4 bytes\n    st.shared.u32 [%r1], %r2;\n"
        "advice [bank-conflict] 8-way"
    )
    assert not report.ok
    assert LaunchReport("ok").summary() == "ok (0.000 ms)"


def test_a_summary_cuts_long_instructions() -> None:
    instruction = "tcgen05.ld.sync.aligned.32x32b.x128.b32 {" + ", ".join(f"%r{i}" for i in range(128)) + "}, [%taddr];"
    finding = Finding("race", "error", "a race", 12, instruction)
    shown = str(finding).splitlines()[1].strip()
    assert shown.startswith("tcgen05.ld.sync.aligned.32x32b.x128.b32 {%r0, ")
    assert " ... " in shown
    assert shown.endswith("}, [%taddr];")
    assert len(shown) <= 210
    assert finding.instruction == instruction


@pytest.mark.parametrize("status", ["ok", "findings", "incomplete", "fault"])
def test_a_summary_tells_of_stale_values_that_may_be_in_results(status: Status) -> None:
    older = [StaleValue(9, 4, 3), StaleValue(12, 5, 1)]
    lines = LaunchReport(status, stale_values=older).summary().splitlines()[1:]
    told = (
        "strong loads found stale values, which is right where they poll: line 9 found what was there before the store "
        "of line 4, 3 times; line 12 found what was there before the store of line 5, once"
    )
    assert lines == ([told] if status in ("ok", "findings") else [])
    many = LaunchReport("ok", stale_values=older * 10).summary().splitlines()[1:]
    assert [each.endswith("; and 12 more in stale_values") for each in many] == [True]


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "ptx").glob("*.ptx")), ids=lambda path: path.stem)
def test_the_kernels_of_these_tests_are_legal(path: Path) -> None:
    cubin = assemble(path.read_text(), "sm_90a")
    assert (cubin.warnings, [info.name for info in cubin.entries]) == ([], [path.stem])
    assert Kernel.from_ptx(path.read_text()).name == path.stem


WRONG: list[Any] = [4.0, "4", [2, "3"], b"1"]


@pytest.mark.parametrize("wrong", WRONG)
def test_extents_are_whole_numbers(wrong: Any) -> None:
    for extents in ((wrong, 1), (1, wrong), (1, 1, wrong)):
        with pytest.raises(LaunchError, match="is a whole number, or up to three of them, not"):
            LaunchShape.of(*extents)
    with pytest.raises(DeviceArrayError, match="a shape is a number of elements"):
        array_shape(wrong)
    with pytest.raises(LaunchError, match="shared_bytes is a number of bytes"):
        LaunchShape.of(1, 1, None, wrong)


ARGUMENTS: list[Any] = ["text", HostArray(np.zeros(1)), 3]


def test_a_launch_takes_a_kernel_and_a_list() -> None:
    wrong: Any = "text"
    with pytest.raises(LaunchError, match=r"takes a ptxgen.Kernel, not str; Kernel.from_ptx\(text\) makes one"):
        Launch(wrong, 1, 1, [])
    for arguments in ARGUMENTS:
        with pytest.raises(LaunchError, match="the arguments of a launch are a list"):
            Launch(kernel_of(), 1, 1, arguments)


TEXTS: list[Any] = [Path("kernel.ptx"), b"text", None]


@pytest.mark.parametrize("wrong", TEXTS)
def test_ptx_is_given_as_text(wrong: Any) -> None:
    for call in (Kernel.from_ptx, check):
        with pytest.raises(TypeError, match=r"PTX is given as its text, not as .*read_text"):
            call(wrong)
