"""Machine descriptions: every number with its unit and how it is known. The only place for such numbers.

Sources by their short names. fast.cu: pranjalssh/fast.cu. SemiAnalysis: SemiAnalysisAI/microbench-blackwell, CSV files
of B200 measurements. QuickRunCUDA: ademeure/QuickRunCUDA, B300. FlashGPU-Sim: its configurations and documents.
TileOPs: tile-ai/TileOPs. Ours: runs on one H200.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from ptxgen.descriptors.evidence import Evidence, documented, inferred, measured, unverified
from ptxgen.layouts.tmem import COLUMNS
from ptxgen.limits import shared_per_cta


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a machine."""

    value: float
    unit: str
    evidence: Evidence

    @property
    def shown(self) -> str:
        """Value and unit, bytes as TB or MB where they are many."""
        for prefix, factor in (("T", 1e12), ("M", 1e6)):
            if self.unit.startswith("B") and self.value >= factor:
                return f"{self.value / factor:g} {prefix}{self.unit}"
        return f"{self.value:g} {self.unit}"

    def __str__(self) -> str:
        return f"{self.shown} ({self.evidence})"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A GPU as the planner and the timing model see it.

    `clock` is that of a busy tensor core: it depends on power and data and is an input of every prediction in time;
    `boost` is that of a kernel which memory bounds. `launch`: microseconds from one launch to the next that no CTA
    works. `hints`: the bandwidth of memory with L2 eviction priorities over that without. `l2_fill`: bytes a second
    that arrive in the two halves of the L2, each of which takes a line that its SMs read. `l2_reuse` is the part of the
    L2 over which a working set is read from memory again. `mma_busy`: MMA interval over the cycles that an MMA takes in
    a main loop. `ring_l2` and `ring_hbm`: cycles from an empty stage to the commit that frees it again, without the
    rows and MMAs of the stage, for operands in L2 and in memory. `epilogue`: bytes of C per cycle that consumers store
    between two tiles. `split`: cycles that stream-K takes for the flags, `split_sum`: bytes per cycle that the owner of
    a tile adds; `cluster_sum`: those of a CTA whose cluster splits K. `cluster_start` and `persistent_start`: cycles by
    which clusters, and CTAs that walk over tiles, start and end later than others; `split_start`: those by which
    clusters that split K do. `order_start`: cycles in which a CTA finds its tile in panels or a table. `promote_adds`:
    fp32 additions per cycle and SM that promote sums of fp8; `promote_wait`: cycles from the last wgmma of a K block to
    them, and from them to the next wgmma; `promote_consumers`: cycles of a K block for each consumer warpgroup after
    the first, since all wait for the same stage; `promote_boundary`: cycles of a K block for each column at which a
    tile may reach the next scale of B; `promote_overlap`: p of the p-norm of a K block's cycles and of those of one
    consumer warpgroup with its additions. `overlap`: p of the p-norm of the times of tensor cores, memory and L2;
    infinite where they hide each other completely. `ring_overlap`: that of a K block without waits and of the ring's
    round trip. `tie`: predictions this close are tied. `cluster` is the largest cluster that is tried without being
    asked for, `clusters` how many of larger ones run at once, where it is known. `full_shared`: the bandwidth of
    memory, and of the way into the L2, for CTAs that take more than `most_shared` of an SM's shared memory, over that
    for others.
    """

    name: str
    title: str
    target: str
    sms: Figure
    clock: Figure
    boost: Figure
    launch: Figure
    hbm_bandwidth: Figure
    hints: Figure
    full_shared: Figure
    most_shared: Figure
    l2_fill: Figure
    l2_bandwidth: Figure
    l2_bytes: Figure
    l2_reuse: Figure
    shared_bandwidth: Figure
    mma_columns: Figure
    mma_busy: Figure
    tensor: Mapping[str, Figure]
    tma_rows: Figure
    tma_issue: Figure
    tma_outside: Figure
    ring_l2: Figure
    ring_hbm: Figure
    epilogue: Figure
    split: Figure
    split_sum: Figure
    cluster_sum: Figure
    cluster_start: Figure
    split_start: Figure
    persistent_start: Figure
    order_start: Figure
    promote_adds: Figure
    promote_wait: Figure
    promote_consumers: Figure
    promote_boundary: Figure
    promote_overlap: Figure
    overlap: Figure
    ring_overlap: Figure
    tie: Figure
    cluster: Figure
    clusters: Mapping[int, Figure]

    @property
    def shared_bytes(self) -> Figure:
        """The most shared memory of a CTA."""
        return Figure(
            shared_per_cta(self.target), "B per CTA", documented("CUDA programming guide, compute capabilities")
        )

    @property
    def tmem_columns(self) -> Figure:
        """Columns of tensor memory; none on Hopper."""
        count = 0 if self.target == "sm_90a" else COLUMNS
        return Figure(count, "columns per SM", documented("PTX ISA 9.7.16.2"))

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Every number with its name; the tensor throughput of a kind as "tensor KIND"."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Figure):
                yield each.name, value
            elif isinstance(value, Mapping):
                yield from ((f"{each.name} {key}", figure) for key, figure in value.items())
        yield "shared_bytes", self.shared_bytes
        yield "tmem_columns", self.tmem_columns

    def cluster_slots(self, ctas: int) -> int:
        """How many clusters of so many CTAs run at once, one CTA per SM."""
        known = self.clusters.get(ctas)
        return int(known.value if known else self.sms.value // ctas)

    def clock_of(self, intensity: float) -> float:
        """MHz of a problem with so many FLOP per byte: power falls from `boost` to `clock` as tensor cores get busy.

        The square of the tensor cores' share in the time of memory, at most 1, is the part of the way.
        """
        peak = self.sms.value * self.tensor["f16"].value * self.clock.value * 1e6
        share = min(1.0, intensity * self.hbm_bandwidth.value / peak)
        return round(self.boost.value - (self.boost.value - self.clock.value) * share**2, -1)

    def together(self, *cycles: float) -> float:
        """The time of parts that run at once: their p-norm with `overlap`; the largest where that is infinite."""
        return _norm(cycles, self.overlap.value)

    def mma_cycles(self, m: int, n: int, cta_group: int = 1) -> float:
        """Cycles between two MMAs of m×n with K of 32 bytes, A and B in shared memory; m and n are the pair's with 2.

        The larger of N columns at full width and of the bytes that each SM reads from its shared memory: its own rows
        of A, and its share of B.
        """
        read = 32 * (m + n) / cta_group / self.shared_bandwidth.value
        return max(n / self.mma_columns.value, read)

    def k_block_cycles(
        self, mma: float, rows: int, copies: int, stages: int, *, in_l2: bool, outside: int = 0
    ) -> float:
        """Cycles of one K block in a ring of stages: MMAs, arrival of `rows` rows of 128 bytes, issue of the copies.

        Of the rows `outside` lie outside of their matrix. With few stages, the cycles are those of the round trip of a
        stage divided among them.
        """
        mma /= self.mma_busy.value
        arrival = (rows - outside) / self.tma_rows.value + outside * self.tma_outside.value
        floor = max(mma, arrival, copies * self.tma_issue.value)
        trip = (self.ring_l2 if in_l2 else self.ring_hbm).value + arrival + mma
        return _norm((floor, trip / stages), self.ring_overlap.value)

    def promoted_cycles(self, k_block: float, mma: float, consumers: int, blocks: int, sums: int, scales: int) -> float:
        """Cycles of a K block whose sums are promoted, where it takes `k_block` without.

        `mma`: cycles of all its wgmmas, which `consumers` warpgroups share; each has `blocks` times 64 rows one after
        the other, with `sums` of a thread to add before the next. `scales`: columns at which a tile may reach the next
        scale of B.
        """
        adds = sums * 128 / self.promote_adds.value + scales * self.promote_boundary.value
        alone = mma / consumers / self.mma_busy.value + blocks * (self.promote_wait.value + adds)
        shared = k_block + (consumers - 1) * self.promote_consumers.value
        return _norm((shared, alone), self.promote_overlap.value)


def _norm(values: Sequence[float], p: float) -> float:
    largest = max(values)
    if math.isinf(p) or not largest:
        return largest
    return largest * sum((each / largest) ** p for each in values) ** (1 / p)


_CSV = "SemiAnalysis, B200"
_FIT = "fit to ours (bench/data/hopper.json)"
_AGAIN = "ours, a later run"
_NEW = "fit to ours (NVIDIA H200, driver 580.159.04, 2026-11-24)"
_FP8 = (
    "fit to ours with promoted fp8 sums (492 on an NVIDIA H200, 2026-11-24; 870 on an NVIDIA H100 80GB HBM3, "
    "2026-11-26; driver 580.159.04)"
)
_PER_CYCLE = "FLOP per cycle and SM"

B200 = Machine(
    name="b200",
    title="NVIDIA B200",
    target="sm_100a",
    sms=Figure(148, "SMs", inferred("Modular's articles and published grids of B200 kernels agree")),
    clock=Figure(
        1500,
        "MHz",
        inferred(
            "from published TFLOPS over SMs x FLOP per cycle x wave efficiency: 1.69 GHz of Modular's bf16 at 4096, "
            "1.34 of Tilus's f16 and 1.08 of the MXFP8 article at 8192; power decides"
        ),
    ),
    boost=Figure(1500, "MHz", unverified("as `clock`: no run on a B200 says how fast a kernel bound by memory clocks")),
    launch=Figure(0, "µs", unverified("not in the model")),
    hbm_bandwidth=Figure(7.2e12, "B/s", measured(f"{_CSV}: TMA loads with 64 kB in flight per SM, 7.0 to 7.3 TB/s")),
    hints=Figure(1, "of the bandwidth without", unverified("nobody has measured it")),
    full_shared=Figure(1, "of the bandwidth", unverified("nobody has measured it")),
    most_shared=Figure(232448, "B", unverified("nobody has measured it")),
    l2_fill=Figure(14.4e12, "B/s", unverified("twice that of memory, so that it never bounds: nobody has measured it")),
    l2_bandwidth=Figure(21e12, "B/s", measured("QuickRunCUDA, B300, not B200: 20 to 22 TB/s as kernels see it")),
    l2_bytes=Figure(126.5e6, "B", measured("QuickRunCUDA, B300")),
    l2_reuse=Figure(0.5, "of the L2", inferred(f"{_CSV}: round trips grow where A and B pass half of the L2")),
    shared_bandwidth=Figure(128, "B per cycle and SM", measured("QuickRunCUDA, B300; SemiAnalysis's intervals fit it")),
    mma_columns=Figure(2, "columns of N per cycle", measured(f"{_CSV}: intervals of N/2 cycles, every kind")),
    mma_busy=Figure(1, "of the MMA interval", measured(f"{_CSV}: 98 to 99.5 % where nothing else bounds")),
    tensor={
        "f16": Figure(8192, _PER_CYCLE, measured(f"{_CSV}: 99.5 % of it")),
        "tf32": Figure(4096, _PER_CYCLE, inferred("half of f16: K of an instruction is 32 bytes for every kind")),
        "f8f6f4": Figure(16384, _PER_CYCLE, measured(f"{_CSV}: 99.5 % of it")),
        "i8": Figure(16384, _PER_CYCLE, inferred("as f8f6f4: K of an instruction is 32 bytes for every kind")),
        "mxf8f6f4": Figure(16384, _PER_CYCLE, measured(f"{_CSV}: 99.5 % of it, 1 to 5 cycles more latency")),
        "mxf4": Figure(32768, _PER_CYCLE, measured(f"{_CSV}: 99.5 % of it")),
        "mxf4nvf4": Figure(32768, _PER_CYCLE, measured(f"{_CSV}: 99.5 % of it")),
    },
    tma_rows=Figure(1, "rows of 128 B per cycle", measured(f"{_CSV}, mainloop of one CTA: 257 cycles for 256 rows")),
    tma_issue=Figure(57, "cycles per copy", measured(f"{_CSV}, mainloop of one CTA with the smallest tiles")),
    tma_outside=Figure(1, "cycles per row outside of the matrix", unverified("as rows inside: nobody has measured it")),
    ring_l2=Figure(570, "cycles", inferred(f"fit to {_CSV}, mainloop of one CTA, 515 to 585")),
    ring_hbm=Figure(1000, "cycles", inferred(f"fit to {_CSV}, mainloop of one CTA, 740 to 1060")),
    epilogue=Figure(32, "B of C per cycle", unverified("as H200; no rung for it stores between two tiles")),
    split=Figure(4000, "cycles", unverified("as H200; no rung for it splits K")),
    split_sum=Figure(25, "B of fp32 sums per cycle", unverified("as H200; no rung for it splits K")),
    cluster_sum=Figure(32, "B of fp32 sums per cycle", unverified("as H200; no rung for it splits K")),
    cluster_start=Figure(0, "cycles", unverified("nobody has measured it")),
    split_start=Figure(0, "cycles", unverified("nobody has measured it")),
    persistent_start=Figure(0, "cycles", unverified("nobody has measured it")),
    order_start=Figure(0, "cycles", unverified("nobody has measured it")),
    promote_adds=Figure(128, "fp32 additions per cycle and SM", unverified("as H200; no rung for it promotes sums")),
    promote_wait=Figure(100, "cycles", unverified("as H200; no rung for it promotes sums")),
    promote_consumers=Figure(100, "cycles", unverified("as H200; no rung for it promotes sums")),
    promote_boundary=Figure(30, "cycles", unverified("as H200; no rung for it promotes sums")),
    promote_overlap=Figure(6, "p-norm", unverified("as H200; no rung for it promotes sums")),
    overlap=Figure(math.inf, "p-norm", unverified("the largest part bounds: nobody has measured a kernel's parts")),
    ring_overlap=Figure(math.inf, "p-norm", inferred(f"{_CSV}, mainloop of one CTA")),
    tie=Figure(0.02, "of the time", unverified("no ranking was compared with measured kernels")),
    cluster=Figure(2, "CTAs", inferred("148 SMs are 74 pairs; how many clusters of 4 or 8 its GPCs hold is not known")),
    clusters={},
)

H200 = Machine(
    name="h200",
    title="NVIDIA H200",
    target="sm_90a",
    sms=Figure(132, "SMs", inferred("as the H100 SXM5 of NVIDIA's architecture paper")),
    clock=Figure(
        1500,
        "MHz",
        inferred(
            "from TFLOPS of cuBLAS on ours over SMs x FLOP per cycle: 1.46 GHz with random data, 1.65 with zeros; not "
            "the boost clock of 1.83 to 1.98"
        ),
    ),
    boost=Figure(1980, "MHz", measured("ours, docs/hopper.md: rows with M up to 32")),
    launch=Figure(0.92, "µs", inferred(f"{_NEW}: launches of a CUDA graph")),
    hbm_bandwidth=Figure(4.55e12, "B/s", measured("ours, docs/hopper.md: 4.64 TB/s by the GEMV, 4.54 by TMA loads")),
    hints=Figure(1.03, "of the bandwidth without", inferred(f"{_FIT}: evict_first and evict_last where M is small")),
    full_shared=Figure(0.93, "of the bandwidth", inferred(f"{_NEW}: rings of 6 to 22 stages, M 1 to 128")),
    most_shared=Figure(167936, "B", inferred(f"{_NEW}: a carve-out of 164 kB of the L1 cache")),
    l2_fill=Figure(
        7.85e12, "B/s", inferred(f"{_NEW}: M 128, neighbors that share B or, in clusters of their own, do not")
    ),
    l2_bandwidth=Figure(25e12, "B/s", inferred(f"{_NEW}: with `overlap`; alone, ours reach 14")),
    l2_bytes=Figure(60e6, "B", measured("ours")),
    l2_reuse=Figure(0.5, "of the L2", unverified("as B200")),
    shared_bandwidth=Figure(128, "B per cycle and SM", measured("Luo et al., arXiv 2402.13499")),
    mma_columns=Figure(2, "columns of N per cycle", measured("Luo et al., H800: m64nN in N/2 cycles from N 64 on")),
    mma_busy=Figure(0.89, "of the MMA interval", inferred(_NEW)),
    tensor={
        "f16": Figure(4096, _PER_CYCLE, measured("Luo et al., H800")),
        "tf32": Figure(2048, _PER_CYCLE, inferred("half of f16: K of an instruction is 32 bytes for every kind")),
        "f8f6f4": Figure(8192, _PER_CYCLE, measured("Luo et al., H800")),
        "i8": Figure(8192, _PER_CYCLE, inferred("as f8f6f4: K of an instruction is 32 bytes for every kind")),
    },
    tma_rows=Figure(1.08, "rows of 128 B per cycle", inferred(f"{_NEW}: tiles of few rows of A, one CTA per SM")),
    tma_issue=Figure(33, "cycles per copy", measured("FlashGPU-Sim: 32 to 33")),
    tma_outside=Figure(7.3, "cycles per row outside of the matrix", inferred(f"{_NEW}: tiles of 64 rows, M 1 to 32")),
    ring_l2=Figure(1800, "cycles", unverified("as ring_hbm: the first read of every row comes from memory")),
    ring_hbm=Figure(1800, "cycles", inferred(f"{_NEW}: rings of 3 to 22 stages")),
    epilogue=Figure(58, "B of C per cycle", inferred(f"{_NEW}: what ping-pong gains where K is short")),
    split=Figure(5200, "cycles", inferred(f"{_NEW}: stream-K against one tile a CTA")),
    split_sum=Figure(25, "B of fp32 sums per cycle", inferred(f"{_FIT}: stream-K by tile")),
    cluster_sum=Figure(38, "B of fp32 sums per cycle", inferred(f"{_NEW}: clusters of 2 and 4")),
    cluster_start=Figure(1220, "cycles", inferred(f"{_NEW}; one wave with and without: 0.4 to 1.1 µs")),
    split_start=Figure(520, "cycles", inferred(f"{_NEW}: clusters of 2 and 4")),
    persistent_start=Figure(710, "cycles", inferred(f"{_NEW}; one wave with either scheduler: 0.2 to 0.9 µs")),
    order_start=Figure(
        970, "cycles", measured("NVIDIA H200, driver 580.159.04, 2026-11-24: 0.32 to 0.53 µs with panels and without")
    ),
    promote_adds=Figure(
        128,
        "fp32 additions per cycle and SM",
        documented("CUDA programming guide, throughput of arithmetic instructions"),
    ),
    promote_wait=Figure(100, "cycles", inferred(f"{_FP8}: consumers of 64 and of 128 rows")),
    promote_consumers=Figure(100, "cycles", inferred(f"{_FP8}: two, three and four consumer warpgroups")),
    promote_boundary=Figure(30, "cycles", inferred(f"{_FP8}: N tiles of 80 to 192 with scales")),
    promote_overlap=Figure(6, "p-norm", inferred(f"{_FP8}: two consumers that share a tile")),
    overlap=Figure(2.53, "p-norm", inferred(_NEW)),
    ring_overlap=Figure(8, "p-norm", inferred(f"{_NEW}: rings of 3 stages of 256×128 against 4 of 128×256")),
    tie=Figure(0, "of the time", inferred("ours: with ties that bytes from the L2 decide the mean regret is larger")),
    cluster=Figure(2, "CTAs", inferred("132 SMs are 66 pairs; clusters of 8 reach 120 SMs only (CUTLASS issue 1921)")),
    clusters={
        4: Figure(30, "clusters", inferred(f"{_AGAIN}: 32 clusters of 4 take a second wave; two for each of 8")),
        8: Figure(15, "clusters", inferred("120 SMs in clusters of 8 (CUTLASS issue 1921)")),
    },
)

_H100 = "NVIDIA H100 80GB HBM3, driver 580.159.04"
H100 = replace(
    H200,
    name="h100",
    title="NVIDIA H100 80GB HBM3",
    hbm_bandwidth=Figure(3.1e12, "B/s", measured(f"{_H100}, 2026-11-27: the GEMV and swapped tiles with M up to 8")),
    l2_bytes=Figure(50e6, "B", measured(f"{_H100}: cudaDeviceProp.l2CacheSize")),
    l2_reuse=Figure(0.5, "of the L2", unverified("as H200")),
)

MACHINES: dict[str, Machine] = {each.name: each for each in (B200, H200, H100)}
