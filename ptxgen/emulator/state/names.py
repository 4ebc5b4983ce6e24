"""Names of warps and addresses, for findings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Access
from ptxgen.device.report import Role
from ptxgen.emulator.load.shared_names import SharedNames
from ptxgen.emulator.memory import GlobalMemory
from ptxgen.emulator.state.clusters import Clusters
from ptxgen.syntax import Statement


class Names:
    """Names of a machine's warps, CTAs and memory. `cta` holds %ctaid: (warps, 3)."""

    def __init__(self, clusters: Clusters, cta: NDArray[np.uint32], shared: SharedNames, memory: GlobalMemory) -> None:
        self._clusters, self._cta, self._shared, self._memory = clusters, cta, shared, memory

    def access(
        self,
        role: Role,
        statement: Statement | None,
        warp: int | None = None,
        *,
        lanes: int | None = None,
        slot: int | None = None,
        space: str = "",
        address: int | None = None,
        phase: int | None = None,
    ) -> Access:
        """`Findings.access`."""
        clusters = self._clusters
        if slot is None and warp is not None:
            slot = int(clusters.cta_slot[warp])
        name, stage = self.name(space, address) if address is not None else ("", None)
        explicit = slot is not None and clusters.explicit
        return Access(
            role,
            line=statement.line if statement is not None else None,
            instruction=statement.text.strip() if statement is not None else "",
            warp=warp % clusters.warps_per_cta if warp is not None else None,
            lanes=lanes,
            cta=self.cta(slot) if slot is not None else None,
            rank=int(clusters.slot_rank[slot]) if explicit and slot is not None else None,
            space=space,
            address=address,
            name=name,
            stage=stage,
            phase=phase,
        )

    def cta(self, slot: int) -> tuple[int, int, int]:
        """%ctaid of the CTA in a slot."""
        x, y, z = self._cta[slot * self._clusters.warps_per_cta].tolist()
        return x, y, z

    def name(self, space: str, address: int) -> tuple[str, int | None]:
        """The name of an address, and its stage in a ring; an empty name where it has none.

        `address` is an offset in the shared memory of a CTA, or a global address.
        """
        if space.startswith("shared"):
            return self._shared.name(address)
        if space == "global":
            return self._memory.element(address), None
        return "", None

    def place(self, space: str, address: int) -> str:
        """The name and then the address, for messages: `full[2] (0x8410)`."""
        return Access("accessor", address=address, name=self.name(space, address)[0]).place
