"""Which kernel DeepGEMM chooses for a shape: the heuristic of its csrc/jit_kernels/heuristics/sm90.hpp for fp8_gemm_nt.

    python -m bench.gpu.deepgemm > kernels.inc     # the kernels of the suite, for bench/gpu/deepgemm.cu
    python -m bench.gpu.deepgemm --drawn judging 32 7 > kernels.inc     # those of 32 judging rows

Of revision 54e2261 (MIT), with its defaults: 132 multiprocessors, N and K compiled in, C of bf16, scales 1D2D.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.gpu.held_out import rows_of
from bench.gpu.suite import Row

_SMS, _SHARED, _MOST_STAGES = 132, 232448, 16
_BLOCK_K = 128
#: Bytes a cycle of the L2 and of all L1s.
_L2, _L1 = int(min(64.0 * _SMS, 8e6 / 1.3e3)), 128 * _SMS


@dataclass(frozen=True, order=True)
class Configuration:
    """The template arguments of a kernel that depend on the shape, and its bytes of shared memory."""

    n: int
    k: int
    block_m: int
    block_n: int
    cluster_m: int
    cluster_n: int
    stages: int
    shared: int

    @property
    def swizzle_d(self) -> int:
        return _swizzle(self.block_n)

    @property
    def multicast(self) -> int:
        """CTAs of a cluster."""
        return self.cluster_m * self.cluster_n

    @property
    def on_a(self) -> bool:
        """Whether a cluster shares A."""
        return self.cluster_n > 1

    @property
    def math_threads(self) -> int:
        return 128 if self.block_m <= 64 else 256


def configuration(m: int, n: int, k: int) -> Configuration:
    """What DeepGEMM launches for C = A·Bᵀ of fp8 with scales."""
    return min(_candidates(m, n, k), key=lambda each: _cycles(each, m, n, k))


def _candidates(m: int, n: int, k: int) -> Iterator[Configuration]:
    rows = [64, 128, *[16] * (m <= 16), *[32] * (m <= 32), 256]
    for cluster in ((1, 1), (1, 2), (2, 1)):
        for block_m in rows:
            for block_n in range(16, 193, 16):
                over = block_n - _BLOCK_K
                if over > 0 and block_n % over and _BLOCK_K % over:
                    continue  # three scales of B
                if block_m > 128 and block_n > 128:
                    continue
                extra = -(-(2 * block_m * block_n) // 1024) * 1024 + _MOST_STAGES * 16
                scales = -(-k // _BLOCK_K) * 4 * (1 if _BLOCK_K % block_n == 0 else 2)
                extra += -(-scales // 8) * 8
                stage = (block_m + block_n) * _BLOCK_K + -(-4 * block_m // 128) * 128
                stages = min((_SHARED - extra) // stage, _MOST_STAGES)
                if stages >= (4 if block_m * block_n < 128 * 192 else 3):
                    yield Configuration(n, k, block_m, block_n, *cluster, stages, extra + stages * stage)


def _cycles(each: Configuration, m: int, n: int, k: int) -> int:
    """Its estimate; of equals the first is taken."""
    blocks = -(-m // each.block_m) * -(-n // each.block_n)
    waves = -(-blocks // _SMS)
    if waves <= 1 and each.multicast > 1:
        return sys.maxsize
    stored = 2 * each.block_m * each.block_n
    l2 = k * (each.block_m // each.cluster_n + each.block_n // each.cluster_m)
    l1 = k * (each.block_m + each.block_n)
    tensor = k * (max(64, each.block_m) + each.block_n) + stored
    cycles = max((l1 + tensor + stored) * blocks // _L1, (l2 + stored) * blocks // _L2)
    return int(np.float32(cycles) / (np.float32(blocks) / np.float32(waves * _SMS)))


def _swizzle(block_n: int) -> int:
    return next(mode for mode in (128, 64, 32, 16) if 2 * block_n % mode == 0)


def kernels(rows: Sequence[Row]) -> list[Configuration]:
    """Those of all rows."""
    return sorted({configuration(row.m, row.n, row.k) for row in rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drawn", nargs=3, metavar=("PART", "COUNT", "SEED"), help="drawn rows for the suite's")
    options = parser.parse_args()
    for each in kernels(rows_of("e4m3", options.drawn)):
        on_a = "true" if each.on_a else "false"
        print(
            f"KERNEL({each.n}, {each.k}, {each.block_m}, {each.block_n}, {each.swizzle_d}, {each.stages}, "
            f"{each.math_threads}, {each.multicast}, {on_a}, {each.shared})"
        )


if __name__ == "__main__":
    main()
