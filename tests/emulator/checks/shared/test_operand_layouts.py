"""Operands that right kernels read in unusual ways, and what no kernel can mean."""

from __future__ import annotations

import pytest

from ptxgen.device.report import Finding
from tests.bugs.bug import REBUILT, Bug
from tests.bugs.operands import A, B, smem, wgmma

#: Lines of `wgmma`: A, B, scale-d, major of A and of B. The tiles have 128 rows of 64 bf16.
RIGHT = {
    "the tile as its transposed": f" {smem(A)} {smem(B, lbo=8192)} 0 0 1",
    "the same rows for all of A": f" {smem(A, sbo=0)} {smem(B)} 0 0 0",
    "the same columns twice": f" {smem(A)} {smem(B, lbo=0)} 0 0 1",
    "rows shifted by one": f" {smem(A)} {smem(B)} 0 0 0\n {smem(A + 128)} {smem(B + 32)} 1 0 0\n"
    + "\n".join(f" {smem(A + 32 * step)} {smem(B + 32 * step)} 1 0 0" for step in range(1, 4)),
    "a tail of K": f" {smem(A)} {smem(B)} 0 0 0\n {smem(A + 32)} {smem(B + 32)} 1 0 0",
    "the same A with two B": f" {smem(A)} {smem(B)} 0 0 0\n {smem(A)} {smem(B + 32)} 1 0 0",
    "another accumulation": f" {smem(A)} {smem(B)} 0 0 0\n {smem(A + 16)} {smem(B + 16)} 0 0 0",
    "the tile and its transposed, added up": f" {smem(A)} {smem(B, lbo=8192)} 0 0 1\n {smem(A)} {smem(B + 32)} 1 0 0",
    "no swizzle": f" {hex(int(smem(A, sbo=128), 16) & ~(3 << 62))} {smem(B)} 0 0 0",
}
WRONG = {
    "a start inside a row": (
        f" {smem(A + 112)} {smem(B)} 0 0 0",
        "M 0 begins in row 0 of the box, but its K from 8 on are in row 1",
        "begin at a start address in which M 0 lies in one row",
    ),
    "LBO of K-major kernels": (
        f" {smem(A)} {smem(B)} 0 0 1",
        "K 0, N 8 is read again as K 0, N 64",
        "set imm-trans-b to 0 (K-major)",
    ),
    "LBO of half a block": (
        f" {smem(A)} {smem(B, lbo=1024)} 0 0 1",
        "K 0, N 64 is read again as K 8, N 0",
        "set LBO to 16384: the box has 128 rows of 128 bytes",
    ),
    "SBO of a row": (
        f" {smem(A, sbo=128)} {smem(B)} 0 0 0",
        "M 1, K 8 is read again as M 8, K 8",
        "set SBO to 1024: 8 rows of 128 bytes",
    ),
    "half a step of K, MN-major": (
        f" {smem(A)} {smem(B, lbo=8192)} 0 0 1\n {smem(A + 32)} {smem(B + 1024, lbo=8192)} 1 0 1",
        "row 0, K 0 of this MMA is row 0, K 8 of the MMA in line 42",
        "step K by 2048 bytes (16 rows of 128)",
    ),
    "the step of K of the other major": (
        f" {smem(A)} {smem(B, lbo=8192)} 0 0 1\n {smem(A + 32)} {smem(B + 32, lbo=8192)} 1 0 1",
        "K 0 begins in row 0 of the box, but its N from 48 on are in row 1",
        "set imm-trans-b to 0 (K-major), or step K by 2048 bytes (16 rows of 128) if B is MN-major",
    ),
}


def findings(steps: str) -> list[Finding]:
    """What the emulator reports of a kernel of these MMAs."""
    bug = Bug(name="", source=REBUILT, what="", code="", box=(64, 128), swizzle="128B", ptx=wgmma(steps))
    return list(bug.run("eager", right=True).findings)


@pytest.mark.parametrize("steps", RIGHT.values(), ids=RIGHT)
def test_right_kernels(steps: str) -> None:
    assert [each.code for each in findings(steps) if each.code != "swizzle-mismatch"] == []


@pytest.mark.parametrize(("steps", "what", "fix"), WRONG.values(), ids=WRONG)
def test_what_is_wrong(steps: str, what: str, fix: str) -> None:
    (found,) = findings(steps)
    assert (found.code, found.severity) == ("operand-layout", "error")
    assert what in found.message
    assert found.fix == fix
