"""Functions: values in registers and on the stack, calls in calls, recursion, pointers; brx.idx; the system's calls."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import codes, launch, poisoned

THREADS = 80
HEAD = """
    .reg .b64 %at, %from, %wide, %address;
    .reg .u32 %i, %t, %x, %y, %n;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    mov.u32 %i, %t;
    mul.wide.u32 %wide, %i, 4;
    add.u64 %at, %out0, %wide;
"""
#: A function of registers, one of values on the stack, and one that calls both.
FUNCTIONS = """
    .func (.reg .u32 %r) square(.reg .u32 %a) { mul.lo.u32 %r, %a, %a;
    ret; }
    .func (.param .b32 r) add3(.param .b32 a, .param .align 8 .b8 pair[8]) {
        .reg .u32 %a, %b, %c;
        ld.param.u32 %a, [a];
        ld.param.v2.u32 {%b, %c}, [pair];
        add.u32 %a, %a, %b;
        add.u32 %a, %a, %c;
        st.param.b32 [r], %a;
        ret; }
    .func (.param .b32 r) both(.param .b32 a) {
        .reg .u32 %a, %q;
        ld.param.u32 %a, [a];
        call (%q), square, (%a);
        { .param .b32 x;
        .param .align 8 .b8 p[8];
        .param .b32 y;
        st.param.b32 [x], %q;
        st.param.v2.b32 [p], {%a, 7};
          call.uni (y), add3, (x, p);
          ld.param.b32 %q, [y]; }
        st.param.b32 [r], %q;
        ret; }
"""


def run(body: str, items: str = FUNCTIONS, **options: Any) -> tuple[Any, list[int]]:
    options.setdefault("block", THREADS)
    report, (found,) = launch(
        f"{HEAD} {body} st.global.u32 [%at], %x; ret;", [poisoned(THREADS)], items=items, **options
    )
    return report, found.tolist()


def right(body: str, expected: Any, items: str = FUNCTIONS, **options: Any) -> None:
    report, found = run(body, items, **options)
    assert report.status == "ok", report.summary()
    assert not report.findings, report.summary()
    assert found == [expected(i) for i in range(THREADS)]


def test_values_in_registers() -> None:
    right("call (%x), square, (%i);", lambda i: i * i)


def test_constants_and_dropped_results() -> None:
    right("call (%x), square, (12); call (_), square, (5);", lambda i: 144)


def test_values_on_the_stack() -> None:
    right(
        """{ .param .b32 x;
.param .align 8 .b8 p[8];
.param .b32 y;
st.param.b32 [x], %i;
st.param.b32 [p], 100;
        st.param.b32 [p+4], %i;
        call (y), add3, (x, p);
        ld.param.u32 %x, [y];
        }""",
        lambda i: 2 * i + 100,
    )


def test_calls_of_calls() -> None:
    body = "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %i; call (r), both, (a); ld.param.u32 %x, [r]; }"
    right(body, lambda i: i * i + i + 7)
    right(body + body.replace("%i", "%x"), lambda i: (f := i * i + i + 7) * f + f + 7)


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_divergent_calls(schedule: Any) -> None:
    """Lanes call from two places or not at all, under a guard, in a loop of their own length, and meet again."""
    body = """mov.u32 %x, 0;
and.b32 %y, %i, 3;
setp.eq.u32 %p, %y, 0;
@%p bra skip;
        setp.eq.u32 %p, %y, 1;
        @%p bra other;
        call (%x), square, (%i);
        bra skip;
        other:
        call (%x), square, (3);
        skip:
        bar.warp.sync 0xffffffff;
        mov.u32 %n, %y;
        again:
        setp.eq.u32 %p, %n, 0;
        @%p bra done;
        call (%y), square, (%n);
        add.u32 %x, %x, %y;
        sub.u32 %n, %n, 1;
        bra again;
        done:
        setp.gt.u32 %p, %i, 40;
        @%p call (%x), square, (%x);
        """

    def expected(i: int) -> int:
        x = [0, 9, i * i, i * i][i % 4] + sum(n * n for n in range(i % 4 + 1))
        return (x * x if i > 40 else x) % 2**32

    right(body, expected, schedule=schedule, seed=3)


RECURSIVE = """
    .func (.param .b32 r) fib(.param .b32 n);
    .func (.param .b32 r) fib(.param .b32 n) {
        .reg .u32 %n, %a, %b; .reg .pred %p;
        .local .align 4 .b32 kept;
        ld.param.u32 %n, [n];
        st.local.u32 [kept], %n;
        setp.lt.u32 %p, %n, 2;
        @%p bra small;
        { .param .b32 x;
        .param .b32 y;
        sub.u32 %a, %n, 1;
        st.param.b32 [x], %a;
        call (y), fib, (x);
          ld.param.u32 %a, [y]; }
        { .param .b32 x;
        .param .b32 y;
        sub.u32 %b, %n, 2;
        st.param.b32 [x], %b;
        call (y), fib, (x);
          ld.param.u32 %b, [y]; }
        add.u32 %a, %a, %b;
        ld.local.u32 %b, [kept];
        setp.ne.u32 %p, %b, %n;
        @%p trap;
        st.param.b32 [r], %a;
        ret;
        small:
        st.param.b32 [r], %n;
        ret; }
