"""Clusters and dependent grids: addresses of peer CTAs, the cluster's barrier, launch control. PTX ISA 9.7.9.23,
9.7.9.24, 9.7.13.3, 9.7.13.13, 9.7.13.17, 9.7.13.18.
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import address, predicate, register, source, vector
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.model.targets import ALL, Availability

_SEMANTICS = Availability("8.0", ALL)


class mapa(Instruction, section="9.7.9.23", ptx="7.8", targets="sm_90+"):
    """d = the address in the CTA of rank `cta` that corresponds to a in one's own; generic without `space`."""

    syntax = "mapa{.space}.type d, a, cta"
    d: OperandLike = register("type")
    a: OperandLike = source("type", symbol="shared")
    cta: OperandLike = source("u32")
    _: KW_ONLY
    space: Literal["shared::cluster"] | None = None
    type: Literal["u32", "u64"]


class getctarank(Instruction, section="9.7.9.24", ptx="7.8", targets="sm_90+"):
    """d = the rank of the CTA in whose shared memory a is; generic without `space`."""

    syntax = "getctarank{.space}.type d, a"
    d: OperandLike = register("u32")
    a: OperandLike = source("type", symbol="shared")
    _: KW_ONLY
    space: Literal["shared::cluster"] | None = None
    type: Literal["u32", "u64"]


class arrive(
    Instruction,
    opcode="barrier.cluster.arrive",
    section="9.7.13.3",
    ptx="7.8",
    targets="sm_90+",
    issued_by="warp",
    completed_by="barrier.cluster.wait",
    asynchronous=False,
    synchronizes=True,
):
    """Arrive at the barrier of the cluster, where all its threads arrive once in a phase; exited ones count."""

    syntax = "barrier.cluster.arrive{.sem}{.aligned}"
    _: KW_ONLY
    sem: Literal["release", "relaxed"] | None = None
    aligned: bool = False
    needs = {"release": _SEMANTICS, "relaxed": _SEMANTICS}


class wait(
    Instruction,
    opcode="barrier.cluster.wait",
    section="9.7.13.3",
    ptx="7.8",
    targets="sm_90+",
    issued_by="warp",
    synchronizes=True,
):
    """Wait until all threads of the cluster have arrived."""

    syntax = "barrier.cluster.wait{.acquire}{.aligned}"
    _: KW_ONLY
    acquire: bool = False
    aligned: bool = False
    needs = {"acquire": _SEMANTICS}


class griddepcontrol(Instruction, section="9.7.13.13", ptx="7.8", targets="sm_90+", synchronizes=True):
    """Let the dependent grids launch, or wait until the grids that this one depends on are done."""

    syntax = "griddepcontrol.action"
    _: KW_ONLY
    action: Literal["launch_dependents", "wait"]


class try_cancel(
    Instruction,
    opcode="clusterlaunchcontrol.try_cancel.async",
    section="9.7.13.17",
    ptx="8.6",
    targets="sm_100+",
    completed_by="complete_tx of 16 bytes on the mbarrier",
    fences="fence.proxy.async between reading a response and the next request",
):
    """Try to take over a cluster that has not started; the response, 16 bytes, goes to shared memory.

    With `multicast` it goes to every CTA of the cluster, and completes on an mbarrier of each.
    """

    syntax = (
        "clusterlaunchcontrol.try_cancel.async{.space}.mbarrier::complete_tx::bytes{.multicast}.b128 [addr], [mbar]"
    )
    addr: OperandLike = address("space", narrow=True, memory="write")
    mbar: OperandLike = address("space", narrow=True, memory="read-write")
    _: KW_ONLY
    space: Literal["shared::cta"] | None = None
    multicast: bool = flag("multicast::cluster::all", default=False)
    needs = {"multicast::cluster::all": Availability("8.6", "sm_100f sm_110f sm_120f")}


class is_canceled(
    Instruction, opcode="clusterlaunchcontrol.query_cancel", section="9.7.13.18", ptx="8.6", targets="sm_100+"
):
    """p = whether the request of this response has taken over a cluster."""

    syntax = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response"
    p: OperandLike = predicate()
    response: OperandLike = source("b128")


class get_first_ctaid(
    Instruction, opcode="clusterlaunchcontrol.query_cancel", section="9.7.13.18", ptx="8.6", targets="sm_100+"
):
    """d = one coordinate of the first CTA of the cluster that was taken over."""

    syntax = "clusterlaunchcontrol.query_cancel.dimension.b32.b128 d, response"
    d: OperandLike = register("b32")
    response: OperandLike = source("b128")
    _: KW_ONLY
    dimension: Literal["x", "y", "z"] = modifier("get_first_ctaid::")


class get_first_ctaid_vector(
    Instruction, opcode="clusterlaunchcontrol.query_cancel", section="9.7.13.18", ptx="8.6", targets="sm_100+"
):
    """The coordinates x, y, z of the first CTA of the cluster that was taken over; the fourth is unspecified."""

    syntax = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 d, response"
    d: OperandLike = vector("b32", 4, scalar=True, sink=True)
    response: OperandLike = source("b128", register_sums=False)
