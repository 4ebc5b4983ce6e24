"""Loads and stores. PTX ISA 9.7.9.8 to 9.7.9.13."""

from ptxgen.instr.memory.access import elements
from ptxgen.instr.memory.asynchronous import st_async, st_async_mmio, st_async_release, st_bulk, st_bulk_32
from ptxgen.instr.memory.load import (
    ld,
    ld_keep,
    ld_mmio,
    ld_nc,
    ld_nc_keep,
    ld_ordered,
    ld_readonly,
    ld_readonly_nc,
    ld_volatile,
    ldu,
)
from ptxgen.instr.memory.store import st, st_keep, st_mmio, st_ordered, st_volatile

__all__ = [
    "elements",
    "ld",
    "ld_keep",
    "ld_mmio",
    "ld_nc",
    "ld_nc_keep",
    "ld_ordered",
    "ld_readonly",
    "ld_readonly_nc",
    "ld_volatile",
    "ldu",
    "st",
    "st_async",
    "st_async_mmio",
    "st_async_release",
    "st_bulk",
    "st_bulk_32",
    "st_keep",
    "st_mmio",
    "st_ordered",
    "st_volatile",
]