"""


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_recursion() -> None:
    """Registers and variables of the outer call are still there; lanes are at different depths."""
    body = """{ .param .b32 a;
.param .b32 r;
rem.u32 %y, %i, 9;
st.param.b32 [a], %y;
call (r), fib, (a);
        ld.param.u32 %x, [r]; }"""
    right(body, lambda i: fibonacci(i % 9), RECURSIVE)


def test_recursion_without_end() -> None:
    items = ".func (.reg .u32 %r) f(.reg .u32 %a) { add.u32 %a, %a, 1; call (%r), f, (%a); ret; }"
    report, _ = run("call (%x), f, (%i);", items, block=32)
    assert (report.status, codes(report)) == ("fault", ["stack-overflow"])
    assert "call (%r), f" in report.findings[0].instruction


POINTERS = """
    .func (.reg .u32 %r) twice(.reg .u32 %a) { add.u32 %r, %a, %a;
    ret; }
    .func (.reg .u32 %r) square(.reg .u32 %a) { mul.lo.u32 %r, %a, %a;
    ret; }
    .func (.reg .u32 %r) next(.reg .u32 %a) { add.u32 %r, %a, 1;
    ret; }
    .global .align 8 .u64 table[3] = {twice, square, next};
"""


def test_function_pointers() -> None:
    """From a table in memory, a different one in each lane, by a prototype, a list or the table as the signature."""
    for signature, declaration in (
        ("shape", "shape: .callprototype (.reg .u32 _) _ (.reg .u32 _);"),
        ("list", "list: .calltargets twice, square, next;"),
        ("table", ""),
    ):
        body = f"""{declaration} rem.u32 %y, %i, 3;
