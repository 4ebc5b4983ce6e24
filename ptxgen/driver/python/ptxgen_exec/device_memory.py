"""Device memory in the program's Python: allocated and synchronized through the stand-in driver."""

import ctypes
import functools

_driver = ctypes.CDLL(None)
_driver.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
_driver.cuMemFree_v2.argtypes = [ctypes.c_uint64]
_driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
_driver.cuStreamCreateWithPriority.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint, ctypes.c_int]
for _function in (_driver.cuStreamDestroy_v2, _driver.cuStreamQuery, _driver.cuEventQuery, _driver.cuEventSynchronize):
    _function.argtypes = [ctypes.c_void_p]
_driver.cuStreamBeginCapture_v2.argtypes = [ctypes.c_void_p, ctypes.c_int]
_driver.cuStreamEndCapture.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
_driver.cuStreamIsCapturing.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
_driver.cuGraphInstantiateWithFlags.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_ulonglong]
_driver.cuGraphLaunch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_driver.cuLaunchHostFunc.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_driver.cuStreamWaitEvent.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
_driver.cuEventCreate.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint]
_driver.cuEventDestroy_v2.argtypes = [ctypes.c_void_p]
_driver.cuEventRecord.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_driver.cuEventElapsedTime.argtypes = [ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_void_p]
#: Free a stream once its work is done, and an event. As the driver's functions they outlive this module at the end.
destroy_stream, destroy_event = _driver.cuStreamDestroy_v2, _driver.cuEventDestroy_v2
_OUT_OF_MEMORY, _NOT_READY = 2, 600
_NON_BLOCKING = 1
_BASE, _BYTES = 0x1000_0000_0000, 1 << 44


def initialize():
    """Make the device known to this thread."""
    context = ctypes.c_void_p()
    if _driver.cuInit(0) == 0 and _driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0:
        _driver.cuCtxSetCurrent(context)


def is_device_address(address):
    """Whether an address may be one of device memory."""
    return _BASE <= address < _BASE + _BYTES


def _check(error):
    """Raise RuntimeError for an error of the driver, such as that of an earlier kernel."""
    if error:
        raise _failure(error)


def _is_done(error):
    """Whether a query says that all is done. Raises RuntimeError after a fault of a kernel."""
    if error != _NOT_READY:
        _check(error)
    return not error


def synchronize():
    """Wait for the device. Raises RuntimeError after a fault of a kernel."""
    _check(_driver.cuCtxSynchronize())


def create_stream(priority):
    """The handle of a new stream that does not wait for the default stream."""
    stream = ctypes.c_void_p()
    _check(_driver.cuStreamCreateWithPriority(ctypes.byref(stream), _NON_BLOCKING, priority))
    return stream.value


def synchronize_stream(stream):
    """Wait for a stream, given by its handle. Raises RuntimeError after a fault of a kernel."""
    _check(_driver.cuStreamSynchronize(stream))


def is_stream_done(stream):
    """Whether a stream has nothing to do. Raises RuntimeError after a fault of a kernel."""
    return _is_done(_driver.cuStreamQuery(stream))


def create_event():
    """The handle of a new event."""
    event = ctypes.c_void_p()
    _check(_driver.cuEventCreate(ctypes.byref(event), 0))
    return event.value


def record_event(event, stream):
    """Record an event in a stream. Raises RuntimeError after a fault of a kernel."""
    _check(_driver.cuEventRecord(event, stream))


def wait_event(stream, event):
    """Let what comes next in a stream wait for an event. Raises RuntimeError after a fault of a kernel."""
    _check(_driver.cuStreamWaitEvent(stream, event, 0))


def synchronize_event(event):
    """Wait for an event. Raises RuntimeError after a fault of a kernel."""
    _check(_driver.cuEventSynchronize(event))


def is_event_done(event):
    """Whether an event has come. Raises RuntimeError after a fault of a kernel."""
    return _is_done(_driver.cuEventQuery(event))


def elapsed_ms(begin, end):
    """Milliseconds of emulated work between two events. Raises RuntimeError for events that are not recorded."""
    time = ctypes.c_float()
    _check(_driver.cuEventElapsedTime(ctypes.byref(time), begin, end))
    return time.value


def begin_capture(stream):
    """Capture what a stream is given from now on."""
    _check(_driver.cuStreamBeginCapture_v2(stream, 0))


def end_capture(stream):
    """The handle of the graph that a stream has captured."""
    graph = ctypes.c_void_p()
    _check(_driver.cuStreamEndCapture(stream, ctypes.byref(graph)))
    return graph.value


def is_capturing(stream):
    """Whether a stream is captured."""
    status = ctypes.c_int()
    _check(_driver.cuStreamIsCapturing(stream, ctypes.byref(status)))
    return status.value != 0


def instantiate(graph):
    """The handle of an executable graph."""
    executable = ctypes.c_void_p()
    _check(_driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, 0))
    return executable.value


def launch_graph(executable, stream):
    """Launch a graph in a stream."""
    _check(_driver.cuGraphLaunch(executable, stream))


def launch_host_function(stream, call):
    """Let a stream call a C function of one pointer."""
    _check(_driver.cuLaunchHostFunc(stream, call, None))


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
