"""The rungs of the ladders as subjects: small tiles, and problems that together execute all of their PTX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.gemm import GemmPlan, find
from ptxgen.gemm.job import GemmJob

#: M, N, K and other fields of GemmProblem.
Problem = tuple[int, int, int, Mapping[str, Any]]


@dataclass(frozen=True)
class Rung:
    """A rung with other choices, and the problems that it is run with, one after the other."""

    id: str
    choices: Mapping[str, Any]
    problems: tuple[Problem, ...]
    multiprocessors: int | None = None

    @cached_property
    def plan(self) -> GemmPlan:
        return find(self.id).plan(**self.choices)

    @cached_property
    def _jobs(self) -> list[GemmJob]:
        return [GemmJob(self.plan, m, n, k, more=more) for m, n, k, more in self.problems]

    def run(self, text: str, device: Emulator) -> tuple[LaunchReport, bool, bytes]:
        """Launch until one is not right: the report with the findings of all, whether all is right, and the memory."""
        results = []
        for job in self._jobs:
            results.append(job.run(device, text=text))
            if not results[-1].ok:
                break
        report = replace(
            results[-1].launch,
            findings=[finding for each in results for finding in each.launch.findings],
            instructions=max(each.launch.instructions for each in results),
        )
        return report, results[-1].ok, device.memory.data.tobytes()


#: Two stages; problems of five K blocks, or of several tiles, wait for each stage in both parities.
_SMALL = {"n_tile": 32, "stages": 2}
#: C in two chunks, as it is with tiles of full size.
_CHUNKS = {**_SMALL, "chunk": 16}
#: In three, so that two buffers of them begin with either.
_THREE = {**_CHUNKS, "n_tile": 48}
_FP8 = {"dtype": "e4m3", "c_dtype": "bf16", "scales": "1d2d"}
_SWAPPED_FP8 = {**_FP8, "scales": "2d1d", "c_major": "m", "cluster_m": 1, "chunk_buffers": 1, "slots": 2, "panel": 0}
_ALL = {"alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu", "batched": True}
#: Rows of C on 16 bytes, inside C and across its edges; then rows that are not, of a single K block.
_DIRECT: tuple[Problem, ...] = ((239, 120, 136, {}), (100, 64, 8, {"ldc": 65}))
#: The same for pairs of elements.
_UNALIGNED_C: Problem = (50, 64, 8, {"ldc": 65})
_FRAGMENTS: tuple[Problem, ...] = ((96, 105, 136, {"ldc": 112}), _UNALIGNED_C)
#: Rows of C that end on 16 bytes, where TMA stores the others' ends element by element.
_WHOLE: Problem = (100, 32, 8, {})
_BATCHES = {"batches": 2}
#: Tiles that begin within a block of scales, six of them for one pair of CTAs.
_SCALED = {"n_tile": 64, "stages": 2, "slots": 2}
_SHARED = {**_SCALED, "overlap": 32}
_UNALIGNED: Problem = (100, 64, 64, {"ldc": 65})

#: By name: the id of a rung, with a word for options of the epilogue that it does not have itself. mxfp8-o8 and
#: mxfp8-o10 have the text of mxfp8-o11: they differ in their choices for large problems.
RUNGS: dict[str, Rung] = {
    "modular-k1": Rung("modular-k1", {}, ((30, 25, 40, {}),)),
    "modular-k2": Rung("modular-k2", {}, _FRAGMENTS),
    "modular-k3": Rung("modular-k3", {"n_tile": 64}, _DIRECT),
    "modular-k4": Rung("modular-k4", {"n_tile": 64}, ((239, 117, 136, {}), (100, 64, 8, {}))),
    "modular-k5": Rung("modular-k5", {"n_tile": 64}, ((495, 117, 136, {}), (100, 64, 8, {}))),
    "modular-k6": Rung("modular-k6", _SMALL, ((495, 53, 264, {}), _WHOLE)),
    "modular-k7": Rung("modular-k7", {"n_tile": 64, "stages": 2}, ((495, 117, 264, {}), _WHOLE)),
    "modular-k8": Rung("modular-k8", _CHUNKS, ((495, 117, 136, {}), _WHOLE), 4),
    "modular-k9": Rung("modular-k9", _CHUNKS, ((495, 149, 136, {}), _WHOLE), 4),
    "converged": Rung("converged", _CHUNKS, ((495, 149, 136, {}), _WHOLE), 4),
    "tilus-v0": Rung("tilus-v0", {"n_tile": 64}, _DIRECT),
    "tilus-v1": Rung("tilus-v1", {"n_tile": 64}, ((239, 117, 136, {}), _WHOLE)),
    "tilus-v2": Rung("tilus-v2", {"n_tile": 64, "stages": 3}, ((239, 117, 392, {}), (100, 64, 8, {}))),
    "tilus-v3": Rung("tilus-v3", _SMALL, ((239, 53, 264, {}), _WHOLE)),
    "tilus-v4": Rung("tilus-v4", {**_SMALL, "panel": 2}, ((239, 85, 264, {}), _WHOLE)),
    "tilus-v5": Rung("tilus-v5", {**_SMALL, "panel": 2}, ((239, 117, 136, {}), _WHOLE), 2),
    "tilus-v6": Rung("tilus-v6", {**_CHUNKS, "panel": 2}, ((495, 117, 136, {}), _WHOLE), 4),
    "mxfp8-initial": Rung("mxfp8-initial", _SCALED, ((300, 152, 288, {}), _UNALIGNED)),
    "mxfp8-o1": Rung("mxfp8-o1", _SHARED, ((300, 152, 288, {}), _UNALIGNED)),
    "mxfp8-o2": Rung("mxfp8-o2", _SHARED, ((300, 152, 288, {}), _UNALIGNED)),
    "mxfp8-o3": Rung("mxfp8-o3", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "mxfp8-o4": Rung("mxfp8-o4", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "mxfp8-o5": Rung("mxfp8-o5", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "mxfp8-o6": Rung("mxfp8-o6", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "mxfp8-o7": Rung("mxfp8-o7", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "mxfp8-o9": Rung("mxfp8-o9", _SHARED, ((300, 149, 544, {}), (100, 64, 64, {}))),
    "mxfp8-o11": Rung("mxfp8-o11", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "mxfp8-quantizing": Rung("mxfp8-quantizing", _SHARED, ((300, 160, 544, {}),)),
    "mxfp4": Rung("mxfp4", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "nvfp4": Rung("nvfp4", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "mxfp8-converged": Rung("mxfp8-converged", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "nvfp4-converged": Rung("nvfp4-converged", _SHARED, ((300, 152, 544, {}), _UNALIGNED)),
    "hopper-1": Rung("hopper-1", {"n_tile": 64}, _FRAGMENTS),
    "hopper-2": Rung("hopper-2", {"n_tile": 64, "stages": 3}, ((111, 105, 392, {"ldc": 112}), _UNALIGNED_C)),
    "hopper-3": Rung("hopper-3", _SMALL, ((239, 57, 264, {"ldc": 64}), _UNALIGNED_C)),
    "hopper-4": Rung("hopper-4", {**_SMALL, "slots": 4}, ((495, 89, 136, {"ldc": 96}), _UNALIGNED_C)),
    "hopper-5": Rung(
        "hopper-5",
        {**_THREE, "slots": 4, "panel": 2},
        ((495, 229, 136, {}), (100, 53, 8, {}), (100, 69, 8, {}), _WHOLE),
    ),
    "hopper-5, ping-pong with options": Rung(
        "hopper-5",
        {**_THREE, **_ALL, "consumers": "pingpong", "m_tile": 64, "slots": 4, "panel": 2},
        ((239, 85, 136, _BATCHES), (100, 48, 8, {"ldsource": 49})),
    ),
    "hopper-5, fp8 with scales": Rung(
        "hopper-5",
        {**_THREE, **_FP8, "m_tile": 64, "slots": 4, "panel": 2},
        ((175, 181, 264, {}), (70, 53, 16, {}), (70, 69, 16, {}), (70, 32, 16, {})),
    ),
    # Of three problems the first has more K blocks than lanes.
    "hopper-5, fp8 with scales of B's rows": Rung(
        "hopper-5",
        {**_CHUNKS, **_SWAPPED_FP8, "m_tile": 64},
        ((60, 21, 4120, {}), (175, 53, 264, {}), (96, 32, 16, {})),
    ),
    "hopper-5, split K": Rung(
        "hopper-5",
        {**_CHUNKS, "c_major": "m", "cluster_m": 1, "scheduler": "grid", "panel": 0, "split_k": 4, "chunk_buffers": 1},
        ((119, 53, 1100, {}), (239, 53, 8, {}), (96, 32, 8, {})),
    ),
    "modular-k2 with options": Rung(
        "modular-k2", _ALL, ((96, 105, 136, {**_BATCHES, "ldc": 112}), (50, 64, 8, {"ldc": 65, "ldsource": 65}))
    ),
    "modular-k3 with options": Rung(
        "modular-k3",
        {"n_tile": 32, **_ALL},
        ((239, 56, 136, _BATCHES), (100, 32, 8, {"ldc": 33, "ldsource": 33})),
    ),
    "modular-k9 with options": Rung(
        "modular-k9", {**_CHUNKS, **_ALL}, ((495, 85, 136, _BATCHES), (200, 32, 8, {"ldsource": 33})), 4
    ),
    "modular-k8 along a Hilbert curve": Rung(
        "modular-k8", {**_CHUNKS, "order": "hilbert"}, ((495, 117, 136, {}), _WHOLE), 4
    ),
}
