"""mbarrier objects: phases that end when all expected arrivals and bytes are in. PTX ISA 9.7.13.15.

An object is 8 bytes of shared memory. test_wait returns at once, try_wait may suspend the thread until the phase ends
or a time limit passes. Remote objects (.shared::cluster) take arrivals and tx operations only; with
.multicast::cluster::32b the objects at the same place in several CTAs get them at once: `mask` has a bit for each CTA.

Layout v1 (PTX 9.3) also keeps a report of what went wrong with the copies that a phase tracks. Its primary phase ends
as ever, its conditional phase only if there is nothing to report.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, predicate, register, sink, source
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability

_SECTION = "9.7.13.15"
_Cta = Literal["shared", "shared::cta"]
_Shared = Literal["shared", "shared::cta", "shared::cluster"]
_Scope = Literal["cta", "cluster"]
_PhaseType = Literal["primary", "conditional"]
_REPORTS = Availability("9.3", "sm_90+")
_NEEDS = {
    "shared::cta": Availability("7.8", "sm_80+"),
    "shared::cluster": Availability("8.0", "sm_90+"),
    "relaxed": Availability("8.6", "sm_90+"),
    "cluster": Availability("8.0", "sm_90+"),
    "cta": Availability("8.0", "sm_80+"),
    "phase_type::primary": _REPORTS,
    "phase_type::conditional": _REPORTS,
    "layout::v0": _REPORTS,
    "layout::v1": _REPORTS,
}
_TX_NEEDS = {**_NEEDS, "relaxed": Availability("8.0", "sm_90+")}
#: A count without .noComplete is for the later targets, though the instruction is older.
_ARRIVE_NEEDS = {**_NEEDS, "count": Availability("7.8", "sm_90+")}
_COUNT = 2**20 - 1
_MASK = 2**32 - 1
_MULTICAST = "sm_107f"
_SHARED = ("shared",)
_INIT_FENCES = "fence.mbarrier_init for other CTAs, fence.mbarrier_init or fence.proxy.async for bulk copies"


def _semantics(form: Any) -> str | None:
    """.relaxed names a scope; a scope without semantics does not exist."""
    if bool(form.sem) != bool(form.scope):
        return f"{form.form.opcode} requires both the semantics and the scope, as in .release.cta, or neither"
    return None


def _report(form: Any) -> str | None:
    """The report belongs to the primary phase."""
    if (form.report is not None or form.value is not None) and form.phase_type != "primary":
        return "a report requires .phase_type::primary"
    return None


class init(
    Instruction, opcode="mbarrier.init", section=_SECTION + ".9", ptx="7.0", targets="sm_80+", fences=_INIT_FENCES
):
    """Make an object that expects `count` arrivals in each phase, 1 to 1048575, or to 511 in layout v1."""

    syntax = "mbarrier.init{.layout}{.space}.b64 [addr], count"
    addr: OperandLike = address("space", variables=_SHARED, memory="write")
    count: OperandLike = source("u32", low=1, high=_COUNT)
    _: KW_ONLY
    layout: Literal["v0", "v1"] | None = modifier("layout::", default=None)
    space: _Cta | None = None
    needs = _NEEDS


class inval(Instruction, opcode="mbarrier.inval", section=_SECTION + ".10", ptx="7.0", targets="sm_80+"):
    """End an object's life, after which its memory may be used otherwise."""

    syntax = "mbarrier.inval{.space}.b64 [addr]"
    addr: OperandLike = address("space", variables=_SHARED, memory="write")
    _: KW_ONLY
    space: _Cta | None = None
    needs = _NEEDS


class expect_tx(Instruction, opcode="mbarrier.expect_tx", section=_SECTION + ".11", ptx="8.0", targets="sm_90+"):
    """Raise the tx-count of the current phase by `tx_count` bytes."""

    syntax = "mbarrier.expect_tx{.sem}{.scope}{.space}.b64 [addr], tx_count"
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: _Scope | None = None
    space: _Shared | None = None
    needs = _TX_NEEDS
    _s = rule("semantics")(_semantics)


class expect_tx_multicast(
    Instruction, opcode="mbarrier.expect_tx", section=_SECTION + ".11", ptx="9.4", targets=_MULTICAST
):
    """As expect_tx, on the objects of all CTAs in `mask`."""

    syntax = "mbarrier.expect_tx{.sem}{.scope}{.space}.multicast::cluster::32b.b64 [addr], tx_count, mask"
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    mask: OperandLike = source("u32", low=0, high=_MASK)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"] | None = None
    _s = rule("semantics")(_semantics)


