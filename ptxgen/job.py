"""`Job`: a kernel of an author's own with inputs, launch and reference, which `ptxgen run FILE.py` runs like a GEMM."""

from __future__ import annotations

import linecache
import runpy
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxgen.device import Device, Extent, Kernel, LaunchReport, SharedRegion
from ptxgen.device.placed import Placed
from ptxgen.files import require_end, similar_file

#: Fill of outputs and their surroundings before the launch, byte by byte.
_POISON = 0xCD
#: Bytes before and after each output, which no kernel may touch.
_GUARD = 4096


class JobError(ValueError):
    """A file that holds no job, or a job that makes no sense."""


@dataclass(frozen=True)
class Expected:
    """What an output must hold, and by how much each element may differ: two arrays of its shape."""

    values: np.ndarray
    allowed: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a kernel is run with, and what must come out.

    `outputs` gives shape and type of each. `arguments` are the entry's parameters in order: a text names an input or
    output, and anything else is passed as it is. For tensormaps it may be a function that makes them of the arrays by
    name, of which an output is an address. `reference` takes the inputs and gives all outputs. An element may be off by
    `tolerance` times the largest magnitude of its output, and `reason` says why; 0: it must be equal. Where the
    reference gives an output as `Expected`, each element has a tolerance of its own.
    """

    ptx: str
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
    arguments: Sequence[Any] | Callable[[Mapping[str, Any]], Sequence[Any]]
    grid: Extent
    block: Extent
    reference: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray | Expected]]
    cluster: Extent | None = None
    shared_bytes: int = 0
    tolerance: float = 0.0
    reason: str = "exact"
    target: str = "sm_100a"
    entry: str | None = None
    #: Names of the parts of dynamic shared memory, for findings.
    regions: Sequence[SharedRegion] = ()

    def run(self, device: Device) -> JobResult:
        """Launch on a device and compare every element. Raises JobError for names that there are not."""
        kernel = Kernel.from_ptx(self.ptx, self.entry, regions=self.regions)
        arrays: dict[str, Any] = {name: device.array(np.ascontiguousarray(each)) for name, each in self.inputs.items()}
        guarded = {}
        for name, (shape, dtype) in self.outputs.items():
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            guarded[name] = device.array(np.full(2 * _GUARD + size, _POISON, np.uint8))
            arrays[name] = guarded[name].address + _GUARD
        given = self.arguments(arrays) if callable(self.arguments) else self.arguments
        placed = {name: Placed.of(name, arrays[name]) for name in self.inputs}
        for name, (shape, dtype) in self.outputs.items():
            placed[name] = Placed.packed(name, arrays[name], shape, np.dtype(dtype).itemsize)
        unknown = [each for each in given if isinstance(each, str) and each not in arrays]
        if unknown:
            raise JobError(f"the job passes {', '.join(unknown)}; its arrays are {', '.join(arrays)}")
        arguments = [arrays[each] if isinstance(each, str) else each for each in given]
        launch = device.launch(
            kernel, self.grid, self.block, arguments, cluster=self.cluster, shared_bytes=self.shared_bytes
        )
        wrong: list[str] = []
        outputs: dict[str, np.ndarray] = {}
        if launch.status in ("ok", "findings"):  # else the outputs are half done, and say nothing
            expected = self.reference(self.inputs)
            for name, (shape, dtype) in self.outputs.items():
                if name not in expected:
                    raise JobError(f"the reference gives no {name}; it gives {', '.join(expected)}")
                data = guarded[name].numpy()
                values = outputs[name] = data[_GUARD:-_GUARD].view(np.dtype(dtype)).reshape(shape)
                wrong += self._compare(name, values, expected[name])
                around = np.concatenate([data[:_GUARD], data[-_GUARD:]])
                if changed := int(np.count_nonzero(around != _POISON)):
                    wrong.append(f"{changed} bytes beside {name} were overwritten")
        tolerance = f"of {self.tolerance:g}" if self.tolerance or self.reason == "exact" else "of each element's own"
        compared = f"outputs compared with a tolerance {tolerance} ({self.reason})"
        return JobResult(kernel, launch, wrong, outputs, placed, compared)

    def _compare(self, name: str, values: np.ndarray, given: np.ndarray | Expected) -> list[str]:
        expected = np.asarray(given.values if isinstance(given, Expected) else given)
        if expected.shape != values.shape:
            raise JobError(f"the reference gives {name} of shape {expected.shape}, not {values.shape}")
        exact, found = expected.astype(np.float64), values.astype(np.float64)
        if isinstance(given, Expected):
            allowed = np.broadcast_to(given.allowed, exact.shape)
        else:
            allowed = np.full(exact.shape, self.tolerance * float(np.abs(exact).max(initial=0.0)))
        with np.errstate(invalid="ignore"):
            bad = ~((np.abs(found - exact) <= allowed) | (found == exact) | (np.isnan(found) & np.isnan(exact)))
        if not bad.any():
            return []
        at = tuple(int(each) for each in np.argwhere(bad)[0])
        poison = np.frombuffer(bytes([_POISON]) * values.dtype.itemsize, values.dtype)[0].tobytes()
        unwritten = sum(each.tobytes() == poison for each in values[bad])
        said = [
            f"{int(bad.sum())} of {bad.size} elements of {name} are wrong; the first: {name}{list(at)} is "
            f"{found[at]:.6g}, expected {exact[at]:.6g} with a tolerance of {allowed[at]:.3g}"
        ]
        return [*said, f"the kernel stored nothing to {unwritten} of them"] if unwritten else said


@dataclass(frozen=True)
class JobResult:
    """The result of a job; `wrong` lists errors of its outputs, which exist if the launch completed."""

    kernel: Kernel
    launch: LaunchReport
    wrong: list[str]
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    #: Where inputs and outputs lie on the device.
    arrays: Mapping[str, Placed] = field(default_factory=dict)
    #: Method of comparing the outputs.
    compared: str = ""
    verdict: str = "correct"

    @property
    def ok(self) -> bool:
        return self.launch.ok and not self.wrong

    @property
    def is_right(self) -> bool:
        """Whether no output is wrong, whatever the findings."""
        return not self.wrong

    @property
    def status(self) -> str:
        """The launch's status, or "wrong" where it is "ok" but an output is not right."""
        return "wrong" if self.launch.ok and self.wrong else self.launch.status

    def summary(self, *, consequences: bool = False) -> str:
        """The launch's summary, and what is wrong."""
        return "\n".join([self.launch.summary(consequences=consequences), *self.wrong])


