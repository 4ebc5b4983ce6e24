"""Tensors in device memory, as DLPack and its C functions give them to others (PyTorch built for the CPU)."""

import ctypes

import torch

CPU, CUDA = (1, 0), (2, 0)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]  # fmt: skip


class Functions(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p) for name in ("version", "previous", "allocate", "give", "take", "view", "stream")
    ]


pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
functions = Functions.from_address(pointer(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def call(name, *arguments):
    assert ctypes.PYFUNCTYPE(ctypes.c_int)(getattr(functions, name))(*arguments) == 0, name


def device_of(value):
    view = Tensor()
    call("view", ctypes.c_void_p(id(value)), ctypes.byref(view))
    assert view.data == value.data_ptr()
    return tuple(view.device)


there, here = torch.arange(6.0, device="cuda").reshape(2, 3), torch.arange(6.0)
assert (there.__dlpack_device__(), here.__dlpack_device__()) == (CUDA, CPU)
assert (device_of(there), device_of(here)) == (CUDA, CPU)
made = Managed.from_address(pointer(there.__dlpack__(max_version=(1, 0)), b"dltensor_versioned"))
assert tuple(made.tensor.device) == CUDA
stream = ctypes.c_void_p(1)
call("stream", 2, 0, ctypes.byref(stream))
assert stream.value is None

# A library asks for a tensor on the device, of the shape and type of a prototype, and hands it to Python.
shape = (ctypes.c_int64 * 2)(4, 5)
prototype, managed, found = (
    Tensor(None, CUDA, 2, 2, 16, 1, shape, None, 0),
    ctypes.POINTER(Managed)(),
    ctypes.c_void_p(),
)
call("allocate", ctypes.byref(prototype), ctypes.byref(managed), None, None)
assert tuple(managed.contents.tensor.device) == CUDA
call("take", managed, ctypes.byref(found))
tensor = ctypes.cast(found, ctypes.py_object).value
assert (tensor.device.type, tensor.dtype, tuple(tensor.shape)) == ("cuda", torch.float16, (4, 5))
tensor.fill_(3)
assert (tensor.cpu() == 3).all()
print("PASS")
