"""Loads and stores in every space, shared-memory layout, parameters, faults, and slots that CTAs share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import LaunchError, LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.instr import memory
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.types import TYPES
from tests.support.harness import POISON, codes, errors, launch, line_of, module, poisoned

THREADS = 80
HEAD = """
    .reg .b64 %at, %from, %wide, %address;
    .reg .u32 %i, %t, %cta, %n, %x, %y, %place;
    .reg .pred %p;
    mov.u32 %t, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %cta, %n, %t;
    mul.wide.u32 %wide, %i, 4;
"""


#: What the modifiers of an access are limited to here, where they have very many combinations; policies are operands.
FEW: dict[str, list[Any]] = {
    "type": ["u32"], "vec": [None], "space": ["global", "shared", "shared::cta"], "hint": [False], "l2": [None],
    "l1": [None, "evict_last"], "prefetch": [None, "L2::128B"],
}  # fmt: skip


def some(form: type[Instruction], **limits: list[Any]) -> Iterator[Any]:
    """The legal combinations of modifiers, of those with limits only what they allow."""
    choices: dict[str, list[Any]] = {}
    for slot in form.form.slots:
        if slot.field is not None:
            every = [*([slot.absent] if slot.optional else []), *slot.tokens.values()]
            choices[slot.field] = [value for value in every if value in limits.get(slot.field, [value])]
    for values in itertools.product(*choices.values()):
        made = form.bound(dict(zip(choices, values, strict=True)), {})
        if not made.modifier_problems():
            yield made


def legal(space: str | None) -> list[tuple[str, int, str]]:
    """(vector modifier, length, type) of the accesses that a space has."""
    plain = {"weak": [False], "cop": [None], "hint": [False], "l2": [None], "prefetch": [None], "space": [space]}
    return [
        (f".{op.vec}" if op.vec else "", int((op.vec or "v1")[1:]), op.type)
        for op in some(memory.ld, **plain)
        if op.type != "b128"
    ]


def registers(count: int, type: str, name: str) -> tuple[str, str]:
    """A declaration, and the operand of a vector access. Bytes travel in 16-bit registers."""
    held = {"b8": "b16", "u8": "u16", "s8": "s16"}.get(type, type)
    names = [f"%{name}{i}" for i in range(count)]
    return f".reg .{held} {', '.join(names)};", names[0] if count == 1 else "{" + ", ".join(names) + "}"


@pytest.mark.parametrize("generic", [False, True], ids=["spaces", "generic"])
@pytest.mark.parametrize(("vector", "count", "type"), legal("shared"), ids=lambda value: str(value))
def test_round_trip(vector: str, count: int, type: str, generic: bool) -> None:
    """Global to shared to global, by the spaces' own instructions or by generic addresses."""
    size = TYPES[type].bytes * count
    data = np.random.default_rng(size).integers(0, 256, 3 * THREADS * size, dtype=np.uint8)
    declared, value = registers(count, type, "v")
    shared, glob = ("", "") if generic else (".shared", ".global")
    to_generic = "cvta.shared.u64 %address, %address;" if generic else ""
    body = f"""{HEAD} {declared} .shared .align 16 .b8 buffer[{THREADS * size}];
        mul.wide.u32 %wide, %i, {size}; add.u64 %from, %in0, %wide; add.u64 %at, %out0, %wide;
        mov.u32 %place, buffer; mad.lo.u32 %place, %t, {size}, %place; cvt.u64.u32 %address, %place; {to_generic}
        ld{glob}{vector}.{type} {value}, [%from];
        st{shared}{vector}.{type} [%address], {value};
        mov.b64 %from, 0;
        ld{shared}{vector}.{type} {value}, [%address];
        st{glob}{vector}.{type} [%at], {value}; ret;"""
    report, (found,) = launch(body, [poisoned(len(data), np.uint8)], block=THREADS, grid=3, inputs=[data])
    assert report.status == "ok", report.summary()
    assert (found == data).all()


@pytest.mark.parametrize(("vector", "count", "type"), [each for each in legal("global") if each not in legal("shared")])
def test_wide_global_vectors(vector: str, count: int, type: str) -> None:
    size = TYPES[type].bytes * count
    data = np.random.default_rng(size).integers(0, 256, THREADS * size, dtype=np.uint8)
    declared, value = registers(count, type, "v")
    body = f"""{HEAD} {declared} mul.wide.u32 %wide, %i, {size}; add.u64 %from, %in0, %wide; add.u64 %at, %out0, %wide;
        ld.global{vector}.{type} {value}, [%from]; st.global{vector}.{type} [%at], {value}; ret;"""
    report, (found,) = launch(body, [poisoned(len(data), np.uint8)], block=THREADS, inputs=[data])
    assert report.status == "ok", report.summary()
    assert (found == data).all()


