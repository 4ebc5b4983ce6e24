"""What attention is measured with: kernels of the library, torch's scaled_dot_product_attention, and their buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from bench.gpu.arms import ROTATED, packed
from bench.gpu.cuda import Driver, Function, Parameters
from ptxgen import options as option_texts
from ptxgen.attention import find
from ptxgen.attention.config import AttentionConfig
from ptxgen.attention.plan import AttentionPlan
from ptxgen.toolchain import assemble

_TORCH = {"bf16": "bfloat16", "f16": "float16"}
#: Rows of scores that the reference has at a time.
_ROWS = 2048


@dataclass(frozen=True)
class AttentionRow:
    """A problem: as many queries as keys unless `keys` says otherwise, O of Q's type."""

    queries: int
    heads: int
    batches: int
    head_size: int = 128
    value_size: int = 0
    kv_heads: int = 0
    keys: int = 0
    causal: bool = False
    dtype: str = "bf16"

    @property
    def key(self) -> str:
        """Its name in records."""
        sizes = f"{self.head_size}" + (f"/{self.value_size}" if self.value_size else "")
        heads = f"{self.heads}" + (f"/{self.kv_heads}" if self.kv_heads else "")
        mask = "causal" if self.causal else "full"
        return f"{self.dtype} {mask} {self.queries}x{self.keys or self.queries} d{sizes} h{heads} b{self.batches}"

    def plan(self, kernel: str, options: dict[str, str]) -> AttentionPlan:
        """A kernel of the library for this row. Raises PlanError."""
        given = {
            "dtype": self.dtype, "head_size": self.head_size, "value_size": self.value_size, "causal": self.causal,
        }  # fmt: skip
        return find(kernel).plan(**given, **option_texts.parse(AttentionConfig, options))

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class AttentionSpec:
    """A kernel of the library by name, and its options as `--set` takes them."""

    kernel: str
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join([self.kernel, *self.options])

    @classmethod
    def named(cls, name: str) -> AttentionSpec:
        kernel, *options = name.split()
        return cls(kernel, tuple(options))

    def plan(self, row: AttentionRow) -> AttentionPlan:
        return row.plan(self.kernel, dict(each.split("=", 1) for each in self.options))


@dataclass(frozen=True)
class BuiltAttention:
    """A kernel of a row as a cubin, or why there is none."""

    spec: AttentionSpec
    row: AttentionRow
    cubin: bytes = b""
    registers: int = 0
    spills: int = 0
    log: str = ""
    error: str = ""


def build_attention(spec: AttentionSpec, row: AttentionRow) -> BuiltAttention:
    """Plan, render and assemble."""
    try:
        made = assemble(spec.plan(row).text)
    except Exception as error:  # the sweep goes on without it
        return BuiltAttention(spec, row, error=f"{type(error).__name__}: {error}"[:300])
    return BuiltAttention(spec, row, made.data, made.registers, made.spill_stores + made.spill_loads, made.log)


