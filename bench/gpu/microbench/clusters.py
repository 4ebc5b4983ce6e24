"""Copies to several CTAs of a cluster, in rings as GEMMs have them, and arrivals at the mbarriers of peers.

python -m bench.gpu.microbench.more --only 'ring of a cluster|remote' --out FILE.json
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.gpu.microbench import ptx
from bench.gpu.microbench.__main__ import Measurement

_SMS = 132
#: Bytes that the stages of a ring may take.
_ROOM = 198 << 10
_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_BARRIER = "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n"


def ring(ctas: int, own: int, *, multicast: bool, across: int = 8) -> str:
    """n times: a stage of `own` boxes of the CTA's own rows, and one box for each CTA of the cluster, which all have.

    With `multicast` each CTA copies one of those to all, else all of them. Warp 0 copies as soon as the stage is free
    in every CTA of the cluster, warp 1 frees it as soon as it is full. Of the clusters, `across` in a row have the same
    shared rows, and every `across`-th the same rows of their own, as tiles of a grid do. The kernel's `depth` is the
    number of stages, `rows` and `bytes` are those of a box.
    """
    arrivals = ctas if multicast else 1
    boxes = own + ctas
    copies = "".join(
        f"    add.u32 %r21, %r20, {each};\n    mad.lo.u32 %r22, %r21, %r2, %r13;\n"
        f"    mad.lo.u32 %r23, {each}, %r3, %r16;\n"
        f"    {_LOAD} [%r22], [%d20, {{%r14, %r23}}], [%r12];\n"
        for each in range(own)
    )
    if multicast:
        copies += (
            f"    add.u32 %r21, %r18, {own};\n    add.u32 %r21, %r21, %r20;\n    mad.lo.u32 %r22, %r21, %r2, %r13;\n"
        )
        copies += "    mad.lo.u32 %r23, %r18, %r3, %r17;\n"
        copies += f"    {_LOAD}.multicast::cluster [%r22], [%d20, {{%r14, %r23}}], [%r12], %h0;\n"
    else:
        copies += "".join(
            f"    add.u32 %r21, %r20, {own + each};\n    mad.lo.u32 %r22, %r21, %r2, %r13;\n"
            f"    mad.lo.u32 %r23, {each}, %r3, %r17;\n"
            f"    {_LOAD} [%r22], [%d20, {{%r14, %r23}}], [%r12];\n"
            for each in range(ctas)
        )
    frees = "".join(
        f"    mapa.shared::cluster.u32 %r21, %r19, {each};\n"
        "    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21];\n"
        for each in range(ctas)
    )
    if not multicast:
        frees = "    mbarrier.arrive.shared::cta.b64 _, [%r19];\n"
    before = f"""
    mov.b64 %d20, map;
    cvta.param.u64 %d20, %d20;
    prefetch.tensormap [%d20];
    mov.u32 %r18, %cluster_ctarank;
    div.u32 %r15, %r5, {ctas};
    rem.u32 %r16, %r15, {across};
    mad.lo.u32 %r16, %r16, {ctas}, %r18;
    mul.lo.u32 %r16, %r16, {own};
    mul.lo.u32 %r16, %r16, %r3;
    div.u32 %r17, %r15, {across};
    mul.lo.u32 %r17, %r17, {ctas};
    mul.lo.u32 %r17, %r17, %r3;
    add.u32 %r17, %r17, 2048;
    add.u32 %r13, %r6, 1024;
    mov.b16 %h0, {(1 << ctas) - 1};
    setp.ne.u32 %p, %r4, 0;
    @%p bra made;
    mov.u32 %r10, 0;
make:
    mad.lo.u32 %r12, %r10, 8, %r6;
    mbarrier.init.shared::cta.b64 [%r12], 1;
    mbarrier.init.shared::cta.b64 [%r12+128], {arrivals};
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p, %r10, 16;
    @%p bra make;
    fence.mbarrier_init.release.cluster;
made:
    bar.sync 0;
{_BARRIER}    mul.lo.u32 %r24, %r2, {boxes};
"""
    timed = f"""
    mov.u32 %r10, 0;
    mov.u32 %r11, 0;
    mov.u32 %r25, 1;
    and.b32 %r26, %r4, 31;
    setp.ne.u32 %p, %r26, 0;
    @%p bra over;
    setp.ne.u32 %p, %r4, 0;
    @%p bra consume;