MODIFIERS = sorted(
    {
        op.opcode_text.rsplit(".", 1)[0]
        for form in (
            memory.ld, memory.ld_keep, memory.ld_volatile, memory.ld_ordered, memory.st,
            memory.st_keep, memory.st_volatile, memory.st_ordered,
        )
        for op in some(form, **FEW)
    }
)  # fmt: skip


@pytest.mark.parametrize("opcode", MODIFIERS)
def test_every_spelling(opcode: str) -> None:
    """Caching, volatility, semantics and scope change no value of a single thread's accesses."""
    data = np.random.default_rng(1).integers(0, 2**32, THREADS, dtype=np.uint32)
    space = "shared" if "shared" in opcode else "global"
    where = "cvt.u64.u32 %address, %place;" if space == "shared" else "mov.u64 %address, %at;"
    load = opcode if opcode.startswith("ld") else f"ld.{space}"
    store = opcode if opcode.startswith("st") else f"st.{space}"
    body = f"""{HEAD} .shared .align 16 .b8 buffer[{4 * THREADS}];
        add.u64 %from, %in0, %wide; add.u64 %at, %out0, %wide; mov.u32 %place, buffer;
        mad.lo.u32 %place, %t, 4, %place; {where}
        ld.global.u32 %x, [%from]; {store}.u32 [%address], %x; {load}.u32 %y, [%address];
        st.global.u32 [%at], %y; ret;"""
    report, (found,) = launch(body, [poisoned(THREADS)], block=THREADS, inputs=[data])
    assert report.status == "ok", report.summary()
    assert (found == data).all()


EXTENDING = [
    ("s8", "s32"), ("u8", "u32"), ("s16", "s64"), ("u16", "b64"), ("b8", "b32"), ("s32", "s64"), ("u32", "u64"),
]  # fmt: skip


@pytest.mark.parametrize(("type", "register"), EXTENDING)
def test_loads_extend_and_stores_cut(type: str, register: str) -> None:
    size, wide = TYPES[type].bytes, TYPES[register].bytes
    data = np.random.default_rng(2).integers(0, 256, THREADS * size, dtype=np.uint8)
    body = f"""{HEAD} .reg .{register} %v; mul.wide.u32 %wide, %i, {size}; add.u64 %from, %in0, %wide;
        add.u64 %at, %out1, %wide; ld.global.{type} %v, [%from]; st.global.{type} [%at], %v;
        mul.wide.u32 %wide, %i, {wide}; add.u64 %at, %out0, %wide; st.global.b{8 * wide} [%at], %v; ret;"""
    report, (extended, cut) = launch(
        body, [poisoned(THREADS * wide, np.uint8), poisoned(THREADS * size, np.uint8)], block=THREADS, inputs=[data]
    )
    assert report.status == "ok", report.summary()
    elements = [data[i : i + size].tobytes() for i in range(0, len(data), size)]
    numbers = [int.from_bytes(element, "little", signed=type[0] == "s") for element in elements]
    expected = b"".join((number % 256**wide).to_bytes(wide, "little") for number in numbers)
    assert extended.tobytes() == expected
    assert (cut == data).all()


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_128_bits_in_one_register(space: str) -> None:
    data = np.random.default_rng(4).integers(0, 256, 16 * THREADS, dtype=np.uint8)
    place = {"global": "%at", "shared": "%place", "local": "mine"}[space]
    body = f"""{HEAD} .reg .b128 %v, %w; .shared .align 16 .b8 buffer[{16 * THREADS}]; .local .align 16 .b8 mine[16];
        mul.wide.u32 %wide, %i, 16; add.u64 %from, %in0, %wide; add.u64 %at, %out0, %wide;
        mov.u32 %place, buffer; mad.lo.u32 %place, %t, 16, %place;
        ld.global.b128 %v, [%from]; st.{space}.b128 [{place}], %v; ld.{space}.b128 %w, [{place}];
        st.global.b128 [%at], %w; ret;"""
    report, (found,) = launch(body, [poisoned(len(data), np.uint8)], block=THREADS, inputs=[data])
    assert report.status == "ok", report.summary()
    assert (found == data).all()


# Local memory.


