"""`gemm`: A @ B by a kernel of the library, as a torch custom op with gradients."""

# PyTorch is no dependency of development, so that types of its names are unknown there.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from ptxgen.torch.direct import is_direct, is_plain
from ptxgen.torch.emulation import emulator
from ptxgen.torch.prepared import ALIGNMENT, OUTPUTS, TYPES, Given, Ready, gpu

#: Type of C where `out_dtype` is not given.
_DEFAULT = {torch.int8: torch.int32, torch.uint8: torch.int32}
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
#: Types that autocast converts, and that have gradients.
_DIFFERENTIABLE = (torch.bfloat16, torch.float16, torch.float32)
#: Launches that a thread keeps.
_MOST = 4096


class _Launches(threading.local):
    """Launches of this thread by shapes, strides and types: no lock guards them."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], Ready] = {}


_launches = _Launches()


def gemm(
    a: Tensor,
    b: Tensor,
    *,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """A @ B + bias, as torch.matmul: A of shape (..., M, K), B of (K, N), bias of (N,), C of (..., M, N).

    Both have one type: bfloat16, float16, float32 (as tf32), float8_e4m3fn, float8_e5m2, int8 or uint8. C has theirs,
    or float32 of float8 and int32 of integers, unless `out_dtype` says otherwise; sums are of float32 or int32.
    Transposed views are multiplied as they lie where the kernel can do so. Differentiable for the first three types,
    which torch.autocast converts as for matmul.

        >>> a, b = torch.randn(64, 32, dtype=torch.bfloat16), torch.randn(32, 48, dtype=torch.bfloat16)
        >>> ptxgen.torch.gemm(a, b).shape
        torch.Size([64, 48])

    Raises ValueError for other shapes and types, LaunchFailedError where the emulator finds something wrong.
    """
    if not torch.compiler.is_compiling():
        made = _known(a, b, bias, out_dtype)
        if made is not None:
            return made
    return _checked(a, b, bias, out_dtype)


def _known(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None) -> Tensor | None:
    """C by a launch that this thread has prepared before; None where there is none, or torch has more to do."""
    if not is_plain(a, b) or not is_direct(a, b, bias):
        return None
    ready = _launches.known.get(_key(a, b, bias, out_dtype))
    at_a, at_b = a.data_ptr(), b.data_ptr()
    if ready is None or (at_a | at_b) % ALIGNMENT or b.get_device() != torch._C._cuda_getDevice():
        return None
    return ready(a, at_a, at_b, 0 if bias is None else bias.data_ptr())


def _checked(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None) -> Tensor:
    """C by the custom op, after the checks of `gemm`."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        raise TypeError(f"gemm takes torch tensors, not {type(a).__name__} and {type(b).__name__}")
    a, b = _autocast(a), _autocast(b)
    shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
    if a.dim() < 2 or b.dim() != 2 or a.shape[-1] != b.shape[0]:
        raise ValueError(f"gemm takes A of shape (..., M, K) and B of (K, N), not {shapes}")
    types = {a.dtype, b.dtype}
    if not types <= {*TYPES} or (len(types) > 1 and not types <= {*_FLOAT8}):
        raise ValueError(f"gemm takes A and B of one type of {', '.join(map(str, TYPES))}, not {a.dtype} and {b.dtype}")
    if a.device != b.device or (bias is not None and bias.device != a.device):
        raise ValueError(f"A is on {a.device}, B on {b.device}; gemm takes tensors of one device")
    if bias is not None and (tuple(bias.shape) != (b.shape[1],) or bias.dtype not in OUTPUTS):
        raise ValueError(f"the bias must have shape ({b.shape[1]},), not {tuple(bias.shape)} of {bias.dtype}")
    chosen = out_dtype or _DEFAULT.get(a.dtype, torch.float32 if a.dtype in _FLOAT8 else a.dtype)
    if chosen not in OUTPUTS:
        raise ValueError(f"out_dtype is one of {', '.join(map(str, OUTPUTS))}, not {chosen}")
    direct = not torch.compiler.is_compiling() and is_plain(a, b) and b.is_cuda and is_direct(a, b, bias)
    if direct and 0 not in (*a.shape, *b.shape):  # without the op, whose first call imports for seconds
        return _first(a, b, bias, out_dtype, chosen)
    return _gemm(a.flatten(0, -2), b, bias, chosen).reshape(*a.shape[:-1], b.shape[1])


def _first(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None, chosen: torch.dtype) -> Tensor:
    """C of a call that is not known; known from now on, if no operand and no part of C has to be copied."""
    flat, known = a.detach().flatten(0, -2), _launches.known
    device = gpu(a.device.index)
    given = Given.of(flat, b, bias, chosen, device.name, device.target)
    same = given.a.data_ptr() == a.data_ptr() and given.b.data_ptr() == b.data_ptr()
    if bias is not None:
        same = same and given.bias is not None and given.bias.data_ptr() == bias.data_ptr()
    shape = (*a.shape[:-1], b.shape[1])
    if not same or given.gemm.leading != b.shape[1]:
        return _run(given, chosen).reshape(shape)
    if len(known) >= _MOST:
        known.clear()
    with torch.cuda.device(a.device):
        ready = known[_key(a, b, bias, out_dtype)] = Ready(given.gemm, device, chosen, shape, bias is not None)
        return ready(flat, a.data_ptr(), b.data_ptr(), 0 if bias is None else bias.data_ptr())


