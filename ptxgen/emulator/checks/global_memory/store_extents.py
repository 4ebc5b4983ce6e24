"""Tensor stores that write past the end of their tensor's rows.

A row whose bytes are no multiple of 16 is written up to the next one (fact `tma-store-units`): past the end of the
row lies the padding of the strides, or the next row.
"""

from __future__ import annotations

from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import descriptors
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Statement

#: Granularity of tensor stores in bytes.
_WHOLE = 16


class StoreExtents(Observer):
    """Compares the innermost extent of the maps of tensor stores with what they write."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: Pairs of a line and the bytes of a map that have been looked at.
        self._known: set[tuple[int, bytes]] = set()

    def tensormap_used(
        self, warp: int, address: int, data: bytes, statement: Statement, *, prefetches: bool = False
    ) -> None:
        if not prefetches:
            self._used(warp, bytes(data), statement)

    def constant_tensormap_used(
        self, warp: int, data: bytes, statement: Statement, *, prefetches: bool = False
    ) -> None:
        if not prefetches:
            self._used(warp, data, statement)

    def _used(self, warp: int, data: bytes, statement: Statement) -> None:
        if (statement.line, data) in self._known or ".global.shared::cta" not in statement.text:
            return
        self._known.add((statement.line, data))
        try:
            tensor = TensorMap.decode(data)
        except DescriptorError:
            return  # which the copy itself reports
        rest = tensor.dims[0] * tensor.element_bits // 8 % _WHOLE
        if not rest:
            return
        writer = self._findings.access("writer", statement, warp, space="global")
        self._findings.report(
            descriptors.TENSOR_STORE_TAIL,
            statement,
            summary=f"{writer} stores rows of {tensor.dims[0]} elements ({tensor.dtype}), {rest} bytes more than a "
            f"multiple of {_WHOLE}",
            rule=f"The {_WHOLE - rest} bytes after each row are written too",
            accesses=(writer,),
            cause=("store tail", statement.line),
        )