mov.u64 %address, table;
mad.wide.u32 %address, %y, 8, %address;
            ld.global.u64 %address, [%address];
            call (%x), %address, (%i), {signature};
            """
        right(body, lambda i: [2 * i, i * i, i + 1][i % 3], POINTERS)
    right(
        "mov.u64 %address, next; shape: .callprototype (.reg .u32 _) _ (.reg .u32 _);call (%x), %address, (%i), shape;",
        lambda i: i + 1,
        POINTERS,
    )


def test_a_pointer_to_no_function() -> None:
    body = (
        "mov.u64 %address, {}; shape: .callprototype (.reg .u32 _) _ (.reg .u32 _); call (%x), %address, (%i), shape;"
    )
    for value in ("0", "table"):
        report, _ = run(body.format(value), POINTERS, block=32)
        assert codes(report) == ["bad-call"], report.summary()


def test_exit_and_trap_inside_a_function() -> None:
    items = """.func odd(.reg .u32 %a) { .reg .pred %p;
.reg .u32 %b;
and.b32 %b, %a, 1;
setp.eq.u32 %p, %b, 1;
        @%p exit;
        ret; }
        .func fail(.reg .u32 %a) { .reg .pred %p;
        setp.eq.u32 %p, %a, 77;
        \n@%p trap;
        ret;
        }"""
    report, found = run("mov.u32 %x, %i; call odd, (%i);", items)
    assert report.status == "ok", report.summary()
    assert found == [0xCDCDCDCD if i % 2 else i for i in range(THREADS)]
    report, _ = run("mov.u32 %x, %i; call fail, (%i);", items)
    assert (report.status, codes(report)) == ("fault", ["trap"])


def test_shared_variables_and_barriers_in_functions() -> None:
    items = """.func (.reg .u32 %r) around(.reg .u32 %a) { .shared .align 4 .b32 all[128]; .reg .u32 %p;
        mov.u32 %p, all;
        mad.lo.u32 %p, %a, 4, %p;
        st.shared.u32 [%p], %a;
        bar.sync 0;
        xor.b32 %p, %a, 33;
        mov.u32 %r, all;
        mad.lo.u32 %r, %p, 4, %r;
        ld.shared.u32 %r, [%r];
        bar.sync 0;
        ret;
        }"""
    report, (found,) = launch(
        f"{HEAD} call (%x), around, (%i); st.global.u32 [%at], %x; ret;", [poisoned(128)], block=128, items=items
    )
    assert report.status == "ok", report.summary()
    assert found.tolist() == [i ^ 33 for i in range(128)]


def test_addresses_of_what_lies_on_the_stack() -> None:
    """A caller's variable by a generic pointer, changed by the callee."""
    items = """.func change(.param .b64 where) { .reg .b64 %w; .reg .u32 %v; .local .align 4 .b32 mine;
        ld.param.u64 %w, [where];
        ld.u32 %v, [%w];
        st.local.u32 [mine], %v;
        add.u32 %v, %v, 1000;
        st.u32 [%w+4], %v;
        ret;
        }"""
    body = """.local .align 8 .b8 box[8];
{ .param .b64 w;
mov.u64 %address, box;
st.local.u32 [box], %i;
        cvta.local.u64 %address, %address;
        st.param.b64 [w], %address;
        call change, (w);
        } ld.local.u32 %x, [box+4];
        """
    right(body, lambda i: i + 1000, items)


def test_brx_idx() -> None:
    body = """rem.u32 %y, %i, 4;
ways:
.branchtargets a, b, c, a;
mov.u32 %x, 1;
brx.idx %y, ways;
        a:
        add.u32 %x, %x, 10;
        bra out;
        b:
        add.u32 %x, %x, 20;
        c:
        add.u32 %x, %x, 40;
        out:
        add.u32 %x, %x, %y;
        """
    right(body, lambda i: [11, 61, 41, 11][i % 4] + i % 4)
    report, _ = run(body.replace("rem.u32 %y, %i, 4", "mov.u32 %y, 4"), block=32)
    assert codes(report) == ["branch-index"]


# The system's calls.

SYSTEM = """
    .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
    .extern .func (.param .b64 r) malloc(.param .b64 a);
    .extern .func free(.param .b64 a);
    .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
    .extern .func (.param .b32 r) elsewhere(.param .b32 a);
"""


def text(name: str, value: str) -> str:
    return f".global .align 1 .b8 {name}[] = {{{', '.join(map(str, value.encode() + bytes(1)))}}};\n"


