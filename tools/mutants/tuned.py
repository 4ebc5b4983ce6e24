"""Kernels with the structures of the dispatcher's tuning table, with tiles as small as these allow.

Two kernels of that table that differ only in sizes, in hints for the L2 or in griddepcontrol have one structure
(tools/mutants/structure.py), and one entry here, with hints and griddepcontrol where a kernel of the table has them.
`python -m tools.mutants.tuned` prints an entry for each structure of the table that has none.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ptxgen.gemm import PlanError, find, parse_options
from ptxgen.gemm.selection.dispatch import GEMV, Tuned, tuning_table
from tools.mutants.rungs import RUNGS, Rung
from tools.mutants.structure import structure

_SMALL = {"stages": 2, "chunk": 16}
_ALONE = {**_SMALL, "cluster_m": 1}
_GRID = {**_ALONE, "scheduler": "grid", "panel": 0}
_HILBERT = {"panel": 0, "order": "hilbert"}
#: Few rows of A: the larger operand leaves the L2 first.
_A_STAYS = {"a_hint": "evict_last", "b_hint": "evict_first"}
_B_STAYS = {"a_hint": "evict_first", "b_hint": "evict_last"}
_DEPENDENT = {"dependent": True}
#: A and B swapped: C has its rows along the kernel's M.
_SWAPPED = {**_GRID, "c_major": "m", "chunk_buffers": 1, **_B_STAYS}

#: By name, as those of `RUNGS`.
TUNED: dict[str, Rung] = {
    "hopper-5, 64 rows, grid, chunks": Rung(
        "hopper-5",
        {**_GRID, **_A_STAYS, **_DEPENDENT, "m_tile": 64, "n_tile": 48, "chunk_buffers": 2},
        ((36, 101, 8, {}), (111, 85, 264, {}), (36, 69, 8, {}), (36, 48, 8, {})),
    ),
    "hopper-5, ping-pong, Hilbert": Rung(
        "hopper-5",
        {**_ALONE, **_HILBERT, **_DEPENDENT, "n_tile": 48, "consumers": "pingpong", "chunk_buffers": 2, "slots": 2},
        ((100, 101, 8, {}), (367, 165, 136, {}), (100, 37, 8, {}), (100, 48, 8, {})),
    ),
    "hopper-5, ping-pong": Rung(
        "hopper-5",
        {**_ALONE, "n_tile": 48, "consumers": "pingpong", "chunk_buffers": 2, "slots": 2},
        ((100, 101, 8, {}), (367, 165, 136, {}), (239, 85, 264, {}), (100, 32, 8, {})),
    ),
    "hopper/gemv, shared K": Rung(
        "hopper/gemv", {**_DEPENDENT, "warp_rows": 2, "k_warps": 2}, ((1, 21, 4107, {}), (1, 37, 77, {}))
    ),
    "hopper-5, swapped, 64 rows": Rung(
        "hopper-5", {**_SWAPPED, **_DEPENDENT, "m_tile": 64, "n_tile": 16}, ((164, 29, 136, {}), (64, 16, 8, {}))
    ),
    "hopper-5, grid, chunks": Rung(
        "hopper-5",
        {**_GRID, **_A_STAYS, **_DEPENDENT, "n_tile": 48, "chunk_buffers": 2},
        ((100, 101, 8, {}), (239, 85, 264, {}), (100, 69, 8, {}), (100, 32, 8, {})),
    ),
    "hopper-5, clusters along N": Rung(
        "hopper-5",
        {**_ALONE, "n_tile": 48, "cluster_n": 2, "chunk_buffers": 2, "slots": 4},
        ((239, 133, 264, {}), (100, 69, 8, {}), (100, 101, 8, {}), (100, 48, 8, {})),
    ),
    "hopper-5, grid, one chunk": Rung(
        "hopper-5",
        {**_GRID, **_DEPENDENT, "n_tile": 16, "chunk_buffers": 2},
        ((111, 37, 264, {}), (100, 16, 8, {})),
    ),
    "hopper/gemv": Rung("hopper/gemv", {**_DEPENDENT, "warp_rows": 2}, ((1, 19, 2059, {}), (1, 5, 5, {}))),
    "hopper-5, swapped, 64 rows, split K": Rung(
        "hopper-5",
        {**_SWAPPED, **_DEPENDENT, "m_tile": 64, "n_tile": 16, "split_k": 2},
        ((164, 29, 136, {}), (64, 16, 8, {})),
    ),
    "hopper-5, 64 rows, split K, chunks of 48": Rung(
        "hopper-5",
        {
            **_A_STAYS,
            **_DEPENDENT,
            "m_tile": 64,
            "n_tile": 96,
            "cluster_m": 1,
            "stages": 2,
            "chunk": 48,
            "chunk_buffers": 1,
            "scheduler": "grid",
            "split_k": 2,
            "panel": 0,
        },
        ((175, 309, 136, {}), (36, 85, 8, {}), (36, 96, 8, {})),
    ),
    "hopper-5, ping-pong, Hilbert, chunks of 24": Rung(
        "hopper-5",
        {
            **_HILBERT,
            **_DEPENDENT,
            "n_tile": 48,
            "cluster_m": 1,
            "stages": 2,
            "consumers": "pingpong",
            "chunk": 24,
            "chunk_buffers": 2,
            "slots": 2,
        },
        ((367, 165, 136, {}), (100, 37, 8, {}), (100, 32, 8, {})),
    ),
    "hopper-5, swapped, 64 rows, split K of 4": Rung(
        "hopper-5",
        {**_SWAPPED, **_DEPENDENT, "m_tile": 64, "n_tile": 16, "split_k": 4},
        ((111, 13, 584, {}), (64, 16, 8, {})),
    ),
    "hopper-5, swapped, 64 rows, split K, chunks": Rung(
        "hopper-5",
        {**_SWAPPED, **_DEPENDENT, "m_tile": 64, "n_tile": 32, "split_k": 2},
        ((111, 29, 264, {}), (64, 32, 8, {})),
    ),
    "hopper-5, swapped, 64 rows, persistent": Rung(
        "hopper-5",
        {
            **_ALONE,
            **_B_STAYS,
            **_DEPENDENT,
            "c_major": "m",
            "m_tile": 64,
            "n_tile": 16,
            "slots": 2,
            "panel": 0,
            "chunk_buffers": 2,
        },
        ((164, 29, 136, {}), (64, 16, 8, {})),
    ),
    "hopper-5, 64 rows, persistent, chunks of 24": Rung(
        "hopper-5",
        {
            **_A_STAYS,
            **_DEPENDENT,
            "m_tile": 64,
            "n_tile": 48,
            "cluster_m": 1,
            "stages": 2,
            "chunk": 24,
            "panel": 0,
            "chunk_buffers": 2,
            "slots": 2,
        },
        ((175, 165, 136, {}), (36, 37, 8, {}), (36, 48, 8, {})),
    ),
    "hopper-5, 64 rows, one chunk, two buffers": Rung(
        "hopper-5",
        {**_GRID, **_A_STAYS, "m_tile": 64, "n_tile": 16, "chunk_buffers": 2},
        ((47, 37, 264, {}), (36, 16, 8, {})),
    ),
    "hopper-5, 64 rows, chunks of 24": Rung(
        "hopper-5",
        {
            **_A_STAYS,
            "m_tile": 64,
            "n_tile": 48,
            "cluster_m": 1,
            "stages": 2,
            "chunk": 24,
            "chunk_buffers": 1,
            "scheduler": "grid",
            "panel": 0,
        },
        ((175, 165, 136, {}), (36, 37, 8, {}), (36, 32, 8, {})),
    ),
    "hopper-5, ping-pong, Hilbert, one chunk": Rung(
        "hopper-5",
        {
            **_HILBERT,
            "n_tile": 24,
            "cluster_m": 1,
            "stages": 2,
            "chunk": 24,
            "chunk_buffers": 1,
            "consumers": "pingpong",
            "slots": 2,
        },
        ((100, 24, 8, {}), (367, 93, 136, {})),
    ),
    "hopper-5, swapped, split K": Rung(
        "hopper-5",
        {**_SWAPPED, **_DEPENDENT, "n_tile": 16, "split_k": 2},
        ((239, 13, 264, {}), (128, 16, 8, {})),
    ),
    "hopper-5, swapped, persistent": Rung(
        "hopper-5",
        {**_ALONE, **_B_STAYS, **_DEPENDENT, "c_major": "m", "n_tile": 16, "panel": 0, "chunk_buffers": 2, "slots": 2},
        ((356, 29, 136, {}), (128, 16, 8, {})),
    ),
    "hopper-5, 64 rows, one chunk of 24": Rung(
        "hopper-5",
        {
            **_A_STAYS,
            **_DEPENDENT,
            "m_tile": 64,
            "n_tile": 24,
            "cluster_m": 1,
            "stages": 2,
            "chunk": 24,
            "chunk_buffers": 1,
            "scheduler": "grid",
            "panel": 0,
        },
        ((47, 61, 264, {}), (36, 8, 8, {})),
    ),
    "hopper-5, one chunk of 24": Rung(
        "hopper-5",
        {
            **_A_STAYS,
            **_DEPENDENT,
            "n_tile": 24,
            "cluster_m": 1,
            "stages": 2,
            "chunk": 24,
            "chunk_buffers": 1,
            "scheduler": "grid",
            "panel": 0,
        },
        ((111, 61, 264, {}), (100, 24, 8, {})),
    ),
    "hopper-5, ping-pong, Hilbert, loop over chunks": Rung(
        "hopper-5",
        {**_ALONE, **_HILBERT, "n_tile": 144, "consumers": "pingpong", "chunk_buffers": 2, "slots": 2},
        ((239, 309, 136, {}), (100, 128, 8, {})),
    ),
    "hopper-5, ping-pong, panels, chunks of 24": Rung(
        "hopper-5",
        {
            **_DEPENDENT,
            "n_tile": 48,
            "cluster_m": 1,
            "stages": 2,
            "consumers": "pingpong",
            "chunk": 24,
            "chunk_buffers": 2,
            "slots": 2,
        },
        ((367, 117, 136, {}), (100, 37, 8, {}), (100, 32, 8, {})),
    ),
    "hopper-5, 64 rows, split K, chunks, two buffers": Rung(
        "hopper-5",
        {**_GRID, **_A_STAYS, **_DEPENDENT, "m_tile": 64, "n_tile": 32, "chunk_buffers": 2, "split_k": 2},
        ((47, 37, 264, {}), (36, 21, 8, {}), (36, 16, 8, {})),
    ),
    "hopper-5, swapped, 64 rows, split K, two buffers": Rung(
        "hopper-5",
        {**_SWAPPED, **_DEPENDENT, "m_tile": 64, "n_tile": 16, "chunk_buffers": 2, "split_k": 2},
        ((111, 13, 264, {}), (64, 8, 8, {})),
    ),
    "hopper-5, 64 rows, split K, one chunk, two buffers": Rung(
        "hopper-5",
        {**_GRID, **_A_STAYS, **_DEPENDENT, "m_tile": 64, "n_tile": 16, "chunk_buffers": 2, "split_k": 2},
        ((47, 37, 264, {}), (36, 8, 8, {})),
    ),
    "hopper-5, swapped, split K, two buffers": Rung(
        "hopper-5", {**_SWAPPED, "n_tile": 16, "chunk_buffers": 2, "split_k": 2}, ((239, 13, 264, {}), (128, 8, 8, {}))
    ),
    "hopper-5, swapped, two buffers": Rung(
        "hopper-5", {**_SWAPPED, "n_tile": 16, "chunk_buffers": 2}, ((239, 13, 264, {}), (128, 8, 8, {}))
    ),
    "hopper-5, 64 rows, clusters along N": Rung(
        "hopper-5",
        {**_ALONE, **_A_STAYS, "m_tile": 64, "n_tile": 48, "cluster_n": 2, "chunk_buffers": 2, "slots": 4},
        ((175, 69, 264, {}), (36, 53, 8, {}), (36, 85, 8, {}), (36, 32, 8, {})),
    ),
    "hopper-5, split K of 4, chunks": Rung(
        "hopper-5",
        {**_GRID, **_A_STAYS, **_DEPENDENT, "n_tile": 32, "chunk_buffers": 2, "split_k": 4},
        ((111, 37, 584, {}), (100, 21, 8, {}), (100, 16, 8, {})),
    ),
    "hopper-5, ping-pong, Hilbert, clusters along N, chunks of 24": Rung(
        "hopper-5",
        {
            **_HILBERT,
            **_DEPENDENT,
            "n_tile": 48,
            "cluster_m": 1,
            "cluster_n": 2,
            "stages": 2,
            "consumers": "pingpong",
            "chunk": 24,
            "chunk_buffers": 1,
            "slots": 4,
        },
        ((367, 117, 136, {}), (100, 37, 8, {}), (100, 32, 8, {})),
    ),
    "hopper-5, swapped, chunks, two buffers": Rung(
        "hopper-5", {**_SWAPPED, "n_tile": 32, "chunk_buffers": 2}, ((239, 29, 264, {}), (128, 16, 8, {}))
    ),
    "hopper-5, 64 rows, persistent, chunks": Rung(
        "hopper-5",
        {**_ALONE, **_A_STAYS, "m_tile": 64, "n_tile": 48, "panel": 0, "chunk_buffers": 2, "slots": 2},
        ((111, 69, 264, {}), (36, 37, 8, {}), (36, 53, 8, {}), (36, 32, 8, {})),
    ),
    "hopper-5, persistent, chunks": Rung(
        "hopper-5",
        {**_ALONE, **_A_STAYS, **_DEPENDENT, "n_tile": 48, "panel": 0, "chunk_buffers": 2, "slots": 2},
        ((111, 101, 264, {}), (100, 37, 8, {}), (100, 69, 8, {}), (100, 32, 8, {})),
    ),
    "hopper-5, swapped, panels": Rung(
        "hopper-5", {**_SWAPPED, "n_tile": 16, "panel": 2, "chunk_buffers": 2}, ((292, 29, 264, {}), (128, 8, 8, {}))
    ),
    "hopper-5, Hilbert, lag": Rung(
        "hopper-5",
        {**_ALONE, **_HILBERT, **_DEPENDENT, "n_tile": 48, "lag": 1, "chunk_buffers": 2, "slots": 2},
        ((111, 101, 264, {}), (100, 37, 8, {}), (100, 69, 8, {}), (100, 32, 8, {})),
    ),
    "hopper-5, swapped, 64 rows, two buffers": Rung(
        "hopper-5", {**_SWAPPED, "m_tile": 64, "n_tile": 16, "chunk_buffers": 2}, ((111, 13, 264, {}), (64, 8, 8, {}))
    ),
}


def kernels(machine: str = "h200") -> list[Tuned]:
    """The kernels of the table of a machine, each once."""
    rows = tuning_table(machine).rows
    return list({(each.kernel, each.options, each.dependent, each.dtype): each for each in rows}.values())


def classes(machine: str = "h200") -> dict[tuple[str, ...], list[Tuned]]:
    """The kernels of a machine's table by their structure."""
    found: dict[tuple[str, ...], list[Tuned]] = {}
    for each in kernels(machine):
        found.setdefault(structure(each.plan({}).text), []).append(each)
    return found


