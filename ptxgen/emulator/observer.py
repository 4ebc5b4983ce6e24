"""Events of a launch, and who observes them.

The emulator's state (warps, memories, barriers, engines) knows no check: it emits what happens to `machine.events`. An
observer overrides the methods of the events that it handles; the others cost one call of an empty function. Checks of
races, the taint of registers, traces and the timing model are observers. Events return nothing: what an observer needs
later it keeps itself, by the number of the mbarrier or of the asynchronous work.

Rows are indices of resident warps (`machine.row_slot` gives the CTA slot), lanes are bool arrays of shape (32,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxgen.emulator.state.machine import Machine


class Observer:
    """Handles events of one launch; every method is empty here."""

    def begin(self, machine: Machine) -> None:
        """The launch begins. Observers keep what they need of the machine."""

    def cta_begins(self, slot: int) -> None:
        """A CTA takes a slot; what was known of the slot belongs to an earlier CTA."""

    def cta_ends(self, slot: int) -> None:
        """The last thread of a CTA has exited."""

    def time_advances(self, now: int) -> None:
        """Virtual time has reached `now`, in steps of blocks."""


Handler = Callable[..., None]


def _nobody(*_: object, **__: object) -> None:
    """Handles an event that nobody observes."""


def _everyone(handlers: Sequence[Handler]) -> Handler:
    def emit(*arguments: object, **named: object) -> None:
        for handler in handlers:
            handler(*arguments, **named)

    return emit


class Events(Observer):
    """Passes each event to the observers that handle it, in their order."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self.observers = tuple(observers)
        for name in (name for name in vars(Observer) if not name.startswith("_")):
            empty = getattr(Observer, name)
            handlers = [getattr(each, name) for each in observers if getattr(type(each), name) is not empty]
            handler = _nobody if not handlers else handlers[0] if len(handlers) == 1 else _everyone(handlers)
            setattr(self, name, handler)

    def observes(self, name: str) -> bool:
        """Whether anybody handles an event: asks before work that only the event needs."""
        return getattr(self, name) is not _nobody