def test_printf(capsys: pytest.CaptureFixture[str]) -> None:
    """Integers, floats and strings of several sizes, lane by lane; the result is the number of arguments."""
    items = SYSTEM + text("format", "%3d|%-4u|%08llx|%.2f|%s|%c%%|%hhd|%*d\n") + text("word", "abc")
    values = [("s32", -7), ("u32", 5), ("u64", 0x123456789A), ("f64", 1.234), ("u64", None), ("u32", 65), ("s32", 300),
              ("s32", 4), ("s32", 42)]  # fmt: skip
    at, stores = 0, ""
    for type, value in values:
        size = int(type[1:]) // 8
        at = -(-at // size) * size
        constant = "%address" if value is None else f"0d{struct.pack('>d', value).hex()}" if type == "f64" else value
        stores += (
            f"st.local.{type} [buffer+{at}], {constant};"
            if type != "f64"
            else f"""
            mov.f64 %f, {constant};
            st.local.f64 [buffer+{at}], %f;
            """
        )
        at += size
    body = f""".local .align 8 .b8 buffer[64];
.reg .f64 %f; .reg .b64 %g;
mov.u64 %address, word;
        cvta.global.u64 %address, %address;
        {stores} setp.gt.u32 %p, %i, 1;
        mov.u32 %x, 0;
        @%p bra done;
        {{ .param .b64 a; .param .b64 b; .param .b32 r; mov.u64 %g, format; cvta.global.u64 %g, %g;
          st.param.b64 [a], %g;
          mov.u64 %g, buffer;
          cvta.local.u64 %g, %g;
          st.param.b64 [b], %g;
          call.uni (r), vprintf, (a, b);
          ld.param.u32 %x, [r];
          }} done:"""
    right(body, lambda i: 9 if i < 2 else 0, items)
    assert capsys.readouterr().out == 2 * " -7|5   |123456789a|1.23|abc|A%|44|  42\n"


def test_malloc_and_free() -> None:
    """Memory of the kernel's own; what is freed is gone."""
    body = """{ .param .b64 a;
.param .b64 r;
st.param.b64 [a], 16;
call (r), malloc, (a);
ld.param.u64 %address, [r]; }
        st.u32 [%address+12], %i;
        ld.global.u32 %x, [%address+12];
        { .param .b64 a;
        st.param.b64 [a], %address;
        call free, (a);
        }"""
    right(body, lambda i: i, SYSTEM)
    late, _ = run(body + "ld.global.u32 %x, [%address];", SYSTEM)
    assert codes(late) == ["out-of-bounds"]
    twice, _ = run(body + body[body.rindex("{") :], SYSTEM)
    assert codes(twice) == ["bad-free"]


def test_assertions() -> None:
    items = SYSTEM + text("what", "n > 0") + text("file", "k.cu") + text("name", "void k()")
    given = {"a": "what", "b": "file", "d": "name"}
    moves = "".join(f"mov.u64 %address, {each}; st.param.b64 [{p}], %address;" for p, each in given.items())
    body = f"""setp.ne.u32 %p, %i, 5;
@%p bra fine;
        {{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; {moves}
          st.param.b32 [c], 12;
          st.param.b64 [e], 1;
          \ncall __assertfail, (a, b, c, d, e);
          }} fine: mov.u32 %x, 0;
          """
    report, _ = run(body, items)
    assert (report.status, codes(report)) == ("fault", ["assertion"])
    assert report.findings[0].message == "assertion failed: k.cu:12: void k(): the assertion `n > 0` does not hold."
    clean, _ = run(body.replace("%i, 5;", "%i, 5000;"), items)
    assert (clean.status, codes(clean)) == ("ok", [])


def test_a_function_that_is_not_there() -> None:
    body = "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 16; call (r), elsewhere, (a); ld.param.u32 %x, [r]; }"
    report, _ = run(body, SYSTEM, block=32)
    assert report.status == "incomplete"
    assert "elsewhere" in report.findings[0].message


def test_a_parameter_with_the_name_of_its_kernel() -> None:
    text = """.version 9.0\n.target sm_90a\n.address_size 64
    .visible .entry k(.param .u64 k) { .reg .b64 %m, %at; mov.b64 %m, k; cvta.param.u64 %m, %m; ld.u64 %at, [%m];
    st.global.u32 [%at], 7; ret; }"""
    emulator = Emulator("sm_90a")
    out = emulator.array(np.zeros(1, np.uint32))
    report = emulator.launch(Kernel.from_ptx(text), 1, 1, [out])
    assert report.status == "ok", report.summary()
    assert out.numpy() == [7]


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_arguments_while_lanes_of_the_warp_are_deeper_in_calls(schedule: Any) -> None:
    """Half of each warp waits in the inner call, whose frame is past all that the other half's arguments are at."""
    items = """
    .func (.param .align 16 .b8 r[64]) inner(.param .align 16 .b8 a[64]) {
        .reg .u32 %x;
        ld.param.u32 %x, [a+4];
        bar.warp.sync 0xffffffff;
        add.u32 %x, %x, 1;
        st.param.b32 [r+8], %x;
        ret; }
    .func (.param .align 16 .b8 r[64]) outer(.param .align 16 .b8 a[64]) {
        .reg .u32 %x;
        ld.param.u32 %x, [a];
        { .param .align 16 .b8 x[64];
        .param .align 16 .b8 y[64];
        st.param.b32 [x+4], %x;
        call (y), inner, (x);
        ld.param.b32 %x, [y+8]; }
        st.param.b32 [r], %x;
        ret; }
    """
    call = """{ .param .align 16 .b8 x[64];
    .param .align 16 .b8 y[64];
    st.param.b32 [x], %i;
    call (y), outer, (x);
    ld.param.b32 %x, [y]; }"""
    body = f""".local .align 16 .b8 big[4096];
    and.b32 %n, %i, 31;
    setp.ge.u32 %p, %n, 16;
    @%p bra FIRST;
    {call}
    bra.uni END;
    FIRST:
    {call}
    END:"""
    report, found = run(body, items, block=64, schedule=schedule)
    assert report.status == "ok", report.summary()
    assert found[:64] == [i + 1 for i in range(64)]


#: Shapes of a value by its width in bits: those of a vector register's elements, or of one register.
SHAPES = {
    32: (".b32", ".f32", ".f16x2", ".v2 .b16", ".v2 .u16", ".v4 .b8"),
    64: (".b64", ".f64", ".v2 .b32", ".v2 .f32", ".v4 .b16"),
    128: (".v2 .b64", ".v4 .f32", ".v2 .f64"),
}


def _length(shape: str) -> int:
    return int(shape[2]) if shape.startswith(".v") else 1


def _moved(shape: str, bits: int, opcode: str, register: str, address: str, *, load: bool) -> str:
    """Loads or stores of all elements of a register, one by one."""
    length, lines = _length(shape), ""
    for number, axis in enumerate("xyzw"[:length]):
        name = register if length == 1 else f"{register}.{axis}"
        where = f"[{address}+{number * bits // length // 8}]"
        lines += f"{opcode}.b{bits // length} " + (f"{name}, {where};" if load else f"{where}, {name};")
    return lines


@pytest.mark.parametrize("bits", SHAPES)
def test_vectors_pass_their_bits(bits: int) -> None:
    """A vector register stands for a parameter of other elements, and takes a result of smaller ones."""
    given = np.arange(1, 17, dtype=np.uint8)
    ran = 0
    for argument, formal, result in itertools.product(SHAPES[bits], repeat=3):
        copy = _moved(formal, bits, "ld.local", "r", "b", load=True)
        text = f"""
            .version 9.0 .target sm_100a .address_size 64
            .func (.reg {formal} r) f(.reg {formal} a) {{ .local .align 16 .b8 b[16];
                {_moved(formal, bits, "st.local", "a", "b", load=False)} {copy} ret; }}
            .visible .entry k(.param .u64 from, .param .u64 to) {{ .reg .b64 p, q; .reg {argument} x; .reg {result} y;
                ld.param.u64 p, [from]; ld.param.u64 q, [to];
                {_moved(argument, bits, "ld.global", "x", "p", load=True)} call (y), f, (x);
                {_moved(result, bits, "st.global", "y", "q", load=False)} ret; }}
        """
        if any(each.severity == "error" for each in ptxgen.check(text)):
            continue
        emulator = Emulator("sm_100a")
        taken = emulator.empty((16,), np.uint8)
        report = emulator.launch(Kernel.from_ptx(text), 1, 1, [emulator.array(given), taken])
        assert report.status == "ok", (argument, formal, result, report.summary())
        assert taken.numpy()[: bits // 8].tolist() == given[: bits // 8].tolist(), (argument, formal, result)
        ran += 1
    assert ran > len(SHAPES[bits]) ** 2


def test_vectors_in_registers() -> None:
    items = """
    .func (.reg .v2 .u32 %r) swap(.reg .v2 .u32 %a, .reg .v4 .f32 %b, .reg .v2 .u16 %c) {
        .reg .u32 %x;
        cvt.u32.u16 %x, %c.y;
        mov.u32 %r.x, %a.y;
        cvt.rzi.u32.f32 %r.y, %b.w;
        mad.lo.u32 %r.y, %r.y, %x, %a.x;
        ret; }
    """
    right(
        """.reg .v2 .u32 %v, %q;
        .reg .v4 .f32 %f<3>;
        .reg .v2 .u16 %h;
        mov.u32 %v.x, %i;
        add.u32 %v.y, %i, 50;
        mov.v4.f32 %f2, {0f3F800000, 0f40000000, 0f40400000, 0f40E00000};
        mov.v2.u16 %h, {3, 11};
        call (%q), swap, (%v, %f2, %h);
        mad.lo.u32 %x, %q.x, 1000, %q.y;
        call (_), swap, (%v, %f2, %h);""",
        lambda i: (i + 50) * 1000 + 7 * 11 + i,
        items,
    )
