"""Programs of C under `ptxgen exec`, with the runtime's interface as CUDA 12 has it."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ptxgen.driver import ProgramError, build
from tests.driver.programs import SOURCES, compile_c, execute, require_compiler


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    return compile_c("registered.c", folder / "registered", folder)


def runs(process: int) -> bool:
    """Whether a process has not ended, a second after it was killed; its parent may not have asked how."""
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "XZ":
                return False
        except FileNotFoundError:
            return False
        time.sleep(0.01)
    return True


def test_a_kernel_and_the_properties_of_the_device(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program])
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    (launch,) = ran.launches
    assert (launch["kernel"], launch["status"], launch["findings"]) == ("increase", "ok", [])
    assert (launch["grid"], launch["block"]) == ((1, 1, 1), (32, 1, 1))
    assert "increase: 1 launch, " in ran.said


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_warps_library(capfd: pytest.CaptureFixture[str], tmp_path: Path, schedule: str) -> None:
    program = compile_c("warp_library.c", tmp_path / "warp", tmp_path)
    ran = execute(capfd, [program], schedule=schedule)
    assert (ran.code, ran.output, ran.codes(), ran.others) == (0, "PASS\n", [], []), ran.said


def test_a_copy_of_the_runtime_behind_a_wrapper(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran = execute(capfd, [compile_c("wrapped.c", tmp_path / "wrapped", tmp_path)])
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said


_PROFILED = """
import ctypes
driver, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
for name in (b"cuProfilerStart", b"cuProfilerStop", b"cuNothing"):
    status = driver.cuGetProcAddress_v2(name, ctypes.byref(found), 13000, ctypes.c_uint64(0), None)
    print(status, ctypes.CFUNCTYPE(ctypes.c_int)(found.value)() if not status else "")
"""


_RANK_1 = """
import ctypes
driver, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
context, u32, u64 = ctypes.c_void_p(), ctypes.c_uint32, ctypes.c_uint64
driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1024))
for rank, strides in (1, (u64 * 1)()), (1, None), (2, (u64 * 1)(64)):
    made = (ctypes.c_uint8 * 128)()
    tensor = u32(7), u32(rank), address, (u64 * 2)(16, 16), strides, (u32 * 2)(16, 16), (u32 * 2)(1, 1)
    print(driver.cuTensorMapEncodeTiled(made, *tensor, *map(u32, (0, 0, 0, 0))))
