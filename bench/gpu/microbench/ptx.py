"""The kernels that measure: each stores the cycles (clock64) of its timed part, one 64-bit word a CTA.

All take `out` (u64), `data` (u64), `n`, `depth`, `bytes`, `rows` (u32) and a tensormap, whether they use them or not,
so that one launcher serves them. `n` is how often the timed part repeats.
"""

from __future__ import annotations

HEAD = """.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry bench(.param .u64 out, .param .u64 data, .param .u32 n, .param .u32 depth, .param .u32 bytes,
    .param .u32 rows, .param .align 64 .b8 map[128])
.reqntid {threads}, 1, 1
{{
    .reg .pred %p, %q, %one;
    .reg .b32 %r<64>;
    .reg .b64 %d<32>;
    .reg .f32 %f<160>;
    .reg .b64 %start, %end;
    ld.param.u64 %d0, [out];
    cvta.to.global.u64 %d0, %d0;
    ld.param.u64 %d1, [data];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u32 %r0, [n];
    ld.param.u32 %r1, [depth];
    ld.param.u32 %r2, [bytes];
    ld.param.u32 %r3, [rows];
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, %ctaid.x;
    mov.u32 %r6, smem;
    setp.eq.u32 %one, 0, 0;
"""
#: Sums of what a kernel has read go to the second half of `out`, so that nothing is removed.
FOOT = """
    setp.ne.u32 %p, %r4, 0;
    @%p bra leave;
    sub.u64 %end, %end, %start;
    mad.wide.u32 %d0, %r5, 8, %d0;
    st.global.u64 [%d0], %end;
leave:
    ret;
}
"""
ZERO = """
    shl.b32 %r7, %r4, 4;
    add.u32 %r7, %r7, %r6;
    mov.u32 %r8, {size};
    add.u32 %r8, %r8, %r6;
zero:
    setp.ge.u32 %p, %r7, %r8;
    @%p bra zeroed;
    st.shared.v4.b32 [%r7], {{0, 0, 0, 0}};
    add.u32 %r7, %r7, {step};
    bra zero;
zeroed:
    fence.proxy.async.shared::cta;
    bar.sync 0;
"""


def kernel(before: str, timed: str, after: str = "", *, threads: int = 32) -> str:
    """PTX that runs `timed` between two clocks."""
    return (
        HEAD.format(threads=threads)
        + before
        + "\n    mov.u64 %start, %clock64;\n"
        + timed
        + "\n    mov.u64 %end, %clock64;\n"
        + after
        + FOOT
    )


def loop(body: str, name: str = "again") -> str:
    """`body` n times; %r10 counts from 0."""
    return f"""
    mov.u32 %r10, 0;
{name}:
{body}
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p, %r10, %r0;
    @%p bra {name};
"""


