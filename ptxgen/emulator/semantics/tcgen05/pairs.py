"""Pairs of CTAs. PTX ISA 9.7.16.5.1."""

from __future__ import annotations

from ptxgen.emulator.registers import Unmodelled


def one_cta(cta_group: int) -> None:
    """Raise Unmodelled for what works on a pair."""
    if cta_group == 2:
        raise Unmodelled("cta_group::2")