def representatives() -> dict[tuple[str, ...], str]:
    """The name of an entry, here or of the rungs, for each structure that has one."""
    rungs = {**{name: each for name, each in RUNGS.items() if each.id.startswith("hopper")}, **TUNED}
    return {structure(each.plan.text): name for name, each in rungs.items()}


def smallest(members: list[Tuned]) -> dict[str, Any] | None:
    """Options of the shortest kernel with the structure of these kernels; None if none of the smaller has it."""
    wanted = structure(members[0].plan({}).text)
    hinted = next((each for each in members if any("hint" in option for option in each.options)), members[0])
    options = parse_options(dict(each.split("=", 1) for each in hinted.options))
    if any(each.dependent for each in members):
        options["dependent"] = True
    for _, choices, text in sorted(_smaller(hinted.kernel, options), key=lambda each: each[0]):
        if structure(text) == wanted:
            return choices
    return None


def _smaller(kernel: str, options: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any], str]]:
    """The same kernel with other sizes, and its text with its length."""
    own = {name: options[name] for name in ("n_tile", "chunk", "chunk_buffers") if name in options}
    axes: dict[str, tuple[int, ...]] = {
        "n_tile": (16, 24, 32, 48, 80, 112, own.get("n_tile", 256)),
        "chunk": (16, 24, 40, own.get("chunk", 64)),
        "chunk_buffers": (1, 2),
        "stages": (2,),
    }
    if kernel == GEMV:
        axes = {"warp_rows": (1, 2, 4), "k_warps": (1, 2)}
    for sizes in itertools.product(*axes.values()):
        choices = {**options, **dict(zip(axes, sizes, strict=True))}
        try:
            text = find(kernel).plan(**choices).text
            yield len(text), choices, text
        except PlanError:
            continue


def main() -> int:
    """Print options for the structures of the table that have no entry; 1 if there are any."""
    known = representatives()
    missing = [members for found, members in classes().items() if found not in known]
    for members in missing:
        print(f"{members[0].kernel} {' '.join(members[0].options)}: {smallest(members)}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
