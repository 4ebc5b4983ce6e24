"""Times of work on a GPU: CUDA graphs that take turns on one stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxgen.gpu.device import Gpu


def time_in_turns(gpu: Gpu, bodies: Sequence[Callable[[int], None]], turns: int) -> list[list[float]]:
    """Microseconds of each body in each turn, forth and back; a body enqueues its work on the stream it is given.

    Each is captured in a graph, and runs once before. Raises GpuError.
    """
    cuda, call = gpu.driver, gpu.call
    stream = call("cuStreamCreate", cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)
    mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    graphs = []
    events = [(call("cuEventCreate", 0), call("cuEventCreate", 0)) for _ in range(len(bodies) * turns)]
    try:
        for body in bodies:
            call("cuStreamBeginCapture", stream, mode)
            try:
                body(int(stream))
            finally:
                graph = call("cuStreamEndCapture", stream)
            graphs.append(call("cuGraphInstantiate", graph, 0))
            call("cuGraphDestroy", graph)
            call("cuGraphLaunch", graphs[-1], stream)
        order = list(range(len(bodies)))
        taken: list[list[float]] = [[] for _ in bodies]
        numbers = [each for turn in range(turns) for each in (order if turn % 2 == 0 else order[::-1])]
        for number, (start, end) in zip(numbers, events, strict=True):
            call("cuEventRecord", start, stream)
            call("cuGraphLaunch", graphs[number], stream)
            call("cuEventRecord", end, stream)
        call("cuStreamSynchronize", stream)
        for number, (start, end) in zip(numbers, events, strict=True):
            taken[number].append(float(call("cuEventElapsedTime", start, end)) * 1e3)
        return taken
    finally:
        for graph in graphs:
            call("cuGraphExecDestroy", graph)
        for start, end in events:
            call("cuEventDestroy", start)
            call("cuEventDestroy", end)
        call("cuStreamDestroy", stream)
