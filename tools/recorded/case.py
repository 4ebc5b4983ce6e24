"""Recorded kernels of `tests/data`, with launch data and references: by compilers (cases, witnesses) and by hand."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import Device, DeviceArray, LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.emulator.engines.timeline import Schedule
from tools.recorded.codecs import Outputs, dec, make_inputs
from tools.recorded.files import DATA, FOLDERS
from tools.recorded.references import evaluate

SCHEDULES: tuple[Schedule, ...] = ("eager", "late", "random")
Arrays = dict[str, Any]


#: The driver's names of element types and fill modes, where ptxgen's short names are not these in lower case.
_TYPES = {
    "UINT8": "u8",
    "UINT16": "u16",
    "UINT32": "u32",
    "INT32": "s32",
    "UINT64": "u64",
    "INT64": "s64",
    "FLOAT16": "f16",
    "FLOAT32": "f32",
    "FLOAT64": "f64",
    "BFLOAT16": "bf16",
    "FLOAT32_FTZ": "f32_ftz",
    "TFLOAT32": "tf32",
    "TFLOAT32_FTZ": "tf32_ftz",
    # Numbers of the driver's enumeration.
    "16U4_ALIGN8B": 13,
    "16U4_ALIGN16B": 14,
    "16U6_ALIGN16B": 15,
}
_FILLS = {"NONE": "none", "NAN": "nan", "NAN_REQUEST_ZERO_FMA": "nan"}
_PROMOTIONS = {"NONE": 0, "L2_64B": 1, "L2_128B": 2, "L2_256B": 3}
_SCALARS = {"fp16": "f2", "fp32": "f4", "f32": "f4", "fp64": "f8"}


@dataclass(frozen=True)
class Outcome:
    """How a case ended: the launch's report, the outputs, and for each wrong one what is wrong with it."""

    report: LaunchReport
    outputs: Mapping[str, Any]
    wrong: Mapping[str, str]

    @property
    def right(self) -> bool:
        """Whether the kernel ended well and all outputs match."""
        return self.report.status == "ok" and not self.wrong


@dataclass(frozen=True)
class Case:
    """One recorded kernel with its launch."""

    name: str
    text: str
    launch: Mapping[str, Any]

    @property
    def target(self) -> str:
        return self.launch["arch"]

    def emulator(self, schedule: Schedule = "eager", seed: int = 0) -> Emulator:
        """An emulator for the case, with as many multiprocessors as it names."""
        return Emulator(self.target, schedule, seed, multiprocessors=self.launch.get("multiprocessors"))

    @functools.cached_property
    def inputs(self) -> Arrays:
        """All buffers with their initial contents."""
        return make_inputs(self.launch["buffers"])

    @functools.cached_property
    def expected(self) -> Outputs:
        """The outputs by the reference."""
        return evaluate(self.launch["reference"], self.inputs)

    def run(self, device: Device, text: str | None = None) -> Outcome:
        """Run the case, or another text in its place, on a device, and compare."""
        report, arrays = self.launch_on(device, Kernel.from_ptx(text or self.text, self.launch["entry"]))
        outputs = {name: array.numpy() for name, array in arrays.items() if name in self.expected}
        return Outcome(report, outputs, self._wrong(outputs))

    def launch_on(self, device: Device, kernel: Kernel) -> tuple[LaunchReport, dict[str, DeviceArray]]:
        """Launch the case's kernel, and nothing else; gives the report and the arrays by name."""
        launch = self.launch
        arrays = {name: device.array(values) for name, values in self.inputs.items()}
        report = device.launch(
            kernel,
            launch["grid"],
            launch["block"],
            [_argument(each, arrays, device) for each in launch["params"]],
            cluster=launch["cluster"],
            shared_bytes=launch["dynamic_smem"],
        )
        return report, arrays

    def _wrong(self, found: Arrays) -> dict[str, str]:
        wrong = {}
        for name, values in self.expected.items():
            buffer = self.launch["buffers"][name]
            limits = buffer.get("tol", self.launch.get("tol", {"rtol": 1e-2, "atol": 1e-2}))
            expected = np.asarray(values, np.float64)
            got = np.asarray(dec(buffer["dtype"], found[name]), np.float64).reshape(expected.shape)
            near = np.isclose(got, expected, rtol=limits["rtol"], atol=limits["atol"], equal_nan=True)
            if not near.all():
                at = tuple(int(i) for i in np.argwhere(~near)[0])
                wrong[name] = (
                    f"{int((~near).sum())} of {near.size} differ, the first at {at}: {got[at]}, not {expected[at]}"
                )
        return wrong


def _argument(parameter: Mapping[str, Any], arrays: Mapping[str, Any], device: Device) -> object:
    kind = parameter["kind"]
    if kind == "buffer":
        return arrays[parameter.get("buffer", parameter["name"])]
    if kind == "scalar":
        code = _SCALARS.get(parameter["type"]) or parameter["type"][0] + str(int(parameter["type"][1:]) // 8)
        return np.dtype(code).type(parameter["value"])
    if kind == "scratch":
        return device.array(np.zeros(parameter["size"], np.uint8)) if parameter["size"] else 0
    assert kind == "tensormap", kind
    what = (_TYPES[parameter["dtype"]], arrays[parameter["buffer"]], parameter["dims"], parameter["strides_bytes"])
    how: dict[str, Any] = {
        "element_strides": parameter["element_strides"],
        "swizzle": parameter["swizzle"],
        "interleave": parameter["interleave"],
        "l2_promotion": _PROMOTIONS[parameter["l2_promotion"]],
        "oob_fill": _FILLS[parameter["oob_fill"]],
    }
    if parameter.get("mode") == "im2col":
        return TensorMap.im2col(
            *what,
            parameter["pixel_box_lower"],
            parameter["pixel_box_upper"],
            parameter["channels_per_pixel"],
            parameter["pixels_per_column"],
            **how,
        )
    return TensorMap.tiled(*what, parameter["box"], **how)


def load(name: str) -> Case:
    """A case by name."""
    for folder in FOLDERS:
        text = DATA / folder / f"{name}.ptx"
        if text.exists():
            return Case(name, text.read_text(), json.loads(text.with_suffix(".json").read_text()))
    raise FileNotFoundError(f"{name}.ptx is in none of {', '.join(FOLDERS)} of {DATA}")


def names(*folders: str) -> list[str]:
    """All cases of some folders; of all by default."""
    return sorted(path.stem for folder in folders or FOLDERS for path in (DATA / folder).glob("*.ptx"))
