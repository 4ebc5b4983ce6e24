"""Which synchronization a kernel needs: each fence, wait, barrier, arrival and scope is dropped or weakened in turn.

`audit` runs a kernel with one change at a time under several schedules, and says of each instruction whether some run
needs it (with the finding), no run does, or no run reaches it. `ptxgen audit` is its command.
"""

from ptxgen.audit.audit import Audit, AuditError, Fate, Subject, Verdict, audit

__all__ = ["Audit", "AuditError", "Fate", "Subject", "Verdict", "audit"]
