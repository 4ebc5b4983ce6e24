"""What `--arg NAME=VALUE` and `--out NAME=FILE` say: arrays, scalars and tensormaps in one line each."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.cli.common.files import reason, require_writable
from ptxgen.cli.errors import InputError, nearest
from ptxgen.cli.launch.structs import StructValue, parse_struct
from ptxgen.device.arrays import DeviceArrayError, array_dtype, host_array
from ptxgen.dtypes import DTYPES, type_name
from ptxgen.files import require_end, similar_file

Array = NDArray[Any]
Generator = Callable[[np.random.Generator, tuple[int, ...]], Array]

#: Values of an array: each takes the random numbers of `--seed` and a shape.
GENERATORS: dict[str, Generator] = {
    "zeros": lambda _, shape: np.zeros(shape),
    "ones": lambda _, shape: np.ones(shape),
    "arange": lambda _, shape: np.arange(int(np.prod(shape))).reshape(shape),
    "randn": lambda random, shape: random.standard_normal(shape),
    "uniform": lambda random, shape: random.random(shape),
    "randint": lambda random, shape: random.integers(-8, 9, shape),
}
#: Memory to which nothing has been written.
EMPTY = "empty"
FORMATS = (".npy", ".npz", ".pt")
VALUES = (
    "FILE.npy, FILE.npz:KEY or FILE.pt:KEY; KIND:TYPE:SHAPE such as randn:bf16:512x512 (KIND: "
    f"{', '.join(GENERATORS)}, {EMPTY}); a number; struct:TYPE:VALUE,...; or tensormap:ARRAY:BOX[:SWIZZLE], the box "
    "outermost first"
)
_FILE = re.compile(r"(?P<path>.*\.(?:npy|npz|pt))(?::(?P<more>[^/]*))?$")
_NUMBER = re.compile(r"(?:(?P<type>[a-z]\w*):)?(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|[\d.][\w.+-]*|inf|nan))$")
_EXTENTS = re.compile(r"\d+(?:x\d+)*$")
#: What a tensormap may say besides its box and swizzle, as `TensorMap.tiled` takes it.
_MAP_OPTIONS = ("interleave", "l2_promotion", "oob_fill", "element_strides", "dtype")


@dataclass(frozen=True)
class ArrayValue:
    """An array of the launch. `written` is False for memory that is to be left as it is."""

    values: Array
    written: bool = True


@dataclass(frozen=True)
class ScalarValue:
    """A number as a person writes it; its parameter, or the type before it (`f32:1`), says what it is."""

    text: str
    dtype: str = ""

    def of(self, parameter_type: str) -> object:
        """The number for a parameter of a PTX type. Raises InputError."""
        name = self.dtype or parameter_type
        try:
            if DTYPES.get(name) is not None and DTYPES[name].kind == "float":
                number = np.asarray(float(self.text)).astype(array_dtype(name))
                return number[()] if self.dtype else float(self.text)
            whole = int(self.text, 0)
            return np.array(whole, array_dtype(name))[()] if self.dtype else whole
        except (ValueError, OverflowError, DeviceArrayError):
            hint = f"; f32:{self.text} passes its bits" if name == "b32" and _is_number(self.text) else ""
            raise InputError(f"the parameter is .{name}, and {self.text!r} is no value of it{hint}") from None


@dataclass(frozen=True)
class TensormapValue:
    """A tiled tensormap over an array; `box` is outermost first, as the shape of the array is."""

    array: str
    box: tuple[int, ...]
    swizzle: str = "none"
    options: Mapping[str, str] = field(default_factory=dict)

    def encode(self, values: Array, address: object) -> Any:
        """The map over an array at an address. Raises InputError for a box of another rank, DescriptorError."""
        from ptxgen.descriptors import TensorMap

        if values.ndim != len(self.box):
            raise InputError(
                f"the box of the tensormap over {self.array} has {len(self.box)} dimensions, the array {values.ndim}"
            )
        options: dict[str, Any] = {name: value for name, value in self.options.items() if name != "dtype"}
        if "element_strides" in options:
            options["element_strides"] = extents("element_strides", options["element_strides"])[::-1]
        dtype = self.options.get("dtype", "u8" if values.dtype.itemsize == 1 else str(values.dtype))
        return TensorMap.tiled(
            dtype,
            address,
            values.shape[::-1],
            values.strides[-2::-1] or (values.dtype.itemsize,),
            self.box[::-1],
            swizzle=self.swizzle,
            **options,
        )


Value = ArrayValue | ScalarValue | TensormapValue | StructValue


def parse_values(given: list[str], seed: int) -> dict[str, Value]:
    """What each `--arg NAME=VALUE` says, by name; each has random numbers of its own. Raises InputError."""
    found: dict[str, Value] = {}
    for number, word in enumerate(given):
        name, equals, text = word.partition("=")
        if not (equals and name and text):
            raise InputError(f"--arg takes NAME=VALUE, not {word!r}; VALUE is {VALUES}")
        if name in found:
            raise InputError(f"--arg {name}= is given twice")
        try:
            found[name] = _value(text, np.random.default_rng([seed, number]))
        except InputError as error:
            raise InputError(f"--arg {name}: {error}") from None
    return found


def _value(text: str, random: np.random.Generator) -> Value:
    kind, _, rest = text.partition(":")
    if kind == "tensormap":
        return _tensormap(rest)
    if kind == "struct":
        return parse_struct(rest)
    if match := _FILE.match(text):
        return ArrayValue(load(match["path"], match["more"] or ""))
    if kind in GENERATORS or kind == EMPTY:
        return _generated(kind, rest, random)
    if match := _NUMBER.match(text):
        if match["type"] and match["type"] not in DTYPES:
            raise InputError(f"there is no type {match['type']!r}{nearest(match['type'], DTYPES)}")
        return ScalarValue(match["number"], match["type"] or "")
    kinds = [*GENERATORS, EMPTY, "tensormap", "struct"]
    near = nearest(
        kind, [each for each in kinds if each[0] == kind[0]]
    )  # "normal" is like "tensormap" letter by letter
    raise InputError(f"{text!r} is no value{near or f'; a value is {VALUES}'}")


def extents(what: str, text: str) -> tuple[int, ...]:
    """The numbers of `512x512`. Raises InputError."""
    if not _EXTENTS.match(text):
        raise InputError(f"{what} takes numbers with x between them, such as 512x64, not {text!r}")
    return tuple(int(each) for each in text.split("x"))


def _dtype(name: str) -> np.dtype[Any]:
    if name not in DTYPES:
        raise InputError(f"there is no type {name!r}{nearest(name, DTYPES) or '; there are ' + ', '.join(DTYPES)}")
    if DTYPES[name].bits < 8:
        raise InputError(f"{name} is packed in memory; give its bytes as u8")
    try:
        return array_dtype(name)
    except DeviceArrayError as error:
        raise InputError(str(error)) from None


def _generated(kind: str, rest: str, random: np.random.Generator) -> ArrayValue:
    name, _, shape = rest.partition(":")
    if not name or not shape:
        raise InputError(f"{kind} takes {kind}:TYPE:SHAPE, such as {kind}:f32:512x512")
    dtype, size = _dtype(name), extents("a shape", shape)
    if kind == EMPTY:
        return ArrayValue(np.full((*size, dtype.itemsize), 0xCD, np.uint8).view(dtype).reshape(size), written=False)
    if kind in ("randn", "uniform") and dtype.kind in "iub":
        raise InputError(f"{kind} makes fractions, which {name} has none of; take randint:{rest}")
    values = GENERATORS[kind](random, size)
    if kind == "randint" and dtype.kind == "u":
        values = np.abs(values)
    return ArrayValue(np.ascontiguousarray(values.astype(dtype)))


def _tensormap(rest: str) -> TensormapValue:
    array, *words = rest.split(":")
    if not array or not words:
        raise InputError("a tensormap is tensormap:ARRAY:BOX[:SWIZZLE][:OPTION=VALUE], such as tensormap:a:128x64:128B")
    swizzle, options = "none", {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals:
            swizzle = word
        elif name in _MAP_OPTIONS:
            options[name] = value
        else:
            near = nearest(name, _MAP_OPTIONS)
            raise InputError(f"a tensormap has no option {name!r}{near or '; it has ' + ', '.join(_MAP_OPTIONS)}")
    return TensormapValue(array, extents("the box", words[0]), swizzle, options)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# Files.


def load(path: str, more: str = "") -> Array:
    """The array of a file. `more` is the key in an .npz or .pt of several, or the type of an .npy (`bf16`).

    Raises InputError.
    """
    try:
        require_end(path)
        return {".npy": _load_npy, ".npz": _load_npz, ".pt": _load_pt}[Path(path).suffix](path, more)
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}{similar_file(path)}") from None
    except DeviceArrayError as error:
        raise InputError(f"{path}: {error}") from None


def _load_npy(path: str, name: str) -> Array:
    try:
        values = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InputError(f"{path} is no .npy file that can be read: {error}") from None
    if name:
        dtype = _dtype(name)
        if values.dtype.kind == "V":  # as np.save writes types that NumPy has not
            if values.dtype.itemsize != dtype.itemsize:
                raise InputError(f"{path} has elements of {values.dtype.itemsize} bytes, {name} has {dtype.itemsize}")
            return values.view(dtype)
        return host_array(values, dtype)
    if values.dtype.kind == "V":
        raise InputError(
            f"{path} does not say what its elements of {values.dtype.itemsize} bytes are; say it: {path}:bf16"
        )
    return host_array(values)


def _load_npz(path: str, key: str) -> Array:
    try:
        with np.load(path, allow_pickle=False) as found:
            return host_array(_member(path, {name: found[name] for name in found.files}, key))
    except ValueError as error:
        raise InputError(f"{path} is no .npz file that can be read: {error}") from None


def _torch(path: str) -> ModuleType:
    """The module torch. Raises InputError where a .pt file cannot be read or written."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise InputError(f"{path} needs PyTorch, which is not installed: pip install 'ptxgen[torch]'") from None