"""


def test_a_tensor_map_of_rank_1(capfd: pytest.CaptureFixture[str]) -> None:
    """The driver requires a pointer to strides, which it does not read; Triton gives one."""
    require_compiler()
    ran = execute(capfd, [sys.executable, "-c", _RANK_1])
    assert (ran.code, ran.output.split()) == (0, ["0", "1", "0"]), ran.said


def test_functions_of_the_profiler(capfd: pytest.CaptureFixture[str]) -> None:
    """Warp looks them up by cuGetProcAddress; they are declared in a header of their own."""
    require_compiler()
    ran = execute(capfd, [sys.executable, "-c", _PROFILED])
    assert ran.output.split() == ["0", "0", "0", "0", "500"], ran.said


@pytest.mark.parametrize("name", ["a b", "a:b", "ü $ORIGIN"])
def test_folders_whose_names_ld_preload_cannot_hold(
    capfd: pytest.CaptureFixture[str], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    installed = tmp_path / name
    shutil.copytree(build.library_folder(), installed / "driver", symlinks=True)
    monkeypatch.setattr(build, "library_folder", lambda: installed / "driver")
    monkeypatch.setattr(tempfile, "tempdir", str(installed))
    ran = execute(capfd, [program])
    assert (ran.code, ran.output, len(ran.launches)) == (0, "PASS\n", 1), ran.said
    assert "ld.so" not in ran.said


def test_the_exit_code_is_that_of_the_program(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    assert execute(capfd, [program, "7"]).code == 7


def test_two_processes_after_fork(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "fork"])
    assert ran.code == 0, ran.said
    assert len(ran.launches) == 2
    assert len({each["process"] for each in ran.launches}) == 2


def test_programs_that_do_not_exist(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="there is no program"):
        execute(capfd, ["./no-such-program"])
    script = tmp_path / "script.py"
    script.write_text("print(1)\n")
    with pytest.raises(ProgramError, match="try python"):
        execute(capfd, [script])


def test_a_program_without_kernels(capfd: pytest.CaptureFixture[str]) -> None:
    ran = execute(capfd, ["true"])
    assert (ran.code, ran.launches) == (0, [])
    assert "no kernel was launched" in ran.said


def test_the_time_limit_ends_the_children_too(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "sleep"], timeout=1.0)
    assert ran.code == 124
    assert "did not end within 1 s (--timeout)" in ran.said
    assert not runs(int(ran.output))


@pytest.mark.parametrize(
    ("number", "wait", "sentence"),
    [
        (signal.SIGINT, 3.0, "interrupted"),
        (signal.SIGINT, 0.0, "interrupted"),
        (signal.SIGTERM, 3.0, "ended by SIGTERM"),
        (signal.SIGTERM, 0.0, "ended by SIGTERM"),
        (signal.SIGHUP, 1.0, "ended by SIGHUP"),
    ],
)
def test_signals_end_all_and_leave_no_files(
    program: Path, tmp_path: Path, number: signal.Signals, wait: float, sentence: str
) -> None:
    report = tmp_path / "report.json"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "t")}
    (tmp_path / "t").mkdir()
    # A program that SIGTERM does not end, so that what ends it takes its time; a shell ignores SIGINT for what it runs
    # in the background, and nohup SIGHUP.
    handlers = "signal.signal(2, signal.default_int_handler); signal.signal(1, signal.SIG_DFL)"
    code = f"import signal, sys; {handlers}; from ptxgen.cli.main import main; main()"
    sleeping = f"trap '' TERM; exec {program} sleep"
    command = [sys.executable, "-c", code, "exec", "--json", str(report), "--", "sh", "-c", sleeping]
    running = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout is not None
    child = int(running.stdout.readline())
    time.sleep(wait)  # the emulator is imported meanwhile
    os.kill(running.pid, number)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + number, said
    assert said.splitlines()[0] == f"ptxgen exec: {sentence}"
    assert "Traceback" not in said
    assert not runs(child)
    assert os.listdir(tmp_path / "t") == []
    assert json.loads(report.read_text())["launches"] == []


def test_folders_of_killed_runs_are_removed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used, new, other = (tmp_path / f"ptxgen-{name}" for name in ("exec-left", "exec-used", "exec-new", "other"))
    for folder in (left, used, new, other):
        folder.mkdir()
        (folder / "socket").touch()
        if folder is not new:
            os.utime(folder, (0, 0))
    held = os.open(used, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        execute(capfd, [sys.executable, "-c", ""])
    finally:
        os.close(held)
    assert sorted(os.listdir(tmp_path)) == sorted(each.name for each in (used, new, other))


SHARED_MODE = """
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
text = b'''.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k() { .reg .b32 %r; mov.u32 %r, dynamic; st.shared.u32 [%r+81916], 1; ret; }
'''
assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k") == 0
assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 81920, None, None, None) == 1  # invalid value
assert cuda.cuFuncSetAttribute(function, 17, 3) == 0
assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 81920, None, None, None) == 0
assert cuda.cuCtxSynchronize() == 0
print("PASS")
"""


def test_the_mode_of_oversized_shared_memory(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """CUDA 13.4's SHARED_MEMORY_MODE in place of MAX_DYNAMIC_SHARED_SIZE_BYTES, as Triton 3.9 sets it."""
    script = tmp_path / "script.py"
    script.write_text(SHARED_MODE)
    ran = execute(capfd, [sys.executable, script])
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said


LOGS = """
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
handle, size, text = ctypes.c_void_p(), ctypes.c_size_t(64), ctypes.create_string_buffer(b"x" * 64)
assert cuda.cuInit(0) == 0
assert cuda.cuLogsRegisterCallback(None, None, ctypes.byref(handle)) == 0
assert cuda.cuLogsDumpToMemory(None, text, ctypes.byref(size), 0) == 0
assert (text.value, size.value) == (b"", 0)
assert cuda.cuLogsUnregisterCallback(handle) == 0
print("PASS")
"""


