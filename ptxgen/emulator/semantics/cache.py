"""Hints to the caches, which the emulator does not have. PTX ISA 9.7.9.15 and 9.7.9.16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import cache


@meaning(cache.prefetch, cache.prefetch_keep, cache.prefetch_tensormap, cache.prefetchu, cache.applypriority)
def nothing(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[[Group], None]:
    return lambda g: None
