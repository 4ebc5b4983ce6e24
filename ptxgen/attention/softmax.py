"""The softmax between two MMAs: what a warpgroup keeps of the rows of a tile while blocks of keys pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Softmax:
    """Softmax over blocks of `keys` keys, one after the other, with the largest score and the sum of each row so far.

    `causal`: query i sees the keys up to i + offset. `lse`: the logarithm of each row's sum of exponentials is stored.
    """

    keys: int
    causal: bool
    lse: bool

    @property
    def registers(self) -> int:
        """Scores of a thread: a warpgroup has 64 rows of a block."""
        return self.keys // 2

    @property
    def ln2(self) -> str:
        """The natural logarithm of 2 as a PTX constant, from base 2 to base e."""
        return f"0f{np.float32(np.log(2.0)).view(np.uint32):08x}"

    def explain(self) -> str:
        """Block and mask in words."""
        words = f"blocks of {self.keys} keys, " + ("causal" if self.causal else "all keys")
        return words + (", with log-sum-exp" if self.lse else "")
