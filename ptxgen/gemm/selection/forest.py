"""Regression trees as NumPy arrays: gradient boosting's sum of leaves, in memory and as a file keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Arrays of `Forest.packed`.
PACKED = ("feature", "threshold", "leaf", "sizes", "depth")


@dataclass(frozen=True)
class Forest:
    """Trees, their nodes one after the other: a leaf has no feature (-1), and its value as threshold.

    `children`: the first of the two next nodes; rows up to the threshold take it, others the one after. Nodes of a tree
    are in breadth-first order, so that its k-th node with a feature has the children 2k + 1 and 2k + 2.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int8]
    threshold: Floats
    children: NDArray[np.int32]
    depth: int

    @property
    def trees(self) -> int:
        return len(self.roots)

    def predict(self, features: Floats, first: int = 0, end: int | None = None) -> Floats:
        """The sum of the leaves that each row of `features` reaches in the trees from `first` to before `end`."""
        roots = self.roots[first:end]
        at = np.broadcast_to(roots, (len(features), len(roots))).copy()
        rows = np.arange(len(features))[:, None]
        for _ in range(self.depth):
            feature = self.feature[at]
            values = features[rows, np.maximum(feature, 0)]
            at = np.where(feature < 0, at, self.children[at] + (values > self.threshold[at]))
        return self.threshold[at].sum(axis=1)

    def packed(self) -> dict[str, NDArray[np.generic]]:
        """Arrays for a file: thresholds in 32 bits, leaves in 16, children left out."""
        inner = self.feature >= 0
        return {
            "feature": self.feature,
            "threshold": self.threshold[inner].astype(np.float32),
            "leaf": self.threshold[~inner].astype(np.float16),
            "sizes": np.diff(self.roots, append=len(self.feature)).astype(np.int16),
            "depth": np.array(self.depth),
        }

    @classmethod
    def unpacked(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """The trees of `packed`."""
        feature = arrays["feature"].astype(np.int8)
        inner = feature >= 0
        threshold = np.empty(len(feature))
        threshold[inner], threshold[~inner] = arrays["threshold"], arrays["leaf"]
        sizes = arrays["sizes"].astype(np.int32)
        roots = (np.cumsum(sizes) - sizes).astype(np.int32)
        before = np.cumsum(inner) - inner
        root = np.repeat(roots, sizes)
        children = np.where(inner, root + 2 * (before - before[root]) + 1, 0).astype(np.int32)
        return cls(roots, feature, threshold, children, int(arrays["depth"]))
