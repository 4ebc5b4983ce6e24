"""Python programs under `ptxgen exec`; each stack is skipped where its package is missing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.driver.programs import SOURCES, execute


def program(name: str, *packages: str) -> list[str | Path]:
    """The command of a script; the test is skipped unless its packages are installed."""
    for package in packages:
        if importlib.util.find_spec(package.split(".")[0]) is None:
            pytest.skip(f"{package} is not installed")
    return [sys.executable, SOURCES / name]


def line_of(name: str, text: str) -> str:
    """`name:line` of the line of a script that contains a text."""
    lines = (SOURCES / name).read_text().splitlines()
    return f"{name}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_triton(capfd: pytest.CaptureFixture[str], target: str) -> None:
    ran = execute(capfd, program("triton_kernels.py", "triton"), target=target)
    assert ran.code == 0, ran.said
    assert "PASS" in ran.output
    assert [each["kernel"] for each in ran.launches] == ["softmax", "matmul"]


def test_triton_without_a_mask(capfd: pytest.CaptureFixture[str]) -> None:
    ran = execute(capfd, [*program("triton_kernels.py", "triton"), "overrun"])
    assert ran.codes() == ["out-of-bounds"]
    assert ran.sources()[0].startswith(line_of("triton_kernels.py", "no mask"))
    assert "triton_kernels.py" in ran.launches[0]["site"]


def test_tritons_wrapper_of_cublas(capfd: pytest.CaptureFixture[str]) -> None:
    ran = execute(capfd, program("triton_cublas.py", "triton", "torch"), target="sm_100a")
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said


def test_triton_with_torch(capfd: pytest.CaptureFixture[str]) -> None:
    ran = execute(capfd, program("torch_triton.py", "triton", "torch"), target="sm_100a")
    assert (ran.code, ran.codes()) == (0, []), ran.said
    assert "PASS" in ran.output
    assert "device='cuda:0')" in ran.output
    assert {each["kernel"] for each in ran.launches} == {"add_kernel", "softmax_kernel"}


MOVES = """
import torch

host, there = torch.arange(3), torch.zeros(2, device="cuda", dtype=torch.float16)
moved = [
    host.to("cuda"), host.to(torch.device("cuda")), host.to("cuda:0"), host.to("cuda", torch.float32),
    host.to(dtype=torch.float32, device="cuda"), host.to(device="cuda", non_blocking=True), host.to(there), host.cuda(),
    torch.tensor([0, 1, 2], device="cuda"), torch.tensor([0.0, 1, 2], device="cuda:0", requires_grad=True),
    torch.nn.Linear(2, 2).to("cuda").weight,
]
assert [each.device.type for each in moved] == ["cuda"] * len(moved)
assert all(each.cpu().tolist() == [0, 1, 2] for each in moved[:-1])
assert moved[3].dtype == moved[4].dtype == torch.float32 and moved[6].dtype == torch.float16
assert moved[9].requires_grad and moved[9].is_leaf
assert [host.to("cpu").device.type, there.to("cpu").device.type, torch.tensor([1]).device.type] == ["cpu"] * 3
kept = torch.ones(2, device="cuda", requires_grad=True)
(kept * 3).to("cpu").sum().backward()
(kept * 4).cpu().sum().backward()
assert kept.grad.device.type == "cuda" and kept.grad.cpu().tolist() == [7, 7]
print("PASS")
"""


def test_torch_moves_tensors_to_the_device(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A build for the CPU would look for a device of that name itself."""
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(MOVES)
    ran = execute(capfd, [sys.executable, script])
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said


def test_torch_gives_tensors_of_the_device_to_others(capfd: pytest.CaptureFixture[str]) -> None:
    """TileLang's kernels take them through TVM-FFI, which calls these functions."""
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch is built for CUDA")
    ran = execute(capfd, program("torch_exchange.py", "torch"))
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said


def test_numba(capfd: pytest.CaptureFixture[str]) -> None:
    ran = execute(capfd, program("numba_kernels.py", "numba", "numba_cuda"))
    assert (ran.code, ran.codes()) == (0, []), ran.said
    ran = execute(capfd, [*program("numba_kernels.py", "numba", "numba_cuda"), "race"])
    assert (ran.code, ran.codes()) == (1, ["shared-race"]), ran.said
    assert ran.sources()[0].startswith(line_of("numba_kernels.py", "no barrier"))


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_jax(capfd: pytest.CaptureFixture[str], target: str) -> None:
    command = program("jax_kernels.py", "jax", "jax_cuda13_plugin")
    ran = execute(capfd, command, target=target)
    assert (ran.code, "PASS" in ran.output) == (0, True), ran.said
    assert any("mosaic_gpu" in each["kernel"] for each in ran.launches)
    ran = execute(capfd, [*command, "no-wait"], target=target)
    assert (ran.code, set(ran.codes())) == (1, {"shared-race"}), ran.said
    assert ran.sources()[0].startswith(line_of("jax_kernels.py", "read too early"))


