"""`attention`: softmax(scale·Q·Kᵀ)·V by a kernel of the library, as a torch custom op. Forward only."""

# PyTorch is no dependency of development, so that types of its names are unknown there.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from ptxgen.attention import AttentionProblem, best
from ptxgen.device import Kernel
from ptxgen.gemm.selection.arguments import MARKS, Packed
from ptxgen.gemm.selection.cubins import cubin_of
from ptxgen.gpu.prepared import PreparedLaunch
from ptxgen.options import PlanError
from ptxgen.torch.direct import is_direct, is_plain
from ptxgen.torch.emulation import emulator
from ptxgen.torch.prepared import ALIGNMENT, gpu

_TYPES = {torch.bfloat16: "bf16", torch.float16: "f16"}
#: Launches that a thread keeps.
_MOST = 4096


class _Launches(threading.local):
    """Launches of this thread by shapes, strides and types: no lock guards them."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], PreparedLaunch] = {}


_launches = _Launches()


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(scale·Q·Kᵀ)·V for each head, as torch's scaled_dot_product_attention: Q of shape (batch, heads, queries,
    head size), K of (batch, KV heads, keys, head size), V of (batch, KV heads, keys, value size).

    bfloat16 or float16; sizes 64, 128, 192 and 256. KV heads must divide the heads: each is of as many heads of Q.
    `scale`: one over the square root of the head size. `causal`: query i sees the keys up to i + keys - queries, so
    that the last query sees all (torch's is_causal counts from the first). Views are read as they lie, such as those of
    a packed (batch, length, 3, heads, size) projection, if columns are contiguous and all else lies on 16 bytes; others
    are copied. O has the order of Q's dimensions in memory. With `return_lse` also the logarithm of each row's sum of
    exponentials, float32 of (batch, heads, queries). There are no gradients.

        >>> q, k, v = torch.randn(3, 1, 8, 1024, 128, dtype=torch.bfloat16, device="cuda").unbind()
        >>> ptxgen.torch.attention(q, k, v, causal=True).shape
        torch.Size([1, 8, 1024, 128])

    Raises ValueError for other shapes and types, LaunchFailedError where the emulator finds something wrong.
    """
    if not torch.compiler.is_compiling():
        made = _known(q, k, v, causal, scale, return_lse)
        if made is not None:
            return made if return_lse else made[0]
    _check(q, k, v)
    chosen = 0.0 if scale is None else float(scale)
    if not 0 <= chosen < float("inf") or scale == 0:
        raise ValueError(f"scale must be a positive number, not {scale}")
    if not torch.compiler.is_compiling() and _is_direct(q, k, v):
        o, lse = _on_gpu(q, k, v, causal, chosen, return_lse, scale)
    else:
        o, lse = _attention(q, k, v, causal, chosen, return_lse)
    return (o, lse) if return_lse else o


