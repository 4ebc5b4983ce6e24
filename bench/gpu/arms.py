"""What a row is measured with: torch, cublasLt's algorithms, our kernels, kernels of others."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Protocol

from bench.gpu.cublaslt import Product
from bench.gpu.cuda import Driver, Function, Parameters
from bench.gpu.suite import Row
from ptxgen.gemm import GemmPlan, find, parse_options
from ptxgen.gemm.dispatch import Choice
from ptxgen.toolchain import assemble

#: Bytes that rotating buffers have together: twice the L2 of an H200.
ROTATED = 2 * 60 * 2**20
_TORCH = {"bf16": "bfloat16", "f16": "float16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_FP8 = ("e4m3", "e5m2")


class Arm(Protocol):
    """One way to compute C = A·Bᵀ. `launch` enqueues it on a stream, on the buffers of a number."""

    name: str

    def launch(self, number: int, stream: int) -> None: ...

    def close(self) -> None: ...


class Buffers:
    """Sets of random A, B and C of a row, enough to turn the L2 over twice, and the product of the first in fp32."""

    def __init__(self, torch: Any, row: Row, seed: int = 0) -> None:
        generator = torch.Generator(device="cuda").manual_seed(seed)
        self.count = max(2, -(-ROTATED // row.bytes))
        self.dtype = getattr(torch, _TORCH[row.dtype])
        self.c_dtype_name = "bf16" if row.dtype in _FP8 else row.dtype
        self.c_dtype = getattr(torch, _TORCH[self.c_dtype_name])

        def random(rows: int) -> Any:
            made = torch.randn(rows, row.k, device="cuda", generator=generator, dtype=torch.bfloat16)
            return made.to(self.dtype)

        self.a = [random(row.m) for _ in range(self.count)]
        self.b = [random(row.n) for _ in range(self.count)]
        self.c = [torch.empty(row.m, row.n, device="cuda", dtype=self.c_dtype) for _ in range(self.count)]
        torch.backends.cuda.matmul.allow_tf32 = False
        self.reference = self.a[0].float() @ self.b[0].float().t()
        self._torch, self._row = torch, row

    def poison(self) -> None:
        self.c[0].fill_(float("nan"))

    def errors(self) -> tuple[float, float]:
        """Of the first C: the relative error in the Frobenius norm, and the largest error over √K; NaN never passes."""
        torch = self._torch
        difference = self.c[0].float() - self.reference
        relative = torch.linalg.vector_norm(difference) / torch.linalg.vector_norm(self.reference)
        beyond = (difference.abs() - self.reference.abs() * 2.0**-8).max() / self._row.k**0.5
        return float(relative), float(beyond)

    def right(self, errors: tuple[float, float], *, ours: bool) -> bool:
        """Whether errors are those of rounding to C's type; of fp8 those of the tensor cores' 13 bits of fraction, too.

        Others may add up rounded parts of a split K, as torch's default is.
        """
        if not ours or self._row.dtype in _FP8:
            return errors[0] <= 1e-2 and errors[1] <= 5e-2
        return errors[0] <= (3e-3 if self.c_dtype_name == "bf16" else 6e-4) and errors[1] <= 4e-3


class TorchArm:
    """torch.mm, or torch._scaled_mm for fp8."""

    def __init__(self, torch: Any, buffers: Buffers, *, fast: bool = True) -> None:
        self._torch, self._buffers, self._fast = torch, buffers, fast
        self._fp8 = buffers.dtype.itemsize == 1
        self.name = f"torch {'fast' if fast else 'promoted'}" if self._fp8 else "torch"
        self._one = torch.ones((), device="cuda")
        self._b = [each.t() for each in buffers.b]

    def launch(self, number: int, stream: int) -> None:
        """On torch's current stream, which must be `stream`."""
        torch, buffers = self._torch, self._buffers
        if self._fp8:
            torch._scaled_mm(
                buffers.a[number], self._b[number], scale_a=self._one, scale_b=self._one,
                out_dtype=buffers.c_dtype, use_fast_accum=self._fast, out=buffers.c[number],
            )  # fmt: skip
        else:
            torch.mm(buffers.a[number], self._b[number], out=buffers.c[number])

    def close(self) -> None:
        pass


