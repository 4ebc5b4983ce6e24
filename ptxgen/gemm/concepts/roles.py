"""Which warps do what, and how many registers they have."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.gemm.errors import PlanError

#: Registers of a thread of the producer by consumer warpgroups; the consumers share the rest of those that the CTA has
#: at its launch, in steps of 8 (PTX ISA 9.7.19.5, setmaxnreg).
_PRODUCER = {2: 40, 3: 32, 4: 24}
_STEP = 8
#: Registers of a multiprocessor.
_ALL_REGISTERS = 65536
#: Registers of a wgmma consumer beside its accumulator (ptxas 13.5 says C7602 below that).
_OTHER_REGISTERS = 26
#: Most registers of a thread.
_MOST_REGISTERS = 255


@dataclass(frozen=True)
class Roles:
    """The first warp of each role; the epilogue has the warps from `epilogue` on.

    None: the kernel has no warp of its own for it. Without warps of their own, warp 0 loads and multiplies.
    `converged`: the warps of the other roles run their loops whole and elect a thread for each K block; otherwise one
    elected thread runs them. `registers`: of a thread of the producer's warpgroup and of the consumers', by setmaxnreg.
    """

    warps: int = 4
    load: int | None = None
    mma: int | None = None
    scheduler: int | None = None
    epilogue: int = 0
    registers: tuple[int, int] | None = None
    converged: bool = False

    @classmethod
    def of(cls, *, specialized: bool, scheduler: bool, converged: bool = False) -> Roles:
        """Roles of a Blackwell kernel: epilogue warps 0 to 3, a quarter of the TMEM lanes each."""
        if not specialized:
            return cls()
        if scheduler:
            return cls(warps=7, scheduler=4, load=5, mma=6, converged=converged)
        return cls(warps=6, load=4, mma=5, converged=converged)

    @classmethod
    def warpgroups(
        cls, consumers: int, accumulator: int, mma: int, *, specialized: bool, producer: int = 0, parts: str = ""
    ) -> Roles:
        """Roles of a Hopper kernel: a producer warpgroup, then consumers with `accumulator` registers a thread.

        `mma`: how many of those one wgmma takes. `producer`: registers of its threads; 0: by the number of consumers.
        `parts`: the sum that the accumulator's are, for messages.

        Raises PlanError for an accumulator that does not fit.
        """
        if not specialized:
            if consumers > 1:
                raise PlanError(f"one warpgroup multiplies 64 rows: m_tile must be 64 here, not {64 * consumers}")
            consumers = 0
        registers = _split(consumers, producer)
        # ptxas allocates with the registers of setmaxnreg, except for a single wgmma, which gets those of the launch.
        threads, limit = 128 * (1 + consumers), _at_launch(consumers)
        for needed, most, words in ((mma, limit, ""), (accumulator, registers[1] if registers else limit, parts)):
            if needed + _OTHER_REGISTERS > most:
                raise PlanError(
                    f"a consumer needs {needed} registers for its accumulator{f' ({words})' if words else ''} and "
                    f"{_OTHER_REGISTERS} more, "
                    f"{needed + _OTHER_REGISTERS}; of {threads} threads each has {most}"
                )
        if not specialized:
            return cls()
        return cls(warps=4 + 4 * consumers, load=0, mma=4, epilogue=4, registers=registers)

    @staticmethod
    def mma_columns(consumers: int) -> int:
        """Columns of C that the registers of a thread at the launch leave to one wgmma."""
        return 2 * (_at_launch(consumers) - _OTHER_REGISTERS)

    def launch_registers(self, accumulator: int) -> int:
        """Registers of a thread when a Hopper kernel starts; with setmaxnreg the CTA takes all of a multiprocessor."""
        if self.registers:
            return _ALL_REGISTERS // self.threads // 8 * 8
        return -(-(accumulator + _OTHER_REGISTERS) // 8) * 8

    @property
    def consumer_registers(self) -> int:
        """Registers of a thread of a Hopper kernel's consumers at most."""
        return self.registers[1] if self.registers else _at_launch(self.storing // 4)

    @property
    def storing(self) -> int:
        """Warps that store C."""
        return self.warps - self.epilogue if self.epilogue else 4

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def allocates(self) -> int:
        """The warp that allocates and frees tensor memory."""
        return self.mma or 0

    @property
    def names(self) -> dict[int, str]:
        """The role of each warp that has one of its own."""
        own = {"epilogue": None, "scheduler": self.scheduler, "load": self.load, "mma": self.mma}
        if all(warp is None for warp in own.values()):
            return {}
        if self.epilogue:
            return {0: "load", **dict.fromkeys(range(self.epilogue, self.warps), "mma and epilogue")}
        names = dict.fromkeys(range(4), "epilogue")
        return {**names, **{warp: role for role, warp in own.items() if warp is not None}}

    def explain(self) -> str:
        if self.epilogue:
            words = f"warp 0 load, warps 4-{self.warps - 1} wgmma and epilogue"
            if self.registers:
                words += f"; {self.registers[0]} and {self.registers[1]} registers a thread"
            return words
        named = {"scheduler": self.scheduler, "load": self.load, "mma": self.mma}
        own = [f"warp {warp} {role}" for role, warp in named.items() if warp is not None]
        return ", ".join(["warps 0-3 epilogue", *own] if own else [f"all {self.warps} warps everything"])


def _at_launch(consumers: int) -> int:
    """Registers of a thread of a producer's and of the consumers' warpgroups before setmaxnreg."""
    return min(_ALL_REGISTERS // (128 * (1 + consumers)) // _STEP * _STEP, _MOST_REGISTERS)


def _split(consumers: int, producer: int) -> tuple[int, int] | None:
    """Registers of a thread of the producer and of the consumers after setmaxnreg; None without that."""
    if consumers not in _PRODUCER:
        if producer:
            raise PlanError(
                f"load_registers={producer} takes two or more consumer warpgroups, which take the registers; this "
                f"kernel has {consumers}"
            )
        return None
    threads = 128 * (1 + consumers)
    all_registers = _ALL_REGISTERS // threads // _STEP * _STEP * threads
    own = producer or _PRODUCER[consumers]
    return own, (all_registers // 128 - own) // consumers // _STEP * _STEP
