"""Latencies and rates of one multiprocessor, and of its way to memory, as the machine schedule takes them.

Cycles are those of the SM's clock. Ours: `python -m bench.gpu.microbench` on an NVIDIA H200 (driver 580.159.04,
2026-11-29, bench/data/h200-constants.json, h200-beside.json and h200-edges.json), and
`python -m bench.gpu.microbench.more` on the day after (h200-more.json); a figure that is a residual says what was
subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ptxgen.descriptors.evidence import Evidence, documented, inferred, measured, unverified
from ptxgen.timing.machines import Figure


@dataclass(frozen=True, kw_only=True)
class Multiprocessor:
    """Constants of an SM for the machine schedule.

    - `launch`, `launch_cta`: cycles that Nsight Compute counts of a launch beside those of its CTAs, and more of them
      for each SM that has one. `next_cta`: from the end of a CTA to the first instruction of the next in its place.
    - `idle_clock`: cycles that an idle part of the GPU counts, and with it Nsight Compute, for each of an SM whose
      tensor core is in use, in launches of at most `idle_clusters` clusters, or fewer than twice as many CTAs.
    - `launch_plain`, `launch_plain_cta`, `next_plain`: the same where CTAs have only loads, stores and arithmetic.
    - `dispatch`: cycles between two CTAs that the GPU gives to its SMs, one to each before the next round.
    - `latency`: cycles from the issue of an instruction to its result, by SASS opcode, where a scoreboard waits for it.
    - `pipe`: cycles that a warp's instruction takes of its scheduler's pipe, by SASS opcode (others: 1).
    - `beside_mma`: cycles more of such an instruction, of its issue and of its pipe, while wgmma accumulates in 64
      registers of each thread or more, by SASS opcode (others: 0).
    - `beside_part`: the part of `beside_mma` with fewer registers, by their number.
    - `branch`: cycles of a branch that is taken.
    - `mma_start`, `mma_tail`: from issue to the first cycle of an idle tensor core, from the last to the result.
    - `mma_registers`: cycles by which A in registers delays each MMA.
    - `tma_gap`: cycles between two copies of one SM; `tma_row`: cycles of a row of at most 128 bytes, also outside the
      tensor.
    - `tma_latency`: from issue to arrival in shared memory, data in L2.
    - `tma_multicast`: cycles more of a copy to several CTAs. `tma_synchronized`: of the first one after an
      arrival at barrier.cluster that releases.
    - `outside_row`: cycles of a row outside of a box partly inside its tensor, with more SMs at work than
      2 * `idle_clusters`; else as rows inside.
    - `outside_rows`: rows per cycle of all SMs together of boxes that lie entirely outside of their tensor.
    - `mma_fill`: cycles by which each row of 128 bytes that TMA writes delays a busy tensor core.
    - `store_row`: cycles in which a copy to global memory reads a row of its source.
    - `store_end`: from having read its source to its completion. `drain`: from the last instruction of a CTA that has
      stored to its end.
    - `store_line`: cycles of each line of 128 bytes that a warp's store of global memory touches.
    - `copy_bytes`: bytes per cycle and SM of copies to global memory with all SMs at work.
    - `peer_bytes`, `peer_latency`: bytes per cycle that an SM stores in others' shared memory, and cycles until they
      are there.
    - `fetch`: cycles of the first execution of 128 bytes of machine code; `fetch_cold`: more of a cold L2.
    - `l1_bytes`: of L1 cache and shared memory together; `l1_latency`: from the issue of a load to its result from L1.
    - `memory_latency`: cycles more where data come from memory.
    - `write_back`: cycles of memory for a byte that the L2 writes there, over those of a byte that it reads.
      `dirty`: the part of a cold L2's lines that it has to write there.
    - `l2_bytes`: bytes per cycle and SM that TMA takes from the L2 with all SMs at work; `load_bytes`: that loads take,
      `load_line`: bytes that each line counts at least.
    - `wake`: from the end of an mbarrier's phase, or of what else a warp waits for, to its next instruction.
    - `barrier`, `barrier_warp`: of bar.sync, and of each warp in it; `cluster_barrier`: of barrier.cluster;
      `cluster_release`: more of its arrival, unless it is .relaxed.
    - `fence`: cycles of a fence of the GPU's or the system's scope.
    - `atomic_lane`: cycles of an atomic operation on shared memory for each lane of its busiest bank;
      `atomic`: of one on global memory, in which those of all SMs take turns, `atomic_word`: of each of its words if
      those are more; `atomic_float`: how many times that where it adds floats.
    - `fence_async`: cycles of fence.proxy.async for each warp.
    """

    name: str
    launch: Figure
    launch_cta: Figure
    next_cta: Figure
    launch_plain: Figure
    launch_plain_cta: Figure
    next_plain: Figure
    dispatch: Figure
    idle_clock: Figure
    idle_clusters: Figure
    latency: Mapping[str, Figure]
    pipe: Mapping[str, Figure]
    beside_mma: Mapping[str, Figure]
    beside_part: Mapping[int, Figure]
    branch: Figure
    mma_start: Figure
    mma_tail: Figure
    mma_registers: Figure
    tma_gap: Figure
    tma_row: Figure
    tma_latency: Figure
    tma_multicast: Figure
    tma_synchronized: Figure
    outside_row: Figure
    outside_rows: Figure
    mma_fill: Figure
    store_row: Figure
    store_end: Figure
    drain: Figure
    store_line: Figure
    copy_bytes: Figure
    peer_bytes: Figure
    peer_latency: Figure
    fetch: Figure
    fetch_cold: Figure
    l1_bytes: Figure
    l1_latency: Figure
    memory_latency: Figure
    write_back: Figure
    dirty: Figure
    l2_bytes: Figure
    load_bytes: Figure
    load_line: Figure
    store_bytes: Figure
    wake: Figure
    barrier: Figure
    barrier_warp: Figure
    cluster_barrier: Figure
    cluster_release: Figure
    fence: Figure
    atomic_lane: Figure
    atomic: Figure
    atomic_word: Figure
    atomic_float: Figure
    fence_async: Figure
    tensor_load: Figure
    tensor_load_bytes: Figure

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Every number with its name; those of an opcode as "latency LDS"."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Figure):
                yield each.name, value
            elif isinstance(value, Mapping):
                yield from ((f"{each.name} {key}", figure) for key, figure in value.items())


_OURS = "ours, NVIDIA H200, driver 580.159.04, 2026-11-29"
_STAMPS = "clock64 at the first and last instructions of 71 seen launches (bench.gpu.microbench.stamps)"
_MORE = "NVIDIA H200, driver 580.159.04, 2026-11-30, h200-more.json"
_DOCUMENTED = documented("CUDA programming guide, throughput of arithmetic instructions")


#: Evidence of a latency by the first character of its source; measured without one.
_MARKS = {"?": unverified, "~": inferred}


def _latencies(**values: tuple[float, str]) -> dict[str, Figure]:
    return {
        name: Figure(value, "cycles", _MARKS[how[0]](how[1:]) if how[0] in _MARKS else measured(f"{_OURS}: {how}"))
        for name, (value, how) in values.items()
    }


_HOPPER_LATENCY = _latencies(
    LDS=(23, "chase of ld.shared"),
    LDSM=(29, "?as LDS with its wavefronts"),
    LDG=(285, "~chase of ld.global.cg in 8 MB, 295 cycles, less its addition"),
    LD=(285, "?as LDG"),
    ATOMG=(450, "?nobody measured it here"),
    ATOM=(450, "?nobody measured it here"),
    ATOMS=(60, "?nobody measured it here"),
    SHFL=(24, "chain of shfl"),
    MUFU=(17, "chain of ex2"),
    S2R=(24, "?not separated"),
    S2UR=(24, "?not separated"),
    LDC=(30, "?not separated"),
    ULDC=(12, "?not separated"),
    LDCU=(30, "?not separated"),
    R2UR=(12, "?not separated"),
    REDUX=(44, "redux.sync.add of one warp, h200-more.json"),
    SYNCS=(30, "~residual of an arrival with its own wait, 65 cycles with the loop"),
    LDL=(40, "?as a hit in L1"),
    POPC=(17, "popc of one warp, h200-more.json"),
    FLO=(17, "?as POPC"),
    BREV=(17, "brev of one warp, h200-more.json"),
    F2F=(18, "cvt between f32 and f64 of one warp, 36 for two, h200-more.json"),
    I2F=(17, "?as MUFU"),
    F2I=(17, "cvt.rzi.s32.f32 of one warp, h200-more.json"),
    LDTM=(20, "?tcgen05.ld itself is asynchronous work"),
)
_HOPPER_PIPE = {
    "MUFU": Figure(8, "cycles", measured(f"{_OURS}: ex2 of 16 warps")),
    "POPC": Figure(8, "cycles", _DOCUMENTED),
    "FLO": Figure(8, "cycles", _DOCUMENTED),
    "BREV": Figure(8, "cycles", _DOCUMENTED),
    "F2F": Figure(8.5, "cycles", measured(f"{_MORE}: cvt between f32 and f64 of 16 warps, 17 for two")),
    "F2I": Figure(8, "cycles", measured(f"{_MORE}: cvt.rzi.s32.f32 of 16 warps")),
    "I2F": Figure(8, "cycles", inferred("as F2I")),
    "I2FP": Figure(2, "cycles", measured(f"{_MORE}: cvt.rn.f32.s32 of 16 warps")),
    "VIADDMNMX": Figure(2, "cycles", inferred("as FMNMX")),
    "VABSDIFF": Figure(2, "cycles", measured(f"{_MORE}: sad.u32 of 16 warps")),
    "VOTE": Figure(2, "cycles", measured(f"{_MORE}: vote.ballot with its setp of 16 warps, 4.1")),
    "IMAD.HI": Figure(4, "cycles", measured(f"{_MORE}: mul.hi.u32 of 16 warps")),
    "IDP": Figure(2, "cycles", measured(f"{_MORE}: dp4a of 16 warps")),
    "DFMA": Figure(2.2, "cycles", measured(f"{_MORE}: fma.f64 of 16 warps")),
    "DADD": Figure(2, "cycles", measured(f"{_MORE}: add.f64 of 16 warps")),
    "DMUL": Figure(2, "cycles", inferred("as DADD")),
    "DSETP": Figure(2, "cycles", inferred("as DADD")),
    "HMMA.16816": Figure(6.4, "cycles", measured(f"{_MORE}: mma.m16n8k16 of bf16 and f16, 16 warps")),
    "HMMA.1688": Figure(4.1, "cycles", measured(f"{_MORE}: mma.m16n8k8 of bf16, 16 warps")),
    "HMMA.TF32": Figure(6.4, "cycles", measured(f"{_MORE}: mma.m16n8k8 of tf32, 16 warps")),
    "IMMA": Figure(6.4, "cycles", measured(f"{_MORE}: mma.m16n8k32 of s8, 16 warps")),
    "DMMA": Figure(15.2, "cycles", measured(f"{_MORE}: mma.m8n8k4 of f64, 16 warps")),
    "REDUX": Figure(2.1, "cycles of the SM", measured(f"{_MORE}: redux.sync.add of 16 warps")),
    "MATCH": Figure(64, "cycles of the SM", measured(f"{_MORE}: match.any of 16 warps, of words that differ")),
    "MOVM": Figure(1, "cycles of the SM", measured(f"{_MORE}: movmatrix of 16 warps")),
    "F2FP": Figure(2, "cycles", measured(f"{_OURS}: cvt.rn.bf16x2 of 16 warps")),
    "FENCE": Figure(5.3, "cycles", measured(f"{_OURS}: fence.proxy.async of 1 to 16 warps")),
    "IMAD": Figure(2, "cycles", _DOCUMENTED),
    "LOP3": Figure(2, "cycles", _DOCUMENTED),
    "IADD3": Figure(2, "cycles", _DOCUMENTED),
    "VIADD": Figure(2, "cycles", _DOCUMENTED),
    "LEA": Figure(2, "cycles", _DOCUMENTED),
    "SHF": Figure(2, "cycles", _DOCUMENTED),
    "PRMT": Figure(2, "cycles", _DOCUMENTED),
    "ISETP": Figure(2, "cycles", _DOCUMENTED),
    "SEL": Figure(2, "cycles", _DOCUMENTED),
    "FSEL": Figure(2, "cycles", _DOCUMENTED),
    "FMNMX": Figure(2, "cycles", _DOCUMENTED),
    "FSETP": Figure(2, "cycles", _DOCUMENTED),
    "SHFL": Figure(1, "cycles of the SM", measured(f"{_MORE}: shfl.bfly of 16 warps")),
}
_BESIDE = f"{_OURS}, h200-beside.json"
#: A warpgroup issues m64n128k16 back to back, whose MMAs keep their 64 cycles; 4 warps of another, one for each
#: scheduler, take so much more for each instruction than alone. A mix of 6 (max, fma, ex2, add, cvt, fma) takes 9.7
#: more, these numbers in sum 9.6: they add.
_HOPPER_BESIDE = {
    "FFMA": Figure(1.21, "cycles", measured(f"{_BESIDE}: fma.f32, 1.27 and 2.48")),
    "FADD": Figure(0.66, "cycles", measured(f"{_BESIDE}: add.f32, 1.19 and 1.85")),
    "FMNMX": Figure(1.96, "cycles", measured(f"{_BESIDE}: max.f32, 2.23 and 4.19")),
    "MUFU": Figure(2.58, "cycles", measured(f"{_BESIDE}: ex2.approx, 8.09 and 10.67")),
    "IADD3": Figure(1.96, "cycles", measured(f"{_BESIDE}: add.u32, 1.21 and 2.19, two of them an instruction")),
    "F2FP": Figure(1.96, "cycles", inferred(f"{_BESIDE}: as max.f32, which the mix of 6 agrees with")),
    "FMUL": Figure(0.66, "cycles", inferred(f"{_BESIDE}: as add.f32, which reads two registers too")),
    "IMAD": Figure(1.21, "cycles", inferred(f"{_BESIDE}: as fma.f32, which reads three registers too")),
    **{
        name: Figure(1.96, "cycles", inferred(f"{_BESIDE}: as max.f32 and add.u32, of the same pipe"))
        for name in ("VIADD", "LOP3", "LEA", "SHF", "PRMT", "ISETP", "SEL", "FSEL", "FSETP")
    },
}
_COLUMNS = "fma.f32, max.f32, ex2.approx and add.u32 beside m64nNk16 with N"
_HOPPER_PART = {
    registers: Figure(part, "of beside_mma", measured(f"{_OURS}: {_COLUMNS} {2 * registers}, mean ({least} to {most})"))
    for registers, part, least, most in ((8, 0.24, 0.12, 0.52), (16, 0.43, 0.21, 0.86), (32, 0.79, 0.35, 1.25))
}


def _cycles(value: float, how: str) -> Figure:
    """A number that a measurement isolates."""
    return Figure(value, "cycles", measured(f"{_OURS}: {how}"))


def _residual(value: float, how: str) -> Figure:
    """What is left of a measurement after other numbers of the model, or what launches suggest."""
    return Figure(value, "cycles", inferred(f"{_OURS}: {how}"))


H200 = Multiprocessor(
    name="h200",
    launch=_residual(3010, f"{_STAMPS}, launches of few CTAs: 3560, less `drain` and 50; empty kernels take 2840"),
    launch_cta=_residual(3.5, f"{_STAMPS}, launches of 132 CTAs: some 4100; empty kernels 0.7"),
    next_cta=_residual(60, f"{_STAMPS}: 500 to 650 from the last instruction to the next CTA's first, less `drain`"),
    idle_clock=Figure(
        1.10,
        "cycles of an idle SM",
        measured(
            f"{_OURS}: {_STAMPS}, 0.100 cycles more for each, 1 to 13 CTAs; 1977 MHz by Nsight Compute, else 1810"
        ),
    ),
    idle_clusters=Figure(
        8,
        "clusters",
        measured(f"{_OURS}: MHz of launches of 1 to 132 CTAs; from 16 CTAs or 12 clusters on 1785 to 1870"),
    ),
    launch_plain=_cycles(2840, "an empty kernel of one CTA, sm__cycles_elapsed.max"),
    launch_plain_cta=_cycles(1.2, "empty kernels of 1 and 132 CTAs of 32 to 1024 threads: 0.4 to 2.0, mean"),
    next_plain=_cycles(320, "empty kernels of 132 and 1056 CTAs with 200 KB of shared memory: 300 and 338"),
    dispatch=_cycles(1.25, "empty kernels of 132 and 1056 CTAs of 32 to 1024 threads: 1.20 to 1.38"),
    latency=_HOPPER_LATENCY,
    pipe=_HOPPER_PIPE,
    beside_mma=_HOPPER_BESIDE,
    beside_part=_HOPPER_PART,
    branch=_residual(7, "chains of fma in a loop"),
    mma_start=_residual(10, "residual of one wgmma with its fence, commit and wait"),
    mma_tail=_residual(14, "residual of one wgmma with its fence, commit and wait"),
    mma_registers=_cycles(4.5, "wgmma with A in registers, batches of 4 and 16"),
    tma_gap=Figure(
        33, "cycles", unverified("FlashGPU-Sim: 32 to 33; the rings here take 147 cycles, most of them polling")
    ),
    tma_row=_cycles(1.17, "copies of 128 and 256 rows from L2, rings of 3 to 6; as many with 0 to 120 rows outside"),
    tma_latency=_residual(228, "rings of one copy of 8 to 256 rows, less the thread's instructions"),
    tma_multicast=_cycles(0, "copies of 32 to 128 rows to 1, 2 and 4 CTAs: only the rows more, 1.1 cycles each"),
    tma_synchronized=_cycles(
        410,
        "copies of 128 rows after barrier.cluster: 898 beside it where the arrival releases, 493 where it is relaxed",
    ),
    outside_row=_residual(
        3, "launches of 19 to 52 CTAs with 8 to all columns of B inside, 2.6 to 3.2 cycles a row; 12 CTAs at most 1.6"
    ),
    outside_rows=Figure(
        14.9, "rows per cycle of the GPU", measured(f"{_OURS}, h200-edges.json: 1134 cycles for 128 rows on 132 SMs")
    ),
    mma_fill=Figure(
        0.08,
        "cycles per row",
        inferred("seen launches of few CTAs, K blocks with N 112 to 256, by their own clock: 0.03 to 0.11 a row more"),
    ),
    store_row=_cycles(4, "stores of 8, 64 and 128 rows by one CTA, 4.0 cycles a row more"),
    store_end=_cycles(11, "stores that wait for completion and for reads"),
    drain=_residual(500, "st.global.v4 of one CTA, less its stores and an empty kernel"),
    fetch=Figure(25, "cycles", inferred("what seen launches of up to 12,000 cycles took more, over their code")),
    fetch_cold=Figure(
        15,
        "cycles",
        inferred("seen launches after 512 MB were written, over those with a warm L2 and their code: 13 to 15"),
    ),
    l1_bytes=Figure(256 << 10, "B", documented("H100 whitepaper: 256 KB of L1 cache and shared memory per SM")),
    l1_latency=_cycles(36, "chase of ld.global.ca in 4 KB, 46 cycles, less its addition"),
    store_line=_residual(
        2, f"{_STAMPS}: `hopper/wgmma` stores 64x128 words of 2 bytes, 8 lines an instruction, in 2020 cycles"
    ),
    copy_bytes=Figure(
        15.4, "B per cycle and SM", measured(f"{_OURS}: stores of 64 and 128 rows by 132 CTAs, 16.4 and 15.4")
    ),
    peer_bytes=Figure(
        20.4, "B per cycle and SM", measured(f"{_OURS}: st.async.v4 of 1 to 12 warps, 25.1 cycles for each of them")
    ),
    peer_latency=_residual(230, "st.async.v4 to the peer: a launch of none, less its barriers"),
    memory_latency=_cycles(400, "difference of chases of ld.global.cg in 8 MB and in 512 MB"),
    write_back=Figure(
        1.2,
        "of a byte read",
        inferred(f"{_OURS}: seen launches that store a third or half of what they move, 4.3 and 4.1 TB/s; loads 4.6"),
    ),
    dirty=Figure(
        0.4,
        "of its lines",
        measured(
            f"{_MORE}: loads of 32 to 512 KB by 132 CTAs take 1.36 to 1.51 of the cycles after others have written, "
            "not read, and seen launches write 0.23 to 0.52 of the bytes that they load and store (dram__bytes_write)"
        ),
    ),
    l2_bytes=Figure(
        54,
        "B per cycle and SM",
        measured(
            f"{_MORE}: rings of 132 CTAs that share rows as tiles of a grid do, 48 to 67, mean; with rows of their own "
            "36, 63 to 91 if neighbors share all (h200-constants.json)"
        ),
    ),
    load_bytes=Figure(
        37, "B per cycle and SM", measured(f"{_MORE}: ld.global.cg of 4 to 16 bytes and cp.async of 132 CTAs in 17 MB")
    ),
    load_line=Figure(
        55, "B", measured(f"{_MORE}: ld.global.cg of 132 CTAs, lanes 128 bytes apart, 1.46 cycles of each line")
    ),
    store_bytes=Figure(19.5, "B per cycle and SM", measured(f"{_OURS}: st.global.v4 of 132 CTAs")),
    wake=_residual(2, "residual of the ping-pong of two mbarriers"),
    barrier=_cycles(6, "bar.sync of 1 to 16 warps"),
    barrier_warp=_cycles(2, "bar.sync of 1 to 16 warps"),
    cluster_barrier=_cycles(
        80, "barrier.cluster with arrive.relaxed, 2 and 4 CTAs of 4 warps: 87 and 91 with the loop"
    ),
    cluster_release=_cycles(268, "barrier.cluster with arrive.release, 2 and 4 CTAs of 4 warps: 355 and 359"),
    fence=_cycles(268, "fence.acq_rel.gpu alone, on 1 and on 132 SMs; after a store 394 and 753"),
    atomic_lane=Figure(1, "cycles", measured(f"{_MORE}: atom.shared of 32 lanes at one bank by 4 and 16 warps, 32.1")),
    atomic=_cycles(1.56, "atom.global.add.u32 of 132 SMs on one word, 206 for all, h200-more.json"),
    atomic_word=_cycles(0.145, "atom.global.add.u32 of 132 SMs on 32 words of a line, 604 for all, h200-more.json"),
    atomic_float=Figure(
        1.8,
        "times an integer's",
        inferred(f"{_OURS}: reduce_sum, 1024 CTAs that add to one word: 2900 cycles beside the launch and loads"),
    ),
    fence_async=_cycles(5.3, "fence.proxy.async of 1 to 16 warps"),
    tensor_load=Figure(0, "cycles", documented("no tensor memory on Hopper")),
    tensor_load_bytes=Figure(128, "B per cycle and warp", documented("no tensor memory on Hopper")),
)


def _other(machine: str, evidence: Callable[[str], Evidence], why: str) -> dict[str, Any]:
    """The fields of the H200 with the evidence that they have for another machine."""

    def relabeled(value: object) -> object:
        if isinstance(value, Figure):
            return replace(value, evidence=evidence(f"{why}: {value.evidence.source}"))
        if isinstance(value, Mapping):
            return {key: relabeled(each) for key, each in value.items()}
        return machine

    return {each.name: relabeled(getattr(H200, each.name)) for each in fields(H200)}


H100 = Multiprocessor(**_other("h100", inferred, "as H200, the same SM"))

_CSV = "SemiAnalysis, B200"

B200 = replace(
    Multiprocessor(**_other("b200", unverified, "as H200, nobody has published it for B200")),
    beside_mma={},  # accumulators are in tensor memory
    beside_part={},
    mma_start=Figure(16, "cycles", inferred(f"{_CSV}: single MMAs, less the polling of the mbarrier")),
    mma_tail=Figure(70, "cycles", inferred(f"{_CSV}: single MMAs of one SM, 104 to 136 with issue and polling")),
    mma_registers=Figure(0, "cycles", measured(f"{_CSV}: A in tensor memory")),
    tma_gap=Figure(48, "cycles", measured("QuickRunCUDA, B300: 65 for one copy, 48 amortized")),
    tma_row=Figure(1, "cycles", measured(f"{_CSV}, mainloop of one CTA: 257 cycles for 256 rows")),
    tma_latency=Figure(400, "cycles", inferred(f"{_CSV}, mainloop of one CTA: round trips of 515 to 585")),
    mma_fill=Figure(0, "cycles per row", measured(f"{_CSV}, mainloop of one CTA: 98 % of the MMA interval")),
    memory_latency=Figure(
        450, "cycles", inferred("QuickRunCUDA, B300: 882 cold; SemiAnalysis: 740 to 1060 round trips")
    ),
    l2_bytes=Figure(79, "B per cycle and SM", measured("QuickRunCUDA, B300: 20 to 22 TB/s as kernels see it")),
    load_bytes=Figure(50, "B per cycle and SM", measured("QuickRunCUDA, B300: 13.3 TB/s on the wire")),
    barrier=Figure(22, "cycles", measured("QuickRunCUDA, B300: 22 + 2 per warp")),
    barrier_warp=Figure(2, "cycles", measured("QuickRunCUDA, B300: 22 + 2 per warp")),
    cluster_barrier=Figure(300, "cycles", measured("QuickRunCUDA, B300: 190 ns")),
    cluster_release=Figure(0, "cycles", unverified("QuickRunCUDA's figure of the barrier is taken to have it")),
    tensor_load=Figure(30, "cycles", unverified("420 rests on one comment; nobody has published a latency")),
    tensor_load_bytes=Figure(
        53, "B per cycle and warp", unverified("QuickRunCUDA, B300, marked unverified by its author")
    ),
)

MULTIPROCESSORS: dict[str, Multiprocessor] = {each.name: each for each in (H100, H200, B200)}
