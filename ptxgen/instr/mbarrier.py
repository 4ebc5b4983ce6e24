"""mbarrier objects: phases that end when all expected arrivals and bytes are in. PTX ISA 9.7.13.15.

An object is 8 bytes of shared memory. test_wait returns at once, try_wait may suspend the thread until the phase ends
or a time limit passes. Remote objects (.shared::cluster) take arrivals and tx operations only.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import address, predicate, register, sink, source
from ptxgen.instr.targets import Availability

_SECTION = "9.7.13.15"
_Cta = Literal["shared", "shared::cta"]
_Shared = Literal["shared", "shared::cta", "shared::cluster"]
_NEEDS = {
    "shared::cta": Availability("7.8", "sm_80+"),
    "shared::cluster": Availability("8.0", "sm_90+"),
    "relaxed": Availability("8.0", "sm_90+"),
    "cluster": Availability("8.0", "sm_90+"),
    "cta": Availability("8.0", "sm_80+"),
}
_COUNT = 2**20 - 1
_SHARED = ("shared",)


def _semantics(form: Any) -> str | None:
    """.relaxed names a scope; a scope without semantics does not exist."""
    if bool(form.sem) != bool(form.scope):
        return f"{form.form.opcode} needs both the semantics and the scope, as in .release.cta, or neither"
    return None


class init(Instruction, opcode="mbarrier.init", section=_SECTION + ".9", ptx="7.0", targets="sm_80+"):
    """Make an object that expects `count` arrivals in each phase, 1 to 1048575."""

    syntax = "mbarrier.init{.space}.b64 [addr], count"
    addr: OperandLike = address("space", variables=_SHARED)
    count: OperandLike = source("u32", low=1, high=_COUNT)
    _: KW_ONLY
    space: _Cta | None = None
    needs = _NEEDS


class inval(Instruction, opcode="mbarrier.inval", section=_SECTION + ".10", ptx="7.0", targets="sm_80+"):
    """End an object's life, after which its memory may be used otherwise."""

    syntax = "mbarrier.inval{.space}.b64 [addr]"
    addr: OperandLike = address("space", variables=_SHARED)
    _: KW_ONLY
    space: _Cta | None = None
    needs = _NEEDS


class expect_tx(Instruction, opcode="mbarrier.expect_tx", section=_SECTION + ".11", ptx="8.0", targets="sm_90+"):
    """Raise the tx-count of the current phase by `tx_count` bytes."""

    syntax = "mbarrier.expect_tx{.sem}{.scope}{.space}.b64 [addr], tx_count"
    addr: OperandLike = address("space", variables=_SHARED)
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Shared | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class complete_tx(Instruction, opcode="mbarrier.complete_tx", section=_SECTION + ".12", ptx="8.0", targets="sm_90+"):
    """Lower the tx-count of the current phase by `tx_count` bytes, as a bulk copy does when it is done."""

    syntax = "mbarrier.complete_tx{.sem}{.scope}{.space}.b64 [addr], tx_count"
    addr: OperandLike = address("space", variables=_SHARED)
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Shared | None = None
    needs = _NEEDS
    _s = rule("semantics")(_semantics)


class arrive(Instruction, opcode="mbarrier.arrive", section=_SECTION + ".13", ptx="7.0", targets="sm_80+"):
    """Arrive `count` times (1 if absent); `state` gets the state before, for test_wait and try_wait."""

    syntax = "mbarrier.arrive{.sem}{.scope}{.space}.b64 state, [addr]{, count}"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED)
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Cta | None = None
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+"), "count": Availability("7.8", "sm_90+")}
    _s = rule("semantics")(_semantics)


class arrive_remote(Instruction, opcode="mbarrier.arrive", section=_SECTION + ".13", ptx="7.0", targets="sm_80+"):
    """Arrive on an object of any CTA of the cluster; there is no state to get."""

    syntax = "mbarrier.arrive{.sem}{.scope}.space.b64 state, [addr]{, count}"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED)
    count: OperandLike = source("u32", low=1, high=_COUNT, advice=True, default=None)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: Literal["shared::cluster"]
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+")}
    _s = rule("semantics")(_semantics)


