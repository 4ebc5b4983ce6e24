"""GEMMs of torch tensors, prepared once per shape, layout and type: the kernel, its arguments, its launch."""

# PyTorch is no dependency of development, so that types of its names are unknown there.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor

from ptxgen.device import Kernel
from ptxgen.gemm import GemmPlan, PlanError, find
from ptxgen.gemm.concepts.workspace import COUNTER_BYTES
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.selection.arguments import Packed
from ptxgen.gemm.selection.cubins import cubin_of
from ptxgen.gemm.selection.dispatch import Choice, best, machine_of
from ptxgen.gpu import Gpu
from ptxgen.gpu.prepared import PreparedLaunch

#: Types of A and B as the kernels call them. Numbers of float32 are rounded to tf32.
TYPES = {
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.float32: "tf32",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
    torch.int8: "s8",
    torch.uint8: "u8",
}
OUTPUTS = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.int32: "s32"}
#: Alignment that TMA requires of addresses and strides, in bytes.
ALIGNMENT = 16
#: A kernel of each target that takes every size and type.
_KERNELS = {"sm_90a": "hopper/persistent", "sm_100a": "blackwell/clc"}


@lru_cache(maxsize=1024)
def choice_for(m: int, n: int, k: int, device: str, target: str, options: tuple[tuple[str, Any], ...]) -> Choice:
    """The kernel for C = A·Bᵀ, A of M×K and B of N×K, on a device by its name and target, with options that must hold.

    Raises PlanError where no kernel takes them.
    """
    if target not in _KERNELS:
        raise PlanError(f"ptxgen has no GEMM kernel for {target}; it has some for {', '.join(_KERNELS)}")
    given = dict(options)
    try:
        machine = machine_of(device).name
    except PlanError:
        machine = target
    try:
        found = best(m, n, k, device=machine, **given)
    except PlanError:
        found = None
    # Where the flags of a stream-K kernel are another kernel may have its sums.
    if found is None or found.plan.scheduler.splits:
        return Choice(find(_KERNELS[target]).plan(**given), m, n, k)
    return found


def kernel_for(m: int, n: int, k: int, target: str, options: tuple[tuple[str, Any], ...]) -> GemmPlan:
    """The plan for C = A·Bᵀ on a target; it may compute Cᵀ = B·Aᵀ, as its option c_major says.

    Raises PlanError where no kernel takes the options.
    """
    return choice_for(m, n, k, target, target, options).plan


