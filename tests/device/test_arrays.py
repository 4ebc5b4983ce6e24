"""What becomes an array of a device, and how its values come back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen import Emulator
from ptxgen.device import DeviceArrayError, array_dtype
from ptxgen.dtypes import DTYPES

VALUES = np.array([[0, 1, 2], [3, 4, 5]], np.float32)


class OffersDLPack:
    def __dlpack__(self, **options: Any) -> Any:
        return VALUES.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return VALUES.__dlpack_device__()


class OffersArray:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return VALUES


class OffersInterface:
    __array_interface__ = VALUES.__array_interface__


@pytest.fixture
def device() -> Emulator:
    return Emulator()


@pytest.mark.parametrize(
    "given",
    [VALUES, VALUES.tolist(), OffersDLPack(), OffersArray(), OffersInterface(), VALUES.T.copy().T, VALUES[::-1][::-1]],
)
def test_what_is_taken(device: Emulator, given: object) -> None:
    made = device.array(given)
    np.testing.assert_array_equal(made.numpy(), VALUES)
    assert made.shape == (2, 3)


def test_an_array_of_the_device_is_taken(device: Emulator) -> None:
    copy = device.array(device.array(VALUES))
    np.testing.assert_array_equal(copy.numpy(), VALUES)


def test_types_have_the_names_of_ptx(device: Emulator) -> None:
    assert device.empty((2, 2), "bf16").dtype == ml_dtypes.bfloat16
    assert device.array([1, 2], "e4m3").dtype == ml_dtypes.float8_e4m3fn
    assert device.array([1, 2], dtype="f16").numpy().tolist() == [1.0, 2.0]
    assert device.empty(4, "u8").nbytes == 4  # NumPy's u8 has 8 bytes
    assert device.empty(4, "b16").dtype == np.uint16
    assert device.empty(4, np.float64).dtype == device.empty(4, "float64").dtype == np.float64
    assert device.empty(4, "bfloat16").dtype == ml_dtypes.bfloat16
    assert device.empty(4, "<i4").dtype == np.int32
    for name, known in DTYPES.items():
        if known.array_name:
            assert array_dtype(name).name == known.array_name


def test_types_that_there_are_not(device: Emulator) -> None:
    with pytest.raises(DeviceArrayError, match=r"'bf15' is no element type; there are f64, f32"):
        device.empty(4, "bf15")
    with pytest.raises(DeviceArrayError, match="have no type for ue4m3"):
        device.empty(4, "ue4m3")


@pytest.mark.parametrize("given", [[object()], [None, 1], np.array([1, "x"], object), ["a", "b"], {"a": 1}])
def test_objects_are_refused(device: Emulator, given: object) -> None:
    with pytest.raises(DeviceArrayError, match=r"a device array holds numbers, not (Python objects|text)"):
        device.array(given)


def test_protocols(device: Emulator) -> None:
    made = device.array(VALUES)
    assert len(made) == 2
    np.testing.assert_array_equal(np.asarray(made), VALUES)
    assert np.asarray(made, dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.from_dlpack(made), VALUES)
    assert made[1, 2] == 5
    np.testing.assert_array_equal(made[:, 1], [1, 4])
    np.testing.assert_array_equal([row.sum() for row in made], [3, 12])
    made[0] = [7, 8, 9]
    np.testing.assert_array_equal(made.numpy()[0], [7, 8, 9])
    with pytest.raises(IndexError):
        made[2]
    with pytest.raises(TypeError, match="no length"):
        len(device.array(1.0))
    assert bool(device.array(1.0))


def test_dlpack_of_numpy_has_no_bf16(device: Emulator) -> None:
    with pytest.raises((BufferError, TypeError, RuntimeError)):
        np.from_dlpack(device.empty(2, "bf16"))


def test_torch_that_is_not_installed(device: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs PyTorch, which is not installed: pip install 'ptxgen\[torch\]'"):
        device.empty(2, "f32").torch()


FLOATS = ("float64", "float32", "float16", "bfloat16")
NARROW = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
OTHERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")


@pytest.mark.parametrize("name", [*FLOATS, *NARROW, *OTHERS])
def test_torch_tensors(device: Emulator, name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not hasattr(torch, name):
        pytest.skip(f"this PyTorch has no {name}")
    tensor = torch.tensor([[0.5, 1, 2], [4, 1, 2]]).to(getattr(torch, name))
    made = device.array(tensor)
    assert made.dtype.name == name
    assert made.shape == (2, 3)
    np.testing.assert_array_equal(made.numpy().astype(np.float64), tensor.to(torch.float64).numpy())
    back = made.torch()
    assert back.dtype == tensor.dtype
    assert back.to(torch.float64).tolist() == tensor.to(torch.float64).tolist()
    assert device.array(tensor.T).numpy().astype(float).tolist() == tensor.to(torch.float64).T.tolist()
    assert device.empty(3, tensor.dtype).dtype == made.dtype


def test_torch_tensors_that_need_care(device: Emulator) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert device.array(torch.ones(3, requires_grad=True)).numpy().tolist() == [1, 1, 1]
    assert device.array(torch.tensor(2.0, dtype=torch.bfloat16)).shape == ()
    assert device.array(torch.empty(0, 4, dtype=torch.bfloat16)).shape == (0, 4)
    conjugated = torch.tensor([1 + 2j]).conj()
    assert device.array(conjugated).numpy().tolist() == [1 - 2j]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2", "int8"])
def test_torch_takes_arrays_by_dlpack(device: Emulator, name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = torch.tensor([[1, 2], [3, 4]]).to(getattr(torch, name))
    taken = torch.from_dlpack(device.array(tensor))
    assert taken.dtype == tensor.dtype
    assert taken.double().tolist() == tensor.double().tolist()


def test_torch_tensors_without_dense_values(device: Emulator) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(DeviceArrayError, match="takes dense tensors with values, not a sparse_coo tensor"):
        device.array(torch.eye(3).to_sparse())
    with pytest.raises(DeviceArrayError, match="not a meta tensor"):
        device.array(torch.empty(3, device="meta"))
