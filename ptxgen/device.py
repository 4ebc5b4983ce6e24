"""What every device shares: arrays, kernels, arguments, launch shapes and reports.

`ptxgen.gpu` runs kernels on a GPU, the emulator runs them on the CPU; both offer `Device` and are built on
what is here. Executing anything is left to them.
"""

from __future__ import annotations

import math
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ptxgen.instr.model.analyze import Analysis
    from ptxgen.instr.model.check import Diagnostic
    from ptxgen.syntax import Function, Module

Severity = Literal["error", "advice"]
Status = Literal["ok", "findings", "incomplete", "deadlock", "fault"]
Extent = int | np.integer | Sequence[int]

_MAX_THREADS = 1024
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_CLUSTER = 16  # the largest that any target has, and only when the kernel asks for a non-portable size
#: Characters of an instruction that are shown under a finding, and of a name in a message.
_SHOWN_INSTRUCTION, _SHOWN_NAME = 200, 48
#: Older values that a summary shows, and entries that an error lists.
_SHOWN_OLDER, _SHOWN_ENTRIES = 8, 20


class KernelError(ValueError):
    """A PTX text has no such entry, or an entry has a parameter whose layout PTX does not define."""


class KernelArgumentError(ValueError):
    """An argument does not fit its parameter: wrong count, kind, size or range."""


class LaunchError(ValueError):
    """A launch shape that no target allows: grid, block, cluster or dynamic shared memory."""


class DeviceArrayError(ValueError):
    """Values written to a device array do not have its shape or dtype."""