def test_local_memory_is_each_threads_own() -> None:
    """A lookup table on the stack, by its local and by its generic address; other CTAs come after in the same slots."""
    body = f"""{HEAD} .local .align 8 .b8 pad[3]; .local .align 8 .b32 table[9]; .reg .u32 %k; .reg .b64 %l, %m;
        mov.u64 %l, table; mov.u32 %k, 0; cvta.local.u64 %address, %l;
        fill: mad.lo.u32 %x, %i, 100, %k; mad.wide.u32 %m, %k, 4, %l; st.local.u32 [%m], %x;
        add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 9; @%p bra fill;
        rem.u32 %k, %i, 9; mad.wide.u32 %m, %k, 4, %address; ld.u32 %x, [%m];
        ld.local.u32 %y, [table+16]; add.u32 %x, %x, %y; cvta.to.local.u64 %m, %address; sub.u64 %m, %m, %l;
        cvt.u32.u64 %y, %m; add.u32 %x, %x, %y;
        add.u64 %at, %out0, %wide; st.global.u32 [%at], %x; ret;"""
    report, (found,) = launch(body, [poisoned(5 * THREADS)], block=THREADS, grid=5, multiprocessors=2)
    assert report.status == "ok", report.summary()
    assert not report.findings
    assert found.tolist() == [200 * i + i % 9 + 4 for i in range(5 * THREADS)]


@pytest.mark.parametrize(
    ("offset", "code"), [(0, None), (28, None), (32, "out-of-bounds"), (-4, "out-of-bounds"), (2, "misaligned")]
)
def test_bounds_of_local_memory(offset: int, code: str | None) -> None:
    body = f"""{HEAD} .local .align 4 .b8 mine[32]; mov.u64 %address, mine;
        st.local.u32 [%address+{offset}], %x; ret;"""
    report, _ = launch(body)
    assert errors(report) == ([code] if code else []), report.summary()


@pytest.mark.parametrize(("offset", "past"), [(0, "right past"), (8, "8 bytes past")])
def test_a_shared_address_behind_the_last_variable_is_said_to_be_there(offset: int, past: str) -> None:
    body = (
        HEAD
        + f".shared .align 4 .b8 tile[64]; .shared .align 4 .b8 ring[32]; st.shared.u32 [ring+{32 + offset}], %x; ret;"
    )
    report, _ = launch(body)
    assert errors(report) == ["out-of-bounds"]
    assert f"; {0x460 + offset:#x} is {past} the end of ring, the last there." in report.findings[0].message


def test_reading_local_memory_before_writing_it() -> None:
    """Advice, as long as it is but copied: a struct is, with its padding. One written byte of a word is enough."""
    body = HEAD + "{} .local .align 8 .b8 mine[8]; {} ld.local.u64 %wide, [mine]; ret;"
    report, _ = launch(body.format("", ""))
    assert (report.status, codes(report)) == ("ok", ["uninitialized-local"])
    assert "ld.local" in report.findings[0].instruction
    report, _ = launch(body.format("", "").replace("ret;", "st.global.u64 [%out0], %wide; ret;"), [poisoned(2)])
    assert (report.status, codes(report)) == ("ok", ["uninitialized-local"])
    assert "only copied to memory" in report.findings[0].message
    used = "add.u64 %wide, %wide, 1; st.global.u64 [%out0], %wide; ret;"
    report, _ = launch(body.format("", "").replace("ret;", used), [poisoned(2)])
    assert (report.status, codes(report)) == ("findings", ["uninitialized-local"])
    bound = "setp.lt.u64 %less, %wide, 100; selp.b64 %wide, 1, 2, %less; st.global.u64 [%out0], %wide; ret;"
    report, _ = launch(body.format(".reg .pred %less;", "").replace("ret;", bound), [poisoned(2)])
    assert (report.status, codes(report)) == ("findings", ["uninitialized-local"])
    clean, _ = launch(body.format("", "st.local.u8 [mine+3], 1;"))
    assert not clean.findings


# Variables of the module.


