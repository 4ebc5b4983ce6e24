"""Recorded kernels of `tests/data`, with launch data and references: of compilers (cases, witnesses), written by hand.

python -m tools.cases [--folder FOLDER ...] [--schedule eager|late|random|all] [--seed N] [NAME-PART ...]
python -m tools.cases --device gpu [--folder FOLDER ...] [NAME-PART ...]
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import Device, DeviceArray, LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.gpu import Gpu, GpuNotFoundError

DATA = Path(__file__).parents[1] / "tests" / "data"
#: Folders of `tests/data` that hold cases, all in the format that casetools.py reads.
FOLDERS = ("cases", "handwritten", "witnesses")
SCHEDULES: tuple[Schedule, ...] = ("eager", "late", "random")
Arrays = dict[str, Any]

#: The driver's names of element types and fill modes, where ptxgen's short names are not these in lower case.
_TYPES = {
    "UINT8": "u8", "UINT16": "u16", "UINT32": "u32", "INT32": "s32", "UINT64": "u64", "INT64": "s64",
    "FLOAT16": "f16", "FLOAT32": "f32", "FLOAT64": "f64", "BFLOAT16": "bf16", "FLOAT32_FTZ": "f32_ftz",
    "TFLOAT32": "tf32", "TFLOAT32_FTZ": "tf32_ftz",
    # Numbers of the driver's enumeration.
    "16U4_ALIGN8B": 13, "16U4_ALIGN16B": 14, "16U6_ALIGN16B": 15,
}  # fmt: skip
_FILLS = {"NONE": "none", "NAN": "nan", "NAN_REQUEST_ZERO_FMA": "nan"}
_PROMOTIONS = {"NONE": 0, "L2_64B": 1, "L2_128B": 2, "L2_256B": 3}
_SCALARS = {"fp16": "f2", "fp32": "f4", "f32": "f4", "fp64": "f8"}


@functools.cache
def _casetools() -> ModuleType:
    return _module(DATA / "cases" / "casetools.py", "casetools")


def _module(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, made)
    spec.loader.exec_module(made)
    return made


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
    folder: Path = DATA / "cases"

    @property
    def target(self) -> str:
        return self.launch["arch"]

    def emulator(self, schedule: Schedule = "eager", seed: int = 0) -> Emulator:
        """An emulator for the case, with as many multiprocessors as it names."""
        return Emulator(self.target, schedule, seed, multiprocessors=self.launch.get("multiprocessors"))

    @functools.cached_property
    def inputs(self) -> Arrays:
        """All buffers with their initial contents."""
        return _casetools().make_inputs(self.launch)

    @functools.cached_property
    def expected(self) -> Arrays:
        """The outputs by the reference."""
        _casetools()  # references import it by this name
        reference: Callable[[Arrays], Arrays] = _module(
            self.folder / f"{self.name}_ref.py", f"reference_{self.name}"
        ).reference
        return reference({name: values.copy() for name, values in self.inputs.items()})

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
            kernel, launch["grid"], launch["block"], [_argument(each, arrays, device) for each in launch["params"]],
            cluster=launch["cluster"], shared_bytes=launch["dynamic_smem"],
        )  # fmt: skip
        return report, arrays

    def _wrong(self, found: Arrays) -> dict[str, str]:
        wrong = {}
        for name, values in self.expected.items():
            buffer = self.launch["buffers"][name]
            limits = buffer.get("tol", self.launch.get("tol", {"rtol": 1e-2, "atol": 1e-2}))
            expected = np.asarray(values, np.float64)
            got = np.asarray(_casetools().dec(buffer["dtype"], found[name]), np.float64).reshape(expected.shape)
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
    what = (
        _TYPES[parameter["dtype"]], arrays[parameter["buffer"]], parameter["dims"], parameter["strides_bytes"]
    )  # fmt: skip
    how: dict[str, Any] = {
        "element_strides": parameter["element_strides"], "swizzle": parameter["swizzle"],
        "interleave": parameter["interleave"], "l2_promotion": _PROMOTIONS[parameter["l2_promotion"]],
        "oob_fill": _FILLS[parameter["oob_fill"]],
    }  # fmt: skip
    if parameter.get("mode") == "im2col":
        return TensorMap.im2col(
            *what, parameter["pixel_box_lower"], parameter["pixel_box_upper"], parameter["channels_per_pixel"],
            parameter["pixels_per_column"], **how,
        )  # fmt: skip
    return TensorMap.tiled(*what, parameter["box"], **how)


def load(name: str) -> Case:
    """A case by name."""
    for folder in FOLDERS:
        text = DATA / folder / f"{name}.ptx"
        if text.exists():
            return Case(name, text.read_text(), json.loads(text.with_suffix(".json").read_text()), text.parent)
    raise FileNotFoundError(f"{name}.ptx is in none of {', '.join(FOLDERS)} of {DATA}")


def names(*folders: str) -> list[str]:
    """All cases of some folders; of all by default."""
    return sorted(path.stem for folder in folders or FOLDERS for path in (DATA / folder).glob("*.ptx"))


def main() -> int:
    """Run cases in the emulator, or those of its target on a GPU; exit with 1 if one is not right."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.cases", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="parts of names; all by default")
    parser.add_argument("--folder", nargs="*", default=FOLDERS, choices=FOLDERS, help="all by default")
    parser.add_argument("--schedule", choices=(*SCHEDULES, "all"), default="eager")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("emulator", "gpu"), default="emulator")
    options = parser.parse_args()
    try:
        gpu = Gpu() if options.device == "gpu" else None
    except GpuNotFoundError as missing:
        parser.error(str(missing))
    schedules: list[Schedule] = [each for each in SCHEDULES if options.schedule in (each, "all")]
    chosen = [
        name for name in names(*options.folder) if not options.parts or any(part in name for part in options.parts)
    ]
    runs = bad = 0
    for name in chosen:
        case = load(name)
        if gpu is not None and case.target != gpu.target:
            continue
        devices: dict[str, Device] = {gpu.name: gpu} if gpu is not None else {}
        if gpu is None:
            devices = {schedule: case.emulator(schedule, options.seed) for schedule in schedules}
        for where, device in devices.items():
            began = time.process_time()
            outcome = case.run(device)
            runs += 1
            bad += not outcome.right
            print(
                f"{'ok  ' if outcome.right else 'FAIL'} {name} {where} {time.process_time() - began:.1f} s", flush=True
            )
            if not outcome.right:
                report = outcome.report.summary().replace("\n", "\n    ")[:2000]
                older = map(str, outcome.report.older_values)
                print("    " + report, *outcome.wrong.values(), *older, sep="\n    ", flush=True)
    print(f"{runs - bad} of {runs}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
