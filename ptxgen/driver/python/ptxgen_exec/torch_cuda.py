"""torch.cuda for a PyTorch that was built for the CPU alone: one device, the emulated one."""

import contextlib
import time
import types

from ptxgen_exec import device_memory


class Stream:
    """A stream; operations run as they are issued."""

    def __init__(self, device=None, priority=0, **_):
        self.cuda_stream, self.stream_id, self.device_index, self.priority = 0, 0, 0, priority

    def synchronize(self):
        device_memory.synchronize()

    def query(self):
        return True

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self, event=None):
        event = event if event is not None else Event()
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Event:
    """An event; its time is that of the host."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self._time = None

    def record(self, stream=None):
        self._time = time.perf_counter()

    def synchronize(self):
        device_memory.synchronize()

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def elapsed_time(self, other):
        return max((other._time - self._time) * 1e3, 1e-3)


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
    stream = Stream()

    @contextlib.contextmanager
    def one(*_, **__):
        yield

    def seed(number):
        torch.default_generator.manual_seed(int(number))

    device_memory.initialize()
    torch.version.cuda = "13.0"
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    torch._C._cuda_getDevice = lambda: 0
    torch.backends.cuda.is_built = lambda: True
    replaced = {
        "_lazy_init": nothing, "_initialized": True, "init": nothing, "is_initialized": lambda: True,
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "set_device": nothing,
        "synchronize": lambda device=None: device_memory.synchronize(), "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream, "set_stream": nothing, "stream": one, "device": one,
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