@pytest.mark.parametrize("code", ["cubin", "ptx"])
def test_nvrtc(capfd: pytest.CaptureFixture[str], code: str) -> None:
    ran = execute(capfd, [*program("nvrtc_kernel.py", "cuda.bindings"), code])
    if "no NVRTC" in ran.output:
        pytest.skip("nvidia-cuda-nvrtc is not installed")
    assert (ran.code, ran.codes()) == (0, []), ran.said
    assert "PASS" in ran.output


def test_cupy(capfd: pytest.CaptureFixture[str]) -> None:
    ran = execute(capfd, program("cupy_kernels.py", "cupy"))
    assert (ran.code, ran.codes()) == (0, []), ran.said
    assert {"scale", "square"} <= {each["kernel"] for each in ran.launches}
    ran = execute(capfd, [*program("cupy_kernels.py", "cupy"), "overrun"])
    assert ran.codes() == ["out-of-bounds"]


@pytest.mark.parametrize("name", ["warp", "taichi", "cutlass"])
def test_other_stacks(capfd: pytest.CaptureFixture[str], name: str) -> None:
    script = {"warp": "warp_kernels.py", "taichi": "taichi_kernel.py", "cutlass": "cute_kernel.py"}[name]
    ran = execute(capfd, program(script, name))
    assert (ran.code, ran.codes()) == (0, []), ran.said
    assert "PASS" in ran.output
    assert ran.launches


_AFTER_A_FAULT = r"""
import ctypes, torch
driver = ctypes.CDLL("libcuda.so.1")
first = torch.ones(4, device="cuda")
ptx = b'''.version 8.0
.target sm_90
.address_size 64
.visible .entry bad() { .reg .b64 %a; mov.u64 %a, 0x10000f000000; st.global.u32 [%a], 1; ret; }
'''
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuModuleLoadData(ctypes.byref(module), ptx) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"bad") == 0
driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
for make in (lambda: torch.empty(100, device="cuda"), torch.cuda.synchronize):
    try:
        make()
    except RuntimeError as error:
        print(error)
"""


def test_torch_after_a_fault(capfd: pytest.CaptureFixture[str]) -> None:
    program("torch_triton.py", "torch")
    ran = execute(capfd, [sys.executable, "-c", _AFTER_A_FAULT])
    assert ran.output.splitlines() == ["CUDA error: an illegal memory access was encountered"] * 2, ran.said
    assert ran.codes() == ["out-of-bounds"]


_ONE_AFTER_THE_OTHER = r"""
import ctypes, torch
driver = ctypes.CDLL("libcuda.so.1")
x = torch.ones(32, device="cuda")
ptx = b'''.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 at) {
    .reg .b64 %a; .reg .b32 %t; ld.param.u64 %a, [at]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %a;
    st.global.f32 [%a], 0f40400000; ret; }
'''
module, function, at = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(x.data_ptr())
assert driver.cuModuleLoadData(ctypes.byref(module), ptx) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"store") == 0
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(at))
for read in (lambda: x.sum(), lambda: (x + 1).sum() - 32, lambda: x.float().cpu().sum()):
    x.fill_(1)
    driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)
    print(int(read()))
"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_operators_of_torch_come_after_kernels(capfd: pytest.CaptureFixture[str], schedule: Any) -> None:
    program("torch_triton.py", "torch")
    ran = execute(capfd, [sys.executable, "-c", _ONE_AFTER_THE_OTHER], schedule=schedule)
    assert ran.output.splitlines() == ["96"] * 3, ran.said


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_streams_and_graphs_of_torch(capfd: pytest.CaptureFixture[str], schedule: Any) -> None:
    command = program("torch_streams.py", "torch")
    ran = execute(capfd, command, schedule=schedule)
    assert (ran.code, ran.output, ran.codes() + ran.others) == (0, "PASS\n", []), ran.said


def test_a_stream_of_torch_that_does_not_wait(capfd: pytest.CaptureFixture[str]) -> None:
    ran = execute(capfd, [*program("torch_streams.py", "torch"), "early"])
    assert (ran.code, ran.codes()) == (1, ["host-race"]), ran.said
