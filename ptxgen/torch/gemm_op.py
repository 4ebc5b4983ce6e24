"""`gemm`: A @ B by a kernel of the library, as a torch custom op with gradients."""

# PyTorch is no dependency of development, so that types of its names are unknown there.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor

from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm import GemmPlan, PlanError, find
from ptxgen.gemm.dispatch import best
from ptxgen.gpu import Gpu

#: Types of A and B as the kernels call them. Numbers of float32 are rounded to tf32.
_TYPES = {
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float32: "tf32",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
    torch.int8: "s8",
    torch.uint8: "u8",
}
_OUTPUTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.int32: "s32"}
#: What C is where `out_dtype` does not say it.
_DEFAULT = {torch.int8: torch.int32, torch.uint8: torch.int32}
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
#: Types that autocast converts, and that have gradients.
_DIFFERENTIABLE = (torch.bfloat16, torch.float16, torch.float32)
#: What TMA requires addresses and strides to be a multiple of, in bytes.
_ALIGNMENT = 16
#: A kernel of each target that takes every size and type.
_KERNELS = {"sm_90a": "hopper/persistent", "sm_100a": "blackwell/clc"}

#: Places of matrices whose arguments a launch keeps.
_PLACES = 256
#: Options of the emulator that multiplies CPU tensors.
_emulator: dict[str, Any] = {"target": "sm_100a"}


@contextmanager
def emulated(**options: Any) -> Iterator[None]:
    """Multiply CPU tensors inside in an emulator with these options: `target="sm_90a"`, `schedule="late"`, ..."""
    global _emulator
    before, _emulator = _emulator, {**_emulator, **options}
    try:
        yield
    finally:
        _emulator = before


@lru_cache(maxsize=256)
def kernel_for(m: int, n: int, k: int, target: str, options: tuple[tuple[str, Any], ...]) -> GemmPlan:
    """The plan for C = A·Bᵀ, A of M×K and B of N×K, on a target, with options of the kernels that must hold.

    Raises PlanError where no kernel takes them.
    """
    if target not in _KERNELS:
        raise PlanError(f"ptxgen has no GEMM kernel for {target}; it has some for {', '.join(_KERNELS)}")
    given = dict(options)
    try:
        choice = best(m, n, k, device=target, **given)
    except PlanError:
        choice = None
    # With A and B swapped the options would say something else; a stream-K kernel takes a workspace that is all zeros.
    if choice is None or choice.swapped or choice.plan.workspace is not None:
        return find(_KERNELS[target]).plan(**given)
    return choice.plan


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
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        raise TypeError(f"gemm takes torch tensors, not {type(a).__name__} and {type(b).__name__}")
    a, b = _autocast(a), _autocast(b)
    shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
    if a.dim() < 2 or b.dim() != 2 or a.shape[-1] != b.shape[0]:
        raise ValueError(f"gemm takes A of shape (..., M, K) and B of (K, N), not {shapes}")
    types = {a.dtype, b.dtype}
    if not types <= {*_TYPES} or (len(types) > 1 and not types <= {*_FLOAT8}):
        raise ValueError(
            f"gemm takes A and B of one type of {', '.join(map(str, _TYPES))}, not {a.dtype} and {b.dtype}"
        )
    if a.device != b.device or (bias is not None and bias.device != a.device):
        raise ValueError(f"A is on {a.device}, B on {b.device}; gemm takes tensors of one device")
    if bias is not None and (tuple(bias.shape) != (b.shape[1],) or bias.dtype not in _OUTPUTS):
        raise ValueError(f"the bias must have shape ({b.shape[1]},), not {tuple(bias.shape)} of {bias.dtype}")
    chosen = out_dtype or _DEFAULT.get(a.dtype, torch.float32 if a.dtype in _FLOAT8 else a.dtype)
    if chosen not in _OUTPUTS:
        raise ValueError(f"out_dtype is one of {', '.join(map(str, _OUTPUTS))}, not {chosen}")
    flat = _gemm(a.flatten(0, -2), b, bias, chosen)
    return flat.reshape(*a.shape[:-1], b.shape[1])


@torch.library.custom_op("ptxgen::gemm", mutates_args=(), device_types="cpu")
def _gemm(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype) -> Tensor:
    """CPU tensors: the emulator."""
    if 0 in (*a.shape, *b.shape):
        return _nothing(a, b, bias, out_dtype)
    device = Emulator(**_emulator)
    given = _Given.of(a, b, bias, out_dtype, device.target)
    problem = given.launch.problem
    arrays = [device.array(_with_gaps(each)) for each in (given.a, given.b)]
    added = None if given.bias is None else device.array(given.bias)
    order = None if problem.tile_order is None else device.array(problem.tile_order)
    c = device.empty((problem.m, problem.leading("c")), _OUTPUTS[out_dtype])
    arguments = problem.arguments(arrays[0].address, arrays[1].address, c.address, None, added, order)
    kernel, shared_bytes = given.launch.kernel, problem.plan.shared.bytes
    device.launch(kernel, problem.grid, problem.block, arguments, shared_bytes=shared_bytes).raise_for_status()
    return c.torch()[:, : problem.n].contiguous()


