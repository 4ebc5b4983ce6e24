"""CUDA graphs of PyTorch: its operators, which run on the CPU, become nodes that call them again."""

# PyTorch is optional: without it none of its names is known.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import contextlib
import ctypes
import threading

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from ptxgen_exec import device_memory, torch_cuda

_Call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_lock = threading.Lock()
#: Calls that nodes of graphs make: a graph may be replayed as long as the process lives.
_calls = []


def add_node(stream, function):
    """Let the stream that is captured call a function with each replay."""

    def call(_):
        try:
            with _disable_current_modes(), torch.no_grad():
                function()
        except Exception as error:  # C calls, and takes no exception
            print(f"ptxgen exec: an operator in a graph failed: {error}", flush=True)

    made = _Call(call)
    with _lock:
        _calls.append(made)
    device_memory.launch_host_function(stream, made)


def _written(function, args, kwargs):
    """The tensors that an operator writes in place, which it returns."""
    found = []
    for position, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[position] if position < len(args) else kwargs.get(argument.name))
    return found


def captured(stream, function, args, kwargs, give, on_cpu):
    """What an operator gives that a stream captures: what it writes is left, and made anew with each replay.

    `args` and `kwargs` have CPU tensors; `give` makes the program's of them, and `on_cpu` a CPU tensor of one of those.
    """
    if function.is_view:
        return give(function(*args, **kwargs))
    if function._schema.is_mutable:
        add_node(stream, lambda: function(*args, **kwargs))
        written = _written(function, args, kwargs)
        if not function._schema.returns:
            return None
        return give(written[0] if len(function._schema.returns) == 1 else tuple(written))
    made = function(*args, **kwargs)
    result = give(made)
    kept = [each for each in tree_leaves(made) if isinstance(each, torch.Tensor)]
    given = [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
    targets = [on_cpu(each) for each in given]

    def again():
        for target, value in zip(targets, tree_leaves(function(*args, **kwargs))):  # noqa: B905  (Python 3.8)
            if isinstance(value, torch.Tensor) and target.data_ptr() != value.data_ptr():
                target.copy_(value)

    if kept:
        add_node(stream, again)
    return result


class CUDAGraph:
    """Launches of kernels and calls of operators that are made again by `replay`."""

    def __init__(self, keep_graph=False):
        self._stream, self._graph, self._executable = 0, None, None

    def capture_begin(self, pool=None, capture_error_mode="global", **_):
        self._stream = torch_cuda.current_stream().cuda_stream
        device_memory.begin_capture(self._stream)

    def capture_end(self):
        self._graph = device_memory.end_capture(self._stream)
        self.instantiate()

    def instantiate(self):
        self._executable = device_memory.instantiate(self._graph)

    def replay(self):
        if self._executable is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        device_memory.launch_graph(self._executable, torch_cuda.current_stream().cuda_stream)

    def reset(self):
        self._executable = None

    def pool(self):
        return (0, 0)

    def enable_debug_mode(self):
        pass

    def debug_dump(self, path):
        pass

    def raw_cuda_graph(self):
        return self._graph

    def raw_cuda_graph_exec(self):
        return self._executable


@contextlib.contextmanager
def graph(cuda_graph, pool=None, stream=None, capture_error_mode="global", **_):
    """Capture what is done in a stream: `torch.cuda.graph`."""
    device_memory.synchronize()
    with torch_cuda.Stream() if stream is None else stream:
        cuda_graph.capture_begin()
        try:
            yield
        finally:
            cuda_graph.capture_end()


def is_current_stream_capturing():
    """Whether the current stream of this thread is captured."""
    return device_memory.is_capturing(torch_cuda.current_stream().cuda_stream)


def patch(cuda):
    """Graphs for a PyTorch that was built for the CPU alone."""
    for module in (cuda, cuda.graphs):
        module.CUDAGraph, module.graph = CUDAGraph, graph
        module.is_current_stream_capturing = is_current_stream_capturing
        module.graph_pool_handle = lambda: (0, 0)
