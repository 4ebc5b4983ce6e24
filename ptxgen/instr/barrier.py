"""Barriers among the threads of a CTA. PTX ISA 9.7.13 (bar, barrier); reductions and arrive are not here yet."""

from dataclasses import KW_ONLY

from ptxgen.instr.form import Instruction, OperandLike
from ptxgen.instr.operands import source
from ptxgen.instr.targets import ALL, Availability

_CTA = {"cta": Availability("7.8", ALL)}


class bar_sync(Instruction, opcode="bar", section="9.7.13 (bar)", ptx="1.0", targets=ALL, issued_by="warp", leading=1):
    """Wait until all threads of the CTA, or `threads` of them, are at barrier `name` (0 to 15)."""

    syntax = "bar{.cta}.sync name{, threads}"
    name: OperandLike = source("u32", low=0, high=15)
    threads: OperandLike = source("u32", multiple=32, default=None)
    _: KW_ONLY
    cta: bool = False
    needs = _CTA


class barrier_sync(
    Instruction, opcode="barrier", section="9.7.13 (barrier)", ptx="6.0", targets=ALL, issued_by="warp", leading=1
):
    """As bar.sync; without `aligned` the threads of a warp may arrive one by one."""

    syntax = "barrier{.cta}.sync{.aligned} name{, threads}"
    name: OperandLike = source("u32", low=0, high=15)
    threads: OperandLike = source("u32", multiple=32, default=None)
    _: KW_ONLY
    cta: bool = False
    aligned: bool = False
    needs = _CTA


class bar_warp_sync(
    Instruction, opcode="bar.warp", section="9.7.13 (bar.warp)", ptx="6.0", targets=ALL, issued_by="warp"
):
    """Wait until all threads of the warp in `mask` are here."""

    syntax = "bar.warp.sync mask"
    mask: OperandLike = source("u32")