def test_the_log_of_errors_is_there_and_empty(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """PyTorch 2.14 registers a callback as it begins."""
    script = tmp_path / "script.py"
    script.write_text(LOGS)
    ran = execute(capfd, [sys.executable, script])
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    assert "does not support" not in ran.said


STREAMS = """
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, one, other, event, data = (ctypes.c_void_p() for _ in range(5))
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(256)) == 0
assert cuda.cuStreamCreate(ctypes.byref(one), 1) == cuda.cuStreamCreate(ctypes.byref(other), 1) == 0
assert cuda.cuEventCreate(ctypes.byref(event), 0) == 0
assert cuda.cuMemsetD8Async(data, 1, ctypes.c_size_t(256), one) == cuda.cuEventRecord(event, one) == 0
if sys.argv[1] == "wait":
    assert cuda.cuStreamWaitEvent(other, event, 0) == 0
assert cuda.cuMemsetD8Async(data, 2, ctypes.c_size_t(128), other) == cuda.cuCtxSynchronize() == 0
print("PASS")
"""


@pytest.mark.parametrize(("waits", "codes"), [("wait", []), ("no wait", ["host-race"])])
def test_two_streams(capfd: pytest.CaptureFixture[str], tmp_path: Path, waits: str, codes: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(STREAMS)
    ran = execute(capfd, [sys.executable, script, waits])
    assert (ran.code, ran.output, ran.others) == (len(codes), "PASS\n", codes), ran.said


MANAGEMENT = """
import ctypes

nvml = ctypes.CDLL("libnvidia-ml.so.1")
count, device, memory = ctypes.c_uint(), ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
name = ctypes.create_string_buffer(96)
major, minor = ctypes.c_int(), ctypes.c_int()
assert nvml.nvmlInit_v2() == nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)) == 2  # invalid argument
assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0000:00:00.0", ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0
assert nvml.nvmlDeviceGetName(device, name, 4) == 7  # insufficient size
assert nvml.nvmlDeviceGetName(device, name, 96) == 0
total, free, used = memory
assert total == free + used > 0
assert not hasattr(nvml, "nvmlDeviceGetTemperature")
print(count.value, major.value, minor.value, name.value.decode())
"""


def test_the_device_in_the_management_library(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """XLA counts devices so before it uses them."""
    script = tmp_path / "script.py"
    script.write_text(MANAGEMENT)
    ran = execute(capfd, [sys.executable, script])
    assert (ran.code, ran.output) == (0, "1 9 0 NVIDIA sm_90a (emulated by ptxgen)\n"), ran.said


TRAMPOLINE = """
__asm__(".globl cudaDriverGetVersion\\n.type cudaDriverGetVersion, @function\\n.p2align 4\\n"
        "cudaDriverGetVersion: mov $77, %eax\\n .fill 10, 1, 0x90\\n ret\\n");
__attribute__((visibility("hidden"))) int cudaDriverGetVersion(void);
__asm__(".hidden cudaDriverGetVersion");
int asked(void) { return cudaDriverGetVersion(); }
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the assembly is of x86-64")
def test_functions_in_assembly_are_left_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """XLA's load the shared runtime, which is ours, and return into themselves, where a jump would be by then."""
    (tmp_path / "t.c").write_text(TRAMPOLINE)
    library = tmp_path / "libt.so"
    subprocess.run([require_compiler(), "-shared", "-fPIC", "-o", library, tmp_path / "t.c"], check=True)
    script = f"import ctypes; print(ctypes.CDLL({str(library)!r}).asked())"
    ran = execute(capfd, [sys.executable, "-c", script])
    assert ran.output == "77\n", ran.said


JITLINK = """
import ctypes
import sys

link, cuda = ctypes.CDLL(sys.argv[1]), ctypes.CDLL("libcuda.so.1")
head = b".version 8.0\\n.target sm_90a\\n.address_size 64\\n"
kernel = b'''.extern .func (.param .b32 r) f(.param .b32 x);
.visible .entry k(.param .u64 p) {
  .reg .b32 %r; .reg .b64 %p; .param .b32 x, r;
  st.param.b32 [x], 20; call (r), f, (x); ld.param.b32 %r, [r]; ld.param.u64 %p, [p]; st.global.u32 [%p], %r; ret; }
'''
function = b'''.visible .func (.param .b32 r) f(.param .b32 x) {
  .reg .b32 %r; ld.param.b32 %r, [x]; add.u32 %r, %r, 1; st.param.b32 [r], %r; ret; }
'''
handle, size = ctypes.c_void_p(), ctypes.c_size_t()
assert link.nvJitLinkCreate(ctypes.byref(handle), 0, None) == 0
for text in (head + kernel, head + function):
    assert link.nvJitLinkAddData(handle, 2, text, ctypes.c_size_t(len(text)), b"a.ptx") == 0
assert link.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size)) == 0
image = ctypes.create_string_buffer(size.value)
assert link.nvJitLinkGetLinkedCubin(handle, image) == 0
context, module, k, data, found = (ctypes.c_void_p() for _ in range(5))
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(k), module, b"k") == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(4)) == 0
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(data))
assert cuda.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, None, parameters, None) == cuda.cuCtxSynchronize() == 0
print(ctypes.c_int.from_address(data.value).value)
options = (ctypes.c_char_p * 1)(b"-lto")
assert link.nvJitLinkCreate(ctypes.byref(handle), 1, options) == 0
other, runtime = (b"!<arch>\\n" + name + b" " * 60 for name in (b"mine.o/", b"cuda_device_runtime.o/"))
assert link.nvJitLinkAddData(handle, 6, other, ctypes.c_size_t(len(other)), b"libmine.a") == 12
assert link.nvJitLinkAddData(handle, 6, runtime, ctypes.c_size_t(len(runtime)), b"libcudadevrt.a") == 0
"""


def test_modules_that_are_linked_while_the_program_runs(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Several PTX inputs are one module; link-time optimization leaves the device runtime's machine code out."""
    library = tmp_path / "libjitlink.so"
    subprocess.run([require_compiler(), "-shared", "-fPIC", "-o", library, SOURCES / "jitlink.c"], check=True)
    script = tmp_path / "script.py"
    script.write_text(JITLINK)
    ran = execute(capfd, [sys.executable, script, library])
    assert (ran.code, ran.output) == (0, "21\n"), ran.said


USER_OBJECTS = """
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
destroyed = []
destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destroyed.append)
graph, one, other = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == cuda.cuGraphCreate(ctypes.byref(graph), 0) == 0
assert cuda.cuUserObjectCreate(ctypes.byref(one), ctypes.c_void_p(7), destroy, 1, 1) == 0
assert cuda.cuGraphRetainUserObject(graph, one, 1, 0) == cuda.cuUserObjectRelease(one, 1) == 0
assert destroyed == []
assert cuda.cuGraphReleaseUserObject(graph, one, 1) == 0
assert destroyed == [7]
assert cuda.cuUserObjectCreate(ctypes.byref(other), ctypes.c_void_p(8), destroy, 1, 1) == 0
assert cuda.cuGraphRetainUserObject(graph, other, 1, 1) == 0  # the graph takes the reference over
assert destroyed == [7]
assert cuda.cuGraphReleaseUserObject(graph, other, 1) == 0
print(destroyed)
"""


def test_objects_that_graphs_retain(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(USER_OBJECTS)
    ran = execute(capfd, [sys.executable, script])
    assert (ran.code, ran.output) == (0, "[7, 8]\n"), ran.said


NODE = """
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, module, k, node = (ctypes.c_void_p() for _ in range(4))
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxSetCurrent(context) == 0
text = b'''.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) { .reg .b64 %p; ld.param.u64 %p, [p]; st.global.u32 [%p+8], 5; ret; }
'''
assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(k), module, b"k") == 0
assert cuda.cuMemAllocManaged(ctypes.byref(node), ctypes.c_size_t(16), 1) == 0
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(node))
assert cuda.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, None, parameters, None) == 0
if sys.argv[1] == "waits":
    assert cuda.cuCtxSynchronize() == 0
ctypes.c_int.from_address(node.value + (0 if sys.argv[1] == "elsewhere" else 8)).value += 1
assert cuda.cuCtxSynchronize() == 0
print("PASS")
"""


@pytest.mark.parametrize(("how", "codes"), [("waits", []), ("elsewhere", []), ("races", ["host-race"])])
def test_the_host_in_a_part_of_a_small_object(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, how: str, codes: list[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(NODE)
    ran = execute(capfd, [sys.executable, script, how])
    assert (ran.code, ran.output, ran.codes()) == (len(codes), "PASS\n", codes), ran.said
