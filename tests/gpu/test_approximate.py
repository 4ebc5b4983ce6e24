"""Approximate functions on operands drawn anew: the emulator against a Hopper GPU, every word."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.device import Device, Kernel
from ptxgen.emulator import Emulator

pytestmark = pytest.mark.gpu

_COUNT, _THREADS = 1 << 18, 256
_SINGLE = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos")
_HALVES = (".f16", "ex2.approx"), (".f16", "tanh.approx"), (".bf16", "ex2.approx.ftz"), (".bf16", "tanh.approx")
#: (instruction, type of its registers, source operands)
FORMS = [
    *((f"{name}.approx{ftz}.f32", "b32", 1) for name in _SINGLE for ftz in ("", ".ftz")),
    ("tanh.approx.f32", "b32", 1),
    *((f"div.{kind}{ftz}.f32", "b32", 2) for kind in ("approx", "full") for ftz in ("", ".ftz")),
    *((name + type, "b16", 1) for type, name in _HALVES),
    *((f"{name}{type}x2", "b32", 1) for type, name in _HALVES),
    *((f"{name}.f64", "b64", 1) for name in ("rcp.approx.ftz", "rsqrt.approx.ftz", "rsqrt.approx")),
]


def _text(form: str, register: str, sources: int) -> str:
    size = int(register[1:]) // 8
    loads = "".join(
        f"mad.wide.u32 %rd_at{i}, %r_index, {size}, %rd{i};\n    ld.global.{register} %x{i}, [%rd_at{i}];\n    "
        for i in range(sources)
    )
    return f""".version 8.6
.target sm_90a
.address_size 64

.visible .entry map(.param .u64 a, .param .u64 b, .param .u64 y)
{{
    .reg .b32 %r_index, %r_cta, %r_thread;
    .reg .b64 %rd<3>, %rd_at<3>;
    .reg .{register} %x<3>;
    mov.u32 %r_cta, %ctaid.x;
    mov.u32 %r_thread, %tid.x;
    mad.lo.u32 %r_index, %r_cta, {_THREADS}, %r_thread;
    ld.param.u64 %rd0, [a];
    ld.param.u64 %rd1, [b];
    ld.param.u64 %rd2, [y];
    {loads}{form} %x2, {", ".join(f"%x{i}" for i in range(sources))};
    mad.wide.u32 %rd_at2, %r_index, {size}, %rd2;
    st.global.{register} [%rd_at2], %x2;
    ret;
}}
"""


def _operands(form: str, register: str) -> list[NDArray[np.unsignedinteger]]:
    """Two arrays: half of any bits, half normally distributed times powers of two; of 16 bits all words."""
    words = np.dtype(f"u{int(register[1:]) // 8}")
    if register == "b16":
        return [np.arange(1 << 16, dtype=words)] * 2
    random, half = np.random.default_rng(zlib.crc32(form.encode())), _COUNT // 2
    floats = {"b32": (np.float32, 20), "b64": (np.float64, 200)}[register]
    found = []
    for _ in range(2):
        usual = random.standard_normal(half) * np.exp2(random.integers(-floats[1], floats[1], half))
        any_bits = random.integers(0, np.iinfo(words).max, half, words, endpoint=True)
        found.append(np.concatenate([usual.astype(floats[0]).view(words), any_bits]))
    return found


def _results(device: Device, form: str, register: str, sources: int) -> NDArray[np.unsignedinteger]:
    a, b = _operands(form, register)
    y = device.array(np.full(a.shape, 0xAA, a.dtype))
    kernel = Kernel.from_ptx(_text(form, register, sources))
    report = device.launch(kernel, len(a) // _THREADS, _THREADS, [device.array(a), device.array(b), y])
    assert report.status == "ok", report.summary()
    return y.numpy()


@pytest.mark.parametrize(("form", "register", "sources"), FORMS)
def test_results_are_those_of_the_gpu(gpu: Device, form: str, register: str, sources: int) -> None:
    real, ours = (_results(device, form, register, sources) for device in (gpu, Emulator("sm_90a", checks=False)))
    (bad,) = np.nonzero(real != ours)
    a, b = _operands(form, register)
    assert not bad.size, [(hex(a[i]), hex(b[i]), hex(real[i]), hex(ours[i])) for i in bad[:5]]
