"""Device memory in the program's Python: allocated and synchronized through the stand-in driver."""

import ctypes
import functools

_driver = ctypes.CDLL(None)
_driver.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
_driver.cuMemFree_v2.argtypes = [ctypes.c_uint64]
_driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
_OUT_OF_MEMORY = 2
_BASE, _BYTES = 0x1000_0000_0000, 1 << 44


def initialize():
    """Make the device known to this thread."""
    context = ctypes.c_void_p()
    if _driver.cuInit(0) == 0 and _driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0:
        _driver.cuCtxSetCurrent(context)


def is_device_address(address):
    """Whether an address may be one of device memory."""
    return _BASE <= address < _BASE + _BYTES


def synchronize():
    """Wait for the device. Raises RuntimeError after a fault of a kernel."""
    error = _driver.cuCtxSynchronize()
    if error:
        raise _failure(error)


def synchronize_stream(stream):
    """Wait for a stream, given by its handle. Raises RuntimeError after a fault of a kernel."""
    error = _driver.cuStreamSynchronize(stream)
    if error:
        raise _failure(error)


def _failure(error):
    """An error of the driver, in PyTorch's words."""
    name = ctypes.c_char_p()
    _driver.cuGetErrorString(error, ctypes.byref(name))
    return RuntimeError(f"CUDA error: {(name.value or b'').decode()}")


@functools.lru_cache(maxsize=1024)
def _buffer_type(size):
    """A type of buffers of so many bytes that free their memory with the last reference."""

    def __del__(self):
        _driver.cuMemFree_v2(ctypes.addressof(self))

    return type("DeviceBuffer", (ctypes.c_char * size,), {"__del__": __del__})


def allocate(size):
    """A buffer of device memory. Raises MemoryError, and RuntimeError after a fault of a kernel."""
    address = ctypes.c_void_p()
    error = _driver.cuMemAlloc_v2(ctypes.byref(address), max(size, 1))
    if error == _OUT_OF_MEMORY:
        raise MemoryError(f"CUDA error: no {size} bytes of device memory")
    if error:
        raise _failure(error)
    return _buffer_type(max(size, 1)).from_address(address.value)


def view(address, size):
    """The bytes at an address of device memory, which somebody else owns."""
    return (ctypes.c_char * size).from_address(address)


def attribute(number):
    """An attribute of the device (CU_DEVICE_ATTRIBUTE_*)."""
    value = ctypes.c_int()
    _driver.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
    return value.value


def memory_bytes():
    """(available, total) bytes of device memory."""
    available, total = ctypes.c_size_t(), ctypes.c_size_t()
    _driver.cuMemGetInfo_v2(ctypes.byref(available), ctypes.byref(total))
    return available.value, total.value


def device_name():
    """What the device calls itself."""
    name = ctypes.create_string_buffer(256)
    _driver.cuDeviceGetName(name, 256, 0)
    return name.value.decode()