def load_job(path: Path, seed: int) -> Job:
    """The `job` of a Python file: a Job, or a function of a seed that makes one. Raises JobError."""
    made = load_python(path, seed)
    if isinstance(made, Kernel):
        raise JobError(f"{path} has a `kernel` and no `job`, which would say its inputs and its launch")
    return made


def load_python(path: Path, seed: int) -> Job | Kernel:
    """The `job` of a Python file, or else its `kernel`: a Kernel, or PTX text. Raises JobError."""
    try:
        require_end(path)
        path.open(encoding="utf-8").close()
    except OSError as error:
        raise JobError(f"cannot read {path}: {(error.strerror or str(error)).lower()}{similar_file(path)}") from None
    try:
        names = runpy.run_path(str(path))
        found = names.get("job", names.get("kernel"))
        made = found(seed) if callable(found) else found
    except Exception as error:
        raise JobError(_said(error, path)) from error
    if "job" not in names and isinstance(made, str):
        made = Kernel.from_ptx(made)
    if not isinstance(made, Job if "job" in names else (Job, Kernel)):
        raise JobError(
            f"{path} must have a `job`, a ptxgen.Job or a function of a seed that makes one, or a `kernel`, a "
            "ptxgen.Kernel or PTX text"
        )
    return made


def _said(error: Exception, path: Path) -> str:
    """An error of a file's own code: where it comes from in the file or beside it, what it is, and that line."""
    folder = path.parent.resolve()
    if isinstance(error, SyntaxError) and error.filename is not None:
        file, line, words = error.filename, error.lineno or 0, f"SyntaxError: {error.msg}"
    else:
        frames = [(each.filename, each.lineno or 0) for each in traceback.extract_tb(error.__traceback__)]
        inside = [each for each in frames if _is_own(Path(each[0]), folder)]
        file, line = inside[-1] if inside else (str(path), 0)
        words = str(error) if type(error).__module__.startswith("ptxgen.") else f"{type(error).__name__}: {error}"
    source = linecache.getline(file, line).strip()
    shown = path.parent / Path(file).resolve().relative_to(folder) if _is_own(Path(file), folder) else file
    first, *rest = words.splitlines() or [type(error).__name__]
    return "\n".join([f"{shown}{f':{line}' if line else ''}: {first}", *rest, *([f"  {source}"] if source else [])])


def _is_own(file: Path, folder: Path) -> bool:
    """Whether a file lies in a folder, and not in an environment there."""
    found = file.resolve()
    return found.suffix == ".py" and found.is_relative_to(folder) and "site-packages" not in found.parts