class AttentionBuffers:
    """Sets of random Q, K, V and O of a row, enough to turn the L2 over twice; the first O in fp32 for comparison."""

    def __init__(self, torch: Any, row: AttentionRow, seed: int = 0) -> None:
        self._torch, self.row = torch, row
        dtype = getattr(torch, _TORCH[row.dtype])
        generator = torch.Generator(device="cuda").manual_seed(seed)
        keys, kv_heads, values = row.keys or row.queries, row.kv_heads or row.heads, row.value_size or row.head_size
        shapes = {
            "q": (row.batches, row.heads, row.queries, row.head_size),
            "k": (row.batches, kv_heads, keys, row.head_size),
            "v": (row.batches, kv_heads, keys, values),
            "o": (row.batches, row.heads, row.queries, values),
        }
        size = 2 * sum(torch.Size(shape).numel() for shape in shapes.values())
        self.count = max(2, -(-ROTATED // size))
        self.sets = [
            {
                name: torch.randn(shape, device="cuda", generator=generator, dtype=dtype)
                for name, shape in shapes.items()
            }
            for _ in range(self.count)
        ]
        self.reference = self._expected()

    def _expected(self) -> Any:
        torch, row = self._torch, self.row
        torch.backends.cuda.matmul.allow_tf32 = False
        first = self.sets[0]
        made = torch.empty(first["o"].shape, device="cuda", dtype=torch.float32)
        group = row.heads // (row.kv_heads or row.heads)
        keys = row.keys or row.queries
        columns = torch.arange(keys, device="cuda")
        for batch in range(row.batches):
            for head in range(row.heads):
                k, v = (first[name][batch, head // group].float() for name in "kv")
                for start in range(0, row.queries, _ROWS):
                    q = first["q"][batch, head, start : start + _ROWS].float()
                    scores = q @ k.t() * row.head_size**-0.5
                    if row.causal:
                        rows = torch.arange(start, start + len(q), device="cuda")[:, None] + keys - row.queries
                        scores.masked_fill_(columns > rows, float("-inf"))
                    made[batch, head, start : start + _ROWS] = torch.softmax(scores, -1).nan_to_num_(0) @ v
        return made

    def poison(self) -> None:
        self.sets[0]["o"].fill_(float("nan"))

    def errors(self) -> tuple[float, float]:
        """Of the first O: the relative error in the Frobenius norm, and the largest one; NaN never passes."""
        difference = self.sets[0]["o"].float() - self.reference
        norm = self._torch.linalg.vector_norm
        return float(norm(difference) / norm(self.reference)), float(difference.abs().max())

    def right(self, errors: tuple[float, float]) -> bool:
        """Whether errors are those of exponentials and O rounded to the type: 2⁻⁹ each, of f16 2⁻¹², relative to their
        sizes, of which the norm sees less and the largest element a few times more; |V| is at most about 5.
        """
        rounding = 2.0**-9 if self.row.dtype == "bf16" else 2.0**-12
        return errors[0] <= 2 * rounding and errors[1] <= 16 * rounding


class PtxgenAttention:
    """A kernel of the library on a row."""

    def __init__(self, driver: Driver, built: BuiltAttention, buffers: AttentionBuffers) -> None:
        row, plan = built.row, built.spec.plan(built.row)
        self.name, self.built = built.spec.name, built
        problem = plan.problem(
            row.queries, row.keys or row.queries, heads=row.heads, kv_heads=row.kv_heads, batches=row.batches
        )
        self.flop = problem.flop
        self._grid, self._block = problem.grid, (problem.block, 1, 1)
        declared = [declaration for declaration, _ in plan.parameters]
        self._parameters = []
        for tensors in buffers.sets:
            values = problem.arguments({name: each.data_ptr() for name, each in tensors.items()})
            self._parameters.append(Parameters([packed(*each) for each in zip(declared, values, strict=True)]))
        self._function = Function(driver, built.cubin, plan.entry, plan.shared.bytes)

    def launch(self, number: int, stream: int) -> None:
        self._function.launch(self._grid, self._block, self._parameters[number], stream)

    def close(self) -> None:
        self._function.close()


class TorchAttention:
    """torch's scaled_dot_product_attention by one of its backends. Raises RuntimeError where that has no kernel."""

    def __init__(self, torch: Any, backend: str, buffers: AttentionBuffers) -> None:
        from torch.nn.attention import SDPBackend, sdpa_kernel  # pyright: ignore[reportMissingImports]

        row = buffers.row
        self.name = f"torch {backend.lower()}"
        self._buffers = buffers
        only, chosen = sdpa_kernel, getattr(SDPBackend, backend)
        grouped, causal = row.kv_heads not in (0, row.heads), row.causal

        def call(tensors: dict[str, Any]) -> Any:
            with only(chosen):
                return torch.nn.functional.scaled_dot_product_attention(
                    tensors["q"], tensors["k"], tensors["v"], is_causal=causal, enable_gqa=grouped
                )

        self._call: Callable[[dict[str, Any]], Any] = call
        with torch.no_grad():
            buffers.sets[0]["o"].copy_(call(buffers.sets[0]))

    def launch(self, number: int, stream: int) -> None:
        """On torch's current stream, which must be `stream`."""
        self._call(self._buffers.sets[number])

    def close(self) -> None:
        pass
