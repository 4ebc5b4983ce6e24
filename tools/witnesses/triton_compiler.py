"""Compile a witness with the Triton that is installed, and say how to launch the result. No GPU is needed."""

from __future__ import annotations

import os
import re
from typing import Any

# The assembler must accept the text, but line tables are three quarters of it.
os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")
os.environ["TRITON_ALWAYS_COMPILE"] = "1"

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .launch import Buffer, Constant, Descriptor, Long, Witness

#: dtype of a buffer -> Triton's.
_TYPES = {
    "fp16": "fp16", "fp32": "fp32", "fp64": "fp64", "bf16": "bf16", "tf32": "fp32", "e4m3": "fp8e4nv", "e5m2": "fp8e5",
    "e8m0": "u8", "e2m1x2": "u8", "i8": "i8", "u8": "u8", "i16": "i16", "u16": "u16", "i32": "i32", "u32": "u32",
    "i64": "i64", "u64": "u64",
}  # fmt: skip
#: The driver's CUtensorMapDataType.
_DRIVER = (
    "UINT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16",
    "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B",
)  # fmt: skip
#: Triton numbers three types in the device's way (triton/backends/nvidia/driver.py).
_FROM_DEVICE = {8: 10, 9: 8, 10: 9}
_SWIZZLES = ("NONE", "32B", "64B", "128B")


def version() -> str:
    """Triton's version."""
    return triton.__version__


