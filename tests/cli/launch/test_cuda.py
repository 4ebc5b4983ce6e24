"""`ptxgen run` of CUDA C++, of files that hold PTX beside machine code, and of kernels that take structures."""

from __future__ import annotations

import ctypes
import functools
import json
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.cli.launch.source_names import definitions
from ptxgen.device.arguments import KernelArgumentError
from ptxgen.toolchain import CompilerError, ToolNotFoundError, assemble, compile_cuda, find_tool
from tests.support.command_line import Cli

SOURCE = """\
struct Line { const float* x; int n; float a, b[2]; unsigned char flip; };

extern "C" __global__ void line(Line p, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n)
        y[i] = p.flip ? p.b[1] - p.a * p.x[i] : p.a * p.x[i] + p.b[0];
}
"""
STRUCT = "struct:u64:@x,s32:40,f32:2,f32:0.5,f32:8,u8:1"
LAUNCH = ("--grid", "2", "--block", "32", "--arg", f"0={STRUCT}", "--arg", "x=arange:f32:40", "--arg", "1=empty:f32:64")


def has_nvcc() -> bool:
    try:
        find_tool("nvcc")
    except ToolNotFoundError:
        return False
    return shutil.which("g++") is not None


needs_nvcc = pytest.mark.skipif(not has_nvcc(), reason="needs nvcc and a C++ compiler")


@functools.cache
def compiled() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "line.cu"
        path.write_text(SOURCE)
        return compile_cuda(path, "sm_90a")


