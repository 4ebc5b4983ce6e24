"""Record a GPU's hashes in tests/data/silicon: `python -m tools.interpolator.record FOLDER`, of what dump.cu wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tools.interpolator.outputs import Outputs
from tools.interpolator.recorded import FILE, FUNCTIONS, folded

HALVES = ("ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16")


def main(folder: Path) -> None:
    outputs, found = Outputs(folder), dict[str, np.ndarray]()
    for name in FUNCTIONS:
        found[f"{name} chunks"] = folded(outputs.hashes(name, "chunks")).astype(np.uint32)
        found[f"{name} strided"] = folded(outputs.hashes(name, "strided"))[::64].astype(np.uint32)
    for name in HALVES:
        found[f"{name} words"] = outputs.range(name, 0, 1 << 16).astype(np.uint16)
    np.savez_compressed(FILE, **found)  # pyright: ignore[reportArgumentType]  # no array is called allow_pickle


if __name__ == "__main__":
    main(Path(sys.argv[1]))
