"""Programmatic dependent launches of programs: a kernel that does not wait for the grid before it in its stream."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.driver.programs import execute, require_compiler

#: The first kernel allows the second to begin, and then stores what that one loads.
KERNELS = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry first(.param .u64 data) {
    .reg .u64 %a;
    .reg .u32 %t;
    ld.param.u64 %a, [data];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %a, %t, 4, %a;
    RELEASE
    st.global.u32 [%a], %t;
    ret;
}
.visible .entry second(.param .u64 data) {
    .reg .u64 %a;
    .reg .u32 %t, %x;
    ld.param.u64 %a, [data];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %a, %t, 4, %a;
    WAIT
    ld.global.u32 %x, [%a];
    st.global.u32 [%a+OFFSET], %x;
    ret;
}
"""
PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
u32, pointer, address = ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64

class Launch(ctypes.Structure):
    _fields_ = [*((name, u32) for name in "gx gy gz bx by bz shared".split()), ("stream", pointer),
                ("attributes", pointer), ("count", u32)]

def launch(function, data, stream, programmatic):
    attribute = (u32 * 18)(6, 0, 1)  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    asked = Launch(1, 1, 1, 32, 1, 1, 0, stream, ctypes.cast(attribute, pointer), 1 if programmatic else 0)
    parameters = (pointer * 1)(ctypes.cast(ctypes.pointer(data), pointer))
    assert cuda.cuLaunchKernelEx(ctypes.byref(asked), function, parameters, None) == 0

module, first, second, context = pointer(), pointer(), pointer(), pointer()
data, other, streams = address(), address(), (pointer(), pointer())
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), KERNELS) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(first), module, b"first") == 0
assert cuda.cuModuleGetFunction(ctypes.byref(second), module, b"second") == 0
for each in (data, other):
    assert cuda.cuMemAlloc_v2(ctypes.byref(each), ctypes.c_size_t(4096)) == 0
    assert cuda.cuMemsetD8_v2(each, 0, ctypes.c_size_t(4096)) == 0
for each in streams:
    assert cuda.cuStreamCreate(ctypes.byref(each), 1) == 0
event = pointer()
assert cuda.cuEventCreate(ctypes.byref(event), 0) == 0
launch(first, data, streams[0], False)
BETWEEN
launch(second, data, streams[0], PROGRAMMATIC)
assert cuda.cuCtxSynchronize() == 0
"""
WAIT, RELEASE = "griddepcontrol.wait;", "griddepcontrol.launch_dependents;"
#: What the first kernel does, what the second does, whether it is a programmatic dependent, what the program does in
#: between, and whether the kernels race.
CASES = {
    "no wait": (RELEASE, "", True, "", True),
    "a wait": (RELEASE, WAIT, True, "", False),
    "no release": ("", "", True, "", False),
    "in order": (RELEASE, "", False, "", False),
    "a stream synchronized": (RELEASE, "", True, "cuda.cuStreamSynchronize(streams[0])", False),
    "all synchronized": (RELEASE, "", True, "cuda.cuCtxSynchronize()", False),
    "a query": (RELEASE, "", True, "cuda.cuStreamQuery(streams[0])", False),
    "an event": (RELEASE, "", True, "cuda.cuEventRecord(event, streams[0])", False),
    "a fill": (
        RELEASE,
        "",
        True,
        "cuda.cuMemsetD8Async(other, 1, ctypes.c_size_t(64), streams[0])",
        False,
    ),
    "another kernel": (RELEASE, "", True, "launch(second, other, streams[0], False)", False),
    "a dependent in between": (
        RELEASE,
        WAIT,
        True,
        "launch(second, other, streams[0], True)",
        False,
    ),
}


@pytest.mark.parametrize(
    ("name", "schedule"),
    [*((name, "eager") for name in CASES), *((name, "late") for name in CASES), ("no wait", "random")],
)
def test_races(capfd: pytest.CaptureFixture[str], tmp_path: Path, name: str, schedule: str) -> None:
    require_compiler()
    release, wait, programmatic, between, races = CASES[name]
    kernels = KERNELS.replace("RELEASE", release).replace("WAIT", wait).replace("OFFSET", "1024")
    text = PROGRAM.replace("KERNELS", repr(kernels.encode())).replace("PROGRAMMATIC", str(programmatic))
    script = tmp_path / "program.py"
    script.write_text(text.replace("BETWEEN", between))
    ran = execute(capfd, [sys.executable, script], schedule=schedule)
    assert ran.codes() == (["grid-race"] if races else []), ran.said
    assert ran.code == (1 if races else 0), ran.said