class complete_tx(Instruction, opcode="mbarrier.complete_tx", section=_SECTION + ".12", ptx="8.0", targets="sm_90+"):
    """Lower the tx-count of the current phase by `tx_count` bytes, as a bulk copy does when it is done."""

    syntax = "mbarrier.complete_tx{.sem}{.scope}{.space}.b64 [addr], tx_count"
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: _Scope | None = None
    space: _Shared | None = None
    needs = _TX_NEEDS
    _s = rule("semantics")(_semantics)


class complete_tx_multicast(
    Instruction, opcode="mbarrier.complete_tx", section=_SECTION + ".12", ptx="9.4", targets=_MULTICAST
):
    """As complete_tx, on the objects of all CTAs in `mask`."""

    syntax = "mbarrier.complete_tx{.sem}{.scope}{.space}.multicast::cluster::32b.b64 [addr], tx_count, mask"
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    mask: OperandLike = source("u32", low=0, high=_MASK)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"] | None = None
    _s = rule("semantics")(_semantics)


class arrive(
    Instruction, opcode="mbarrier.arrive", section=_SECTION + ".13", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """Arrive `count` times (1 if absent); `state` gets the state before, for test_wait and try_wait."""

    syntax = "mbarrier.arrive{.sem}{.scope}{.space}.b64 state, [addr]{, count}"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = {**_ARRIVE_NEEDS, "state=_": Availability("7.1", "sm_80+")}
    _s = rule("semantics")(_semantics)


class arrive_remote(
    Instruction, opcode="mbarrier.arrive", section=_SECTION + ".13", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """Arrive on an object of any CTA of the cluster; there is no state to get."""

    syntax = "mbarrier.arrive{.sem}{.scope}.space.b64 state, [addr]{, count}"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"]
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class arrive_multicast(
    Instruction, opcode="mbarrier.arrive", section=_SECTION + ".13", ptx="9.4", targets=_MULTICAST, synchronizes=True
):
    """Arrive on the objects of all CTAs in `mask`; there is no state to get."""

    syntax = "mbarrier.arrive{.sem}{.scope}{.space}.multicast::cluster::32b.b64 state, [addr]{, count}, mask"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    mask: OperandLike = source("u32", low=0, high=_MASK)
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"] | None = None
    _s = rule("semantics")(_semantics)


class arrive_expect_tx(
    Instruction,
    opcode="mbarrier.arrive.expect_tx",
    section=_SECTION + ".13",
    ptx="8.0",
    targets="sm_90+",
    synchronizes=True,
):
    """Raise the tx-count by `tx_count` bytes, then arrive once."""

    syntax = "mbarrier.arrive.expect_tx{.sem}{.scope}{.space}.b64 state, [addr], tx_count"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class arrive_expect_tx_remote(
    Instruction,
    opcode="mbarrier.arrive.expect_tx",
    section=_SECTION + ".13",
    ptx="8.0",
    targets="sm_90+",
    synchronizes=True,
):
    """As arrive_expect_tx, on an object of any CTA of the cluster; there is no state to get."""

    syntax = "mbarrier.arrive.expect_tx{.sem}{.scope}.space.b64 state, [addr], tx_count"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"]
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class arrive_expect_tx_multicast(
    Instruction,
    opcode="mbarrier.arrive.expect_tx",
    section=_SECTION + ".13",
    ptx="9.4",
    targets=_MULTICAST,
    synchronizes=True,
):
    """As arrive_expect_tx, on the objects of all CTAs in `mask`; there is no state to get."""

    syntax = "mbarrier.arrive.expect_tx{.sem}{.scope}{.space}.multicast::cluster::32b.b64 state, [addr], tx_count, mask"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    mask: OperandLike = source("u32", low=0, high=_MASK)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"] | None = None
    _s = rule("semantics")(_semantics)


class arrive_no_complete(
    Instruction, opcode="mbarrier.arrive", section=_SECTION + ".13", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """Arrive `count` times, not the last of the phase; pending_count reads `state`."""

    syntax = "mbarrier.arrive.noComplete{.sem}{.scope}{.space}.b64 state, [addr], count"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release"] | None = None
    scope: Literal["cta"] | None = None
    space: _Cta | None = None
    needs = {**_NEEDS, "state=_": Availability("7.1", "sm_80+")}
    _s = rule("semantics")(_semantics)


class arrive_drop(
    Instruction, opcode="mbarrier.arrive_drop", section=_SECTION + ".14", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """Arrive `count` times (1 if absent), and be expected no more: later phases expect `count` arrivals less."""

    syntax = "mbarrier.arrive_drop{.sem}{.scope}{.space}.b64 state, [addr]{, count}"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = _ARRIVE_NEEDS
    _s = rule("semantics")(_semantics)


class arrive_drop_remote(
    Instruction, opcode="mbarrier.arrive_drop", section=_SECTION + ".14", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """As arrive_drop, on an object of any CTA of the cluster; there is no state to get."""

    syntax = "mbarrier.arrive_drop{.sem}{.scope}.space.b64 state, [addr]{, count}"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"]
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class arrive_drop_multicast(
    Instruction,
    opcode="mbarrier.arrive_drop",
    section=_SECTION + ".14",
    ptx="9.4",
    targets=_MULTICAST,
    synchronizes=True,
):
    """As arrive_drop, on the objects of all CTAs in `mask`; there is no state to get."""

    syntax = "mbarrier.arrive_drop{.sem}{.scope}{.space}.multicast::cluster::32b.b64 state, [addr]{, count}, mask"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    mask: OperandLike = source("u32", low=0, high=_MASK)
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"] | None = None
    _s = rule("semantics")(_semantics)


class arrive_drop_expect_tx(
    Instruction,
    opcode="mbarrier.arrive_drop.expect_tx",
    section=_SECTION + ".14",
    ptx="8.0",
    targets="sm_90+",
    synchronizes=True,
):
    """Raise the tx-count by `tx_count` bytes, then arrive once, and be expected no more."""

    syntax = "mbarrier.arrive_drop.expect_tx{.sem}{.scope}{.space}.b64 state, [addr], tx_count"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class arrive_drop_expect_tx_remote(
    Instruction,
    opcode="mbarrier.arrive_drop.expect_tx",
    section=_SECTION + ".14",
    ptx="8.0",
    targets="sm_90+",
    synchronizes=True,
):
    """As arrive_drop_expect_tx, on an object of any CTA of the cluster; there is no state to get."""

    syntax = "mbarrier.arrive_drop.expect_tx{.sem}{.scope}.space.b64 state, [addr], tx_count"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"]
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class arrive_drop_expect_tx_multicast(
    Instruction,
    opcode="mbarrier.arrive_drop.expect_tx",
    section=_SECTION + ".14",
    ptx="9.4",
    targets=_MULTICAST,
    synchronizes=True,
):
    """As arrive_drop_expect_tx, on the objects of all CTAs in `mask`; there is no state to get."""

    syntax = (
        "mbarrier.arrive_drop.expect_tx{.sem}{.scope}{.space}.multicast::cluster::32b.b64 state, [addr], tx_count, mask"
    )
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    mask: OperandLike = source("u32", low=0, high=_MASK)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: _Scope | None = None
    space: Literal["shared::cluster"] | None = None
    _s = rule("semantics")(_semantics)


class arrive_drop_no_complete(
    Instruction, opcode="mbarrier.arrive_drop", section=_SECTION + ".14", ptx="7.0", targets="sm_80+", synchronizes=True
):
    """As arrive_drop, not the last arrival of the phase; pending_count reads `state`."""

    syntax = "mbarrier.arrive_drop.noComplete{.sem}{.scope}{.space}.b64 state, [addr], count"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED, memory="read-write")
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release"] | None = None
    scope: Literal["cta"] | None = None
    space: _Cta | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class cp_async_arrive(
    Instruction,
    opcode="cp.async.mbarrier.arrive",
    section=_SECTION + ".15",
    ptx="7.0",
    targets="sm_80+",
    completed_by="all earlier cp.async of this thread",
    synchronizes=True,
):
    """Arrive once all earlier cp.async of this thread are done. The phase expects one arrival more for it.

    With `noinc` it does not: the count of the init must have room for it.
    """

    syntax = "cp.async.mbarrier.arrive{.noinc}{.space}.b64 [addr]"
    addr: OperandLike = address("space", narrow=True, memory="read-write")
    _: KW_ONLY
    noinc: bool = False
    space: _Cta | None = None
    needs = _NEEDS


class test_wait(
    Instruction,
    opcode="mbarrier.test_wait",
    section=_SECTION + ".16",
    ptx="7.0",
    targets="sm_80+",
    results=("p", "report", "value"),
    synchronizes=True,
):
    """p = whether the phase of `state` has ended; then `report` = whether there is a report, `value` = what it says."""

    syntax = "mbarrier.test_wait{.phase_type}{.sem}{.scope}{.space}.b64 p{|report}{, value}, [addr], state"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED, memory="read")
    state: OperandLike = source("u64", sums=False)
    report: OperandLike = predicate(sink=True, default=None)
    value: OperandLike = register("b8", default=None)
    _: KW_ONLY
    phase_type: Literal["primary"] | None = modifier("phase_type::", default=None)
    sem: Literal["acquire", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)
    _r = rule("report", reads_operands=True)(_report)


class test_wait_parity(
    Instruction,
    opcode="mbarrier.test_wait.parity",
    section=_SECTION + ".16",
    ptx="7.1",
    targets="sm_80+",
    results=("p", "report", "value"),
    synchronizes=True,
):
    """p = whether the current or last phase of this parity has ended; parity 1 is true on a fresh object.

    `report` and `value` as in test_wait.
    """

    syntax = "mbarrier.test_wait.parity{.phase_type}{.sem}{.scope}{.space}.b64 p{|report}{, value}, [addr], parity"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED, memory="read")
    parity: OperandLike = source("u32", low=0, high=1)
    report: OperandLike = predicate(sink=True, default=None)
    value: OperandLike = register("b8", default=None)
    _: KW_ONLY
    phase_type: _PhaseType | None = modifier("phase_type::", default=None)
    sem: Literal["acquire", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)
    _r = rule("report", reads_operands=True)(_report)


class try_wait(
    Instruction,
    opcode="mbarrier.try_wait",
    section=_SECTION + ".16",
    ptx="7.8",
    targets="sm_90+",
    results=("p", "report", "value"),
    synchronizes=True,
):
    """As test_wait, but may suspend the thread, up to `hint` nanoseconds."""

    syntax = "mbarrier.try_wait{.phase_type}{.sem}{.scope}{.space}.b64 p{|report}{, value}, [addr], state{, hint}"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED, memory="read")
    state: OperandLike = source("u64", sums=False)
    hint: OperandLike = source("u32", default=None)
    report: OperandLike = predicate(sink=True, default=None)
    value: OperandLike = register("b8", default=None)
    _: KW_ONLY
    phase_type: Literal["primary"] | None = modifier("phase_type::", default=None)
    sem: Literal["acquire", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)
    _r = rule("report", reads_operands=True)(_report)


class try_wait_parity(
    Instruction,
    opcode="mbarrier.try_wait.parity",
    section=_SECTION + ".16",
    ptx="7.8",
    targets="sm_90+",
    results=("p", "report", "value"),
    synchronizes=True,
):
    """As test_wait.parity, but may suspend the thread, up to `hint` nanoseconds."""

    syntax = (
        "mbarrier.try_wait.parity{.phase_type}{.sem}{.scope}{.space}.b64 p{|report}{, value}, [addr], parity{, hint}"
    )
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED, memory="read")
    parity: OperandLike = source("u32", low=0, high=1)
    hint: OperandLike = source("u32", default=None)
    report: OperandLike = predicate(sink=True, default=None)
    value: OperandLike = register("b8", default=None)
    _: KW_ONLY
    phase_type: _PhaseType | None = modifier("phase_type::", default=None)
    sem: Literal["acquire", "relaxed"] | None = None
    scope: _Scope | None = None
    space: _Cta | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)
    _r = rule("report", reads_operands=True)(_report)


class pending_count(
    Instruction, opcode="mbarrier.pending_count", section=_SECTION + ".17", ptx="7.0", targets="sm_80+"
):
    """count = the arrivals that were pending when arrive.noComplete or arrive_drop.noComplete gave `state`."""

    syntax = "mbarrier.pending_count{.layout}.b64 count, state"
    count: OperandLike = register("u32")
    state: OperandLike = source("u64", sums=False)
    _: KW_ONLY
    layout: Literal["v0"] | None = modifier("layout::", default=None)
    needs = _NEEDS


class check_layout(
    Instruction, opcode="mbarrier.check_layout", section="9.7.15.16.21 (9.4)", ptx="9.3", targets="sm_90+"
):
    """p = whether the object has this layout."""

    syntax = "mbarrier.check_layout.layout{.space}.b64 p, [addr]"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", memory="read")
    _: KW_ONLY
    layout: Literal["v0", "v1"] = modifier("layout::")
    space: _Cta | None = None
