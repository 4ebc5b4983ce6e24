"""Cubins of the recorded kernels, and cubins with one instruction changed."""

from __future__ import annotations

import functools
import io
import json
import re

from elftools.elf.elffile import ELFFile

from ptxgen.sass import Function, Listing, load
from ptxgen.toolchain import Cubin, assemble
from tests.support.paths import DATA


@functools.cache
def cubin(name: str) -> Cubin:
    """The cubin of a handwritten kernel, assembled once: ptxas does not always choose the same registers."""
    path = DATA / "handwritten" / f"{name}.ptx"
    target = json.loads(path.with_suffix(".json").read_text())["arch"]
    return assemble(path.read_text(), target, options=("-lineinfo",))


def starved(name: str) -> str:
    """The PTX of a handwritten kernel without the directives that would keep ptxas from giving it few registers."""
    text = (DATA / "handwritten" / f"{name}.ptx").read_text()
    return re.sub(r"^\s*\.(maxntid|reqntid|minnctapersm|maxnreg)\b.*$", "", text, flags=re.M)


@functools.cache
def listing(name: str) -> Listing:
    """The listing of a handwritten kernel, with the PTX."""
    return load(cubin(name), origin=name)


def text_offset(data: bytes, function: str) -> int:
    """Where the code of a function begins in a cubin."""
    section = ELFFile(io.BytesIO(data)).get_section_by_name(f".text.{function}")
    assert section is not None
    return int(section["sh_offset"])


def with_word(data: bytes, function: Function, index: int, word: int) -> bytes:
    """The cubin with another 128-bit word in the place of an instruction."""
    start = text_offset(data, function.name) + function.instructions[index].address
    return data[:start] + word.to_bytes(16, "little") + data[start + 16 :]


#: Source lines of the loops in `pipeline`.
PRODUCER, CONSUMER, LOCK = 10, 20, 30


@functools.cache
def pipeline(adds: int) -> Listing:
    """The listing of `pipeline_text`."""
    return load(assemble(pipeline_text(adds), options=("-lineinfo",)), origin="pipe")


def pipeline_text(adds: int) -> str:
    """A TMA producer and a consumer that adds up `adds` values of each stage, then a lock, all by lines of pipe.cu."""
    sums = "\n".join(
        f".loc 1 {CONSUMER + 2} 0\nld.shared.f32 %v, [%stage+{4 * each}];\nfma.rn.f32 %sum, %v, 0f3F000000, %sum;"
        for each in range(adds)
    )
    return f"""
.version 8.7
.target sm_90a
.address_size 64
.file 1 "/src/pipe.cu"
.visible .entry pipe(.param .b64 out, .param .u32 count, .param .align 64 .b8 map[128])
{{
    .reg .b64 %out, %map; .reg .b32 %n, %i, %t, %stage, %full, %empty, %parity, %old;
    .reg .pred %p, %done; .reg .f32 %sum, %v;
    .shared .align 128 .b8 data[4096];
    .shared .align 8 .b64 full, empty;
    .loc 1 5 0
    ld.param.b64 %out, [out]; ld.param.u32 %n, [count]; mov.b64 %map, map;
    mov.u32 %t, %tid.x; mov.u32 %full, full; mov.u32 %empty, empty; mov.u32 %stage, data; mov.u32 %i, 0;
    setp.ne.u32 %p, %t, 0;
    @%p bra $consumer;
$produce:
    .loc 1 {PRODUCER + 1} 0
    and.b32 %parity, %i, 1;
$spin_empty:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%empty], %parity;
    @!%done bra $spin_empty;
    .loc 1 {PRODUCER + 2} 0
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 4096;
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%stage], [%map, {{%i}}], [%full];
    .loc 1 {PRODUCER} 0
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra $produce;
    ret;
$consumer:
    mov.f32 %sum, 0f00000000;
$consume:
    .loc 1 {CONSUMER + 1} 0
    and.b32 %parity, %i, 1;
$spin_full:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%full], %parity;
    @!%done bra $spin_full;
    {sums}
    .loc 1 {CONSUMER + 3} 0
    mbarrier.arrive.shared::cta.b64 _, [%empty];
    .loc 1 {CONSUMER} 0
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra $consume;
$lock:
    .loc 1 {LOCK} 0
    atom.global.cas.b32 %old, [%out], 0, 1;
    setp.ne.u32 %p, %old, 0;
    @%p bra $lock;
    st.global.f32 [%out+8], %sum;
    ret;
}}
"""
