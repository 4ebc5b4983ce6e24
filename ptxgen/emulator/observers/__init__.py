"""What a user may have observe a launch: `Emulator(observers=[LineCounts()])`."""

from ptxgen.emulator.observers.line_counts import Count, LineCounts

__all__ = ["Count", "LineCounts"]
