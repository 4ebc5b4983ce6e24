"""What a user may have observe a launch: `Emulator(observers=[LineCounts()])`."""

from ptxgen.emulator.observers.breakpoint import Breakpoint, BreakpointError, SharedView, State
from ptxgen.emulator.observers.line_counts import Count, LineCounts
from ptxgen.emulator.observers.provenance import Provenance, Write
from ptxgen.emulator.observers.trace import Trace, TraceError

__all__ = [
    "Breakpoint",
    "BreakpointError",
    "Count",
    "LineCounts",
    "Provenance",
    "SharedView",
    "State",
    "Trace",
    "TraceError",
    "Write",
]
