"""Outputs of approximate functions, as tools/interpolator/dump.cu writes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Outputs:
    folder: Path

    def range(self, function: str, start: int, count: int, stride: int = 1) -> NDArray[np.uint32]:
        """Outputs for `count` inputs from the bit pattern `start` on, `stride` apart."""
        return np.fromfile(self.folder / f"{function}~dump~{start:08x}~{stride}~{count}", np.uint32)

    def hashes(self, function: str, kind: str) -> NDArray[np.uint64]:
        """Hashes of all outputs: by `chunks` of inputs that follow each other, or `strided`."""
        return np.fromfile(self.folder / f"{function}~{kind}", np.uint64)
