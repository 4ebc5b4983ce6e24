"""Which warps of a Blackwell attention kernel do what, and how many registers they have."""

from __future__ import annotations

from dataclasses import dataclass

#: Registers of a thread by the number of softmax warpgroups: of those, of the correction warps and of the others, in
#: steps of 8, as many as the CTA has at its launch (PTX ISA 9.7.19.5, setmaxnreg).
_REGISTERS = {1: (224, 168, 112), 2: (184, 88, 56)}


@dataclass(frozen=True)
class AttentionRoles:
    """A softmax warpgroup for each tile of 128 queries, a correction warpgroup, and one with a load and an MMA warp."""

    tiles: int

    @property
    def correction(self) -> int:
        """The first warp of the correction."""
        return 4 * self.tiles

    @property
    def load(self) -> int:
        return 4 * self.tiles + 4

    @property
    def mma(self) -> int:
        return 4 * self.tiles + 5

    @property
    def allocates(self) -> int:
        """The warp that allocates and frees tensor memory."""
        return self.mma

    @property
    def warps(self) -> int:
        return 4 * self.tiles + 8

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def registers(self) -> tuple[int, int, int]:
        """Of a thread of the softmax, of the correction, and of the load and MMA warpgroup."""
        return _REGISTERS[self.tiles]

    @property
    def names(self) -> dict[int, str]:
        """The role of each warp that has one."""
        softmax = {warp: f"softmax {warp // 4}" for warp in range(4 * self.tiles)}
        correction = dict.fromkeys(range(self.correction, self.correction + 4), "correction")
        return {**softmax, **correction, self.load: "load", self.mma: "mma"}

    def explain(self) -> str:
        """Warps and registers in words."""
        softmax, correction, others = self.registers
        return (
            f"warps 0-{self.correction - 1} softmax, {self.correction}-{self.correction + 3} correction and epilogue, "
            f"warp {self.load} load, warp {self.mma} mma; {softmax}, {correction} and {others} registers a thread"
        )