def wgmma(n: int, kind: str, source: str, batch: int, *, warpgroups: int = 1, pending: int = 0) -> str:
    """n times: fence, `batch` wgmma, commit, wait for all groups but `pending`. Operands are zeros."""
    operand = 8192 * warpgroups
    accumulators = ", ".join(f"%f{i}" for i in range(n // 2))
    element = "bf16" if kind == "bf16" else kind
    k = 16 if kind == "bf16" else 32
    majors = {"ss": ", 0, 0", "rs": ", 0"}[source] if kind == "bf16" else ""
    a = "%d10" if source == "ss" else "{%r20, %r21, %r22, %r23}"
    before = ZERO.format(size=operand + 128 * max(n, 8), step=16 * 128 * warpgroups)
    before += "    shr.u32 %r11, %r4, 7;\n    mad.lo.u32 %r11, %r11, 8192, %r6;\n"
    for register, address in (("%d10", "%r11"), ("%d11", "%r12")):
        if register == "%d11":
            before += f"    add.u32 %r12, %r6, {operand};\n"
        before += f"    shr.u32 {address}, {address}, 4;\n    cvt.u64.u32 {register}, {address};\n"
        before += f"    or.b64 {register}, {register}, {1 << 62 | 64 << 32 | 1 << 16};\n"
    before += "".join(f"    mov.f32 %f{i}, 0f00000000;\n" for i in range(n // 2))
    before += "".join(f"    mov.u32 %r{20 + i}, 0;\n" for i in range(4))
    one = f"    wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{element}.{element} {{{accumulators}}}, "
    one += f"{a}, %d11, 1, 1, 1{majors};\n"
    group = "    wgmma.fence.sync.aligned;\n" + one * batch
    group += f"    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned {pending};\n"
    before += group.replace(f"aligned {pending};", "aligned 0;") + "    bar.sync 0;\n"
    after = "    wgmma.wait_group.sync.aligned 0;\n"
    after += "".join(f"    add.f32 %f0, %f0, %f{i};\n" for i in range(1, n // 2))
    after += "    setp.eq.f32 %p, %f0, 0f3F800000;\n    @%p st.global.f32 [%d1], %f0;\n"
    last = "    wgmma.wait_group.sync.aligned 0;\n" if pending else ""
    return kernel(before, loop(group) + last, after, threads=128 * warpgroups)


#: Arithmetic of `beside`: one instruction on registers of its own, `{i}` of 0 to 15.
ARITHMETIC = {
    "fma.f32": "fma.rn.f32 %f{i}, %f{i}, %f100, %f101;",
    "add.f32": "add.rn.f32 %f{i}, %f{i}, %f101;",
    "max.f32": "max.f32 %f{i}, %f{i}, %f101;",
    "ex2.approx": "ex2.approx.ftz.f32 %f{i}, %f{i};",
    "cvt.bf16x2": "cvt.rn.bf16x2.f32 %r{r}, %f{i}, %f101; mov.b32 %f{i}, %r{r};",
    "add.u32": "add.u32 %r{r}, %r{r}, %r4;",
}
#: Of softmax: a score costs a maximum, a product and sum, an exponential, a sum, half a conversion and a product.
_SOFTMAX = ("max.f32", "fma.f32", "ex2.approx", "add.f32", "cvt.bf16x2", "fma.f32")


def beside(source: str, arithmetic: str, *, tensor: bool, timed: str) -> str:
    """Two warpgroups at a time: one issues m64n128k16, 8 a group with one group pending, the other 64 instructions.

    `timed` (wgmma or arithmetic) runs n times; the other of the two goes on until it has ended. `arithmetic`: a name,
    softmax for a mix of them, or empty for none; without `tensor` no wgmma. All 4 warps of the arithmetic take part.
    """
    n, accumulators = 128, ", ".join(f"%f{i}" for i in range(64))
    a = "%d10" if source == "ss" else "{%r20, %r21, %r22, %r23}"
    majors = {"ss": ", 0, 0", "rs": ", 0"}[source]
    before = ZERO.format(size=8192 + 128 * n, step=16 * 256)
    before += f"    add.u32 %r12, %r6, 8192;\n    add.u32 %r13, %r6, {8192 + 128 * n};\n    mov.u32 %r18, 0;\n"
    for register, address in (("%d10", "%r11"), ("%d11", "%r12")):
        before += f"    {'mov.u32 %r11, %r6;' if address == '%r11' else ''}\n    shr.u32 {address}, {address}, 4;\n"
        before += f"    cvt.u64.u32 {register}, {address};\n"
        before += f"    or.b64 {register}, {register}, {1 << 62 | 64 << 32 | 1 << 16};\n"
    before += "    st.shared.u32 [%r13], %r18;\n    bar.sync 0;\n    shr.u32 %r19, %r4, 7;\n"
    before += "".join(f"    mov.f32 %f{i}, 0f00000000;\n" for i in range(80))
    before += "    mov.f32 %f100, 0f3F7FFFFF;\n    mov.f32 %f101, 0f3A000000;\n"
    before += "".join(f"    mov.u32 %r{i}, 0;\n" for i in range(20, 56))
    one = f"    wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{{accumulators}}}, {a}, %d11, 1, 1, 1{majors};\n"
    group = "    wgmma.fence.sync.aligned;\n" + one * 8
    group += "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 1;\n"
    names = _SOFTMAX if arithmetic == "softmax" else (arithmetic,) if arithmetic else ()
    lines = [ARITHMETIC[name].format(i=64 + i % 16, r=40 + i % 16) for i in range(64) for name in names]
    work = "".join(f"    {line}\n" for line in lines[:64] if line)
    bodies = {"wgmma": group if tensor else "", "arithmetic": work}
    other = bodies["arithmetic" if timed == "wgmma" else "wgmma"]
    last = "    wgmma.wait_group.sync.aligned 0;\n" if tensor else ""
    before += f"    setp.ne.u32 %p, %r19, 0;\n    @!%p bra timed;\nother:\n{other}"
    # The warps of a warpgroup leave together: wgmma is of all of them.
    before += "    ld.volatile.shared.u32 %r18, [%r13];\n    setp.ne.u32 %q, %r18, 0;\n"
    before += "    bar.red.or.pred %p, 1, 128, %q;\n    @!%p bra other;\n"
    before += last + "    bra sum;\ntimed:\n"
    end = loop(bodies[timed]) + last
    after = "    mov.u32 %r18, 1;\n    st.volatile.shared.u32 [%r13], %r18;\nsum:\n"
    after += "".join(f"    add.f32 %f0, %f0, %f{i};\n" for i in range(1, 80))
    after += "".join(f"    add.u32 %r40, %r40, %r{i};\n" for i in range(41, 56))
    after += "    setp.eq.f32 %p, %f0, 0f3F800000;\n    @%p st.global.f32 [%d1], %f0;\n"
    after += "    setp.eq.u32 %p, %r40, 0x12345678;\n    @%p st.global.u32 [%d1], %r40;\n"
    return kernel(before, end, after, threads=256)


_INIT = """
    setp.ne.u32 %p, %r4, 0;
    @%p bra made;
    mov.u32 %r10, 0;
make:
    mad.lo.u32 %r11, %r10, 8, %r6;
    mbarrier.init.shared::cta.b64 [%r11], 1;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p, %r10, 16;
    @%p bra make;
    fence.mbarrier_init.release.cluster;
made:
    bar.sync 0;
"""
_ONE = "    setp.ne.u32 %p, %r4, 0;\n    @%p bra done;\n"


def tma_ring(sharing: int = 0) -> str:
    """One thread keeps `depth` copies of `rows` rows of 128 bytes in flight and waits for n of them, in order.

    The box of copy i has its column at 64 i, and its rows at those of the CTA, among 1024. `sharing`: so many CTAs that
    follow each other load the same rows, all others rows of their own; the columns of 8 copies repeat.
    """
    turn = 511 if sharing else 8191
    rows = f"div.u32 %r16, %r5, {sharing};\n    mul.lo.u32 %r16, %r16, %r3;" if sharing else ""
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    copy = f"""
    mad.lo.u32 %r12, %r11, 8, %r6;
    mad.lo.u32 %r13, %r11, %r2, %r6;
    add.u32 %r13, %r13, 1024;
    shl.b32 %r14, %r15, 6;
    and.b32 %r14, %r14, {turn};
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r12], %r2;
    {load} [%r13], [%d20, {{%r14, %r16}}], [%r12];
"""
    before = _INIT + _ONE
    before += "    mov.b64 %d20, map;\n    cvta.param.u64 %d20, %d20;\n    prefetch.tensormap [%d20];\n"
    before += f"    {rows or 'mul.lo.u32 %r16, %r5, %r3; rem.u32 %r16, %r16, 1024;'}\n"
    before += "    mov.u32 %r15, 0;\n    mov.u32 %r17, 0;\n"
    timed = (
        "    mov.u32 %r11, 0;\nprime:\n" + copy + "    add.u32 %r15, %r15, 1;\n    add.u32 %r11, %r11, 1;\n"
        "    setp.lt.u32 %p, %r11, %r1;\n    @%p bra prime;\n    mov.u32 %r11, 0;\n"
    )
    body = """
    mad.lo.u32 %r12, %r11, 8, %r6;
poll:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r12], %r17;
    @!%q bra poll;
    setp.ge.u32 %q, %r15, %r0;
    @%q bra skip;
"""
    body += (
        copy
        + """
skip:
    add.u32 %r15, %r15, 1;
    add.u32 %r11, %r11, 1;
    setp.ge.u32 %q, %r11, %r1;
    @%q xor.b32 %r17, %r17, 1;
    @%q mov.u32 %r11, 0;
"""
    )
    return kernel(before, timed + loop(body), "done:\n")


def tma_store() -> str:
    """n times: a store of `rows` rows, commit, wait until it has read (depth 1) or completed (depth 0)."""
    before = ZERO.format(size=17408, step=512) + _ONE
    before += "    mov.b64 %d20, map;\n    cvta.param.u64 %d20, %d20;\n    mul.lo.u32 %r16, %r5, %r3;\n"
    body = """
    shl.b32 %r14, %r10, 6;
    and.b32 %r14, %r14, 8191;
    add.u32 %r13, %r6, 1024;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d20, {%r14, %r16}], [%r13];
    cp.async.bulk.commit_group;
    setp.eq.u32 %q, %r1, 1;
    @%q bra reads;
    cp.async.bulk.wait_group 0;
    bra stored;
reads:
    cp.async.bulk.wait_group.read 0;
stored:
"""
    return kernel(before, loop(body) + "    cp.async.bulk.wait_group 0;\n", "done:\n")


def ping_pong() -> str:
    """Two warps hand a phase to and fro through two mbarriers, n times."""
    body = """
    setp.eq.u32 %q, %r18, 0;
    @%q bra second;
    mbarrier.arrive.shared::cta.b64 _, [%r6];
wait_b:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6+8], %r17;
    @!%q bra wait_b;
    bra both;
second:
wait_a:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6], %r17;
    @!%q bra wait_a;
    mbarrier.arrive.shared::cta.b64 _, [%r6+8];
both:
    xor.b32 %r17, %r17, 1;
"""
    before = (
        _INIT
        + """
    and.b32 %r19, %r4, 31;
    setp.ne.u32 %p, %r19, 0;
    @%p bra done;
    shr.u32 %r18, %r4, 5;
    xor.b32 %r18, %r18, 1;
    mov.u32 %r17, 0;
"""
    )
    return kernel(before, loop(body), "done:\n", threads=64)


def arrive_and_wait() -> str:
    """One thread arrives at an mbarrier of one arrival and waits for the phase that this ends, n times."""
    body = """
    mbarrier.arrive.shared::cta.b64 _, [%r6];
own:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6], %r17;
    @!%q bra own;
    xor.b32 %r17, %r17, 1;
"""
    return kernel(_INIT + _ONE + "    mov.u32 %r17, 0;\n", loop(body), "done:\n")


def ended_wait() -> str:
    """try_wait for a phase that has ended, n times, each before the next."""
    body = """
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6], 1;
    @!%q bra done;
"""
    return kernel(_INIT + _ONE, loop(body), "done:\n")


def chase(load: str, space: str) -> str:
    """n loads, each of whose addresses the one before has read: offsets from `data`, or from shared memory."""
    if space == "shared":
        before = "    st.shared.u32 [%r6], %r6;\n    bar.sync 0;\n    mov.u32 %r11, %r6;\n"
        body = f"    {load} %r11, [%r11];\n"
        return kernel(before, loop(body), "    setp.eq.u32 %p, %r11, 1;\n    @%p st.global.u32 [%d1], %r11;\n")
    before = "    cvt.u64.u32 %d10, %r1;\n    shl.b64 %d10, %d10, 3;\n    add.u64 %d10, %d10, %d1;\n"
    body = f"    {load} %d11, [%d10];\n    add.u64 %d10, %d1, %d11;\n"
    after = "    setp.eq.u64 %p, %d11, 1;\n    @%p st.global.u64 [%d1], %d11;\n"
    return kernel(before, loop(body), after)


def repeated(body: str, *, threads: int, before: str = "", after: str = "", unroll: int = 8) -> str:
    """A piece of code 8n times by all warps, between barriers."""
    setup = ZERO.format(size=32768, step=16 * threads) + before + "    bar.sync 0;\n"
    return kernel(setup, loop(body * unroll) + "    bar.sync 0;\n", after, threads=threads)


_LANE = "    shl.b32 %r30, %r4, 4;\n    and.b32 %r30, %r30, 32767;\n    add.u32 %r30, %r30, %r6;\n"


def simple(threads: int) -> dict[str, str]:
    """Throughputs of shared memory, barriers and fences, each 8n times by so many threads."""
    keep = "    setp.eq.u32 %p, %r31, 1;\n    @%p st.global.u32 [%d1], %r31;\n"
    texts: dict[str, tuple[str, str]] = {
        "bar.sync": ("    bar.sync 1;\n", ""),
        "st.shared.v4": ("    st.shared.v4.b32 [%r30], {%r0, %r1, %r2, %r3};\n", ""),
        "st.shared": ("    st.shared.b32 [%r30], %r0;\n", ""),
        "ld.shared.v4": ("    ld.volatile.shared.v4.b32 {%r31, %r32, %r33, %r34}, [%r30];\n", keep),
        "ldmatrix.x4": ("    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r31, %r32, %r33, %r34}, [%r30];\n", keep),
        "stmatrix.x4": ("    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r30], {%r0, %r1, %r2, %r3};\n", ""),
        "fence.proxy.async": ("    fence.proxy.async.shared::cta;\n", ""),
        "cvt.bf16x2": (
            "    cvt.rn.bf16x2.f32 %r31, %f0, %f1;\n    mov.b32 %f0, %r31;\n",
            keep,
        ),
        "ex2": ("    ex2.approx.ftz.f32 %f0, %f0;\n", "    mov.b32 %r31, %f0;\n" + keep),
        "fma": ("    fma.rn.f32 %f0, %f0, %f0, %f1;\n", "    mov.b32 %r31, %f0;\n" + keep),
        "shfl": ("    shfl.sync.bfly.b32 %r31, %r31, 1, 31, -1;\n", keep),
    }
    start = _LANE + "    mov.u32 %r31, %r4;\n    cvt.rn.f32.u32 %f0, %r4;\n    mov.f32 %f1, %f0;\n"
    return {name: repeated(body, threads=threads, before=start, after=after) for name, (body, after) in texts.items()}


def st_global() -> str:
    """n times: each thread stores 16 bytes, a warp 512 in a row; CTAs side by side."""
    before = """
    mov.u32 %r11, %ntid.x;
    mad.lo.u32 %r11, %r5, %r11, %r4;
    mul.wide.u32 %d10, %r11, 16;
    add.u64 %d10, %d10, %d1;
    mov.u32 %r12, %nctaid.x;
    mov.u32 %r13, %ntid.x;
    mul.lo.u32 %r12, %r12, %r13;
    mul.wide.u32 %d11, %r12, 16;
"""
    body = "    st.global.v4.b32 [%d10], {%r0, %r1, %r2, %r3};\n    add.u64 %d10, %d10, %d11;\n"
    return kernel(before, loop(body), "    bar.sync 0;\n", threads=256)


def ld_global() -> str:
    """n times: each thread loads four times 16 bytes past L1, all before it uses any; CTAs side by side."""
    before = """
    mov.u32 %r11, %ntid.x;
    mad.lo.u32 %r11, %r5, %r11, %r4;
    mul.wide.u32 %d10, %r11, 16;
    mov.u32 %r12, %nctaid.x;
    mov.u32 %r13, %ntid.x;
    mul.lo.u32 %r12, %r12, %r13;
    mul.wide.u32 %d11, %r12, 16;
    mov.u32 %r40, 0;
    cvt.u64.u32 %d13, %r1;
    shl.b64 %d13, %d13, 20;
    sub.u64 %d13, %d13, 1;
"""
    load = """
    and.b64 %d12, %d10, %d13;
    add.u64 %d12, %d12, %d1;
    ld.global.cg.v4.b32 {{%r{0}, %r{1}, %r{2}, %r{3}}}, [%d12];
    add.u64 %d10, %d10, %d11;
"""
    body = "".join(load.format(*range(20 + 4 * i, 24 + 4 * i)) for i in range(4))
    body += "".join(f"    xor.b32 %r40, %r40, %r{20 + i};\n" for i in range(16))
    after = "    setp.eq.u32 %p, %r40, 0x12345;\n    @%p st.global.u32 [%d1], %r40;\n"
    return kernel(before, loop(body), after, threads=512)


def cluster_barrier(arrives: str = "release") -> str:
    """barrier.cluster arrive, .release or .relaxed, and wait, n times."""
    body = f"    barrier.cluster.arrive.{arrives}.aligned;\n    barrier.cluster.wait.aligned;\n"
    return kernel("", loop(body), threads=128)


def st_async(threads: int) -> str:
    """n times: every thread stores 16 bytes in the peer's shared memory; then wait for as many of the peer's."""
    before = f"""
    mov.u32 %r11, %cluster_ctarank;
    xor.b32 %r11, %r11, 1;
    mapa.shared::cluster.u32 %r12, %r6, %r11;
    shl.b32 %r13, %r4, 4;
    add.u32 %r13, %r13, %r12;
    setp.ne.u32 %p, %r4, 0;
    @%p bra ready;
    mbarrier.init.shared::cta.b64 [%r6], 1;
    fence.mbarrier_init.release.cluster;
    mul.lo.u32 %r14, %r0, {16 * threads};
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r14;
ready:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
"""
    store = (
        "    st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r13+1024], {%r4, %r4, %r4, %r4}, [%r12];\n"
    )
    wait = """
poll:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6], 0;
    @!%q bra poll;
"""
    after = "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n"
    return kernel(before, loop(store) + wait, after, threads=threads)


def multicast(ctas: int) -> str:
    """n times, a thread of each CTA of a cluster: barrier.cluster, then a copy of `rows` rows, to all CTAs or its own.

    `depth`: how many CTAs a copy goes to, `ctas` or 1. Waits until what it and its peers copy has arrived.
    """
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    before = f"""
    mov.b64 %d20, map;
    cvta.param.u64 %d20, %d20;
    prefetch.tensormap [%d20];
    mbarrier.init.shared::cta.b64 [%r6], 1;
    fence.mbarrier_init.release.cluster;
    mul.lo.u32 %r16, %r5, %r3;
    mov.u32 %r15, %cluster_ctarank;
    mad.lo.u32 %r13, %r15, %r2, %r6;
    add.u32 %r13, %r13, 1024;
    mul.lo.u32 %r12, %r1, %r2;
    mov.u32 %r17, 0;
    setp.gt.u32 %one, %r1, 1;
    mov.b16 %h0, {(1 << ctas) - 1};
"""
    body = f"""
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r12;
    barrier.cluster.arrive.relaxed.aligned;
    barrier.cluster.wait.aligned;
    shl.b32 %r14, %r10, 6;
    and.b32 %r14, %r14, 511;
    @%one {load}.multicast::cluster [%r13], [%d20, {{%r14, %r16}}], [%r6], %h0;
    @!%one {load} [%r13], [%d20, {{%r14, %r16}}], [%r6];
poll:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6], %r17;
    @!%q bra poll;
    xor.b32 %r17, %r17, 1;
"""
    after = "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n"
    text = kernel(before, loop(body), after, threads=1)
    return text.replace("    .reg .b32 %r<64>;", "    .reg .b16 %h0;\n    .reg .b32 %r<64>;")
