"""Small kernels as text, and what they leave in memory: what the tests of the emulator share."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator

#: With PTXGEN_TEST_DEVICE=gpu the lanewise tests run on this machine's GPU: then they test themselves.
ON_GPU = os.environ.get("PTXGEN_TEST_DEVICE") == "gpu"
TARGET = "sm_90a" if ON_GPU else "sm_100a"
#: Two and a half warps: the last warp of every CTA is partial.
BLOCK = 80
POISON = 0xCD
WORDS: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def bits_of(type: str) -> int:
    """The width of a PTX type: 16 of `bf16`, 32 of `u16x2`."""
    found = re.fullmatch(r"[a-z]+(\d+)(?:x(\d))?", type)
    assert found is not None, type
    return int(found[1]) * int(found[2] or 1)


def module(
    body: str,
    parameters: str = "",
    *,
    items: str = "",
    target: str = TARGET,
    version: str = "8.8",
    directives: str = "",
) -> str:
    """A module with one entry `k`."""
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{items}\n"
        f".visible .entry k({parameters})\n{directives}\n{{\n{body}\n}}\n"
    )


def line_of(text: str, part: str, occurrence: int = 1) -> int:
    """The line, from 1, on which a part of the text occurs for the given time."""
    position = -1
    for _ in range(occurrence):
        position = text.index(part, position + 1)
    return text.count("\n", 0, position) + 1


def launch(
    body: str,
    outputs: Sequence[NDArray[Any]] = (),
    *,
    block: Any = 32,
    grid: Any = 1,
    inputs: Sequence[Any] = (),
    shared_bytes: int = 0,
    items: str = "",
    device: Emulator | None = None,
    multiprocessors: int | None = None,
    cluster: Any = None,
    directives: str = "",
    version: str = "8.8",
    kernel_target: str = TARGET,
    **options: Any,
) -> tuple[LaunchReport, list[NDArray[Any]]]:
    """Run a body whose parameters are `out0`.., `in0`.. (64-bit pointers or values); the outputs come back as arrays.

    Every parameter is in a register of its name already. Outputs hold what they are given as, poison by `poisoned`.
    """
    device = device or Emulator(multiprocessors=multiprocessors, **options)
    names = [f"out{i}" for i in range(len(outputs))] + [f"in{i}" for i in range(len(inputs))]
    arrays = [device.array(array) for array in outputs]
    args: list[Any] = [*arrays]
    declared = [f".param .u64 p_{name}" for name in names[: len(outputs)]]
    loads = [f"    ld.param.u64 %{name}, [p_{name}];" for name in names[: len(outputs)]]
    for name, value in zip(names[len(outputs) :], inputs, strict=True):
        if isinstance(value, bytes):
            declared.append(f".param .align 64 .b8 {name}[{len(value)}]")
            args.append(value)
            continue
        declared.append(f".param .u64 p_{name}")
        loads.append(f"    ld.param.u64 %{name}, [p_{name}];")
        args.append(device.array(value) if isinstance(value, np.ndarray) else value)
    registers = ", ".join(f"%{name}" for name in names)
    head = f"    .reg .b64 {registers};\n" if registers else ""
    text = module(
        head + "\n".join(loads) + "\n" + body,
        ", ".join(declared),
        items=items,
        directives=directives,
        version=version,
        target=kernel_target,
    )
    report = device.launch(Kernel.from_ptx(text), grid, block, args, shared_bytes=shared_bytes, cluster=cluster)
    return report, [array.numpy() for array in arrays]


def poisoned(count: int, dtype: Any = np.uint32) -> NDArray[Any]:
    """An array of poison, to be overwritten."""
    return np.full(count * np.dtype(dtype).itemsize, POISON, np.uint8).view(dtype)


@cache
def _gpu() -> Any:
    from ptxgen import Gpu

    return Gpu()


def _device(target: str) -> Any:
    return _gpu() if ON_GPU else Emulator(target, multiprocessors=3)


def lanewise(
    template: str,
    inputs: Mapping[str, tuple[str, NDArray[Any]]],
    outputs: Mapping[str, str],
    *,
    setup: str = "",
    target: str = TARGET,
    version: str = "8.8",
) -> dict[str, NDArray[Any]]:
    """Apply instructions to arrays, an element a thread, in several CTAs with a partial last warp.

    `inputs` maps registers of the template, without `%`, to (register type, values), `outputs` names the registers to
    read back with their types. A `pred` register travels as a byte. Results are unsigned words.
    """
    count = len(next(iter(inputs.values()))[1])
    device = _device(target)
    lines = [".reg .b64 %address, %index; .reg .u32 %thread, %cta, %count; .reg .pred %outside; .reg .b16 %byte;"]
    lines += [f".reg .{type} %{name};" for name, (type, _) in inputs.items()]
    lines += [f".reg .{type} %{name};" for name, type in outputs.items() if name not in inputs]
    lines.append(setup)
    lines.append(
        f"mov.u32 %thread, %tid.x; mov.u32 %cta, %ctaid.x; mad.lo.u32 %thread, %cta, {BLOCK}, %thread;"
        "ld.param.u32 %count, [count]; setp.ge.u32 %outside, %thread, %count; @%outside exit;"
        "cvt.u64.u32 %index, %thread;"
    )
    parameters, args = [".param .u32 count"], [count]

    def address(name: str, size: int) -> None:
        parameters.append(f".param .u64 p_{name}")
        lines.append(f"ld.param.u64 %address, [p_{name}]; mad.lo.u64 %address, %index, {size}, %address;")

    for name, (type, values) in inputs.items():
        bits = 8 if type == "pred" else bits_of(type)
        words = np.ascontiguousarray(values).view(WORDS[bits]) if type != "pred" else values.astype(np.uint8)
        assert len(words) == count
        address(name, bits // 8)
        args.append(device.array(words))
        if type == "pred":
            lines.append(f"ld.global.u8 %byte, [%address]; setp.ne.u16 %{name}, %byte, 0;")
        else:
            lines.append(f"ld.global.b{bits} %{name}, [%address];")
    lines.append(template)
    arrays = {}
    for name, type in outputs.items():
        bits = 8 if type == "pred" else bits_of(type)
        # More room than threads: what lies behind must stay as it is.
        arrays[name] = device.array(poisoned(count + 5, WORDS[bits]))
        args.append(arrays[name])
        address(f"{name}_out", bits // 8)
        if type == "pred":
            lines.append(f"selp.b16 %byte, 1, 0, %{name}; st.global.u8 [%address], %byte;")
        else:
            lines.append(f"st.global.b{bits} [%address], %{name};")
    lines.append("ret;")
    text = module("\n".join(lines), ", ".join(parameters), target=target, version=version)
    report = device.launch(Kernel.from_ptx(text), -(-count // BLOCK), BLOCK, args)
    assert report.status == "ok", f"{template}: {report.summary()}"
    results = {}
    for name, array in arrays.items():
        found = array.numpy()
        assert (found[count:].view(np.uint8) == POISON).all(), f"{template} wrote past its results"
        results[name] = found[:count]
    return results


def edges(bits: int, count: int, seed: int) -> NDArray[Any]:
    """Random words of a width, most of them near a power of two, zero, or the largest and smallest integers."""
    rng = random.Random(seed)
    mask = (1 << bits) - 1
    words = []
    for _ in range(count):
        kind = rng.randrange(4)
        word = rng.getrandbits(bits)
        if kind == 1:
            word = rng.choice([0, 1 << (bits - 1)]) + rng.randrange(-3, 4)
        elif kind == 2:
            word = (1 << rng.randrange(bits)) + rng.randrange(-1, 2)
        elif kind == 3:
            word = rng.getrandbits(bits) >> rng.randrange(bits)
        words.append(word & mask)
    return np.array(words, WORDS[bits])


def same(found: NDArray[Any], expected: Sequence[int], context: str, inputs: Mapping[str, Any] | None = None) -> None:
    """Every element equal; else the first wrong ones with their inputs."""
    wanted = np.array(list(expected), found.dtype)
    wrong = np.flatnonzero(found != wanted)
    if len(wrong):
        shown = []
        for i in wrong[:5]:
            given = {name: hex(int(values[i])) for name, values in (inputs or {}).items()}
            shown.append(f"{given} gave {int(found[i]):#x}, not {int(wanted[i]):#x}")
        raise AssertionError(f"{context}: {len(wrong)} of {len(found)} wrong: " + "; ".join(shown))


def codes(report: LaunchReport) -> list[str]:
    """The codes of all findings, those of consequences too."""
    return [finding.code for finding in report.all_findings]


def errors(report: LaunchReport) -> list[str]:
    """The codes of what is wrong, without advice."""
    return [finding.code for finding in report.all_findings if finding.severity == "error"]


def signed(word: int, bits: int) -> int:
    """The two's complement value of a word."""
    return word - (1 << bits) if word >> (bits - 1) else word
