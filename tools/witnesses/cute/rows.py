"""Kernels by row and element: vector loads, shuffles, shared memory."""

from __future__ import annotations

import math

import cutlass
import cutlass.cute as cute

from tools.recorded.references import witnesses as references

from ..launch import Buffer, output
from .compiler import Witness

_THREADS = 128
_ROWS, _COLUMNS = 24, 1000


@cute.jit
def _across(value: cutlass.Float32, scratch: cute.Tensor, *, greatest: cutlass.Constexpr) -> cutlass.Float32:
    """The greatest or the sum of all threads' values, through one word for each warp."""
    combine = cute.arch.fmax if greatest else lambda a, b: a + b
    for step in cutlass.range_constexpr(5):
        value = combine(value, cute.arch.shuffle_sync_bfly(value, offset=1 << step))
    here = cute.arch.warp_idx()  # a shuffle
    if cute.arch.lane_idx() == 0:
        scratch[here] = value
    cute.arch.sync_threads()
    whole = scratch[0]
    for warp in cutlass.range_constexpr(1, _THREADS // 32):
        whole = combine(whole, scratch[warp])
    cute.arch.sync_threads()
    return whole


@cute.kernel
def _softmax(x: cute.Tensor, y: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    scratch = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(_THREADS // 32), 16)
    columns = cute.size(x, mode=[1])
    most = cutlass.Float32(-math.inf)
    for column in cutlass.range(thread, columns, _THREADS):
        most = cute.arch.fmax(most, x[row, column])
    most = _across(most, scratch, greatest=True)
    total = cutlass.Float32(0)
    for column in cutlass.range(thread, columns, _THREADS):
        total += cute.math.exp(x[row, column] - most)
    total = _across(total, scratch, greatest=False)
    for column in cutlass.range(thread, columns, _THREADS):
        y[row, column] = cute.math.exp(x[row, column] - most) / total


@cute.jit
def softmax_host(x: cute.Pointer, y: cute.Pointer) -> None:
    layout = cute.make_layout((_ROWS, _COLUMNS), stride=(_COLUMNS, 1))
    _softmax(cute.make_tensor(x, layout), cute.make_tensor(y, layout)).launch(
        grid=(_ROWS, 1, 1), block=(_THREADS, 1, 1)
    )


_LENGTH, _VECTOR = 10_000, 8


@cute.kernel
def _gate(x: cute.Tensor, g: cute.Tensor, y: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = block * _THREADS + thread
    if at < _LENGTH // _VECTOR:
        value = x[None, at].load().to(cutlass.Float32)
        gate = g[None, at].load().to(cutlass.Float32)
        y[None, at].store((gate / (1.0 + cute.math.exp(-gate)) * value).to(cutlass.BFloat16))


@cute.jit
def gate_host(x: cute.Pointer, g: cute.Pointer, y: cute.Pointer) -> None:
    layout = cute.make_layout((_VECTOR, _LENGTH // _VECTOR))
    tensors = [cute.make_tensor(each, layout) for each in (x, g, y)]
    _gate(*tensors).launch(grid=(-(-_LENGTH // _VECTOR // _THREADS), 1, 1), block=(_THREADS, 1, 1))


WITNESSES = [
    each
    for target in ("sm_90a", "sm_100a")
    for each in (
        Witness(
            "softmax",
            target,
            softmax_host,
            {"x": Buffer("fp32", (_ROWS, _COLUMNS)), "y": output("fp32", _ROWS, _COLUMNS)},
            references.softmax,
            tolerance=(1e-5, 1e-7),
        ),
        Witness(
            "gated",
            target,
            gate_host,
            {"x": Buffer("bf16", (_LENGTH,)), "g": Buffer("bf16", (_LENGTH,)), "y": output("bf16", _LENGTH)},
            references.gated,
        ),
    )
]
