"""DLPack of a PyTorch that was built for the CPU alone: tensors in device memory are exchanged as tensors of a GPU.

TVM-FFI (TileLang) takes tensors by the functions in `__dlpack_c_exchange_api__`, others by `__dlpack__`. The structures
are those of dlpack.h, version 1.
"""

import ctypes

from ptxgen_exec import device_memory, torch_cuda

_CPU, _CUDA = 1, 2
_FAILED = -1


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_Made = ctypes.POINTER(ctypes.POINTER(_Versioned))
_Allocate = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Tensor), _Made, ctypes.c_void_p, ctypes.c_void_p)
_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _Made)
_ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Versioned), ctypes.POINTER(ctypes.c_void_p))
_View = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Tensor))
_Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class _Exchange(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        ("allocate", _Allocate),
        ("from_object", _FromObject),
        ("to_object", _ToObject),
        ("view", _View),
        ("stream", _Stream),
    )


_python = ctypes.pythonapi
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetName.argtypes = [ctypes.py_object]
_python.PyCapsule_GetName.restype = ctypes.c_char_p
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_New.restype = ctypes.py_object
_python.Py_DecRef.argtypes = [ctypes.c_void_p]
_NAME = ctypes.c_char_p(b"dlpack_exchange_api")


def _name_device(tensor):
    if tensor.data and device_memory.is_device_address(tensor.data):
        tensor.device.type, tensor.device.id = _CUDA, 0


def _exchange(torch, plain, empty):
    """The functions of PyTorch, for tensors in device memory too; `empty(size, dtype)` makes one."""

    def dtype_of(prototype):
        """PyTorch's name of a type: that of an empty tensor."""
        shape = (ctypes.c_int64 * 1)(0)
        small = _Tensor(None, _Device(_CPU, 0), 1, prototype.dtype, shape, None, 0)
        made, found = ctypes.POINTER(_Versioned)(), ctypes.c_void_p()
        if plain.allocate(small, made, None, None) or plain.to_object(made, found):
            raise RuntimeError("PyTorch has no such type")
        tensor = ctypes.cast(found, ctypes.py_object).value
        _python.Py_DecRef(found)
        return tensor.dtype

    def allocate(prototype, made, context, set_error):
        wanted = prototype.contents
        if wanted.device.type != _CUDA:
            return plain.allocate(prototype, made, context, set_error)
        tensor = empty([wanted.shape[axis] for axis in range(wanted.ndim)], dtype_of(wanted))
        return from_object(id(tensor), made)

    def from_object(value, made):
        result = plain.from_object(value, made)
        if not result:
            _name_device(made.contents.contents.tensor)
        return result

    def to_object(given, made):
        if given.contents.tensor.device.type == _CUDA:
            given.contents.tensor.device.type = _CPU
        return plain.to_object(given, made)

    def view(value, made):
        result = plain.view(value, made)
        if not result:
            _name_device(made.contents)
        return result

    def stream(device, number, found):
        if device != _CUDA:
            return plain.stream(device, number, found)
        found[0] = torch_cuda.current_stream().cuda_stream or None
        return 0

    def or_failed(function):
        def call(*arguments):
            try:
                return function(*arguments)
            except Exception:  # C asks, and gets a number
                return _FAILED

        return call

    return _Exchange(
        plain.version, None, _Allocate(or_failed(allocate)), _FromObject(or_failed(from_object)),
        _ToObject(or_failed(to_object)), _View(or_failed(view)), _Stream(or_failed(stream)),
    )  # fmt: skip


def patch(torch, is_ours, empty):
    """Let tensors in device memory say that they are on a GPU, where `is_ours` says so of one."""
    tensor = torch.Tensor
    plain_capsule, plain_device = tensor.__dlpack__, tensor.__dlpack_device__

    def device(self):
        return (_CUDA, 0) if is_ours(self) else plain_device(self)

    def capsule(self, **options):
        if not is_ours(self):
            return plain_capsule(self, **options)
        options.pop("stream", None)
        if options.get("dl_device") == (_CUDA, 0):
            del options["dl_device"]
        made = plain_capsule(self, **options)
        name = _python.PyCapsule_GetName(made)
        address = _python.PyCapsule_GetPointer(made, name)
        if name == b"dltensor_versioned":
            _name_device(_Versioned.from_address(address).tensor)
        else:
            _name_device(_Tensor.from_address(address))
        return made

    tensor.__dlpack__, tensor.__dlpack_device__ = capsule, device
    plain = getattr(tensor, "__dlpack_c_exchange_api__", None)
    if plain is not None:
        functions = _Exchange.from_address(_python.PyCapsule_GetPointer(plain, _NAME.value))
        made = _exchange(torch, functions, empty)
        tensor.__dlpack_c_exchange_api__ = _python.PyCapsule_New(ctypes.addressof(made), _NAME, None)
        tensor._ptxgen_exchange = made, functions  # they live as long as PyTorch