def _key(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype | None) -> tuple[Any, ...]:
    """What a prepared launch depends on."""
    made = (a.shape, a.stride(), a.dtype, b.shape, b.stride(), b.dtype, a.get_device(), out_dtype)
    return made if bias is None else (*made, bias.shape, bias.stride(), bias.dtype, bias.get_device())


@torch.library.custom_op("ptxgen::gemm", mutates_args=(), device_types="cpu")
def _gemm(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype) -> Tensor:
    """CPU tensors: the emulator."""
    if 0 in (*a.shape, *b.shape):
        return _nothing(a, b, bias, out_dtype)
    device = emulator()
    given = Given.of(a, b, bias, out_dtype, device.target, device.target)
    problem = given.gemm.problem
    arrays = [device.array(_with_gaps(each)) for each in (given.a, given.b)]
    added = None if given.bias is None else device.array(given.bias)
    order = None if problem.tile_order is None else device.array(problem.tile_order)
    workspace = device.array(torch.zeros(words, dtype=torch.int32)) if (words := problem.workspace_words) else None
    room = None if workspace is None else workspace.address
    c = device.empty((a.shape[0], given.gemm.leading), OUTPUTS[out_dtype])
    arguments = given.gemm.arguments(arrays[0].address, arrays[1].address, c.address, added, order, room)
    kernel, shared_bytes = given.gemm.kernel, problem.plan.shared.bytes
    device.launch(kernel, problem.grid, problem.block, arguments, shared_bytes=shared_bytes).raise_for_status()
    return c.torch()[:, : b.shape[1]].contiguous()


@_gemm.register_kernel("cuda")
def _(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype) -> Tensor:
    if 0 in (*a.shape, *b.shape):
        return _nothing(a, b, bias, out_dtype)
    device = gpu(a.device.index)
    given = Given.of(a, b, bias, out_dtype, device.name, device.target)
    return _run(given, out_dtype)


def _run(given: Given, out_dtype: torch.dtype) -> Tensor:
    """C of operands as a kernel takes them, without gaps between its rows."""
    n = given.gemm.choice.n
    with torch.cuda.device(given.a.device):
        ready = _ready(given, out_dtype, (given.gemm.choice.m, given.gemm.leading))
        bias = 0 if given.bias is None else given.bias.data_ptr()
        c = ready(given.a, given.a.data_ptr(), given.b.data_ptr(), bias)
    return c if given.gemm.leading == n else c[:, :n].contiguous()


def _ready(given: Given, out_dtype: torch.dtype, shape: tuple[int, ...]) -> Ready:
    """The launch of a GEMM by this thread."""
    known, device = _launches.known, gpu(given.a.device.index)
    key = (given.gemm, out_dtype, shape, device.number)
    found = known.get(key)
    if found is None:
        if len(known) >= _MOST:
            known.clear()
        found = known[key] = Ready(given.gemm, device, out_dtype, shape, given.bias is not None)
    return found


@_gemm.register_fake
def _(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype) -> Tensor:
    return a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, bias, _ = inputs
    ctx.save_for_backward(a, b)
    ctx.bias = None if bias is None else bias.dtype


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
    """Two GEMMs: dA = dC @ Bᵀ, dB = Aᵀ @ dC."""
    a, b = ctx.saved_tensors
    needs = ctx.needs_input_grad
    if a.dtype not in _DIFFERENTIABLE and (needs[0] or needs[1]):
        kinds = ", ".join(map(str, _DIFFERENTIABLE))
        raise NotImplementedError(f"gemm has gradients for A and B of {kinds}, not of {a.dtype}")
    given = gradient.to(a.dtype)
    return (
        _gemm(given, b.t(), None, a.dtype) if needs[0] else None,
        _gemm(a.t(), given, None, b.dtype) if needs[1] else None,
        gradient.sum(0, dtype=torch.float32).to(ctx.bias) if needs[2] else None,
        None,
    )


torch.library.register_autograd("ptxgen::gemm", _backward, setup_context=_setup)


def _autocast(operand: Tensor) -> Tensor:
    """The operand in the type of an active torch.autocast, which leaves float64 and others alone."""
    device = operand.device.type
    if operand.dtype in _DIFFERENTIABLE and device in ("cuda", "cpu") and torch.is_autocast_enabled(device):
        return operand.to(torch.get_autocast_dtype(device))
    return operand


def _with_gaps(lines: Tensor) -> Tensor:
    """Lines with what lies between them in memory."""
    made = lines.new_zeros((lines.shape[0], lines.stride(0)))
    made[:, : lines.shape[1]] = lines
    return made


def _nothing(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype) -> Tensor:
    """The result where a size is 0."""
    made = a.new_zeros((a.shape[0], b.shape[1]), dtype=out_dtype)
    return made if bias is None else (made + bias).to(out_dtype)