class LtArm:
    """One algorithm of cublasLt."""

    def __init__(self, product: Product, index: int, buffers: Buffers, name: str = "") -> None:
        self._product, self.index = product, index
        self.name = name or f"cublaslt {index}"
        matrices = zip(buffers.a, buffers.b, buffers.c, strict=True)
        self._addresses = [(a.data_ptr(), b.data_ptr(), c.data_ptr()) for a, b, c in matrices]

    def launch(self, number: int, stream: int) -> None:
        self._product.launch(self.index, *self._addresses[number], stream)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Spec:
    """A kernel of the library by name, and its options as `--set` takes them."""

    kernel: str
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join([self.kernel, *self.options])

    @classmethod
    def named(cls, name: str) -> Spec:
        kernel, *options = name.split()
        return cls(kernel, tuple(options))

    def plan(self) -> GemmPlan:
        return find(self.kernel).plan(**parse_options(dict(each.split("=", 1) for each in self.options)))


@dataclass(frozen=True)
class Built:
    """A spec as a cubin, or why there is none."""

    spec: Spec
    cubin: bytes = b""
    registers: int = 0
    spills: int = 0
    serialized: bool = False
    error: str = ""


def build(spec: Spec) -> Built:
    """Plan, render and assemble."""
    try:
        made = assemble(spec.plan().text)
    except Exception as error:  # the sweep goes on without it
        return Built(spec, error=f"{type(error).__name__}: {error}"[:300])
    serialized = "serializ" in made.log.lower()
    return Built(spec, made.data, made.registers, made.spill_stores + made.spill_loads, serialized)


class PtxgenArm:
    """A kernel of the library on a row."""

    def __init__(self, torch: Any, driver: Driver, built: Built, row: Row, buffers: Buffers) -> None:
        choice = Choice(built.spec.plan(), row.m, row.n, row.k)
        plan, problem = choice.plan, choice.problem()
        self.name = built.spec.name
        self.built, self.dependent = built, plan.config.dependent
        #: fp8 with promoted sums is a product of its own.
        self.kind = "ptxgen promoted" if row.dtype in _FP8 and plan.config.promote else "ptxgen"
        self._grid, self._block = problem.grid, problem.block
        table = problem.tile_order
        self._order = None if table is None else torch.from_numpy(table.view("int32")).cuda()
        order = None if self._order is None else self._order.data_ptr()
        words = problem.workspace_words
        self._workspace = torch.zeros(words, dtype=torch.int32, device="cuda") if words else None
        workspace = None if self._workspace is None else self._workspace.data_ptr()
        declared = [declaration for declaration, _ in plan.parameters]
        self._parameters = []
        for a, b, c in zip(buffers.a, buffers.b, buffers.c, strict=True):
            first, second = choice.operands(a.data_ptr(), b.data_ptr())
            values = problem.arguments(first, second, c.data_ptr(), order=order, workspace=workspace)
            self._parameters.append(Parameters([packed(*each) for each in zip(declared, values, strict=True)]))
        self._function = Function(driver, built.cubin, plan.entry, plan.shared.bytes)

    def launch(self, number: int, stream: int) -> None:
        self._function.launch(self._grid, self._block, self._parameters[number], stream, dependent=self.dependent)

    def close(self) -> None:
        self._function.close()


def packed(declaration: str, value: Any) -> bytes:
    """The bytes of an argument of a kernel of the library: a tensormap, an address or a word."""
    if hasattr(value, "encode"):
        return value.encode()
    size = {".u32": 4, ".u64": 8, ".b32": 4, ".f32": 4}[declaration.split()[-1]]
    return value.tobytes() if hasattr(value, "tobytes") else int(value).to_bytes(size, "little")


class FastCuArm:
    """Kernel 12 of fast.cu, from the library that bench/gpu/fast_cu.cu says how to build."""

    name = "fast.cu"

    def __init__(self, library: ctypes.CDLL, row: Row, buffers: Buffers) -> None:
        self._library = library
        for number, matrices in enumerate(zip(buffers.a, buffers.b, buffers.c, strict=True)):
            a, b, c = (ctypes.c_void_p(each.data_ptr()) for each in matrices)
            if status := library.fast_cu_prepare(number, row.m, row.n, row.k, a, b, c):
                raise RuntimeError(f"fast.cu takes no {row.key}: {status}")

    @staticmethod
    def takes(row: Row) -> bool:
        """Squares of whole tiles, as its author runs it."""
        return row.dtype == "bf16" and row.m == row.n == row.k and row.m % 256 == 0

    def launch(self, number: int, stream: int) -> None:
        if status := self._library.fast_cu_launch(number, ctypes.c_void_p(stream)):
            raise RuntimeError(f"fast.cu: {status}")

    def close(self) -> None:
        pass