@dataclass(frozen=True)
class Gemm:
    """A kernel for GEMMs of these sizes and strides; `lda` and `ldb` in elements."""

    choice: Choice
    lda: int
    ldb: int

    @cached_property
    def problem(self) -> GemmProblem:
        """The problem as the kernel sees it."""
        first, second = self.choice.operands(self.lda, self.ldb)
        return self.choice.problem(lda=first, ldb=second)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel for an emulator."""
        plan = self.choice.plan
        return Kernel.from_ptx(plan.text, regions=plan.shared.named)

    @property
    def leading(self) -> int:
        """Elements from one row of C to the next."""
        return self.problem.leading("c")

    def arguments(self, a: Any, b: Any, c: Any, bias: Any, order: Any, workspace: Any = None) -> list[Any]:
        """Launch arguments with A, B, C and a bias at addresses, or device arrays; `order`: the table of tiles."""
        first, second = self.choice.operands(a, b)
        return self.problem.arguments(first, second, c, None, bias, order, workspace=workspace)


@lru_cache(maxsize=1024)
def gemm_for(
    m: int, n: int, k: int, device: str, target: str, options: tuple[tuple[str, Any], ...], lda: int, ldb: int
) -> Gemm:
    """The GEMM of these sizes, options and strides on a device."""
    return Gemm(choice_for(m, n, k, device, target, options), lda, ldb)


@dataclass(frozen=True)
class Given:
    """The operands as a kernel takes them, and the GEMM: strides and addresses on 16 bytes, K-major if it must."""

    a: Tensor
    b: Tensor
    bias: Tensor | None
    gemm: Gemm

    @classmethod
    def of(cls, a: Tensor, b: Tensor, bias: Tensor | None, out_dtype: torch.dtype, device: str, target: str) -> Given:
        """Copies of operands that lie otherwise. Raises PlanError where no kernel takes the types."""
        (m, k), n = a.shape, b.shape[1]
        options: dict[str, Any] = {"dtype": TYPES[a.dtype], "c_dtype": OUTPUTS[out_dtype]}
        if a.dtype != b.dtype:
            options["b_dtype"] = TYPES[b.dtype]
        if bias is not None:
            options["bias"] = OUTPUTS[bias.dtype]
            bias = bias.contiguous()
        first, second = _major(a), _major(b.t())
        try:
            choice_for(m, n, k, device, target, _key(options, first, second))
        except PlanError:  # such a type is multiplied K-major alone
            first = second = "k"
        lines_a, lines_b = _lines(a, first), _lines(b.t(), second)
        key = _key(options, first, second)
        found = gemm_for(m, n, k, device, target, key, lines_a.stride(0), lines_b.stride(0))
        return cls(lines_a, lines_b, bias, found)


def _key(options: dict[str, Any], a_major: str, b_major: str) -> tuple[tuple[str, Any], ...]:
    majors = {name: major for name, major in (("a_major", a_major), ("b_major", b_major)) if major != "k"}
    return tuple(sorted({**options, **majors}.items()))


def _major(matrix: Tensor) -> str:
    """Along which dimension a matrix (rows, K) is contiguous."""
    return "mn" if matrix.stride(0) == 1 and matrix.stride(1) != 1 and matrix.shape[1] > 1 else "k"


def _lines(matrix: Tensor, major: str) -> Tensor:
    """A matrix (rows, K) as its lines: contiguous each, the next one at a multiple of 16 bytes; copied if it is not."""
    lines = matrix if major == "k" else matrix.t()
    step = ALIGNMENT // lines.element_size()
    aligned = lines.stride(1) == 1 and lines.stride(0) % step == 0 and lines.stride(0) >= lines.shape[1]
    if aligned and lines.data_ptr() % ALIGNMENT == 0:
        return lines
    padded = -(-lines.shape[1] // step) * step
    made = lines.new_empty((lines.shape[0], padded))[:, : lines.shape[1]]
    return made.copy_(lines)


@cache
def gpu(number: int) -> Gpu:
    """The GPU that torch numbers so."""
    return Gpu(number)


#: The workspace of each device's streams, by number and handle.
_workspaces: dict[tuple[int, int], Tensor] = {}


def workspace_of(device: torch.device, stream: int, words: int) -> Tensor:
    """At least so many words for kernels of torch's current stream, whose counters are 0 between launches.

    Allocated and zeroed once, and again where a kernel takes more. A launch that a graph captures has one of its own,
    in the graph's memory, whose counters the graph zeroes.
    """
    if torch.cuda.is_current_stream_capturing():
        made = torch.empty(words, dtype=torch.int32, device=device)
        made[: COUNTER_BYTES // made.element_size()].zero_()
        return made
    found = _workspaces.get((device.index, stream))
    if found is None or found.numel() < words:
        found = _workspaces[device.index, stream] = torch.zeros(words, dtype=torch.int32, device=device)
    return found


class Ready:
    """A GEMM ready to launch on a GPU, by one thread: a call allocates C, sets addresses and enqueues the kernel.

    `shape` is that of C with its rows at `leading`.
    """

    def __init__(self, gemm: Gemm, device: Gpu, dtype: torch.dtype, shape: tuple[int, ...], biased: bool) -> None:
        plan = gemm.choice.plan
        self.shape, self.dtype, self.columns = shape, dtype, gemm.problem.leading("c")
        self.device, self.index = torch.device("cuda", device.number), device.number
        table = gemm.problem.tile_order
        self._order = None if table is None else torch.from_numpy(table.view("int32")).to(self.device)
        order = None if self._order is None else self._order.data_ptr()
        self._words = gemm.problem.workspace_words
        packed = Packed.of(gemm.choice, gemm.problem, order, biased=biased)
        self._launch = device.prepare(
            cubin_of(plan), plan.entry, gemm.problem.grid, gemm.problem.block, plan.shared.bytes, packed.values,
            packed.places,
        )  # fmt: skip

    @property
    def launch(self) -> PreparedLaunch:
        """The launch with its arguments."""
        return self._launch

    def __call__(self, like: Tensor, a: int, b: int, bias: int) -> Tensor:
        """C of A, B and a bias at addresses, on torch's current stream; `like`: a tensor of the device."""
        # Of a tensor's own type new_empty takes half the time of torch.empty, which reads the device.
        shape, dtype = self.shape, self.dtype
        c = like.new_empty(shape) if like.dtype is dtype else like.new_empty(shape, dtype=dtype)
        stream, addresses = torch._C._cuda_getCurrentRawStream(self.index), (a, b, c.data_ptr(), bias)
        if self._words:
            addresses = (*addresses, workspace_of(self.device, stream, self._words).data_ptr())
        if status := self._launch(stream, addresses):
            gpu(self.index).refused(status)
        return c
