"""Throughput and latency of instructions on registers: what `pipe` and `latency` of an SM should be by opcode.

    python -m bench.gpu.microbench.more --only 'throughput|latency' --out FILE.json

Throughput: 8 chains in each of 16 warps, cycles of an instruction of one scheduler's 4 warps. Latency: one chain of one
warp.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.gpu.microbench import ptx
from bench.gpu.microbench.__main__ import Measurement

#: By name, one instruction on accumulator `{i}` of 0 to 7: %f and %r of 32 bits, %d of 64, %h of 16.
_INSTRUCTIONS = {
    "fma.f32": "fma.rn.f32 %f{i}, %f{i}, %f100, %f101;",
    "add.f32": "add.rn.f32 %f{i}, %f{i}, %f101;",
    "mul.f32": "mul.rn.f32 %f{i}, %f{i}, %f100;",
    "max.f32": "max.f32 %f{i}, %f{i}, %f101;",
    "ex2.approx.f32": "ex2.approx.ftz.f32 %f{i}, %f{i};",
    "lg2.approx.f32": "lg2.approx.ftz.f32 %f{i}, %f{i};",
    "rcp.approx.f32": "rcp.approx.ftz.f32 %f{i}, %f{i};",
    "rsqrt.approx.f32": "rsqrt.approx.ftz.f32 %f{i}, %f{i};",
    "sin.approx.f32": "sin.approx.ftz.f32 %f{i}, %f{i};",
    "tanh.approx.f32": "tanh.approx.f32 %f{i}, %f{i};",
    "setp and selp": "setp.lt.f32 %q, %f{i}, %f101; selp.f32 %f{i}, %f{i}, %f100, %q;",
    "fma.f16x2": "fma.rn.f16x2 %r{r}, %r{r}, %r20, %r21;",
    "fma.bf16x2": "fma.rn.bf16x2 %r{r}, %r{r}, %r20, %r21;",
    "max.f16x2": "max.f16x2 %r{r}, %r{r}, %r21;",
    "ex2.approx.bf16x2": "ex2.approx.ftz.bf16x2 %r{r}, %r{r};",
    "add.u32": "add.u32 %r{r}, %r{r}, %r20;",
    "mad.lo.u32": "mad.lo.u32 %r{r}, %r{r}, %r20, %r21;",
    "mul.hi.u32": "mul.hi.u32 %r{r}, %r{r}, %r20;",
    "mul.wide.u32": "cvt.u32.u64 %r{r}, %d{d}; mul.wide.u32 %d{d}, %r{r}, %r20;",
    "lop3": "lop3.b32 %r{r}, %r{r}, %r20, %r21, 0x96;",
    "shf": "shf.l.wrap.b32 %r{r}, %r{r}, %r20, 7;",
    "prmt": "prmt.b32 %r{r}, %r{r}, %r20, 0x2143;",
    "min.s32": "min.s32 %r{r}, %r{r}, %r20; add.s32 %r{r}, %r{r}, %r21;",
    "popc": "popc.b32 %r{r}, %r{r};",
    "clz": "clz.b32 %r{r}, %r{r};",
    "brev": "brev.b32 %r{r}, %r{r};",
    "dp4a": "dp4a.u32.u32 %r{r}, %r20, %r21, %r{r};",
    "vabsdiff": "sad.u32 %r{r}, %r20, %r21, %r{r};",
    "add.u64": "add.u64 %d{d}, %d{d}, %d20;",
    "mul.lo.u64": "mul.lo.u64 %d{d}, %d{d}, %d20;",
    "fma.f64": "fma.rn.f64 %e{i}, %e{i}, %e10, %e11;",
    "add.f64": "add.rn.f64 %e{i}, %e{i}, %e11;",
    "cvt.f32.s32": "cvt.rn.f32.s32 %f{i}, %r{r}; mov.b32 %r{r}, %f{i};",
    "cvt.s32.f32": "cvt.rzi.s32.f32 %r{r}, %f{i}; mov.b32 %f{i}, %r{r};",
    "cvt.f32.f16": "cvt.f32.f16 %f{i}, %h{i}; mov.b32 {{%h{i}, %h8}}, %f{i};",
    "cvt.f16.f32": "cvt.rn.f16.f32 %h{i}, %f{i}; mov.b32 %f{i}, {{%h{i}, %h8}};",
    "cvt.bf16x2.f32": "cvt.rn.bf16x2.f32 %r{r}, %f{i}, %f101; mov.b32 %f{i}, %r{r};",
    "cvt.e4m3x2.f32": "cvt.rn.satfinite.e4m3x2.f32 %h{i}, %f{i}, %f101; mov.b32 %f{i}, {{%h{i}, %h8}};",
    "cvt.f16x2.e4m3x2": "cvt.rn.f16x2.e4m3x2 %r{r}, %h{i}; mov.b32 {{%h{i}, %h8}}, %r{r};",
    "cvt.f64.f32": "cvt.f64.f32 %e{i}, %f{i}; cvt.rn.f32.f64 %f{i}, %e{i};",
    "shfl.bfly": "shfl.sync.bfly.b32 %r{r}, %r{r}, 1, 31, -1;",
    "redux.add": "redux.sync.add.u32 %r{r}, %r{r}, -1;",
    "vote.ballot": "setp.lt.u32 %q, %r{r}, %r20; vote.sync.ballot.b32 %r{r}, %q, -1;",
    "match.any": "match.any.sync.b32 %r{r}, %r{r}, -1;",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r{r}, %r{r};",
}
#: By name: the instruction without its operands, and registers of a thread of D and C, of A, and of B.
_MMA = {
    "mma m16n8k16 bf16": ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2),
    "mma m16n8k8 bf16": ("m16n8k8.row.col.f32.bf16.bf16.f32", 4, 2, 1),
    "mma m16n8k16 f16, f16 sums": ("m16n8k16.row.col.f16.f16.f16.f16", 2, 4, 2),
    "mma m16n8k8 tf32": ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2),
    "mma m16n8k32 s8": ("m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2),
    "mma m16n8k32 e4m3": ("m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 4, 2),
    "mma m8n8k4 f64": ("m8n8k4.row.col.f64.f64.f64.f64", 2, 1, 1),
}
_REGISTERS = "    .reg .b32 %r<64>;"
_MORE = "    .reg .b16 %h<9>;\n    .reg .f64 %e<48>;\n"


def _text(lines: list[str], threads: int) -> str:
    """The lines n times; nothing of them can be left out, since their sums may be stored."""
    before = "    cvt.rn.f32.u32 %f100, %r4;\n    fma.rn.f32 %f101, %f100, %f100, 0f3F000000;\n"
    before += "    mov.u32 %r20, %r0;\n    add.u32 %r21, %r4, 77;\n    cvt.u64.u32 %d20, %r21;\n    mov.b16 %h8, 0;\n"
    before += "    cvt.f64.f32 %e10, %f100;\n    cvt.f64.f32 %e11, %f101;\n"
    for i in range(16):
        before += f"    add.u32 %r{24 + i}, %r4, {i};\n    add.f32 %f{i}, %f100, 0f3F800000;\n"
    for i in range(16, 48):
        before += f"    mov.f32 %f{i}, %f100;\n"
    before += "".join(f"    cvt.u64.u32 %d{8 + i}, %r{24 + i};\n" for i in range(8))
    before += "".join(f"    cvt.u16.u32 %h{i}, %r{24 + i};\n" for i in range(8))
    before += "".join(f"    cvt.f64.f32 %e{i}, %f{i % 8};\n" for i in (*range(8), *range(12, 48)))
    before += "    bar.sync 0;\n"
    after = ""
    for i in range(1, 16):
        after += f"    xor.b32 %r24, %r24, %r{24 + i};\n    add.f32 %f0, %f0, %f{i};\n"
    after += "".join(f"    add.f32 %f0, %f0, %f{i};\n" for i in range(16, 48))
    for i in range(8):
        after += f"    cvt.u32.u64 %r40, %d{8 + i};\n    xor.b32 %r24, %r24, %r40;\n"
        after += f"    cvt.u32.u16 %r40, %h{i};\n    xor.b32 %r24, %r24, %r40;\n"
    for i in (*range(1, 8), *range(12, 48)):
        after += f"    add.f64 %e0, %e0, %e{i};\n"
    after += "    cvt.rn.f32.f64 %f1, %e0;\n    add.f32 %f0, %f0, %f1;\n    mov.b32 %r40, %f0;\n"
    after += "    xor.b32 %r24, %r24, %r40;\n    setp.eq.u32 %p, %r24, 0x12345;\n    @%p st.global.u32 [%d1], %r24;\n"
    body = "".join(f"    {line}\n" for line in lines)
    text = ptx.kernel(before, ptx.loop(body) + "    bar.sync 0;\n", after, threads=threads)
    return text.replace(_REGISTERS, _MORE + _REGISTERS)


def _mma(name: str, number: int) -> str:
    shape, sums, a, b = _MMA[name]
    kind = "%e" if "f64" in name else "%r" if sums == 2 or "s8" in name else "%f"
    first = {"%e": 12, "%r": 24, "%f": 0}[kind] + number * sums
    d = ", ".join(f"{kind}{first + i}" for i in range(sums))
    if kind == "%e":
        return f"mma.sync.aligned.{shape} {{{d}}}, {{%e10}}, {{%e11}}, {{{d}}};"
    left, right = (", ".join(["%r20", "%r21", "%r22", "%r23"][:count]) for count in (a, b))
    return f"mma.sync.aligned.{shape} {{{d}}}, {{{left}}}, {{{right}}}, {{{d}}};"


def measurements() -> Iterator[Measurement]:
    for name, line in _INSTRUCTIONS.items():
        chains = [line.format(i=i, r=24 + i, d=8 + i) for i in range(8)]
        # 16 warps are 4 of each scheduler; 32 lines of each in one repetition.
        yield Measurement(f"throughput {name}", _text(chains * 4, 512), (8, 40), 512, each=128)
        yield Measurement(f"latency {name}", _text([chains[0]] * 32, 32), (8, 40), 32, each=32)
    for name in _MMA:
        count = 4 if "f64" in name or "s8" in name else 8
        chains = [_mma(name, number) for number in range(count)]
        yield Measurement(f"throughput {name}", _text(chains * (32 // count), 512), (8, 40), 512, each=128)
        yield Measurement(f"throughput {name}, 4 warps", _text(chains * (32 // count), 128), (8, 40), 128, each=32)
        yield Measurement(f"latency {name}", _text([chains[0]] * 32, 32), (8, 40), 32, each=32)