class DeviceArray(ABC):
    """A C-contiguous array in a device's global memory.

    `.address` is its first byte as kernels see it, `.nbytes` its size in bytes. A device derives from this
    class and moves raw bytes; shapes and dtypes are handled here.
    """

    def __init__(self, address: int, shape: Extent, dtype: npt.DTypeLike) -> None:
        self.address = address
        self.shape = array_shape(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize

    @abstractmethod
    def read_bytes(self) -> bytes:
        """All `.nbytes` bytes as they are now on the device."""

    @abstractmethod
    def write_bytes(self, data: bytes) -> None:
        """Replace all bytes; `data` has exactly `.nbytes` of them."""

    def numpy(self) -> np.ndarray:
        """A new array on the host with the values that the device holds now."""
        if self.nbytes == 0:
            return np.empty(self.shape, self.dtype)
        return np.frombuffer(bytearray(self.read_bytes()), dtype=self.dtype).reshape(self.shape)

    def write(self, values: npt.ArrayLike) -> None:
        """Replace all values. Shape and dtype must be those of this array: DeviceArrayError if not."""
        given = np.asarray(values)
        if given.shape != self.shape or given.dtype != self.dtype:
            raise DeviceArrayError(
                f"a device array of shape {self.shape} and dtype {self.dtype} takes exactly these, but the "
                f"values have shape {given.shape} and dtype {given.dtype}; reshape or convert them first"
            )
        self.write_bytes(given.tobytes())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(address={self.address:#x}, shape={self.shape}, dtype={self.dtype})"


@dataclass(frozen=True)
class Finding:
    """One thing that a device found wrong ("error") or risky ("advice") in a kernel.

    `code` is stable and short, `line` counts from 1 in the PTX text (None: no single line), `instruction` is
    the source text of the instruction, empty where there is none; `str` cuts a long one in the middle. `source` is the
    line of what the PTX was compiled from, if `.loc` names it: `kernel.py:12:5`.
    """

    code: str
    severity: Severity
    message: str
    line: int | None = None
    instruction: str = ""
    source: str = ""

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}{f' ({self.source})' if self.source else ''}: "
        source = f"\n    {_shortened(self.instruction, _SHOWN_INSTRUCTION)}" if self.instruction else ""
        return f"{place}{self.severity} [{self.code}] {self.message}{source}"


@dataclass(frozen=True, order=True)
class OlderValue:
    """A strong load (in `line`) found what was there before a strong store (in `store_line`), so many `times`.

    That may be (PTX ISA 8.10), since nothing orders the store before the load, and is right where the load polls.
    """

    line: int
    store_line: int
    times: int

    def __str__(self) -> str:
        times = "once" if self.times == 1 else f"{self.times} times"
        return f"line {self.line} found what was there before the store of line {self.store_line}, {times}"


@dataclass
class LaunchReport:
    """How one launch ended.

    `instructions` counts executed warp-instructions (0 on a GPU, which does not count them), `seconds` is the
    time that execution took: on the device for a GPU, of the emulation for the emulator. If results are wrong under
    `late` or `random` alone, look at `older_values` first: fences may be missing there.
    """

    status: Status
    findings: list[Finding] = field(default_factory=list)
    instructions: int = 0
    seconds: float = 0.0
    kernel: str = ""
    device: str = ""
    older_values: list[OlderValue] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the kernel ran to its end with nothing worse than advice."""
        return self.status == "ok"

    def summary(self) -> str:
        """One line on the outcome, each finding below it, and one on older values where they may be in results."""
        what = " on ".join(part for part in (self.kernel, self.device) if part)
        facts = [f"{self.seconds * 1e3:.3f} ms"]
        if self.instructions:
            facts.insert(0, f"{self.instructions} warp-instructions")
        for severity, plural in (("error", "errors"), ("advice", "advice")):
            count = sum(finding.severity == severity for finding in self.findings)
            if count:
                facts.append(f"{count} {severity if count == 1 else plural}")
        head = f"{what + ': ' if what else ''}{self.status} ({', '.join(facts)})"
        lines = [head, *(str(finding) for finding in self.findings)]
        if self.older_values and self.status in ("ok", "findings"):  # else there are no results
            lines.append(self.older_values_text)
        return "\n".join(lines)

    @property
    def older_values_text(self) -> str:
        """What the first of `older_values` are, in words."""
        shown = "; ".join(map(str, self.older_values[:_SHOWN_OLDER]))
        more = len(self.older_values) - _SHOWN_OLDER
        rest = f"; and {more} more in older_values" if more > 0 else ""
        return f"strong loads found older values, which is right where they poll: {shown}{rest}"


@dataclass(frozen=True)
class ParameterInfo:
    """One parameter of an entry; `size`, `align` and `offset` are in bytes.

    `offset` counts from the start of the parameter block, whose start is aligned for every parameter in it.
    `type` is the PTX type without its dot, `is_array` tells `.b8 name[128]` or a vector from a scalar.
    """

    name: str
    size: int
    align: int
    offset: int
    type: str
    is_array: bool = False

    @property
    def declaration(self) -> str:
        """The parameter in PTX's spelling, for messages: ".b8 map[128]"; a long name is cut in the middle."""
        name = _shortened(self.name, _SHOWN_NAME)
        if not self.is_array:
            return f".{self.type} {name}"
        return f".{self.type} {name}[{self.size // type_size(self.type, self.name)}]"


@dataclass(frozen=True)
class Kernel:
    """One entry of a PTX module, ready to be launched on any device."""

    text: str = field(repr=False)
    module: Module = field(repr=False, compare=False)
    entry: Function = field(repr=False, compare=False)
    name: str

    @classmethod
    def from_ptx(cls, text: str, entry: str | None = None) -> Kernel:
        """Parse PTX text and pick an entry; `entry` is needed only where there are several.

        It is the entry's name, or a part of it that no other entry's name contains: mangled names are long. Raises
        PtxSyntaxError on bad text, KernelError when there is no such entry or no single one.
        """
        from ptxgen.syntax import parse

        module = parse(text)
        entries = list(module.entries)
        names = [each.name for each in entries]
        if entry is None:
            if len(entries) != 1:
                found = f"it has {len(names)}: {_names(names)}" if names else "it has none"
                advice = "name one, or a part of its name, with entry=" if names else "add an .entry"
                raise KernelError(f"a kernel needs one entry in the PTX text, but {found}; {advice}")
            chosen = entries[0]
        elif entry in names:
            chosen = entries[names.index(entry)]
        else:
            parts = [each for each in entries if entry in each.name]
            if not parts:
                raise KernelError(f"the PTX text has no entry {entry!r}; it has {_names(names)}")
            if len(parts) > 1:
                found = _names([each.name for each in parts])
                raise KernelError(f"{len(parts)} entries of the PTX text have {entry!r} in their names: {found}")
            chosen = parts[0]
        return cls(text, module, chosen, chosen.name)

    @cached_property
    def analysis(self) -> Analysis:
        """What the module's statements are: `ptxgen.check` and the emulator share it."""
        from ptxgen.instr.model.analyze import Analysis

        return Analysis(self.module)

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """What `ptxgen.check` says of the module, for its own target."""
        from ptxgen.instr.model.check import check

        return check(self.module, analysis=self.analysis)

    @cached_property
    def cache(self) -> dict[object, object]:
        """What devices have made of the kernel, by keys of theirs: launches share it."""
        return {}

    @cached_property
    def parameters(self) -> list[ParameterInfo]:
        """The entry's parameters in order, laid out by the alignment rules of PTX (those of a C struct).

        Measured (ptxas 13.0 and 13.5): where the driver's block starts at an address aligned to less than a
        parameter, as on sm_80 and sm_90, a cubin has that parameter at another offset, so that its address is
        aligned as declared. PTX cannot tell, and `Gpu` passes each parameter on its own.
        """
        infos: list[ParameterInfo] = []
        offset = 0
        for parameter in self.entry.parameters:
            type_name = parameter.type.removeprefix(".")
            element = type_size(type_name, parameter.name) * (parameter.vector or 1)
            align = max(parameter.align or 1, element)  # ptxas raises an .align below the element's size
            size = element
            for extent in parameter.array or ():
                if not extent:
                    raise KernelError(f"parameter {parameter.name} of {self.name} is an array without a size")
                size *= extent
            offset = -(-offset // align) * align
            is_array = bool(parameter.array or parameter.vector)
            infos.append(ParameterInfo(parameter.name, size, align, offset, type_name, is_array))
            offset += size
        return infos

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the parameter block: the end of the last parameter."""
        return max((info.offset + info.size for info in self.parameters), default=0)


@dataclass(frozen=True)
class LaunchShape:
    """Grid and cluster in CTAs, block in threads, each (x, y, z); dynamic shared memory in bytes per CTA."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None = None
    shared_bytes: int = 0

    @classmethod
    def of(cls, grid: Extent, block: Extent, cluster: Extent | None = None, shared_bytes: int = 0) -> LaunchShape:
        """Check what holds on every target and fill missing dimensions with 1. Raises LaunchError."""
        full_grid = _extent("grid", grid, _MAX_GRID)
        full_block = _extent("block", block, _MAX_BLOCK)
        threads = math.prod(full_block)
        if threads > _MAX_THREADS:
            raise LaunchError(f"a block has at most {_MAX_THREADS} threads, but {full_block} has {threads}")
        full_cluster = None
        if cluster is not None:
            full_cluster = _extent("cluster", cluster, (_MAX_CLUSTER,) * 3)
            count = math.prod(full_cluster)
            if count > _MAX_CLUSTER:
                raise LaunchError(f"a cluster has at most {_MAX_CLUSTER} CTAs, but {full_cluster} has {count}")
            if any(extent % part for extent, part in zip(full_grid, full_cluster, strict=True)):
                raise LaunchError(
                    f"every grid dimension must be a multiple of the cluster's: grid {full_grid}, "
                    f"cluster {full_cluster}"
                )
        size = _whole_numbers(shared_bytes)
        if size is None or len(size) != 1 or size[0] < 0:
            raise LaunchError(f"shared_bytes is a number of bytes, 0 or more, but it is {shared_bytes!r}")
        return cls(full_grid, full_block, full_cluster, size[0])


@dataclass(frozen=True)
class Launch:
    """One launch of several in a stream: the arguments of `Device.launch`. Raises LaunchError for what is none."""

    kernel: Kernel
    grid: Extent
    block: Extent
    args: Sequence[object]
    cluster: Extent | None = None
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        kernel, args = cast("object", self.kernel), cast("object", self.args)
        if not isinstance(kernel, Kernel):
            raise LaunchError(
                f"a launch takes a ptxgen.Kernel, not {type(kernel).__name__}; Kernel.from_ptx(text) makes one"
            )
        if not isinstance(args, Sequence) or isinstance(args, str | bytes):
            raise LaunchError(
                f"the arguments of a launch are a list, in the order of the parameters, not {type(args).__name__}"
            )


@runtime_checkable
class Device(Protocol):
    """What runs kernels: the emulator or a GPU. A script runs on either by changing one object."""

    @property
    def name(self) -> str:
        """What the device calls itself."""
        ...

    @property
    def target(self) -> str:
        """The architecture whose PTX it runs, such as "sm_90a"."""
        ...

    def array(self, values: npt.ArrayLike) -> DeviceArray:
        """Copy host values into new device memory."""
        ...

    def empty(self, shape: Extent, dtype: npt.DTypeLike) -> DeviceArray:
        """New device memory whose contents are undefined."""
        ...

    def launch(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        *,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
    ) -> LaunchReport:
        """Run a kernel to its end; `args` are in the order of the entry's parameters."""
        ...


def _shortened(text: str, most: int) -> str:
    """A text of about so many characters: what is left out of a longer one is in the middle."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_ENTRIES} more" if len(names) > _SHOWN_ENTRIES else ""
    return ", ".join(names[:_SHOWN_ENTRIES]) + more or "none"


def array_shape(shape: Extent) -> tuple[int, ...]:
    """A shape as a tuple; one number is one dimension. Raises DeviceArrayError."""
    extents = _whole_numbers(shape)
    if extents is None or min(extents, default=0) < 0:
        raise DeviceArrayError(f"a shape is a number of elements, or several, all 0 or more, not {shape!r}")
    return extents


def _whole_numbers(given: object) -> tuple[int, ...] | None:
    """One whole number or several of them; None if it is anything else."""
    parts = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    whole = [int(part) for part in parts if isinstance(part, int | np.integer)]
    return tuple(whole) if len(whole) == len(parts) else None


def type_size(type_name: str, parameter: str) -> int:
    """Bytes of one element of a parameter's type ("u64" is 8). Raises KernelError where it has no size."""
    match = re.fullmatch(r"(?:[busf](8|16|32|64|128)|bf(16))(x2)?", type_name)
    if match is None:
        raise KernelError(f"parameter {parameter} has type .{type_name}, which has no size in a parameter block")
    bits = int(match[1] or match[2]) * (2 if match[3] else 1)
    return bits // 8


def pack_arguments(kernel: Kernel, args: Sequence[object]) -> bytes:
    """The parameter block of a launch: every argument at its parameter's offset, gaps zero.

    A DeviceArray gives its address, bytes and objects with `.encode()` (TensorMap) give their bytes, NumPy
    scalars their own bytes, an int is stored in the parameter's size, a float in its floating-point type.
    Raises KernelArgumentError.
    """
    parameters, name = kernel.parameters, _shortened(kernel.name, _SHOWN_NAME)
    if len(args) != len(parameters):
        expected = ", ".join(f"{index}: {info.declaration}" for index, info in enumerate(parameters)) or "none"
        raise KernelArgumentError(f"{name} takes {len(parameters)} arguments ({expected}), but {len(args)} were given")
    block = bytearray(kernel.parameter_bytes)
    for index, (info, value) in enumerate(zip(parameters, args, strict=True)):
        try:
            data = _argument_bytes(info, value)
        except _DoesNotFitError as reason:
            raise KernelArgumentError(
                f"argument {index} of {name} is for {info.declaration} ({info.size} bytes), but {reason}"
            ) from None
        block[info.offset : info.offset + info.size] = data
    return bytes(block)


class _DoesNotFitError(Exception):
    """Why a value cannot be the argument of a parameter, as the end of a sentence."""


def _argument_bytes(info: ParameterInfo, value: object) -> bytes:
    if isinstance(value, DeviceArray):
        if info.size != 8:
            raise _DoesNotFitError("a device array was given, whose address has 8 bytes")
        return value.address.to_bytes(8, "little")
    if isinstance(value, np.ndarray):
        raise _DoesNotFitError(
            f"a NumPy array of shape {value.shape} was given; copy it to the device with .array(), or pass "
            "one element, or .tobytes()"
        )
    if isinstance(value, np.generic) or type(value).__module__.startswith("ml_dtypes"):
        scalar = np.asarray(value)
        return _exactly(info, scalar.tobytes(), f"a NumPy {scalar.dtype}")
    if isinstance(value, bytes | bytearray | memoryview):
        return _exactly(info, bytes(value), f"{type(value).__name__}")
    if isinstance(value, int):
        return _integer_bytes(info, value)
    if isinstance(value, float):
        return _float_bytes(info, value)
    encode = getattr(value, "encode", None)
    if callable(encode) and not isinstance(value, str):
        data = encode()
        if isinstance(data, bytes | bytearray):
            return _exactly(info, bytes(data), f"a {type(value).__name__}")
    raise _DoesNotFitError(
        f"a {type(value).__name__} was given; pass a device array, a tensormap, a NumPy scalar, an int, "
        "a float or bytes"
    )


def _exactly(info: ParameterInfo, data: bytes, what: str) -> bytes:
    if len(data) != info.size:
        raise _DoesNotFitError(f"{what} of {len(data)} bytes was given")
    return data


def _integer_bytes(info: ParameterInfo, value: int) -> bytes:
    if info.is_array:
        raise _DoesNotFitError(f"the int {value} was given; an array parameter takes bytes")
    if _is_float(info):
        try:
            return _float_bytes(info, float(value))
        except OverflowError:
            raise _DoesNotFitError(f"the int {value} is out of range of .{info.type}") from None
    bits = info.size * 8
    low = -(2 ** (bits - 1))
    # .u32 holds C's int as well as its unsigned int, so that both readings of the bits are taken.
    high = 2 ** (bits - 1) if info.type.startswith("s") else 2**bits
    if not low <= value < high:
        raise _DoesNotFitError(f"the int {value} is outside {low}..{high - 1}")
    return (value % 2**bits).to_bytes(info.size, "little")


def _float_bytes(info: ParameterInfo, value: float) -> bytes:
    if info.is_array or not _is_float(info):
        raise _DoesNotFitError(
            f"the float {value!r} was given, which needs an .f32 or .f64 parameter; pass a NumPy scalar, "
            f"such as numpy.float32({value!r}), to say which bits are meant"
        )
    try:
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[info.size], value)
    except OverflowError:
        raise _DoesNotFitError(f"the float {value!r} is out of range of .{info.type}") from None


def _is_float(info: ParameterInfo) -> bool:
    return re.fullmatch(r"f(16|32|64)", info.type) is not None


def _extent(what: str, given: Extent, limits: tuple[int, ...]) -> tuple[int, int, int]:
    parts = _whole_numbers(given)
    if parts is None:
        raise LaunchError(f"the {what} is a whole number, or up to three of them, not {given!r}")
    if not 1 <= len(parts) <= 3:
        raise LaunchError(f"the {what} has 1 to 3 dimensions, but {given!r} has {len(parts)}")
    x, y, z = (*parts, 1, 1)[:3]
    full = (x, y, z)
    for axis, extent, limit in zip("xyz", full, limits, strict=True):
        if not 1 <= extent <= limit:
            raise LaunchError(f"the {what}'s {axis} must be in 1..{limit}, but it is {extent} in {given!r}")
    return full
