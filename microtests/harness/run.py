"""Running definitions on a device, and comparing what they leave with references and with each other."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from microtests.harness.definition import Definition
from microtests.harness.draft import POISON, Draft, NotThereError, Output, Tolerance
from ptxgen.device import Device, Kernel

Array = NDArray[Any]
Verdict = Literal["passed", "wrong", "incomplete", "failed", "absent"]

#: Elements that a message shows.
_SHOWN = 4


@dataclass
class Result:
    """How a definition went on a device.

    "wrong": results differ from the reference; "failed": the launch did not end well; "incomplete": the emulator does
    not model something; "absent": the device's target lacks the instruction.
    """

    name: str
    verdict: Verdict
    message: str = ""
    seconds: float = 0.0
    digest: str = ""
    outputs: dict[str, bytes] = field(default_factory=dict)


def digest_of(draft: Draft) -> str:
    """A short hash of what goes into a launch: inputs, its shape, the sizes of outputs."""
    made = hashlib.sha256(repr(draft.shape).encode())
    for array in draft.inputs:
        made.update(repr((array.dtype.str, array.shape)).encode())
        made.update(array.tobytes())
    for output in draft.outputs:
        made.update(repr((output.dtype.str, output.shape)).encode())
    return made.hexdigest()[:12]


def initial(output: Output) -> Array:
    """What an output holds before the launch."""
    if output.initial is not None:
        return np.ascontiguousarray(output.initial)
    size = int(np.prod(output.shape)) * output.dtype.itemsize
    return np.full(size, POISON, np.uint8).view(output.dtype).reshape(output.shape)


def run(definition: Definition, device: Device, draft: Draft | None = None) -> Result:
    """Run a definition, or its draft for this device; never raises for what goes wrong in a kernel."""
    began = time.perf_counter()
    try:
        draft = draft or definition.draft(device.target)
    except NotThereError as reason:
        return Result(definition.name, "absent", str(reason))
    result = launch(definition, draft, device)
    if result.verdict == "passed" and not draft.fault:
        for output in draft.outputs:
            expected = np.ascontiguousarray(output.expected()).astype(output.dtype, copy=False)
            found = np.frombuffer(result.outputs[output.name], output.dtype).reshape(output.shape)
            message = difference(found, expected.reshape(output.shape), output.tolerance)
            if message:
                result.verdict, result.message = "wrong", f"{output.name}: {message}"
                break
    result.seconds = time.perf_counter() - began
    return result


def launch(definition: Definition, draft: Draft, device: Device) -> Result:
    """Launch a draft; the result has the outputs."""
    kernel = Kernel.from_ptx(draft.ptx())
    inputs = [device.array(each) for each in draft.inputs]
    outputs = [device.array(initial(each)) for each in draft.outputs]
    shape = draft.shape
    report = device.launch(
        kernel,
        shape.grid,
        shape.block,
        draft.arguments(inputs, outputs),
        cluster=shape.cluster,
        shared_bytes=draft.shared_bytes,
    )
    result = Result(definition.name, "passed", digest=digest_of(draft))
    if report.status == "incomplete":
        return Result(definition.name, "incomplete", report.findings[0].message if report.findings else "")
    if draft.fault:
        if report.status == "fault" and {finding.code for finding in report.findings} & {draft.fault, "gpu-fault"}:
            result.message = report.findings[0].message
            return result
        result.verdict, result.message = "wrong", f"it must fault ({draft.fault}): {report.summary()}"
        if report.status != "ok":
            return result
    if report.status != "ok":
        return Result(definition.name, "failed", report.summary())
    result.outputs = {output.name: array.read_bytes() for output, array in zip(draft.outputs, outputs, strict=True)}
    return result


def difference(found: Array, expected: Array, tolerance: Tolerance | None) -> str:
    """What differs, in words; empty if nothing does."""
    wrong = wrong_elements(found, expected, tolerance)
    count = int(wrong.sum())
    if not count:
        return ""
    flat = np.flatnonzero(wrong.reshape(-1))
    words = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[found.dtype.itemsize]
    shown = [
        f"[{','.join(str(int(i)) for i in np.unravel_index(at, found.shape))}] is "
        f"{int(found.view(words).reshape(-1)[at]):#x}, not {int(expected.view(words).reshape(-1)[at]):#x}"
        for at in flat[:_SHOWN]
    ]
    return f"{count} of {found.size} differ: " + "; ".join(shown)


def wrong_elements(found: Array, expected: Array, tolerance: Tolerance | None) -> Array:
    """Which elements differ by more than is tolerated."""
    words = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[found.dtype.itemsize]
    a, b = np.ascontiguousarray(found).view(words), np.ascontiguousarray(expected).view(words)
    wrong = a != b
    if tolerance is None or not wrong.any():
        return wrong
    with np.errstate(all="ignore"):
        x = np.ascontiguousarray(found).view(tolerance.dtype).astype(np.float64)
        y = np.ascontiguousarray(expected).view(tolerance.dtype).astype(np.float64)
        near = (np.abs(x - y) <= tolerance.absolute + tolerance.relative * np.abs(y)) | (np.isinf(x) & (x == y))
    if tolerance.ulps:
        near |= np.abs(_ordered(a) - _ordered(b)) <= tolerance.ulps
    if tolerance.any_nan:
        near |= np.isnan(x) & np.isnan(y)
    pieces = near.reshape(*wrong.shape, -1).all(-1) if near.size != wrong.size else near.reshape(wrong.shape)
    return wrong & ~pieces


def _ordered(words: Array) -> Array:
    """Words of floats as integers in the order of their values."""
    bits = words.dtype.itemsize * 8
    value = words.astype(np.float64)
    return np.where(words >> (bits - 1), float(2 ** (bits - 1)) - value, value)


def outputs_of(draft: Draft, data: Mapping[str, bytes]) -> dict[str, Array]:
    """Recorded bytes as arrays."""
    return {
        each.name: np.frombuffer(data[each.name], each.dtype).reshape(each.shape)
        for each in draft.outputs
        if each.name in data
    }
