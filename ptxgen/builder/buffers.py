"""Tiles in shared memory with their descriptors, and rings of buffers with full and empty mbarriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxgen.builder.registers import Register, RegisterError
from ptxgen.descriptors.smem import SmemDescriptor
from ptxgen.instr import cluster, conversion, fence, integer, logic, mbarrier, move, predicate

if TYPE_CHECKING:
    from ptxgen.builder.structure import Structure

#: Address bits of a descriptor in units of 16 bytes (PTX ISA 9.7.16.4.1, table 40).
_ADDRESS_BITS = 0x3FFF
_BARRIER_BYTES = 8


@dataclass(frozen=True)
class Tile:
    """An operand of MMAs in shared memory: its address, and the descriptor of its layout with address 0."""

    builder: Structure
    address: Register
    layout: SmemDescriptor

    def descriptor(self, address: Register | None = None) -> Register:
        """A new register with the descriptor of the tile at an address that is known at run time.

        Without one that of the tile itself. Four instructions: shr, and, cvt, or.
        """
        k = self.builder
        units, wide, found = k.reg("b32", "units"), k.reg("b64", "wide"), k.reg("b64", "descriptor")
        k(logic.shr(units, self.address if address is None else address, 4, type="u32"))
        k(logic.and_(units, units, _ADDRESS_BITS, type="b32"))
        k(conversion.cvt(wide, units, dtype="u64", atype="u32"))
        k(logic.or_(found, wide, f"{self.layout.encode():#x}", type="b64"))
        return found


@dataclass(frozen=True)
class Slot:
    """Where one side of a ring is: registers with its stage, and with the parity of its next wait."""

    ring: Ring
    stage: Register
    parity: Register
    waits_for: Register
    arrives_at: Register

    @property
    def waited(self) -> Register:
        """A new register with the address of the mbarrier that this side waits for."""
        return self._barrier(self.waits_for)

    @property
    def signaled(self) -> Register:
        """A new register with the address of the mbarrier on which this side arrives."""
        return self._barrier(self.arrives_at)

    def _barrier(self, first: Register) -> Register:
        found = self.ring.builder.reg("b32", "barrier")
        self.ring.builder(integer.mad(found, self.stage, _BARRIER_BYTES, first, half="lo", type="u32"))
        return found

    def wait(self) -> None:
        """Wait until the buffer is free (producer), or full (consumer)."""
        self.ring.builder.wait(self.waited, self.parity)

    def arrive(self, cta: Register | int | None = None) -> None:
        """Arrive on the other side's mbarrier: the buffer is full, or free again.

        `cta` is the rank in the cluster of the CTA whose mbarrier is meant; without one it is that of this CTA.
        """
        k, found = self.ring.builder, self.signaled
        if cta is None:
            k(mbarrier.arrive("_", found, space="shared::cta"))
            return
        remote = k.reg("b32", "remote")
        k(cluster.mapa(remote, found, cta, space="shared::cluster", type="u32"))
        k(mbarrier.arrive_remote("_", remote, sem="release", scope="cluster", space="shared::cluster"))

    def expect(self, size: int) -> Register:
        """Arrive with expect_tx for the bytes that copies will bring; the mbarrier, which these copies name."""
        found = self.signaled
        self.ring.builder(mbarrier.arrive_expect_tx("_", found, size, space="shared::cta"))
        return found

    def buffer(self, base: Register, size: int) -> Register:
        """A new register with the address of this stage's buffer, of `size` bytes each from `base` on."""
        found = self.ring.builder.reg("b32", "buffer")
        self.ring.builder(integer.mad(found, self.stage, size, base, half="lo", type="u32"))
        return found

    def advance(self) -> None:
        """Go to the next stage; after the last the first follows, with the other parity."""
        k, wraps = self.ring.builder, self.ring.builder.reg("pred", "wraps")
        k(integer.add(self.stage, self.stage, 1, type="u32"))
        k(predicate.setp(wraps, self.stage, self.ring.stages, compare="eq", type="u32"))
        k(move.mov(self.stage, 0, type="u32").when(wraps))
        k(logic.xor(self.parity, self.parity, 1, type="b32").when(wraps))


@dataclass(frozen=True)
class Ring:
    """`stages` buffers between a producer and consumers, with a full and an empty mbarrier each.

    `producers` and `consumers` are the arrivals that complete a phase of full and of empty.
    """

    builder: Structure
    name: str
    stages: int
    full: Register
    empty: Register
    producers: int = 1
    consumers: int = 1

    def initialize(self) -> None:
        """Initialize the mbarriers, for one thread; a barrier of the CTA must follow before they are used."""
        k = self.builder
        for first, count in ((self.full, self.producers), (self.empty, self.consumers)):
            for stage in range(self.stages):
                k(mbarrier.init(f"{first}+{_BARRIER_BYTES * stage}", count, space="shared::cta"))
        k(fence.fence_mbarrier_init())

    def producer(self) -> Slot:
        """The side that waits for empty and fills. Its first waits return at once: the parity begins with 1."""
        return self._side(1, self.empty, self.full)

    def consumer(self) -> Slot:
        """The side that waits for full and frees."""
        return self._side(0, self.full, self.empty)

    def _side(self, parity: int, waits_for: Register, arrives_at: Register) -> Slot:
        k = self.builder
        stage, phase = k.reg("b32", f"{self.name}_stage"), k.reg("b32", f"{self.name}_parity")
        k(move.mov(stage, 0, type="u32"), move.mov(phase, parity, type="u32"))
        return Slot(self, stage, phase, waits_for, arrives_at)


def require_stages(name: str, stages: int) -> None:
    """Raises RegisterError for a ring without buffers."""
    if stages < 1:
        raise RegisterError(f"ring {name} needs one stage or more, not {stages}")
