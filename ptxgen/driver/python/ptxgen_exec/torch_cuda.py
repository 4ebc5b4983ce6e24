"""torch.cuda for a PyTorch that was built for the CPU alone: one device, the emulated one."""

# PyTorch is optional: without it none of its names is known.
# pyright: reportAttributeAccessIssue=false

import contextlib
import ctypes
import threading
import types

from ptxgen_exec import device_memory


class Stream:
    """A stream of the emulated device, which does not wait for the default stream, as PyTorch's own do not."""

    device_index, device_type = 0, 1

    def __init__(self, device=None, priority=0, stream_ptr=None, **_):
        self._owned = stream_ptr is None
        self.cuda_stream = device_memory.create_stream(priority) if self._owned else stream_ptr
        self.stream_id, self.priority = self.cuda_stream, priority
        self._before = []

    def __del__(self, destroy=device_memory.destroy_stream):
        if self._owned:
            destroy(self.cuda_stream)

    @property
    def device(self):
        return _device()

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self):
        return 0, self.cuda_stream

    def __eq__(self, other):
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self):
        return hash(self.cuda_stream)

    def synchronize(self):
        device_memory.synchronize_stream(self.cuda_stream)

    def query(self):
        return device_memory.is_stream_done(self.cuda_stream)

    def wait_event(self, event):
        event.wait(self)

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        event = event if event is not None else Event()
        event.record(self)
        return event

    def __enter__(self):
        self._before.append(current_stream())
        set_stream(self)
        return self

    def __exit__(self, *_):
        set_stream(self._before.pop())


class ExternalStream(Stream):
    """A stream that somebody else made."""

    def __init__(self, stream_ptr, device=None, **_):
        super().__init__(stream_ptr=stream_ptr)


class Event:
    """An event; its time is that of the emulated work."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.cuda_event = device_memory.create_event()

    def __del__(self, destroy=device_memory.destroy_event):
        destroy(self.cuda_event)

    def record(self, stream=None):
        device_memory.record_event(self.cuda_event, _handle(stream))

    def synchronize(self):
        device_memory.synchronize_event(self.cuda_event)

    def wait(self, stream=None):
        device_memory.wait_event(_handle(stream), self.cuda_event)

    def query(self):
        return device_memory.is_event_done(self.cuda_event)

    def elapsed_time(self, other):
        return max(device_memory.elapsed_ms(self.cuda_event, other.cuda_event), 1e-3)


_threads = threading.local()
_default = Stream(stream_ptr=0)


def current_stream(device=None):
    """The stream into which this thread's work goes."""
    return getattr(_threads, "stream", _default)


def set_stream(stream):
    """Let this thread's work go into a stream; None changes nothing."""
    if stream is not None:
        _threads.stream = stream


@contextlib.contextmanager
def _in_stream(stream=None):
    before = current_stream()
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(before)


def _handle(stream):
    return (current_stream() if stream is None else stream).cuda_stream


def _device():
    import torch

    return torch.device("cuda", 0)


def _properties(device=None):
    return types.SimpleNamespace(
        name=device_memory.device_name(),
        major=device_memory.attribute(75),
        minor=device_memory.attribute(76),
        total_memory=device_memory.memory_bytes()[1],
        multi_processor_count=device_memory.attribute(16),
        max_threads_per_multi_processor=device_memory.attribute(39),
        regs_per_multiprocessor=device_memory.attribute(82),
        shared_memory_per_block=device_memory.attribute(8),
        shared_memory_per_block_optin=device_memory.attribute(97),
        shared_memory_per_multiprocessor=device_memory.attribute(81),
        warp_size=32,
        L2_cache_size=device_memory.attribute(38),
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
    )


def _own(function):
    """A function object of its own: torch._dynamo keeps rules by object."""
    return lambda *arguments, **options: function(*arguments, **options)


def patch(torch):
    cuda, nothing = torch.cuda, (lambda *_, **__: None)

    @contextlib.contextmanager
    def one(*_, **__):
        yield

    def seed(number):
        torch.default_generator.manual_seed(int(number))

    device_memory.initialize()
    torch.version.cuda = "13.0"
    torch._C._cuda_getCurrentRawStream = lambda device: current_stream().cuda_stream
    torch._C._cuda_getDevice = lambda: 0
    torch.backends.cuda.is_built = lambda: True
    replaced = {
        "_lazy_init": nothing, "_initialized": True, "init": nothing, "is_initialized": lambda: True,
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "set_device": nothing,
        "synchronize": lambda device=None: device_memory.synchronize(), "current_stream": current_stream,
        "default_stream": lambda device=None: _default, "set_stream": set_stream, "stream": _in_stream, "device": one,
        "ExternalStream": ExternalStream,
        "get_device_name": lambda device=None: device_memory.device_name(), "get_device_properties": _properties,
        "get_device_capability": lambda device=None: (device_memory.attribute(75), device_memory.attribute(76)),
        "is_bf16_supported": lambda including_emulation=True: True, "mem_get_info": lambda device=None:
        device_memory.memory_bytes(), "empty_cache": nothing, "ipc_collect": nothing, "Stream": Stream, "Event": Event,
        "memory_allocated": lambda device=None: 0, "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0, "max_memory_reserved": lambda device=None: 0,
        "reset_peak_memory_stats": nothing, "manual_seed": seed, "manual_seed_all": seed,
        "get_rng_state": lambda device=None: torch.get_rng_state(), "nvtx": types.SimpleNamespace(
            range_push=nothing, range_pop=nothing, range=one, mark=nothing),
    }  # fmt: skip
    for name, value in replaced.items():
        setattr(cuda, name, _own(value) if isinstance(value, types.FunctionType) else value)
