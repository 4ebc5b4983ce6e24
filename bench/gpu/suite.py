"""The shapes of the Hopper benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Row:
    """C = A·Bᵀ with A of M×K and B of N×K; `group` is its part of the suite, `source` where the shape comes from."""

    group: str
    m: int
    n: int
    k: int
    dtype: str = "bf16"
    source: str = ""

    @property
    def key(self) -> str:
        return f"{self.dtype} {self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """Bytes of A, B and C, each once; C has 16-bit elements."""
        size = 1 if self.dtype in ("e4m3", "e5m2") else 2
        return size * self.k * (self.m + self.n) + 2 * self.m * self.n


SQUARES = (1024, 2048, 4096, 6144, 8192, 12288, 16384)
#: (N, K) of the projections of a layer: QKV, attention output, gate and up, down; for DeepSeek-V3 those of DeepGEMM.
PROJECTIONS = {
    "Llama-3 8B": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "Llama-3 70B": ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)),
    "DeepSeek-V3": ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)),
}
TOKENS = (1, 8, 16, 32, 64, 128, 512, 4096)
ARTICLE = ((512, 8192, 5376), (512, 5376, 21504))


def suite(dtype: str = "bf16") -> list[Row]:
    """Every row of the suite, in the order of the report; a shape of two models is in it once."""
    rows = [Row("square", size, size, size, dtype, "square") for size in SQUARES]
    for model, shapes in PROJECTIONS.items():
        rows += [Row("llm", m, n, k, dtype, model) for n, k in shapes for m in TOKENS]
    rows += [Row("article", m, n, k, dtype, "Gemma 3 27B") for m, n, k in ARTICLE]
    rows += [Row("gemv", 2, n, k, dtype, "two rows") for n, k in ((4096, 4096), (28672, 4096), (2112, 7168))]
    found: dict[str, Row] = {}
    for each in rows:
        found.setdefault(each.key, each)
    return list(found.values())
