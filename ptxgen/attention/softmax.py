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
    #: True: a thread loads a whole row from tensor memory; False: it holds a wgmma fragment, two rows 8 apart.
    whole_rows: bool = False

    @property
    def registers(self) -> int:
        """Scores of a thread: a warpgroup has 64 rows of a block in fragments, or 128 whole ones."""
        return self.keys if self.whole_rows else self.keys // 2

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows of a thread, by number."""
        return (0,) if self.whole_rows else (0, 1)

    @property
    def warp_rows(self) -> int:
        return 32 if self.whole_rows else 16

    def row(self, register: int) -> int:
        """The row of a thread that a score belongs to."""
        return 0 if self.whole_rows else register // 2 % 2

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first score of each row."""
        return (0,) if self.whole_rows else (0, 2)

    def column(self, register: int) -> int:
        """The key of a score, from the first of the thread on."""
        return register if self.whole_rows else register // 4 * 8 + register % 2

    @property
    def neighbors(self) -> tuple[int, ...]:
        """Distances of the lanes that share a row, for butterfly shuffles."""
        return () if self.whole_rows else (1, 2)

    @property
    def growth(self) -> str:
        """How much larger the exponent of a row must be for the bias to follow, as a PTX constant: exponentials stay
        below 2⁸, which types, sums and products have room for (as FlashAttention-4 does)."""
        return f"0f{np.float32(8.0).view(np.uint32):08x}"

    @property
    def ln2(self) -> str:
        """The natural logarithm of 2 as a PTX constant, from base 2 to base e."""
        return f"0f{np.float32(np.log(2.0)).view(np.uint32):08x}"

    def explain(self) -> str:
        """Block and mask in words."""
        words = f"blocks of {self.keys} keys, " + ("causal" if self.causal else "all keys")
        return words + (", with log-sum-exp" if self.lse else "")