def _load_pt(path: str, key: str) -> Array:
    torch = _torch(path)
    import pickle

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        raise InputError(f"{path} is no .pt file of tensors: {str(error).splitlines()[0]}") from None
    return host_array(_member(path, found, key) if isinstance(found, Mapping) else found)


def _member(path: str, found: Mapping[str, Any], key: str) -> Any:
    if not key and len(found) == 1:
        return next(iter(found.values()))
    if key not in found:
        said = f"has no array {key!r}" if key else f"has {len(found)} arrays"
        raise InputError(f"{path} {said}; name one of {', '.join(map(str, found))}: {path}:KEY")
    return found[key]


def require_savable(path: str) -> None:
    """Raises InputError where `save` could not write a file, before there is anything to save."""
    require_writable(path)
    if path.endswith(".pt"):
        _torch(path)


def save(path: str, values: Array) -> None:
    """Write an array as .npy, .npz (with the key `values`) or .pt. Raises InputError."""
    try:
        if path.endswith(".pt"):
            _save_pt(path, values)
        elif path.endswith(".npz"):
            np.savez(path, values=values)
        else:
            np.save(path, values)
    except OSError as error:
        raise InputError(f"cannot write {path}: {reason(error)}") from None


def _save_pt(path: str, values: Array) -> None:
    torch = _torch(path)
    from ptxgen.device.arrays import host_tensor

    torch.save(host_tensor(values), path)


def parse_outputs(given: list[str]) -> dict[str, str]:
    """The file of each `--out NAME=FILE`, by name; without a file it is NAME.npy. Raises InputError."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, path = word.partition("=")
        path = path if equals else f"{name}.npy"
        if not name or not path.endswith(FORMATS):
            raise InputError(f"--out takes NAME or NAME=FILE, a file of {', '.join(FORMATS)}, not {word!r}")
        found[name] = path
    return found


def describe(name: str, values: Array) -> str:
    """An array in one line: type, shape, and what its values are like."""
    shape = "x".join(map(str, values.shape)) or "1"
    head = f"{name}: {type_name(values.dtype)} {shape}"
    if not values.size:
        return head
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    odd = numbers.size - finite.size
    facts = [f"{finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}"] if finite.size else []
    facts += [f"{odd} not finite"] if odd else []
    return f"{head}, {', '.join(facts)}"