def test_global_and_constant_variables() -> None:
    """Initial values of every kind, in their own state space and through generic addresses."""
    items = """.global .u32 zero; .global .align 2 .b8 bytes[2][3] = {{1, 2, 3}, {4, 5}}; .const .f32 half = 0f3F000000;
        .global .v2 .s16 pairs[2] = {{-1, 2}, {3, -4}}; .const .s64 few[4] = {-7, 8};
        .global .u64 pointers[3] = {bytes+1, generic(few)+8, generic(half)}; .global .f64 double = 1.5;
        .global .u8 parts[3] = {0xFF(bytes), 0xFF00(bytes), 0xFF0000(bytes)}; .global .u32 open[] = {9, 8, 7};"""
    loads = [
        "ld.global.u32 %x, [zero];", "ld.global.u8 %x, [bytes+3];", "ld.global.u8 %x, [bytes+5];",
        "ld.const.u32 %x, [half];", "ld.global.u16 %x, [pairs+6];", "ld.const.u32 %x, [few+4];",
        "ld.const.u32 %x, [few+8];", "ld.const.u32 %x, [few+16];",
        "ld.global.u64 %address, [pointers]; ld.u8 %x, [%address];",
        "ld.global.u64 %address, [pointers+8]; ld.u32 %x, [%address];",
        "ld.global.u64 %address, [pointers+16]; ld.u32 %x, [%address];",
        "mov.u64 %address, half; cvta.const.u64 %address, %address; ld.u32 %x, [%address];",
        "ld.global.u32 %x, [double+4];", "ld.global.u32 %x, [open+8];",
        "mov.u64 %address, bytes; cvt.u32.u64 %y, %address; ld.global.u8 %x, [parts+1]; shl.b32 %x, %x, 8;"
        "and.b32 %y, %y, 0xFF00; sub.u32 %x, %x, %y;",
    ]  # fmt: skip
    body = HEAD + "".join(f"{load} st.global.u32 [%out0+{4 * i}], %x;\n" for i, load in enumerate(loads)) + "ret;"
    report, (found,) = launch(body, [poisoned(len(loads))], block=1, items=items)
    assert report.status == "ok", report.summary()
    minus_four, half, one_and_a_half = 0xFFFC, 0x3F000000, 0x3FF80000
    assert found.tolist() == [0, 4, 0, half, minus_four, 0xFFFFFFFF, 8, 0, 2, 8, half, half, one_and_a_half, 7, 0]


def test_braces_of_packed_halves_hold_words() -> None:
    """As in the cubin of ptxas 13.5.37: words in their order, as many as there are, a float as an .f32."""
    items = """.global .f16x2 a[3] = {{}, {5}, {1.5, 2}}; .global .f16x2 b[2][2] = {{{1}, {2}}, {{3, 4}, {5}}};
        .global .v2 .f16x2 d = {{1, 2}, {3}}; .global .f16x2 e = {0x1FFFFFFFF}; .const .f16x2 h[2] = {{1.5, 2}, {3}};
        .global .align 4 .f16 g[2] = {};"""
    expected = {
        "global": {"a": [5, 0x3FC00000, 2], "b": [1, 2, 3, 4], "d": [1, 2], "e": [0xFFFFFFFF], "g": [0]},
        "const": {"h": [0x3FC00000, 2]},
    }
    loads = [
        f"ld.{space}.u32 %x, [{name}+{4 * i}];"
        for space, variables in expected.items()
        for name, words in variables.items()
        for i in range(len(words))
    ]
    body = HEAD + "".join(f"{load} st.global.u32 [%out0+{4 * i}], %x;\n" for i, load in enumerate(loads)) + "ret;"
    report, (found,) = launch(body, [poisoned(len(loads))], block=1, items=items)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [word for variables in expected.values() for words in variables.values() for word in words]


def test_global_variables_last_from_launch_to_launch() -> None:
    """As on a GPU, where the module stays loaded; another device has its own."""
    text = module(
        "{ .reg .u32 %x; .reg .b64 %a; ld.param.u64 %a, [p]; ld.global.u32 %x, [count]; add.u32 %x, %x, 1;"
        "st.global.u32 [count], %x; st.global.u32 [%a], %x; } ret;",
        ".param .u64 p",
        items=".global .u32 count = 40;",
    )
    for _ in range(2):
        emulator = Emulator()
        array = emulator.array(np.zeros(1, np.uint32))
        for expected in (41, 42, 43):
            assert emulator.launch(Kernel.from_ptx(text), 1, 1, [array]).status == "ok"
            assert array.numpy().tolist() == [expected]


def test_a_fault_beside_a_variable_names_it() -> None:
    items = ".global .align 4 .f32 table[4][128];"
    report, _ = launch(f"{HEAD} .reg .f32 %f; ld.global.f32 %f, [table+2052]; ret;", items=items)
    assert codes(report) == ["out-of-bounds"]
    assert "element [4, 1] of `table`" in report.findings[0].message
    assert "(.f32, shape (4, 128)), 2 elements past its end" in report.findings[0].message
    (access,) = report.findings[0].accesses
    assert (access.role, access.line, access.warp, access.lanes) == ("accessor", report.findings[0].line, 0, 1)
    assert (access.space, access.instruction) == ("global", report.findings[0].instruction)
    constant, _ = launch(f"{HEAD} ld.const.u32 %x, [few+8]; ret;", items=".const .u32 few[2];")
    assert codes(constant) == ["out-of-bounds"]
    store, _ = launch(
        f"{HEAD} mov.u64 %address, few; cvta.const.u64 %address, %address; st.u32 [%address], %x; ret;",
        items=".const .u32 few[2];",
    )
    assert errors(store) == ["read-only"]