@needs_nvcc
def test_cuda_runs_with_the_lines_of_its_source(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "line.cu", tmp_path / "y.npy"
    path.write_text(SOURCE)
    done = cli("run", path, "--target", "sm_90a", *LAUNCH, "--out", f"1={out}")
    assert done.code == 0, done.out + done.err
    assert np.array_equal(np.load(out)[:40], 8 - 2 * np.arange(40, dtype=np.float32))
    assert "emulated sm_90a" in done.out
    named = (
        "--grid",
        "2",
        "--block",
        "32",
        "--arg",
        f"p={STRUCT}",
        "--arg",
        "x=arange:f32:40",
        "--arg",
        "y=empty:f32:64",
    )
    done = cli("run", path, "--target", "sm_90a", *named, "--out", f"y={out}")  # by the names of the source
    assert done.code == 0, done.out + done.err
    assert np.array_equal(np.load(out)[:40], 8 - 2 * np.arange(40, dtype=np.float32))
    ptx = tmp_path / "line.ptx"
    ptx.write_text(compile_cuda(path, "sm_90a"))
    assert cli("run", ptx, *named).code == 0
    assert "line takes .b8 p[32], .u64 y\n" in cli("run", path, "--target", "sm_90a", "--arg", "z=1").err
    path.unlink()
    assert "a number names a parameter, too: --arg 0=" in cli("run", ptx, *named).err
    path.write_text("__device__ int f() { return 1; }")
    assert f"{path} has no kernel" in cli("run", path).err
    path.write_text("__global__ void k() { this is wrong; }")
    refused = cli("run", path)
    assert refused.code == 2
    assert f"nvcc refused {path} for sm_100a" in refused.err
    assert "line.cu(1): error" in refused.err
    path.write_text("#include <cuda/std/no_such_header>\n")
    assert "(status 1); pip install nvidia-cuda-cccl has libcu++, CUB and Thrust" in cli("run", path).err
    assert "cannot read" in cli("run", tmp_path / "none.cu").err


@needs_nvcc
def test_headers_of_half_precision_and_barriers(cli: Cli, tmp_path: Path) -> None:
    """The package of nvcc lacks what cuda_fp16.h includes; ptxgen[tools] has it."""
    path, out = tmp_path / "half.cu", tmp_path / "y.npy"
    path.write_text(
        "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda/barrier>\n#include <cooperative_groups.h>\n"
        'extern "C" __global__ void scale(const __half* x, float* y) {\n'
        "    auto block = cooperative_groups::this_thread_block();\n"
        "    y[block.thread_rank()] = 3 * __half2float(x[block.thread_rank()]);\n}\n"
    )
    named = ("--arg", "x=arange:f16:32", "--arg", "y=empty:f32:32", "--block", "32", "--out", f"y={out}")
    done = cli("run", path, *named)
    assert done.code == 0, done.out + done.err
    assert np.array_equal(np.load(out), 3 * np.arange(32, dtype=np.float32))


@needs_nvcc
def test_sass_takes_cuda(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "line.cu"
    path.write_text(SOURCE)
    listing = cli("sass", path, "--target", "sm_90a")
    assert listing.code == 0
    assert "line.cu:6" in listing.out
    cubin = tmp_path / "line.cubin"
    cubin.write_bytes(assemble(compiled(), options=("-lineinfo",)).data)
    for words in ((path, cubin), (cubin, path)):  # compiled for the target of the other
        outcome = cli("sass", "diff", *words)
        assert outcome.code == 0, outcome.out + outcome.err
        assert outcome.out.count("(sm_90a)") == 2
    with pytest.raises(CompilerError, match="nvcc refused"):
        compile_cuda(path, "sm_1")


@needs_nvcc
def test_files_with_machine_code_that_hold_ptx(cli: Cli, tmp_path: Path) -> None:
    """A cubin with line information, and a fatbin; and those that have none."""
    cubin = tmp_path / "line.cubin"
    cubin.write_bytes(assemble(compiled(), options=("-lineinfo",)).data)
    done = cli("run", cubin, *LAUNCH)
    assert done.code == 0, done.out + done.err
    cubin.write_bytes(assemble(re.sub(r"(?m)^\s*\.(loc|file)\b.*$", "", compiled())).data)
    bare = cli("run", cubin, *LAUNCH)
    assert bare.code == 2
    assert "prints its PTX, if it has any (machine code without PTX; compile with -lineinfo" in bare.err
    dump = tmp_path / "line.dump"
    dump.write_text("\nFatbin ptx code:\n================\narch = sm_90a\ncode version = [9,2]\n\n" + compiled())
    assert cli("run", dump, *LAUNCH).code == 0


@pytest.mark.parametrize(
    ("declared", "names"),
    [
        ("k(const float* __restrict__ a, int n)", ("a", "n")),
        ("__launch_bounds__(128, 2) k(float* a, const __grid_constant__ CUtensorMap map)", ("a", "map")),
        (
            "__cluster_dims__(2, 1, 1) __attribute__((used)) k(T (&a)[4][2], float b[8], int n = f(1, 2))",
            ("a", "b", "n"),
        ),
        ("k(std::array<int, 3> a, /* the (size */ int b, // of it,\n int const* const c)", ("a", "b", "c")),
        ("k(void)", ()),
        ("k()", ()),
    ],
)
def test_names_of_a_source(declared: str, names: tuple[str, ...]) -> None:
    text = f"// __global__ void no(int x) {{}}\ntemplate <typename T>\n__global__ void {declared} {{ g(1, 2); }}\n"
    assert list(definitions(text)) == [("k", names)]
    assert list(definitions("__global__ void k(int, float);")) == []  # a declaration without names


PTX = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .align 8 .b8 p[24], .param .u64 out)
{
    .reg .b64 %a, %x, %v; .reg .b32 %n;
    ld.param.u64 %a, [out]; ld.param.u64 %x, [p]; ld.param.b64 %v, [p+8]; ld.param.b32 %n, [p+16];
    st.global.u64 [%a], %x; st.global.u64 [%a+8], %v; st.global.u32 [%a+16], %n;
    ret;
}
"""


def test_structures_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    """Members aligned as C++ aligns them: an address, a double behind it, and three small ones."""
    path, out = tmp_path / "k.ptx", tmp_path / "out.npy"
    path.write_text(PTX)
    options = ("--block", "1", "--arg", "out=empty:u8:24", "--arg", "x=zeros:u8:8", "--out", f"out={out}")
    expected = np.float64(1.5).tobytes() + bytes([7, 0]) + np.int16(-2).tobytes()
    members = tmp_path / "p.json"
    members.write_text(
        json.dumps({"x": ["u64", "@x"], "d": ["f64", 1.5], "c": {"type": "u8", "value": 7}, "s": ["s16", -2]})
    )
    for words in ("struct:u64:@x,f64:1.5,u8:7,s16:-2", "struct:x=u64:@x,d=f64:1.5,u8:7,s16:-2", f"struct:{members}"):
        done = cli("run", path, *options, "--arg", f"p={words}")
        assert done.code == 0, done.out + done.err
        assert np.load(out).tobytes()[8:20] == expected
    for words, said in (
        ("struct:u64:@y,f64:1", "there is no array 'y'; add --arg y="),
        ("struct:u64:@x", "--arg p: these members fill 8 bytes, but .b8 p[24] has 24"),
        ("struct:u32:@x", "an address has 64 bits; write u64:@x"),
        ("struct:u64:@x,u8:300", "out of range of .u8"),
        ("struct:u33:1", "there is no type 'u33'; did you mean"),
        ("struct:u32", "'u32' is no member; a structure is struct:[NAME=]TYPE:VALUE,"),
        ("struct:u32:1.5", "'1.5' is no value of .u32"),
        (f"struct:{tmp_path}/none.json", "no such file"),
    ):
        refused = cli("run", path, *options, "--arg", f"p={words}")
        assert refused.code == 2, words
        assert said in refused.err, (words, refused.err)


def test_structures_of_ctypes() -> None:
    class P(ctypes.Structure):
        _fields_ = (("x", ctypes.c_uint64), ("d", ctypes.c_double), ("n", ctypes.c_uint32))

    class Short(ctypes.Structure):
        _fields_ = (("x", ctypes.c_uint64),)

    emulator = Emulator("sm_90a")
    out = emulator.empty(24, "u8")
    report = emulator.launch(Kernel.from_ptx(PTX), 1, 1, [P(3, 1.5, 9), out])
    assert report.ok
    assert out.numpy().tobytes()[:20] == bytes(P(3, 1.5, 9))[:20]
    with pytest.raises(KernelArgumentError, match="a Short of 8 bytes was given"):
        emulator.launch(Kernel.from_ptx(PTX), 1, 1, [Short(3), out])
