"""Findings as other programs read them: SARIF 2.1.0 and GitHub annotations; every command reports through this."""

from __future__ import annotations

from ptxgen.reports.github import workflow_commands
from ptxgen.reports.model import Failure, Level, Place, Replacement, Report, Result
from ptxgen.reports.sarif import sarif

__all__ = ["Failure", "Level", "Place", "Replacement", "Report", "Result", "sarif", "workflow_commands"]
