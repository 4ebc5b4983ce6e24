"""Products by warpgroups of sm_90a."""

from __future__ import annotations

from .compiler import Witness

WITNESSES: list[Witness] = []
