"""Compile a witness with the CuTe DSL that is installed, and take down its launch. No GPU and no driver are needed.

The compiled host code runs against `launches.c`, which stands in for the CUDA runtime: grid, cluster, shared memory and
the bytes of the parameters, tensormaps among them, are what CuTe's own host code makes.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_ptr

from ptxgen.descriptors.tensormap import TensorMap, TiledMap

from ..launch import Buffer

#: The stand-in that `__main__` has made; the host code finds it by the same variable.
_RUNTIME = Path(os.environ["CUTE_DSL_LIBS"])
_runtime = ctypes.CDLL(str(_RUNTIME))
#: dtype of a buffer -> CuTe's.
TYPES = {
    "fp16": cutlass.Float16,
    "bf16": cutlass.BFloat16,
    "fp32": cutlass.Float32,
    "tf32": cutlass.TFloat32,
    "e4m3": cutlass.Float8E4M3FN,
    "e5m2": cutlass.Float8E5M2,
    "e8m0": cutlass.Float8E8M0FNU,
    "e2m1x2": cutlass.Float4E2M1FN,
    "i8": cutlass.Int8,
    "i32": cutlass.Int32,
}
#: The driver's names where they are not ptxgen's in capitals.
_DRIVER = {
    "u8": "UINT8",
    "u16": "UINT16",
    "u32": "UINT32",
    "s32": "INT32",
    "u64": "UINT64",
    "s64": "INT64",
    "f16": "FLOAT16",
    "f32": "FLOAT32",
    "bf16": "BFLOAT16",
    "tf32": "TFLOAT32",
    "16u4_align8b": "16U4_ALIGN8B",
}
_PROMOTIONS = {"none": "NONE", "64B": "L2_64B", "128B": "L2_128B", "256B": "L2_256B"}
_CLUSTER = 4  # cudaLaunchAttributeClusterDimension
_ATTRIBUTE_BYTES = 72
#: Where the buffers are said to be: far apart, and unlike any number that a kernel takes.
_APART = 0x11330000000000
_TENSORMAP_BYTES = 128
#: What CuTe sets beside the fields, and the half that it leaves unwritten.
_OTHER_BITS = 1 << 2 * 32 + 1


@dataclass(frozen=True)
class Witness:
    """A host function, whose arguments are pointers to `buffers` in their order, and which launches one kernel."""

    name: str
    target: str
    host: Callable[..., None]
    buffers: Mapping[str, Buffer]
    #: One of `tools.recorded.references`; functools.partial binds its parameters.
    reference: Callable[..., Any]
    tolerance: tuple[float, float] = (1e-2, 1e-2)
    notes: str = ""

    @property
    def recorded_name(self) -> str:
        """c48_90_NAME is CuTe DSL 4.8 for sm_90a."""
        number = "".join(cutlass.__version__.split(".")[:2])
        return f"c{number}_{self.target.strip('sm_a')}_{self.name}"


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint32),
    )


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(_Config), ctypes.POINTER(ctypes.c_void_p))


def compile_witness(witness: Witness) -> tuple[str, dict[str, Any]]:
    """PTX, and the JSON of its launch but for the name."""
    addresses = {name: _APART * number for number, name in enumerate(witness.buffers, 1)}
    pointers = [
        make_ptr(TYPES[each.dtype], addresses[name], cute.AddressSpace.gmem, assumed_align=128)
        for name, each in witness.buffers.items()
    ]
    compiled = cute.compile(witness.host, *pointers, options=f"--keep-ptx --dump-dir={_RUNTIME.parent}")
    text, (launch,) = compiled.__ptx__, _launches(compiled, pointers)
    parameters = launch.pop("parameters")
    return text, {
        "compiler": f"nvidia-cutlass-dsl {cutlass.__version__}",
        "arch": witness.target,
        **launch,
        "buffers": {name: _buffer(each) for name, each in witness.buffers.items()},
        "params": [_parameter(f"p{at}", each, addresses) for at, each in enumerate(parameters)],
        "tol": dict(zip(("rtol", "atol"), witness.tolerance, strict=True)),
        "notes": witness.notes,
    }


def _launches(compiled: Any, pointers: list[Any]) -> list[dict[str, Any]]:
    """Run the host code, and give what it launches."""
    found: list[dict[str, Any]] = []

    @_Callback
    def launched(kernel: bytes, config: Any, arguments: Any) -> None:
        how, cluster = config.contents, [1, 1, 1]
        for at in range(how.attribute_count):
            base = how.attributes + _ATTRIBUTE_BYTES * at
            if ctypes.c_uint32.from_address(base).value == _CLUSTER:
                cluster = list((ctypes.c_uint32 * 3).from_address(base + 8))
        name = kernel.decode()
        sizes = _sizes(compiled.__ptx__, name)
        found.append(
            {
                "entry": name,
                "grid": list(how.grid),
                "block": list(how.block),
                "cluster": cluster,
                "dynamic_smem": how.shared_bytes,
                "parameters": [ctypes.string_at(arguments[at], size) for at, size in enumerate(sizes)],
            }
        )

    _runtime.record_launches(launched)
    compiled.__dict__["num_devices"] = 1  # else the driver is asked
    compiled(*pointers)
    compiled.jit_module.cuda_library.clear()
    return found


def _sizes(text: str, entry: str) -> list[int]:
    head = text.split(f".entry {entry}(")[1].split("\n)")[0]
    declared = re.findall(r"\.param\s+(?:\.align \d+ )?\.[bufs](\d+) \w+(?:\[(\d+)\])?", head)
    return [int(bits) // 8 * int(count or 1) for bits, count in declared]


def _parameter(name: str, data: bytes, addresses: Mapping[str, int]) -> dict[str, Any]:
    address = int.from_bytes(data[:8], "little")
    buffer = next((name for name, start in addresses.items() if len(data) >= 8 and start == address), None)
    if len(data) == _TENSORMAP_BYTES and buffer is not None:
        return {"kind": "tensormap", "name": name, "buffer": buffer, **_tensormap(data)}
    if buffer is not None and len(data) == 8:
        return {"kind": "buffer", "name": name, "buffer": buffer}
    raise ValueError(
        f"a case has tensormaps and pointers to its buffers, not {name} of {len(data)} bytes: {data.hex()}"
    )


def _tensormap(data: bytes) -> dict[str, Any]:
    """The driver's arguments for the same map."""
    bits = int.from_bytes(data[: _TENSORMAP_BYTES // 2], "little") & ~_OTHER_BITS
    found = TensorMap.decode(bits.to_bytes(_TENSORMAP_BYTES, "little"))
    assert isinstance(found, TiledMap)
    return {
        "dtype": _DRIVER[found.dtype],
        "dims": list(found.dims),
        "strides_bytes": list(found.strides),
        "box": list(found.box),
        "element_strides": list(found.element_strides),
        "swizzle": found.swizzle.upper(),
        "interleave": found.interleave.upper(),
        "l2_promotion": _PROMOTIONS[found.l2_promotion],
        "oob_fill": found.oob_fill.upper(),
    }


def _buffer(buffer: Buffer) -> dict[str, Any]:
    made: dict[str, Any] = {
        "dtype": buffer.dtype,
        "shape": list(buffer.shape),
        "init": buffer.init,
        "role": buffer.role,
    }
    return made | {key: value for key in ("lo", "hi", "scale") if (value := getattr(buffer, key)) is not None}