class arrive_expect_tx(
    Instruction, opcode="mbarrier.arrive.expect_tx", section=_SECTION + ".13", ptx="8.0", targets="sm_90+"
):
    """Raise the tx-count by `tx_count` bytes, then arrive once."""

    syntax = "mbarrier.arrive.expect_tx{.sem}{.scope}{.space}.b64 state, [addr], tx_count"
    state: OperandLike = register("u64", sink=True)
    addr: OperandLike = address("space", variables=_SHARED)
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Cta | None = None
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+")}
    _s = rule("semantics")(_semantics)


class arrive_expect_tx_remote(
    Instruction, opcode="mbarrier.arrive.expect_tx", section=_SECTION + ".13", ptx="8.0", targets="sm_90+"
):
    """As arrive_expect_tx, on an object of any CTA of the cluster; there is no state to get."""

    syntax = "mbarrier.arrive.expect_tx{.sem}{.scope}.space.b64 state, [addr], tx_count"
    state: OperandLike = sink()
    addr: OperandLike = address("space", variables=_SHARED)
    tx_count: OperandLike = source("u32", high=_COUNT, advice=True)
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: Literal["shared::cluster"]
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+")}
    _s = rule("semantics")(_semantics)


class test_wait(Instruction, opcode="mbarrier.test_wait", section=_SECTION + ".16", ptx="7.0", targets="sm_80+"):
    """p = whether the phase of `state` has ended."""

    syntax = "mbarrier.test_wait{.sem}{.scope}{.space}.b64 p, [addr], state"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED)
    state: OperandLike = source("u64")
    _: KW_ONLY
    sem: Literal["acquire", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Cta | None = None
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+")}
    _s = rule("semantics")(_semantics)


class test_wait_parity(
    Instruction, opcode="mbarrier.test_wait.parity", section=_SECTION + ".16", ptx="7.1", targets="sm_80+"
):
    """p = whether the current or last phase of this parity has ended; parity 1 is true on a fresh object."""

    syntax = "mbarrier.test_wait.parity{.sem}{.scope}{.space}.b64 p, [addr], parity"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED)
    parity: OperandLike = source("u32", low=0, high=1)
    _: KW_ONLY
    sem: Literal["acquire", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Cta | None = None
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+")}
    _s = rule("semantics")(_semantics)


class try_wait(Instruction, opcode="mbarrier.try_wait", section=_SECTION + ".16", ptx="7.8", targets="sm_90+"):
    """As test_wait, but may suspend the thread, up to `hint` nanoseconds."""

    syntax = "mbarrier.try_wait{.sem}{.scope}{.space}.b64 p, [addr], state{, hint}"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED)
    state: OperandLike = source("u64")
    hint: OperandLike = source("u32", default=None)
    _: KW_ONLY
    sem: Literal["acquire", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Cta | None = None
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+")}
    _s = rule("semantics")(_semantics)


class try_wait_parity(
    Instruction, opcode="mbarrier.try_wait.parity", section=_SECTION + ".16", ptx="7.8", targets="sm_90+"
):
    """As test_wait.parity, but may suspend the thread, up to `hint` nanoseconds."""

    syntax = "mbarrier.try_wait.parity{.sem}{.scope}{.space}.b64 p, [addr], parity{, hint}"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", variables=_SHARED)
    parity: OperandLike = source("u32", low=0, high=1)
    hint: OperandLike = source("u32", default=None)
    _: KW_ONLY
    sem: Literal["acquire", "relaxed"] | None = None
    scope: Literal["cta", "cluster"] | None = None
    space: _Cta | None = None
    needs = {**_NEEDS, "relaxed": Availability("8.6", "sm_90+")}
    _s = rule("semantics")(_semantics)
