"""Asynchronous copies of single words from global to shared memory. PTX ISA 9.7.9.25.3."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.memory.access import NEEDS, Prefetch
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, choice, immediate, predicate, source
from ptxgen.instr.model.syntax_line import flag
from ptxgen.syntax import Expression, Immediate


def _sizes(form: Any) -> tuple[int, ...]:
    """Bytes of a copy: 16 past the L1 cache."""
    return (16,) if form.cop == "cg" else (4, 8, 16)


class _Copy(
    Instruction,
    opcode="cp.async",
    section="9.7.9.25.3.1",
    ptx="7.0",
    targets="sm_80+",
    completed_by="cp.async.wait_group, cp.async.wait_all, or an mbarrier after cp.async.mbarrier.arrive",
):
    dst: OperandLike = address("dst_space", memory="write")
    src: OperandLike = address("global", narrow=True, memory="read")
    _: KW_ONLY
    cop: Literal["ca", "cg"]
    dst_space: Literal["shared", "shared::cta"]
    hint: bool = flag("L2::cache_hint", default=False)
    prefetch: Prefetch | None = None
    needs = {token: NEEDS[token] for token in ("L2::cache_hint", "L1::32B", "L2::64B", "L2::128B", "L2::256B")}
    size: OperandLike = choice(_sizes)


class copy(_Copy):
    """Copy `size` bytes: the first `src_size` are read, the others become zero."""

    syntax = "cp.async.cop.dst_space.global{.hint}{.prefetch} [dst], [src], size{, src_size}{, policy}"
    src_size: OperandLike = source("u32", default=None)
    policy: OperandLike = source("u64", when="hint", default=None)

    @rule("source-size", reads_operands=True)
    def _source_size(self) -> str | None:
        """No more is read than copied."""
        found = self.src_size
        if not isinstance(found, Immediate | Expression) or 0 <= found.evaluate() <= self.size.evaluate():
            return None
        return f"src_size must be 0 to {self.size}, not {found}"


class copy_ignore(_Copy, ptx="7.5"):
    """Copy `size` bytes, or where `ignore` is true write as many zeros."""

    syntax = "cp.async.cop.dst_space.global{.hint}{.prefetch} [dst], [src], size, ignore{, policy}"
    ignore: OperandLike = predicate(negatable=True)
    policy: OperandLike = source("u64", when="hint", default=None)


class commit_group(Instruction, opcode="cp.async.commit_group", section="9.7.9.25.3.2", ptx="7.0", targets="sm_80+"):
    """Make a group of this thread's copies that are in none yet."""

    syntax = "cp.async.commit_group"


class wait_group(
    Instruction, opcode="cp.async.wait_group", section="9.7.9.25.3.3", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """Wait until at most the `count` latest groups of this thread are not done."""

    syntax = "cp.async.wait_group count"
    count: OperandLike = immediate(-(2**63), 2**64 - 1)  # any number (measured, ptxas 13.5)


class wait_all(
    Instruction, opcode="cp.async.wait_all", section="9.7.9.25.3.3", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """Wait until all copies of this thread are done, in groups or not."""

    syntax = "cp.async.wait_all"
