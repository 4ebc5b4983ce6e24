"""`ptxgen run FILE.ptx --arg ...`: any PTX with arrays, scalars and tensormaps from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.cli.errors import InputError, nearest
from ptxgen.cli.launch.source_names import source_names
from ptxgen.cli.launch.structs import StructValue
from ptxgen.cli.launch.values import ArrayValue, ScalarValue, TensormapValue, Value, parse_values
from ptxgen.device import Device, DeviceArray, Kernel, LaunchReport
from ptxgen.device.kernel import ParameterInfo
from ptxgen.device.placed import Placed

Array = NDArray[Any]


@dataclass(frozen=True)
class PlainResult:
    """How a launch went; `outputs` are what all arrays hold after it, `changed` those that are not as before."""

    kernel: Kernel
    launch: LaunchReport
    outputs: Mapping[str, Array]
    changed: tuple[str, ...]
    #: Where they lie on the device.
    arrays: Mapping[str, Placed]
    #: Nothing says what the outputs must be.
    wrong: tuple[str, ...] = ()
    compared: str = "outputs not compared (a Job in a Python file has a reference)"
    verdict: str = "clean"

    @property
    def ok(self) -> bool:
        return self.launch.ok

    @property
    def is_right(self) -> bool:
        return True

    @property
    def status(self) -> str:
        return self.launch.status

    def summary(self, *, consequences: bool = False) -> str:
        return self.launch.summary(consequences=consequences)


class Unplanned:
    """A file without a plan of ours."""

    @property
    def roles(self) -> Mapping[int, str]:
        return {}

    @property
    def facts(self) -> list[tuple[str, str]]:
        return []

    def details(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, kw_only=True)
class PlainRun(Unplanned):
    """A kernel and what it is launched with, as the command line says it; `path` is for messages.

    `given` are the words of `--arg`, whose random numbers have the seed `seed`. Raises InputError.
    """

    path: str
    kernel: Kernel
    given: tuple[str, ...]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] | None = None
    cluster: tuple[int, ...] | None = None
    shared_bytes: int = 0
    seed: int = 0
    values: dict[str, Value] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", self._named(parse_values(list(self.given), self.seed)))
        self._require_all()

    def _named(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """The values by name, also those that are given for the number of a parameter. Raises InputError."""
        named: dict[str, Value] = {}
        words: dict[str, str] = {}
        for name, value in given.items():
            parameter = self.parameter(name)
            if parameter in named:
                counted = "" if name.isdecimal() == words[parameter].isdecimal() else ": numbers begin with 0"
                raise InputError(
                    f"--arg {words[parameter]}= and --arg {name}= are for the same parameter, {parameter}{counted}"
                )
            words[parameter] = name
            named[parameter] = value
        return named

    @cached_property
    def parameters(self) -> list[ParameterInfo]:
        """The parameters as people call them: by the names of their CUDA C++ source, where there is one."""
        called = source_names(self.kernel, self.path)
        return [replace(each, name=called.get(each.name, each.name)) for each in self.kernel.parameters]

    def parameter(self, given: str) -> str:
        """The parameter that a number or its name in the PTX stands for, or the name itself."""
        if given.isdecimal() and int(given) < len(self.parameters):
            return self.parameters[int(given)].name
        in_ptx = [each.name for each in self.kernel.parameters]
        return self.parameters[in_ptx.index(given)].name if given in in_ptx else given

    @property
    def target(self) -> str:
        return self.kernel.module.target or "sm_100a"

    @property
    def ptx(self) -> str:
        return self.kernel.text

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.arrays)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: each.values.shape for name, each in self.arrays.items()}

    @property
    def arrays(self) -> dict[str, ArrayValue]:
        return {name: each for name, each in self.values.items() if isinstance(each, ArrayValue)}

    @property
    def threads(self) -> tuple[int, ...]:
        """The block: `--block`, else what .reqntid says. Raises InputError."""
        if self.block is not None:
            return self.block
        for each in self.kernel.entry.directives:
            if each.name == "reqntid":
                return tuple(int(extent) for extent in each.arguments)
        raise InputError(f"{self.path} has no .reqntid; say the threads of a CTA, such as --block 128")

    def run(self, device: Device) -> PlainResult:
        """Launch on a device, and read the arrays back. Raises InputError, KernelArgumentError, LaunchError."""
        made: dict[str, DeviceArray] = {}
        for name, each in self.arrays.items():
            made[name] = (
                device.array(each.values) if each.written else device.empty(each.values.shape, each.values.dtype)
            )
        arguments = [self._argument(info, made, device) for info in self.parameters]
        launch = device.launch(
            self.kernel, self.grid, self.threads, arguments, cluster=self.cluster, shared_bytes=self.shared_bytes
        )
        after = {} if launch.status == "fault" else {name: each.numpy() for name, each in made.items()}
        changed = [name for name, values in after.items() if values.tobytes() != self.arrays[name].values.tobytes()]
        placed = {name: Placed.of(name, each) for name, each in made.items()}
        return PlainResult(self.kernel, launch, after, tuple(changed), placed)

    def _argument(self, info: ParameterInfo, made: Mapping[str, DeviceArray], device: Device) -> object:
        match value := self.values[info.name]:
            case ScalarValue():
                try:
                    return value.of(info.type)
                except InputError as error:
                    raise InputError(f"--arg {info.name}: {error}") from None
            case ArrayValue():
                return made[info.name]
            case StructValue():
                addresses = {each: made[self.parameter(each)].address for each in value.arrays}
                try:
                    encoded = value.encode(addresses)
                except InputError as error:
                    raise InputError(f"--arg {info.name}: {error}") from None
                if len(encoded) != info.size:
                    raise InputError(
                        f"--arg {info.name}: these members fill {len(encoded)} bytes, but {info.declaration} has "
                        f"{info.size}"
                    )
                return encoded
        array = self.parameter(value.array)
        tensormap = value.encode(self.arrays[array].values, made[array])
        if info.size == 8:  # the address of a map in global memory
            return device.array(np.frombuffer(tensormap.encode(), np.uint8))
        return tensormap

    def _require_all(self) -> None:
        """Raises InputError where parameters lack values, or values have no use."""
        parameters, name = self.parameters, self.kernel.name
        takes = f"{name} takes {', '.join(each.declaration for each in parameters) or 'nothing'}"
        missing = [each for each in parameters if each.name not in self.values]
        used = self._used({each.name for each in parameters})
        # nvcc calls them kernel_param_0 and on: a number is shorter, and no name of the source is left.
        anonymous = any("_param_" in each.name for each in parameters)
        numbers = "; a number names a parameter, too: --arg 0=" if anonymous else ""
        for key in self.values:
            if key in used:
                continue
            if key.isdecimal():
                raise InputError(f"--arg {key}: the numbers of the {len(parameters)} parameters begin with 0; {takes}")
            near = f"no tensormap is over it{nearest(key, used)}"
            raise InputError(f"--arg {key}: no parameter has this name, and {near}; {takes}{numbers}")
        if missing:
            example = f"such as {' '.join(map(_example, missing))}"
            if not self.given and not self.path.endswith(".ptx"):
                raise InputError(f"{takes}; say it by --arg, {example}")
            if not self.given:
                raise InputError(
                    f"{self.path} does not name its kernel of the library, as the last line of 'ptxgen build' does "
                    f"(or ptxgen run KERNEL --ptx FILE.ptx); to launch it as it is, say what {takes}, "
                    f"{example}"
                )
            raise InputError(f"no --arg for {', '.join(each.name for each in missing)}: {takes}; {example}{numbers}")

    def _used(self, used: set[str]) -> set[str]:
        """The parameters, and the arrays that tensormaps and structures name. Raises InputError for one not given."""
        for key, each in self.values.items():
            named = (each.array,) if isinstance(each, TensormapValue) else ()
            for array in each.arrays if isinstance(each, StructValue) else named:
                if self.parameter(array) not in self.arrays:
                    near = nearest(array, self.arrays)
                    raise InputError(f"--arg {key}: there is no array {array!r}; add --arg {array}={near}")
                used.add(self.parameter(array))
        return used


def _example(info: ParameterInfo) -> str:
    """An `--arg` as it may be for a parameter."""
    if info.size == 128:
        return f"--arg {info.name}=tensormap:ARRAY:64x64:128B"
    if info.is_array:
        return f"--arg {info.name}=struct:u64:@x,u32:512"
    if info.size == 8 and not info.type.startswith("f"):
        return f"--arg {info.name}=randn:f32:512x512"
    return f"--arg {info.name}={'1.5' if info.type.startswith('f') else '512'}"
