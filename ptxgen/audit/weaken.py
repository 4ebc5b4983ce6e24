"""How synchronization is dropped or weakened, one instruction at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxgen.audit.mutant import Change, Mutant, counted, every, guarded, respelled
from ptxgen.syntax import Instruction

#: Instructions that order or count and give no result: each can be left out.
_DROPPED = re.compile(
    r"(bar|barrier)(\.cta)?\.(sync|arrive|warp)|barrier\.cluster|fence|membar|tcgen05\.(fence|wait|commit|dealloc)"
    r"|wgmma\.(fence|commit_group|wait_group)|mbarrier\.(init|inval|arrive|arrive_drop|expect_tx|complete_tx)\b"
    r"|cp\.async\.(bulk\.)?(commit_group|wait_group|wait_all)|cp\.async\.mbarrier|tensormap\.cp_fenceproxy"
    r"|griddepcontrol|tcgen05\.relinquish_alloc_permit"
)
#: Instructions among these that set up or clean up, and order nothing.
_LIFE = re.compile(r"mbarrier\.(init|inval)|tcgen05\.(dealloc|relinquish_alloc_permit)")
WAITS = re.compile(r"mbarrier\.(try|test)_wait")
_GROUPS = re.compile(r"(wgmma|cp\.async|cp\.async\.bulk)\.wait_group")
#: Kinds of `weakened` that put another operation in place of one, which is no weakening of it.
_SWAPS = re.compile(r"for tcgen05\..*|on the other side|of another state space")


def synchronization(source: str) -> Iterator[Mutant]:
    """The mutants of an audit: each fence, wait, barrier, arrival, expect_tx, commit and scope, dropped or weakened."""
    return every(source, _audited)


def _audited(made: Instruction) -> Iterator[Change]:
    if not _LIFE.match(made.opcode):
        yield from dropped(made)
    yield from (each for each in weakened(made) if not _SWAPS.fullmatch(each[0]))
    yield from fewer_groups(made)


def dropped(made: Instruction) -> Iterator[Change]:
    """The instruction left out; a wait becomes one that ends at once."""
    opcode = made.opcode
    if _DROPPED.match(opcode):
        yield "dropped", guarded(made, f"mov.b64 {made.operands[0]}, 0;") if _has_result(made) else ""
    if WAITS.match(opcode):
        yield "wait dropped", guarded(made, f"setp.eq.u32 {str(made.operands[0]).partition('|')[0]}, 0, 0;")


def _has_result(made: Instruction) -> bool:
    return made.opcode.startswith("mbarrier.arrive") and str(made.operands[0]).strip() != "_"


def weakened(made: Instruction) -> Iterator[Change]:
    """The instruction with weaker semantics, a narrower scope, or another proxy, state space or side."""
    opcode = made.opcode
    if opcode.startswith("barrier.cluster.arrive") and ".relaxed" not in opcode:
        weaker = opcode.replace(".release", "").replace("barrier.cluster.arrive", "barrier.cluster.arrive.relaxed")
        yield "relaxed", respelled(made, weaker)
    if of_mbarrier := re.match(
        r"(mbarrier\.(?:arrive|arrive_drop)(?:\.expect_tx)?|mbarrier\.(?:try|test)_wait(?:\.parity)?)"
        r"(?:\.(?:release|acquire)\.(\w+))?(?=\.(?:shared|b64))",
        opcode,
    ):
        scope = of_mbarrier[2] or "cta"
        yield "relaxed", respelled(made, f"{of_mbarrier[1]}.relaxed.{scope}{opcode[of_mbarrier.end() :]}")
    for order in (".release", ".acquire"):
        if opcode.startswith(("atom", "red", "ld", "st")) and order in opcode and "async" not in opcode:
            yield "relaxed", respelled(made, opcode.replace(order, ".relaxed"))
    if re.match(r"(atom|red|ld|st|fence|mbarrier)\b.*\.(gpu|sys|cluster)\b", opcode) and ".async" not in opcode:
        narrower = re.sub(r"\.(gpu|sys|cluster)(?=\.|$)", ".cta", opcode)
        if narrower != opcode and "mbarrier_init" not in opcode and "proxy" not in opcode:
            yield "of a narrower scope", respelled(made, narrower)
    if opcode in ("membar.gl", "membar.sys"):
        yield "of a narrower scope", respelled(made, "membar.cta")
    if opcode in ("fence.proxy.async", "fence.proxy.async.shared::cta"):
        yield "of another state space", respelled(made, "fence.proxy.async.global")
        yield "of the generic proxy alone", respelled(made, "fence.acq_rel.cta")
    if opcode.startswith("tcgen05.wait::"):
        other = "st" if "::ld" in opcode else "ld"
        yield f"for tcgen05.{other}", respelled(made, opcode.replace(opcode[14:16], other, 1))
    if opcode.startswith("tcgen05.fence::"):
        before, after = "before_thread_sync", "after_thread_sync"
        other = opcode.replace(before, after) if before in opcode else opcode.replace(after, before)
        yield "on the other side", respelled(made, other)
    if opcode == "cp.async.bulk.wait_group":
        yield "of the sources alone", respelled(made, opcode + ".read")


def fewer_groups(made: Instruction) -> Iterator[Change]:
    """A wait that leaves one more group pending."""
    if _GROUPS.match(made.opcode):
        yield "one group less", counted(made, 0, 1)