produce:
    mad.lo.u32 %r12, %r11, 8, %r6;
free:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r12+128], %r25;
    @!%q bra free;
    mul.lo.u32 %r20, %r11, {boxes};
    shl.b32 %r14, %r10, 6;
    and.b32 %r14, %r14, 2047;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r12], %r24;
{copies}
    add.u32 %r11, %r11, 1;
    setp.ge.u32 %q, %r11, %r1;
    @%q xor.b32 %r25, %r25, 1;
    @%q mov.u32 %r11, 0;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p, %r10, %r0;
    @%p bra produce;
    bra over;
consume:
    mov.u32 %r25, 0;
take:
    mad.lo.u32 %r12, %r11, 8, %r6;
    add.u32 %r19, %r12, 128;
full:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r12], %r25;
    @!%q bra full;
{frees}
    add.u32 %r11, %r11, 1;
    setp.ge.u32 %q, %r11, %r1;
    @%q xor.b32 %r25, %r25, 1;
    @%q mov.u32 %r11, 0;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p, %r10, %r0;
    @%p bra take;
over:
    bar.sync 0;
"""
    text = ptx.kernel(before, timed, _BARRIER, threads=64)
    return text.replace("    .reg .b32 %r<64>;", "    .reg .b16 %h0;\n    .reg .b32 %r<64>;")


def remote_arrivals() -> str:
    """Two CTAs hand a phase to and fro through their mbarriers, n times: two arrivals at the peer's each."""
    before = f"""
    mov.u32 %r18, %cluster_ctarank;
    xor.b32 %r19, %r18, 1;
    mbarrier.init.shared::cta.b64 [%r6], 1;
    fence.mbarrier_init.release.cluster;
{_BARRIER}    mapa.shared::cluster.u32 %r12, %r6, %r19;
    mov.u32 %r17, 0;
    setp.eq.u32 %one, %r18, 0;
"""
    body = """
    @%one mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
poll:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [%r6], %r17;
    @!%q bra poll;
    @!%one mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
    xor.b32 %r17, %r17, 1;
"""
    return ptx.kernel(before, ptx.loop(body), _BARRIER, threads=1)


def peer_loads() -> str:
    """n loads of the peer's shared memory, each of whose addresses the one before has read."""
    before = f"""
    mov.u32 %r18, %cluster_ctarank;
    xor.b32 %r19, %r18, 1;
    mapa.shared::cluster.u32 %r11, %r6, %r19;
    st.shared::cluster.u32 [%r11], %r11;
{_BARRIER}"""
    body = "    ld.shared::cluster.u32 %r11, [%r11];\n"
    after = _BARRIER + "    setp.eq.u32 %p, %r11, 1;\n    @%p st.global.u32 [%d1], %r11;\n"
    return ptx.kernel(before, ptx.loop(body), after, threads=1)


def measurements() -> Iterator[Measurement]:
    for ctas in (1, 2, 4):
        for rows, own, stages in ((32, 4, 4), (32, 4, 2), (64, 2, 4), (64, 1, 6), (16, 4, 6), (28, 2, 6)):
            depth = min(stages, _ROOM // ((own + ctas) * rows * 128))
            for grid in (ctas, _SMS if ctas < 4 else 120):
                for multicast in (False, True) if ctas > 1 else (False,):
                    way = "multicast" if multicast else "alone"
                    name = f"tma apart, ring of a cluster of {ctas}, {own}+{ctas} boxes of {rows} rows, "
                    name += f"depth {depth}, grid {grid}, {way}"
                    text = ring(ctas, own, multicast=multicast)
                    yield Measurement(name, text, (24, 152), 64, grid, depth, rows * 128, rows, cluster=ctas, box=rows)
    yield Measurement("remote arrival and its answer", remote_arrivals(), (16, 272), 1, 2, cluster=2)
    yield Measurement("ld.shared::cluster chase", peer_loads(), (16, 272), 1, 2, cluster=2)
