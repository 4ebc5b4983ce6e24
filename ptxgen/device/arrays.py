"""Arrays in global memory of a device, and what becomes one: NumPy arrays, torch tensors, and their like."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ptxgen.dtypes import DTYPES, scalar_type

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

Extent = int | np.integer | Sequence[int]
Index = int | slice | EllipsisType | None | npt.NDArray[Any] | tuple[Any, ...]
#: An element type: a name as PTX has it ("bf16", "e4m3", "u8"), or what NumPy takes, ml_dtypes' types included.
DTypeLike = npt.DTypeLike


class DeviceArrayError(ValueError):
    """Values that a device array cannot hold: another shape or dtype than its own, or Python objects."""


def array_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The NumPy type of an element type. Raises DeviceArrayError.

    PTX's names come first: "u8" has 8 bits and "f16" is a half, where NumPy counts bytes. Untyped "b16" is unsigned.
    """
    if isinstance(dtype, str) and dtype in DTYPES:
        known = DTYPES[dtype]
        name = f"u{known.bits}" if known.kind == "bits" and known.bits >= 8 else dtype
        try:
            return np.dtype(scalar_type(name))
        except KeyError as error:
            raise DeviceArrayError(str(error.args[0])) from None
    if str(dtype).startswith("torch."):
        dtype = str(dtype).removeprefix("torch.")
    try:
        return np.dtype(_extended(dtype) if isinstance(dtype, str) else dtype)
    except TypeError:
        names = ", ".join(DTYPES)
        raise DeviceArrayError(f"{dtype!r} is no element type; there are {names}, and those of NumPy") from None


def _extended(name: str) -> DTypeLike:
    """The type of ml_dtypes of this name, else the name."""
    import ml_dtypes

    return getattr(ml_dtypes, name, name) if name.startswith(("bfloat", "float", "int", "uint")) else name


def host_array(values: object, dtype: DTypeLike | None = None) -> np.ndarray:
    """Values as a C-contiguous NumPy array, converted to `dtype` where one is given. Raises DeviceArrayError.

    Takes NumPy arrays, numbers and lists, torch tensors of every ml_dtypes type, device arrays, and whatever
    offers DLPack, `__array__` or `__array_interface__`. A torch tensor on a GPU is copied.
    """
    if (tensor := torch_tensor(values)) is not None:
        given = _of_torch(tensor)
    elif (
        hasattr(values, "__dlpack__")
        and not hasattr(values, "__array__")
        and not hasattr(values, "__array_interface__")
    ):
        given = np.from_dlpack(values)  # type: ignore[arg-type]
    else:
        given = np.asarray(values)
    if dtype is not None:
        given = given.astype(array_dtype(dtype), copy=False)
    if given.dtype.hasobject or given.dtype.kind == "U":
        kind = "text" if given.dtype.kind == "U" else "Python objects"
        raise DeviceArrayError(
            f"a device array holds numbers, not {kind} (dtype {given.dtype}); give them one type, such as dtype='f32'"
        )
    return np.ascontiguousarray(given).reshape(given.shape)


def torch_tensor(values: object) -> Tensor | None:
    """The values if they are a torch tensor; torch is not imported for it."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return cast("Tensor", values) if kind is not None and isinstance(values, kind) else None


def _of_torch(tensor: Tensor) -> np.ndarray:
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        kind = "meta" if tensor.device.type == "meta" else str(tensor.layout).removeprefix("torch.")
        raise DeviceArrayError(f"a device array takes dense tensors with values, not a {kind} tensor")
    host = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if not hasattr(np, name):
        return host.flatten().view(torch.uint8).numpy().view(array_dtype(name)).reshape(tuple(tensor.shape))
    return host.numpy()


def host_tensor(values: np.ndarray) -> Tensor:
    """A CPU tensor in the memory of a contiguous array. Raises ImportError without PyTorch, DeviceArrayError."""
    torch = _torch()
    if values.dtype.isbuiltin == 1:
        return torch.from_numpy(values)
    known = getattr(torch, values.dtype.name, None)
    if known is None:
        raise DeviceArrayError(f"PyTorch has no type for {values.dtype}")
    return torch.from_numpy(values.reshape(-1).view(np.uint8)).view(known).reshape(values.shape)


def _torch() -> ModuleType:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            "DeviceArray.torch() needs PyTorch, which is not installed: pip install 'ptxgen[torch]'"
        ) from None
    return torch


class DeviceArray(ABC):
    """A C-contiguous array in a device's global memory.

    `.address` is its first byte as kernels see it, `.nbytes` its size in bytes. A device derives from this
    class and moves raw bytes; shapes and dtypes are handled here. NumPy, DLPack, `len`, indexing and iteration read a
    copy of the values that the device holds now.
    """

    def __init__(self, address: int, shape: Extent, dtype: DTypeLike) -> None:
        self.address = address
        self.shape = array_shape(shape)
        self.dtype: np.dtype[Any] = array_dtype(dtype)
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

    def torch(self) -> Tensor:
        """A new CPU tensor with the values that the device holds now. Raises ImportError without PyTorch."""
        return host_tensor(self.numpy())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the values of a device array are copied to the host")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """A copy on the host. NumPy has no DLPack of types such as bf16: BufferError unless PyTorch is imported."""
        if self.dtype.isbuiltin != 1 and "torch" in sys.modules:
            return self.torch().__dlpack__()
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a device array of no dimensions has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __getitem__(self, index: Index) -> Any:
        return self.numpy()[index]

    def __setitem__(self, index: Index, values: npt.ArrayLike) -> None:
        changed = self.numpy()
        changed[index] = host_array(values)
        self.write(changed)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def write(self, values: object) -> None:
        """Replace all values. Shape and dtype must be those of this array: DeviceArrayError if not."""
        given = host_array(values)
        if given.shape != self.shape or given.dtype != self.dtype:
            raise DeviceArrayError(
                f"a device array of shape {self.shape} and dtype {self.dtype} takes exactly these, but the "
                f"values have shape {given.shape} and dtype {given.dtype}; reshape or convert them first"
            )
        self.write_bytes(given.tobytes())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(address={self.address:#x}, shape={self.shape}, dtype={self.dtype})"


def array_shape(shape: Extent) -> tuple[int, ...]:
    """A shape as a tuple; one number is one dimension. Raises DeviceArrayError."""
    extents = whole_numbers(shape)
    if extents is None or min(extents, default=0) < 0:
        raise DeviceArrayError(f"a shape is a number of elements, or several, all 0 or more, not {shape!r}")
    return extents


def whole_numbers(given: object) -> tuple[int, ...] | None:
    """One whole number or several of them; None if it is anything else."""
    parts = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    whole = [int(part) for part in parts if isinstance(part, int | np.integer)]
    return tuple(whole) if len(whole) == len(parts) else None