def compile_witness(witness: Witness, target: int) -> tuple[str, dict[str, Any]]:
    """PTX, and the JSON of its launch but for the name."""
    kernel = witness.kernel
    gluon = type(kernel).__name__ == "GluonJITFunction"
    buffers = {name: each for name, each in witness.arguments.items() if isinstance(each, Buffer)}
    buffers |= witness.buffers
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for position, name in enumerate(kernel.arg_names):
        value = witness.arguments[name]
        signature[name], constant, aligned = _describe(value, buffers)
        if signature[name] == "constexpr":
            constants[position,] = constant
        elif aligned:
            attributes[position,] = [["tt.divisibility", 16]]
    if gluon:
        from triton.experimental.gluon._runtime import GluonASTSource

        source: Any = GluonASTSource(kernel, signature, constants, attributes)
    else:
        source = ASTSource(kernel, signature, constants, attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", target, 32), options=dict(witness.options))
    metadata, text = compiled.metadata, compiled.asm["ptx"]
    return text, {
        "compiler": f"triton {version()}" + (" (gluon)" if gluon else ""),
        "arch": _found(r"\.target (\w+)", text, str),
        "entry": metadata.name,
        "grid": [(*witness.grid, 1, 1)[0] * metadata.num_ctas, *(*witness.grid, 1, 1)[1:3]],
        "block": [_found(r"\.(?:reqntid|maxntid) (\d+)", text, int), 1, 1],
        "cluster": [metadata.num_ctas, 1, 1],
        "dynamic_smem": metadata.shared,
        "buffers": {name: _buffer(each) for name, each in buffers.items()},
        "params": _parameters(witness, buffers, signature, metadata),
        "tol": dict(zip(("rtol", "atol"), witness.tolerance, strict=True)),
        "notes": witness.notes,
    }


def _describe(value: Any, buffers: dict[str, Buffer]) -> tuple[str, Any, bool]:
    """Triton's type of an argument, its value if that is constant, and whether 16 divides it."""
    match value:
        case Constant():
            return "constexpr", value.value, False
        case Buffer():
            return "*" + (value.pointer or _TYPES[value.dtype]), None, True
        case Descriptor():
            buffer = buffers[value.buffer]
            element = value.element or buffer.pointer or _TYPES[buffer.dtype]
            block = ",".join(map(str, value.block))
            if value.layout is None:
                return f"tensordesc<{element}[{block}]>", None, False
            if value.im2col:
                rank = len(value.shape or buffer.shape)
                return f"tensordesc_im2col<{element}[{block}],input_rank={rank},{value.layout!r}>", None, False
            return f"tensordesc<{element}[{block}],{value.layout!r}>", None, False
        case Long():
            return "i64", None, value.value % 16 == 0
        case bool():
            raise TypeError("a bool is a Constant")
        case int():
            if value == 1:  # Triton's launcher makes ones constants
                return "constexpr", 1, False
            return ("i32" if -(2**31) <= value < 2**31 else "i64"), None, value % 16 == 0
        case float():
            return "fp32", None, False
    raise TypeError(f"no argument: {value!r}")


def _parameters(
    witness: Witness, buffers: dict[str, Buffer], signature: dict[str, str], metadata: Any
) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    tensormaps = iter(metadata.tensordesc_meta or ())
    for name, kind in signature.items():
        value = witness.arguments[name]
        if kind == "constexpr":
            continue
        if isinstance(value, Buffer):
            made.append({"kind": "buffer", "name": name})
        elif isinstance(value, Descriptor):
            made += _descriptor(name, value, buffers[value.buffer], next(tensormaps))
        else:
            number = value.value if isinstance(value, Long) else value
            made.append({"kind": "scalar", "name": name, "type": kind, "value": number})
    instances = metadata.num_ctas
    for each in witness.grid:
        instances *= each
    for scratch in ("global_scratch", "profile_scratch"):
        if hasattr(metadata, f"{scratch}_size"):
            size = getattr(metadata, f"{scratch}_size") * instances
            made.append({"kind": "scratch", "name": scratch, "size": size})
    return made


def _descriptor(name: str, value: Descriptor, buffer: Buffer, made: dict[str, Any]) -> list[dict[str, Any]]:
    shape = list(value.shape or buffer.shape)
    strides = list(value.strides or ())
    if not strides:
        strides = [1]
        for extent in reversed(shape[1:]):
            strides.insert(0, strides[0] * extent)
    dims = [*shape[:-1], shape[-1] * (2 if made["fp4_padded"] else 1)]
    kind = 11 if value.round_to_tf32 else _FROM_DEVICE.get(made["elem_type"], made["elem_type"])
    tensormap = {
        "kind": "tensormap",
        "name": name,
        "buffer": value.buffer,
        "dtype": _DRIVER[kind],
        "dims": dims[::-1],
        "strides_bytes": [each * made["elem_size"] for each in strides[-2::-1]],
        "box": list(made["block_size"])[::-1],
        "element_strides": [1] * len(dims),
        "swizzle": _SWIZZLES[made["swizzle"]],
        "interleave": "NONE",
        "l2_promotion": "L2_128B",
        "oob_fill": "NAN_REQUEST_ZERO_FMA" if value.padding == "nan" else "NONE",
    }
    if value.im2col:
        lower, upper, steps = (list(each)[::-1] for each in value.im2col)
        channels, pixels = tensormap.pop("box")
        tensormap |= {
            "mode": "im2col",
            "element_strides": steps,
            "pixel_box_lower": lower,
            "pixel_box_upper": upper,
            "channels_per_pixel": channels,
            "pixels_per_column": pixels,
        }
    scalars = [("i32", f"{name}.shape{at}", each) for at, each in enumerate(shape)]
    scalars += [("i64", f"{name}.stride{at}", each) for at, each in enumerate(strides)]
    return [tensormap, *({"kind": "scalar", "name": n, "type": t, "value": v} for t, n, v in scalars)]


def _buffer(buffer: Buffer) -> dict[str, Any]:
    made: dict[str, Any] = {
        "dtype": buffer.dtype,
        "shape": list(buffer.shape),
        "init": buffer.init,
        "role": buffer.role,
    }
    made |= {key: value for key in ("lo", "hi", "scale", "n") if (value := getattr(buffer, key)) is not None}
    if buffer.tolerance:
        made["tol"] = dict(zip(("rtol", "atol"), buffer.tolerance, strict=True))
    return made


def _found(pattern: str, text: str, kind: type) -> Any:
    found = re.search(pattern, text)
    assert found, pattern
    return kind(found[1])
