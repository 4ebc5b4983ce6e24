"""What a row is measured with: torch, cublasLt's algorithms, our kernels, kernels of others."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Protocol

from bench.gpu.cublaslt import Product
from bench.gpu.cuda import Driver, Function, Parameters
from bench.gpu.deepgemm import configuration
from bench.gpu.suite import Row
from ptxgen.gemm import GemmPlan, find, parse_options
from ptxgen.gemm.block_scales import BLOCK, shape_a, shape_b
from ptxgen.gemm.selection.dispatch import Choice
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
    """Sets of random A, B and C of a row, enough to turn the L2 over twice, and the product of the first in fp32.

    `scaled`: with random fp32 scales between 1/2 and 2, 1x128 of A (`sfa`, M contiguous) and 128x128 of B (`sfb`).
    """

    def __init__(self, torch: Any, row: Row, seed: int = 0, *, scaled: bool = False) -> None:
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
        a, b = self.a[0].float(), self.b[0].float()
        self.sfa: list[Any] = []
        self.sfb: list[Any] = []
        if scaled:
            for shape, made in ((shape_a(row.m, row.k), self.sfa), (shape_b(row.n, row.k), self.sfb)):
                for _ in range(self.count):
                    made.append(torch.exp2(2 * torch.rand(shape, device="cuda", generator=generator) - 1))
            a *= self.sfa[0][:, : row.m].t().repeat_interleave(BLOCK, 1)[:, : row.k]
            b *= self.sfb[0].repeat_interleave(BLOCK, 0)[: row.n].repeat_interleave(BLOCK, 1)[:, : row.k]
        self.reference = a @ b.t()
        self._torch, self._row = torch, row

    def poison(self) -> None:
        self.c[0].fill_(float("nan"))

    def errors(self) -> tuple[float, float]:
        """Of the first C: the relative error in the Frobenius norm, and the largest one over √K; NaN never passes.

        √K is the size of an element without scales, for which that of the whole product stands with them.
        """
        torch = self._torch
        difference = self.c[0].float() - self.reference
        relative = torch.linalg.vector_norm(difference) / torch.linalg.vector_norm(self.reference)
        size = self._row.k**0.5
        if self.sfa:
            size = torch.linalg.vector_norm(self.reference) / self.reference.numel() ** 0.5
        beyond = (difference.abs() - self.reference.abs() * 2.0**-8).max() / size
        return float(relative), float(beyond)

    def right(self, errors: tuple[float, float], *, ours: bool) -> bool:
        """Whether errors are those of rounding to C's type; of fp8 those of the tensor cores' 13 bits of fraction, too.

        Others may add up rounded parts of a split K, as torch's default is. A sum of fp8 that nothing promotes may
        lose 2⁻¹³ of its size, of some √K, at each of K/32 additions; the largest of all elements is at most four times
        that size.
        """
        if self._row.dtype in _FP8:
            return errors[0] <= 1e-2 and errors[1] <= max(5e-2, 4 * self._row.k / 32 * 2.0**-13)
        if not ours:
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
        #: fp8 with promoted sums is a product of its own, and so is one with scales.
        self.kind = "ptxgen promoted" if row.dtype in _FP8 and plan.config.promote else "ptxgen"
        scaled = plan.block_scales is not None
        if scaled:
            self.kind = "ptxgen scaled"
        if scaled != bool(buffers.sfa):
            raise ValueError(f"{self.name} takes {'scales' if scaled else 'no scales'}")
        self._grid, self._block = problem.grid, problem.block
        table = problem.tile_order
        self._order = None if table is None else torch.from_numpy(table.view("int32")).cuda()
        order = None if self._order is None else self._order.data_ptr()
        words = problem.workspace_words
        self._workspace = torch.zeros(words, dtype=torch.int32, device="cuda") if words else None
        workspace = None if self._workspace is None else self._workspace.data_ptr()
        declared = [declaration for declaration, _ in plan.parameters]
        self._parameters = []
        for number, (a, b, c) in enumerate(zip(buffers.a, buffers.b, buffers.c, strict=True)):
            first, second = choice.operands(a.data_ptr(), b.data_ptr())
            scales = (buffers.sfa[number].data_ptr(), buffers.sfb[number].data_ptr()) if scaled else None
            scales = choice.operands(*scales) if scales else ()
            values = problem.arguments(first, second, c.data_ptr(), order=order, workspace=workspace, scales=scales)
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


class DeepGemmArm:
    """DeepGEMM's kernel of fp8 with scales, from the library that bench/gpu/deepgemm.cu says how to build."""

    def __init__(self, library: ctypes.CDLL, row: Row, buffers: Buffers, *, dependent: bool = False) -> None:
        self.name = f"DeepGEMM{' dependent' * dependent}"
        self._library, self._dependent = library, int(dependent)
        found = self.chosen = configuration(row.m, row.n, row.k)
        numbers = row.m, row.n, row.k, found.block_m, found.block_n, found.stages, found.multicast, int(found.on_a)
        sets = zip(buffers.a, buffers.sfa, buffers.b, buffers.sfb, buffers.c, strict=True)
        for number, matrices in enumerate(sets):
            addresses = (ctypes.c_void_p(each.data_ptr()) for each in matrices)
            if status := library.deepgemm_prepare(number, *numbers, *addresses):
                raise RuntimeError(f"DeepGEMM takes no {row.key}: {status}")

    def launch(self, number: int, stream: int) -> None:
        if status := self._library.deepgemm_launch(number, ctypes.c_void_p(stream), self._dependent):
            raise RuntimeError(f"DeepGEMM: {status}")

    def close(self) -> None:
        pass


class TorchScaledArm:
    """torch._scaled_mm with scales of 1x128 and 128x128. Raises RuntimeError for shapes that it does not take."""

    name = "torch scaled"

    def __init__(self, torch: Any, row: Row, buffers: Buffers) -> None:
        if row.m % 4 or row.n % BLOCK or row.k % BLOCK:
            raise RuntimeError(f"torch._scaled_mm takes no {row.key}")
        self._torch, self._buffers = torch, buffers
        self._b = [each.t() for each in buffers.b]
        self._sfa = [each.t() for each in buffers.sfa]
        # Lines of 4 scales: the stride must be a multiple of that.
        missing = -(row.k // BLOCK) % 4
        padded = [torch.nn.functional.pad(each, (0, missing)) for each in buffers.sfb]
        self._sfb = [each[:, : row.k // BLOCK].t() for each in padded]

    def launch(self, number: int, stream: int) -> None:
        """On torch's current stream, which must be `stream`."""
        buffers = self._buffers
        self._torch._scaled_mm(
            buffers.a[number], self._b[number], scale_a=self._sfa[number], scale_b=self._sfb[number],
            out_dtype=buffers.c_dtype, out=buffers.c[number],
        )  # fmt: skip

    def close(self) -> None:
        pass