def test_windows_of_generic_addresses() -> None:
    spaces = ["const", "global", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry"]
    places = {
        "const": "mov.u64 %address, c; cvta.const.u64 %address, %address;",
        "global": "mov.u64 %address, g;",
        "heap": "mov.u64 %address, %in0;",
        "local": "mov.u64 %address, l; cvta.local.u64 %address, %address;",
        "shared": "mov.u64 %address, s; cvta.shared.u64 %address, %address;",
        "param": "mov.u64 %address, p_in0; cvta.param.u64 %address, %address;",
    }
    body = f"{HEAD} .shared .u32 s; .local .u32 l;"
    for row, place in enumerate(places.values()):
        for column, space in enumerate(spaces):
            at = 4 * (row * len(spaces) + column)
            body += f"{place} isspacep.{space} %p, %address; selp.u32 %x, 1, 0, %p; st.global.u32 [%out0+{at}], %x;\n"
    items = ".global .u32 g; .const .u32 c;"
    out, data = [poisoned(len(places) * len(spaces))], [np.zeros(1, np.uint32)]
    report, (found,) = launch(body + "ret;", out, block=1, inputs=data, items=items)
    assert report.status == "ok", report.summary()
    inside = {"heap": ["global"], "shared": ["shared", "shared::cta", "shared::cluster"]}
    inside["param"] = ["param", "param::entry", "global"]
    expected = [[space in inside.get(place, [place]) for space in spaces] for place in places]
    assert found.reshape(len(places), -1).tolist() == expected


# Faults, each with a twin that is right. `in0` has 256 bytes, `buffer` 256 at shared address 1024.

FAULTS = [
    ("past the end of an array", "ld.global.u32 %x, [%in0+{}];", "256", "252", "out-of-bounds"),
    ("before the start", "ld.global.u32 %x, [%in0+{}];", "-4", "0", "out-of-bounds"),
    ("the last bytes of a vector", "ld.global.v4.u32 {{%x, %y, %x, %y}}, [%in0+{}];", "256", "240", "out-of-bounds"),
    ("a store past the end", "st.global.u8 [%in0+{}], %x;", "256", "255", "out-of-bounds"),
    ("a null pointer", "add.u64 %address, %in0, {}; sub.u64 %address, %address, %in0;\nld.global.u32 %x, [%address];",
     "0", None, "out-of-bounds"),
    ("far away", "mov.u64 %address, {}; ld.global.u32 %x, [%address];", "0xFFFFFFFFFFFFFFF0", None, "out-of-bounds"),
    ("misaligned word", "ld.global.u32 %x, [%in0+{}];", "2", "4", "misaligned"),
    ("misaligned half", "ld.global.u16 %x, [%in0+{}];", "1", "2", "misaligned"),
    ("misaligned vector", "st.global.v2.u32 [%in0+{}], {{%x, %y}};", "4", "8", "misaligned"),
    ("misaligned 64 bits", "ld.global.u64 %wide, [%in0+{}];", "4", "8", "misaligned"),
    ("shared, system's part", "mov.u32 %place, {}; st.shared.u32 [%place], %x;", "1020", "1024", "out-of-bounds"),
    ("shared, past the end", "st.shared.u32 [buffer+{}], %x;", "256", "252", "out-of-bounds"),
    ("shared, another CTA's window", "mov.u32 %place, {}; st.shared.u32 [%place], %x;", "0x1000400", "0x400",
     "out-of-bounds"),
    ("shared, below zero", "mov.u32 %place, {}; st.shared.u32 [%place], %x;", "0xFFFFFFFC", "1024", "out-of-bounds"),
    ("shared, misaligned", "st.shared.u32 [buffer+{}], %x;", "6", "8", "misaligned"),
    ("shared by a generic address",
     "cvta.shared.u64 %address, 0; st.u32 [%address+{}], %x;", "1020", "1024", "out-of-bounds"),
    ("parameters, past the end", "ld.param.u64 %wide, [p_in0+{}];", "8", "0", "out-of-bounds"),
    ("parameters, misaligned", "ld.param.u32 %x, [p_in0+{}];", "2", "4", "misaligned"),
    ("parameters by a generic address",
     "mov.u64 %address, p_in0; cvta.param.u64 %address, %address; ld.u64 %wide, [%address+{}];", "8", "0",
     "out-of-bounds"),
    ("a store to parameters",
     "mov.u64 %address, p_in0; cvta.param.u64 %address, %address; {}.u64 %wide, [%address];", "st", None, ""),
]  # fmt: skip


def fault(text: str) -> tuple[LaunchReport, str]:
    body = f"{HEAD} .shared .align 16 .b8 buffer[256]; mov.u32 %x, 1;\n{text}\nret;"
    return launch(body, inputs=[np.arange(64, dtype=np.uint32)])[0], body


@pytest.mark.parametrize(("name", "text", "bad", "good", "code"), FAULTS[:-1], ids=[each[0] for each in FAULTS[:-1]])
def test_faults(name: str, text: str, bad: str, good: str | None, code: str) -> None:
    report, body = fault(text.format(bad))
    assert report.status == "fault", report.summary()
    assert errors(report) == [code]
    access = text.replace("{{", "{").split("\n")[-1].split(";")[-2].strip().split(" ")[0]
    assert report.findings[0].instruction.startswith(access)
    assert body.count("\n")  # the line is checked below
    if good is not None:
        clean, _ = fault(text.format(good))
        assert clean.status == "ok", clean.summary()


def test_an_array_that_ends_inside_a_word() -> None:
    for size, status in ((10, "fault"), (12, "ok")):
        report, _ = launch(f"{HEAD} ld.global.u32 %x, [%in0+8]; ret;", inputs=[np.zeros(size, np.uint8)])
        assert report.status == status, report.summary()


def test_a_store_to_parameters() -> None:
    text = "mov.u64 %address, p_in0; cvta.param.u64 %address, %address;\nst.u64 [%address], %wide;"
    report, _ = fault(text)
    assert (report.status, codes(report)) == ("fault", ["read-only"])
    clean, _ = fault(text.replace("st.u64", "ld.u64").replace("[%address], %wide", "%wide, [%address]"))
    assert (clean.status, codes(clean)) == ("ok", [])


def test_a_fault_names_its_line_and_array() -> None:
    text = module(".reg .b64 %a;\nld.param.u64 %a, [p];\nst.global.u32 [%a+100], 1;\nret;", ".param .u64 p")
    emulator = Emulator()
    array = emulator.array(np.zeros(10, np.uint8))
    report = emulator.launch(Kernel.from_ptx(text), 1, 1, [array])
    finding = report.findings[0]
    assert finding.line == line_of(text, "st.global")
    assert "element [100] of `p`" in finding.message
    assert "shape (10,)), 91 elements past its end" in finding.message
    assert f"{array.address:#x}" in finding.message


def test_lanes_under_a_false_guard_access_nothing() -> None:
    """Their addresses may be anything."""
    body = f"""{HEAD} .shared .align 4 .b8 one[4]; add.u64 %at, %out0, %wide; and.b32 %x, %t, 3; setp.eq.u32 %p, %x, 0;
        mov.u64 %address, 3; @%p mov.u64 %address, %at; mov.u32 %place, 0xFFFFFFF1; @%p mov.u32 %place, one;
        @%p st.global.u32 [%address], %i; @%p st.u32 [%address], %i; @%p st.shared.u32 [%place], %i;
        @%p ld.shared.u32 %y, [%place]; @%p ld.global.u32 %y, [%address]; @%p ld.u32 %y, [%address]; ret;"""
    report, (found,) = launch(body, [poisoned(THREADS)], block=THREADS, checks=False)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [i if i % 4 == 0 else 0xCDCDCDCD for i in range(THREADS)]


def test_of_lanes_that_store_to_one_word_one_wins() -> None:
    body = f"{HEAD} shr.u32 %x, %i, 3; mad.wide.u32 %at, %x, 4, %out0; st.global.u32 [%at], %i; ret;"
    report, (found,) = launch(body, [poisoned(10)], block=THREADS)
    assert codes(report) == ["global-race"]
    assert (found // 8).tolist() == list(range(10))


def test_gaps_between_arrays() -> None:
    emulator = Emulator()
    arrays = [emulator.array(np.full(size, size % 256, np.uint8)) for size in (1, 3, 255, 256, 257, 70000, 5)]
    for array in arrays:
        assert array.address % 256 == 0
        for offset in (-1, array.nbytes):
            text = module(f".reg .b64 %a; ld.param.u64 %a, [p]; st.global.u8 [%a+{offset}], 0; ret;", ".param .u64 p")
            report = emulator.launch(Kernel.from_ptx(text), 1, 1, [array])
            assert codes(report) == ["out-of-bounds"]
    for array in arrays:
        assert (array.numpy() == array.nbytes % 256).all()


def test_memory_grows() -> None:
    """Arrays keep their bytes and addresses while others are made, up to many times the first size."""
    emulator, rng = Emulator(), np.random.default_rng(3)
    kept = []
    for round in range(12):
        data = rng.integers(0, 256, 3 << round, dtype=np.uint8)
        kept.append((emulator.array(data), data))
        empty = emulator.empty(1 << round, np.uint8)
        assert (empty.numpy() == POISON).all()
    for array, data in kept:
        assert (array.numpy() == data).all()


def addresses(items: str, names: list[str], shared_bytes: int = 0, body: str = "") -> list[int]:
    moves = "".join(f"mov.u32 %x, {name}; st.global.u32 [%out0+{4 * i}], %x;" for i, name in enumerate(names))
    out = [poisoned(len(names))]
    report, (found,) = launch(f"{HEAD} {body} {moves} ret;", out, shared_bytes=shared_bytes, items=items)
    assert report.status == "ok", report.summary()
    return found.tolist()


def test_layout_of_shared_memory() -> None:
    """From 1024 on, in the order of declaration, aligned as declared; dynamic memory behind, aligned too."""
    static = ".shared .b8 a[3]; .shared .align 16 .b8 b[20]; .shared .u64 c; .shared .v4 .f32 d; .shared .u16 e[3];"
    assert addresses(static, ["a", "b", "c", "d", "e"]) == [1024, 1040, 1064, 1072, 1088]
    dynamic = static + ".extern .shared .align 128 .b8 f[]; .extern .shared .align 8 .b8 g[];"
    assert addresses(dynamic, ["e", "f", "g"], 64) == [1088, 1152, 1152]
    inner = ".shared .align 4 .b8 a[6]; { .shared .u32 c; mov.u32 %y, c; } .shared .u32 b;"
    first, second = addresses("", ["a", "b"], body=inner)
    assert first == 1024
    assert second in (1032, 1036)  # c or b first: PTX does not say


def test_variables_of_inner_blocks_have_memory() -> None:
    body = """{ .shared .u32 inner[8]; .reg .u32 %r; mov.u32 %r, inner; st.shared.u32 [%r+28], 77;
               ld.shared.u32 %x, [%r+28]; st.global.u32 [%out0], %x; } ret;"""
    report, (found,) = launch(HEAD + body, [poisoned(1)])
    assert report.status == "ok", report.summary()
    assert found.tolist() == [77]


def test_too_much_shared_memory() -> None:
    text = ".shared .b8 big[{}]; ret;"
    with pytest.raises(LaunchError, match="shared memory"):
        launch(text.format(200 * 1024), shared_bytes=40 * 1024)
    assert launch(text.format(200 * 1024), shared_bytes=27 * 1024)[0].ok


PARAMETERS = [
    (".param .u8 a, .param .u64 b, .param .u16 c, .param .u32 d", [0, 8, 16, 20], [200, 2**40 + 7, 60000, 2**31 + 5]),
    (".param .s8 a, .param .align 16 .b8 b[5], .param .f64 c", [0, 16, 24], [-3, b"hello", 1.25]),
    (".param .u32 a, .param .align 128 .b8 b[130], .param .u8 c", [0, 128, 258], [9, bytes(range(130)), 4]),
]


@pytest.mark.parametrize(("declared", "offsets", "values"), PARAMETERS)
def test_parameters(declared: str, offsets: list[int], values: list[Any]) -> None:
    """Each parameter's bytes at its own address, by ld.param and by a generic address; laid out as a C struct."""
    names = [part.split(" ")[-1].partition("[")[0] for part in declared.split(", ")]
    kernel_bytes = []
    lines = [".reg .b64 %out, %g; .reg .b16 %v; .reg .u32 %x, %y; ld.param.u64 %out, [out];"]
    at = 0
    emulator = Emulator()
    for name, value in zip(names, values, strict=True):
        kernel = Kernel.from_ptx(module("ret;", f"{declared}, .param .u64 out"))
        info = next(each for each in kernel.parameters if each.name == name)
        if isinstance(value, bytes):
            raw = value
        else:
            raw = np.array(value, f"{info.type[0].replace('s', 'i')}{info.size}").tobytes()
        kernel_bytes.append(raw)
        lines.append(f"mov.u64 %g, {name}; cvta.param.u64 %g, %g; mov.u32 %x, {name}; st.global.u32 [%out+{at}], %x;")
        for index in range(len(raw)):
            lines.append(f"ld.param.u8 %v, [{name}+{index}]; st.global.u8 [%out+{at + 4 + index}], %v;")
            lines.append(f"ld.u8 %v, [%g+{index}]; st.global.u8 [%out+{at + 4 + len(raw) + index}], %v;")
        at += 4 + 2 * len(raw) + (-2 * len(raw)) % 4
    out = emulator.empty(at, np.uint8)
    text = module("\n".join(lines) + "ret;", f"{declared}, .param .u64 out")
    report = emulator.launch(Kernel.from_ptx(text), 1, 1, [*values, out])
    assert report.status == "ok", report.summary()
    found, at = out.numpy(), 0
    for offset, raw in zip(offsets, kernel_bytes, strict=True):
        assert int(found[at : at + 4].view(np.uint32)[0]) == offset
        assert found[at + 4 : at + 4 + 2 * len(raw)].tobytes() == raw + raw
        at += 4 + 2 * len(raw) + (-2 * len(raw)) % 4


# More CTAs than fit at a time.


@pytest.mark.parametrize("multiprocessors", [1, 2, 5, 100])
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_grid_in_turns(multiprocessors: int, schedule: Any) -> None:
    """Three-dimensional grid and block; every CTA finds poison in its registers and its shared memory."""
    body = f"""{HEAD} .reg .u32 %never, %z, %g; .shared .u32 word[2];
        mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z; mov.u32 %g, %nctaid.x;
        mad.lo.u32 %i, %y, %g, %x; mov.u32 %x, %nctaid.y; mul.lo.u32 %g, %g, %x; mad.lo.u32 %i, %z, %g, %i;
        mov.u32 %x, %tid.z; mov.u32 %y, %ntid.y; mov.u32 %z, %tid.y; mad.lo.u32 %x, %x, %y, %z;
        mov.u32 %y, %ntid.x; mov.u32 %z, %tid.x; mad.lo.u32 %x, %x, %y, %z; mad.lo.u32 %i, %i, 42, %x;
        mul.wide.u32 %wide, %i, 4; add.u64 %at, %out0, %wide; ld.shared.u32 %x, [word];
        xor.b32 %x, %x, %never; add.u32 %x, %x, %i; st.global.u32 [%at], %x; bar.sync 0;
        st.shared.u32 [word], %i; mov.u32 %never, %i; ret;"""
    report, (found,) = launch(
        body,
        [poisoned(24 * 42)],
        block=(7, 3, 2),
        grid=(4, 3, 2),
        multiprocessors=multiprocessors,
        schedule=schedule,
        checks=False,
    )
    assert report.status == "ok", report.summary()
    assert found.tolist() == list(range(24 * 42))


def test_no_mbarrier_of_an_earlier_cta() -> None:
    """The second CTA of a slot may init where the first one left a barrier, and finds none where it did not."""
    init = "mov.u32 %place, word; setp.eq.u32 %p, %t, 0; {} @%p mbarrier.init.shared.b64 [%place], 1;"
    use = ".reg .b64 %state; @%p mbarrier.arrive.shared.b64 %state, [%place]; ret;"
    for first, status in (("", "ok"), ("setp.eq.u32 %p, %i, 0;", "fault")):
        body = f"{HEAD} .shared .b64 word; {init.format(first)} setp.eq.u32 %p, %t, 0; {use}"
        report, _ = launch(body, grid=2, multiprocessors=1)
        assert report.status == status, report.summary()


def test_launches_share_memory_only() -> None:
    emulator = Emulator()
    array = emulator.array(np.arange(64, dtype=np.uint32))
    text = module(
        """.reg .b64 %a; .reg .u32 %x, %t; ld.param.u64 %a, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %a;
           ld.global.u32 %x, [%a]; mad.lo.u32 %x, %x, 3, 1; st.global.u32 [%a], %x; ret;""",
        ".param .u64 p",
    )
    for _ in range(2):
        assert emulator.launch(Kernel.from_ptx(text), 1, 64, [array]).ok
    assert array.numpy().tolist() == [9 * i + 4 for i in range(64)]


@pytest.mark.parametrize(
    ("load", "severity"),
    [
        ("ld.shared.u32 %x, [%there];", "advice"),
        ("ld.shared.u32 %x, [%there+32];", "error"),
        ("ld.shared.u32 %x, [%there+16];", "error"),
    ],
)
def test_shared_memory_behind_what_is_written(load: str, severity: str) -> None:
    """One element right behind the last one, as merges read and drop it, gets advice; any other is an error."""
    body = f"""
        .shared .align 16 .b8 room[256]; .reg .b32 %t, %x, %room, %here, %there;
        mov.u32 %t, %tid.x; shl.b32 %x, %t, 2; mov.u32 %room, room; add.u32 %here, %room, %x;
        st.shared.u32 [%here], %t; bar.sync 0; add.u32 %there, %here, 4;
        {load} ret;
    """
    report, _ = launch(body, block=32)
    assert [(each.code, each.severity) for each in report.findings] == [("uninitialized-shared", severity)]
