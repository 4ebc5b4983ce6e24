"""The error of plans."""


class PlanError(ValueError):
    """A config or problem that cannot be planned: the rule and the numbers."""