@_gemm.register_kernel("cuda")
def _(a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype) -> Tensor:
    if 0 in (*a.shape, *b.shape):
        return _nothing(a, b, bias, out_dtype)
    device = _gpu(a.device.index)
    given = _Given.of(a, b, bias, out_dtype, device.target)
    launch = given.launch
    c = torch.empty((launch.problem.m, launch.leading), dtype=out_dtype, device=a.device)
    added = None if given.bias is None else given.bias.data_ptr()
    device.enqueue(
        launch.kernel,
        launch.grid,
        launch.block,
        launch.arguments(given.a.data_ptr(), given.b.data_ptr(), c.data_ptr(), added, a.device),
        shared_bytes=launch.shared_bytes,
        stream=torch.cuda.current_stream(a.device).cuda_stream,
    )
    return c if launch.leading == launch.problem.n else c[:, : launch.problem.n].contiguous()


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
    if operand.dtype in _DIFFERENTIABLE and torch.amp.is_autocast_available(device):
        return operand.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else operand
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


@cache
def _gpu(number: int) -> Gpu:
    return Gpu(number)


class _Launch:
    """The plan for GEMMs of these sizes, types and strides, cached."""

    def __init__(self, plan: GemmPlan, m: int, n: int, k: int, lda: int, ldb: int) -> None:
        self.problem = plan.padded_problem(m, n, k, lda=lda, ldb=ldb)
        self.kernel = Kernel.from_ptx(plan.text, regions=plan.shared.named)
        self.grid, self.block, self.shared_bytes = self.problem.grid, self.problem.block, plan.shared.bytes
        self.leading = self.problem.leading("c")
        #: Tables of tiles by device, and arguments by addresses.
        self._orders: dict[torch.device, Tensor] = {}
        self._arguments: OrderedDict[tuple[int | None, ...], list[Any]] = OrderedDict()

    def arguments(self, a: int, b: int, c: int, bias: int | None, device: torch.device) -> list[Any]:
        """The arguments with matrices at these addresses; tensormaps are encoded once for each place."""
        key = a, b, c, bias, device.index
        found = self._arguments.get(key)
        if found is None:
            order = self._order(device)
            given = self.problem.arguments(a, b, c, None, bias, None if order is None else order.data_ptr())
            found = self._arguments[key] = [each.encode() if hasattr(each, "encode") else each for each in given]
            if len(self._arguments) > _PLACES:
                self._arguments.popitem(last=False)
        return found

    def _order(self, device: torch.device) -> Tensor | None:
        table = self.problem.tile_order
        if table is not None and device not in self._orders:
            self._orders[device] = torch.from_numpy(table.view("int32")).to(device)
        return self._orders.get(device)


@lru_cache(maxsize=256)
def _launch(m: int, n: int, k: int, target: str, options: tuple[tuple[str, Any], ...], lda: int, ldb: int) -> _Launch:
    return _Launch(kernel_for(m, n, k, target, options), m, n, k, lda, ldb)


@dataclass(frozen=True)
class _Given:
    """The operands as a kernel takes them, and the problem: strides and addresses on 16 bytes, K-major if it must."""

    a: Tensor
    b: Tensor
    bias: Tensor | None
    launch: _Launch

    @classmethod
    def of(cls, a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype, target: str) -> _Given:
        """Copies of operands that lie otherwise. Raises PlanError where no kernel takes the types."""
        (m, k), n = a.shape, b.shape[1]
        options: dict[str, Any] = {"dtype": _TYPES[a.dtype], "c_dtype": _OUTPUTS[out_dtype]}
        if a.dtype != b.dtype:
            options["b_dtype"] = _TYPES[b.dtype]
        if bias is not None:
            options["bias"] = _OUTPUTS[bias.dtype]
            bias = bias.contiguous()
        first, second = _major(a), _major(b.t())
        try:
            kernel_for(m, n, k, target, _key(options, first, second))
        except PlanError:  # such a type is multiplied K-major alone
            first = second = "k"
        lines_a, lines_b = _lines(a, first), _lines(b.t(), second)
        found = _launch(m, n, k, target, _key(options, first, second), lines_a.stride(0), lines_b.stride(0))
        return cls(lines_a, lines_b, bias, found)


def _key(options: dict[str, Any], a_major: str, b_major: str) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted({**options, "a_major": a_major, "b_major": b_major}.items()))


def _major(matrix: Tensor) -> str:
    """Along which dimension a matrix (rows, K) is contiguous."""
    return "mn" if matrix.stride(0) == 1 and matrix.stride(1) != 1 and matrix.shape[1] > 1 else "k"


def _lines(matrix: Tensor, major: str) -> Tensor:
    """A matrix (rows, K) as its lines: contiguous each, the next one at a multiple of 16 bytes; copied if it is not."""
    lines = matrix if major == "k" else matrix.t()
    step = _ALIGNMENT // lines.element_size()
    aligned = lines.stride(1) == 1 and lines.stride(0) % step == 0 and lines.stride(0) >= lines.shape[1]
    if aligned and lines.data_ptr() % _ALIGNMENT == 0:
        return lines
    padded = -(-lines.shape[1] // step) * step
    made = lines.new_empty((lines.shape[0], padded))[:, : lines.shape[1]]
    return made.copy_(lines)
