"""The error of plans."""

from ptxgen.options import PlanError

__all__ = ["PlanError"]