def _is_direct(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether all are plain tensors of a GPU, and nothing of torch has to see the call."""
    return is_plain(q, k) and is_plain(q, v) and k.is_cuda and v.is_cuda and is_direct(q, k, v)


def _known(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None, lse: bool
) -> tuple[Tensor, Tensor] | None:
    """O and lse by a launch that this thread has prepared before; None where there is none, or torch has more to do."""
    if not (isinstance(q, Tensor) and isinstance(k, Tensor) and isinstance(v, Tensor)) or not _is_direct(q, k, v):
        return None
    launch = _launches.known.get(_key(q, k, v, causal, scale, lse))
    at_q, at_k, at_v = q.data_ptr(), k.data_ptr(), v.data_ptr()
    if launch is None or (at_q | at_k | at_v) % ALIGNMENT or q.get_device() != torch._C._cuda_getDevice():
        return None
    o, sums = _outputs(q, v, lse)
    _enqueue(launch, q.get_device(), (at_q, at_k, at_v, o.data_ptr(), sums.data_ptr()))
    return o, sums


def _key(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None, lse: bool) -> tuple[Any, ...]:
    """What a prepared launch depends on."""
    shapes = (q.shape, q.stride(), k.shape, k.stride(), v.shape, v.stride())
    return (*shapes, q.dtype, k.dtype, v.dtype, causal, scale, lse, q.get_device(), k.get_device(), v.get_device())


def _enqueue(launch: PreparedLaunch, device: int, addresses: tuple[int, ...]) -> None:
    if status := launch(torch._C._cuda_getCurrentRawStream(device), addresses):
        gpu(device).refused(status)


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    if not all(isinstance(each, Tensor) for each in (q, k, v)):
        names = ", ".join(type(each).__name__ for each in (q, k, v))
        raise TypeError(f"attention takes torch tensors, not {names}")
    shapes = f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
    if any(each.dim() != 4 for each in (q, k, v)):
        raise ValueError(f"attention takes Q, K and V of (batch, heads, rows, size), not {shapes}")
    if not (
        q.shape[0] == k.shape[0] == v.shape[0]
        and q.shape[3] == k.shape[3]
        and k.shape[1:3] == v.shape[1:3]
        and q.shape[1] % max(k.shape[1], 1) == 0
    ):
        raise ValueError(
            "attention takes Q of (batch, heads, queries, size), K of (batch, KV heads, keys, size) and V of (batch, "
            f"KV heads, keys, value size), where KV heads divide heads, not {shapes}"
        )
    if q.dtype not in _TYPES or not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"attention takes bfloat16 or float16 of one type, not {q.dtype}, {k.dtype} and {v.dtype}")
    if not q.device == k.device == v.device:
        raise ValueError(f"attention takes tensors of one device, not of {q.device}, {k.device} and {v.device}")


def _given(tensor: Tensor) -> Tensor:
    """The tensor as a tensormap takes it; a copy if it lies otherwise."""
    step = ALIGNMENT // tensor.element_size()
    outer = zip(tensor.shape[:-1], tensor.stride()[:-1], strict=True)
    if tensor.stride(3) == 1 and all(stride > 0 and stride % step == 0 for size, stride in outer if size > 1):
        return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()
    return tensor.contiguous()


def _strides(tensor: Tensor) -> tuple[int, int, int]:
    """Elements from one row to the next, one head, one batch; a dimension of one takes the next larger extent."""
    made, least = [], tensor.shape[3]
    for dimension in (2, 1, 0):
        size = tensor.shape[dimension]
        made.append(tensor.stride(dimension) if size > 1 else least)
        least = max(least, size * made[-1])
    return made[0], made[1], made[2]


def _problem(
    q: Tensor, k: Tensor, v: Tensor, o: Tensor, causal: bool, scale: float, lse: bool, target: str
) -> AttentionProblem:
    """The problem of tensors as a kernel takes them. Raises ValueError for a size that has none."""
    batches, heads, queries, size = q.shape
    kv_heads, keys, values = k.shape[1], k.shape[2], v.shape[3]
    try:
        options = {"dtype": _TYPES[q.dtype], "head_size": size, "value_size": values, "causal": causal, "lse": lse}
        plan = best(queries, keys, target=target, **options)
        strided = tuple((name, _strides(each)) for name, each in zip("qkvo", (q, k, v, o), strict=True))
        return AttentionProblem(plan, queries, keys, heads, kv_heads, batches, scale, strided=strided)
    except PlanError as error:
        raise ValueError(f"attention of {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}: {error}") from None


def _outputs(q: Tensor, v: Tensor, lse: bool) -> tuple[Tensor, Tensor]:
    """O with the dimensions of Q in memory, and lse, empty unless it is wanted."""
    batches, heads, queries, _ = q.shape
    if heads > 1 and queries > 1 and q.stride(1) < q.stride(2):
        o = q.new_empty((batches, queries, heads, v.shape[3])).transpose(1, 2)
    else:
        o = q.new_empty((batches, heads, queries, v.shape[3]))
    return o, q.new_empty((batches, heads, queries) if lse else (0,), dtype=torch.float32)


def _without_keys(o: Tensor, lse: Tensor) -> tuple[Tensor, Tensor]:
    """What softmax of nothing is: zeros, and minus infinity."""
    return o.zero_(), lse.fill_(-float("inf"))


@torch.library.custom_op("ptxgen::attention", mutates_args=(), device_types="cpu")
def _attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, lse: bool) -> tuple[Tensor, Tensor]:
    """CPU tensors: the emulator."""
    o, sums = _outputs(q, v, lse)
    if 0 in (*q.shape, *k.shape, *v.shape):
        return _without_keys(o, sums)
    q, k, v = (_given(each) for each in (q, k, v))
    device = emulator()
    problem = _problem(q, k, v, o, causal, scale, lse, device.target)
    plan = problem.plan
    arrays: dict[str, Any] = {name: device.array(_storage(each)) for name, each in zip("qkv", (q, k, v), strict=True)}
    arrays["o"] = device.empty((_extent(o),), problem.outputs["o"][1])
    if lse:
        arrays["lse"] = device.empty(*problem.outputs["lse"])
    kernel = Kernel.from_ptx(plan.text, regions=plan.shared.named)
    report = device.launch(
        kernel, problem.grid, problem.block, problem.arguments(arrays), shared_bytes=plan.shared.bytes
    )
    report.raise_for_status()
    o.copy_(arrays["o"].torch().as_strided(o.shape, o.stride()))
    return o, sums.copy_(arrays["lse"].torch()) if lse else sums


def _extent(tensor: Tensor) -> int:
    """Elements from the first to the last, with what lies between."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _storage(tensor: Tensor) -> Tensor:
    """A tensor's elements as they lie in memory, with what lies between."""
    return tensor.as_strided((_extent(tensor),), (1,)).clone()


@_attention.register_kernel("cuda")
def _(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, lse: bool) -> tuple[Tensor, Tensor]:
    return _on_gpu(q, k, v, causal, scale, lse, scale)


def _on_gpu(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, lse: bool, known: float | None
) -> tuple[Tensor, Tensor]:
    """O and lse by a launch, which is kept under the scale `known`, as the call had it, if nothing has to be copied."""
    o, sums = _outputs(q, v, lse)
    if 0 in (*q.shape, *k.shape, *v.shape):
        return _without_keys(o, sums)
    given = q, k, v = _given(q), _given(k), _given(v)
    key = _key(*given, causal, known, lse)
    with torch.cuda.device(q.device):
        launch = _launches.known.get(key)
        if launch is None:
            launch = _prepared(q, k, v, o, causal, scale, lse)
            if len(_launches.known) >= _MOST:
                _launches.known.clear()
            _launches.known[key] = launch
        _enqueue(launch, q.get_device(), tuple(each.data_ptr() for each in (q, k, v, o, sums)))
    return o, sums


def _prepared(q: Tensor, k: Tensor, v: Tensor, o: Tensor, causal: bool, scale: float, lse: bool) -> PreparedLaunch:
    """The launch for these shapes and strides, with addresses left open."""
    device = gpu(q.get_device())
    problem = _problem(q, k, v, o, causal, scale, lse, device.target)
    plan = problem.plan
    given = problem.arguments(dict(zip(("q", "k", "v", "o", "lse"), MARKS, strict=True)))
    packed = Packed.marked([declaration for declaration, _ in plan.parameters], given)
    return device.prepare(
        cubin_of(plan), plan.entry, problem.grid, (problem.block, 1, 1), plan.shared.bytes, packed.values, packed.places
    )


@_attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, lse: bool) -> tuple[Tensor, Tensor]:
    return _outputs(q, v, lse)


def _backward(ctx: Any, *gradients: Tensor) -> Any:
    raise NotImplementedError(
        "ptxgen.torch.attention has no gradients: its kernels are forward only. Call it under torch.no_grad(), or use "
        "torch.nn.functional.scaled_dot_product_attention where gradients are needed"
    )


torch.library.register_autograd("ptxgen::attention", _backward)
