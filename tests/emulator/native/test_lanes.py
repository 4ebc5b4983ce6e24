"""Machine code does to registers what the NumPy code does, to the bit: each operation, on random and special values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxgen
from ptxgen.emulator.load.program import Operation, Program
from ptxgen.emulator.load.registers import RESERVED
from ptxgen.emulator.native import runs
from ptxgen.emulator.native.encode import encode
from ptxgen.emulator.native.library import Library, library, main
from ptxgen.emulator.state.group import Group
from ptxgen.instr.model.targets import parse_target

WARPS = 6
HEADER = """.version 8.7
.target sm_100a
.address_size 64
.entry e()
{
.reg .pred %p<6>;
.reg .b16 %h<6>;
.reg .b32 %r<6>;
.reg .b64 %d<6>;
"""
COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")
APPROXIMATIONS = tuple(f"{each}.approx" for each in ("rcp", "sqrt", "rsqrt", "lg2", "ex2", "sin", "cos"))
UNORDERED = (*(f"{each}u" for each in COMPARES), "num", "nan")


def register(type: str, number: int) -> str:
    width = {"1": "%p", "8": "%h", "16": "%h", "32": "%r", "64": "%d"}["1" if type == "pred" else type[1:]]
    return f"{width}{number}"


def operands(*types: str) -> str:
    return ", ".join(register(type, number) for number, type in enumerate(types, 1))


def integers() -> Iterator[str]:
    for type in ("u16", "u32", "u64", "s16", "s32", "s64"):
        three, four = operands(type, type, type), operands(type, type, type, type)
        for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"):
            yield f"{name}.{type} {three};"
        yield f"mad.lo.{type} {four};"
        yield f"mad.hi.{type} {four};"
        yield f"shr.{type} {operands(type, type)}, %r3;"
        for compare in COMPARES:
            yield f"setp.{compare}.{type} %p1, {register(type, 2)}, {register(type, 3)};"
            yield f"setp.{compare}.xor.{type} %p1|%p2, {register(type, 2)}, {register(type, 3)}, !%p1;"
        yield f"setp.ge.or.{type} %p1|%p2, {register(type, 2)}, {register(type, 3)}, %p2;"
        yield f"setp.lt.and.{type} _|%p2, {register(type, 2)}, {register(type, 3)}, %p2;"
        yield f"selp.{type} {three}, !%p1;"
        yield f"selp.{type} {three}, %p1;"
        yield f"add.{type} {operands(type, type)}, -77;"
        yield f"sub.{type} {register(type, 1)}, 77, {register(type, 1)};"
        yield f"@%p3 add.{type} {three};"
        yield f"@!%p3 add.{type} {three};"
        if type[0] == "s":
            yield f"neg.{type} {operands(type, type)};"
            yield f"abs.{type} {operands(type, type)};"
        if type[1:] != "64":
            wide = f"{type[0]}{2 * int(type[1:])}"
            yield f"mul.wide.{type} {operands(wide, type, type)};"
            yield f"mad.wide.{type} {operands(wide, type, type, wide)};"
    for bits in (16, 32, 64):
        type = f"b{bits}"
        for name in ("and", "or", "xor"):
            yield f"{name}.{type} {operands(type, type, type)};"
        yield f"not.{type} {operands(type, type)};"
        yield f"shl.{type} {operands(type, type)}, %r3;"
        yield f"shl.{type} {operands(type, type)}, 3;"
        yield f"shr.s{bits} {operands(type, type)}, 200;"
        yield f"mov.{type} {operands(type, type)};"
    for bits in (32, 64):
        yield f"popc.b{bits} %r1, {register(f'b{bits}', 2)};"
        yield f"clz.b{bits} %r1, {register(f'b{bits}', 2)};"
    yield "brev.b32 %r1, %r2;"
    yield from (f"lop3.b32 %r1, %r2, %r3, %r4, {table};" for table in (0, 1, 2, 4, 8, 16, 32, 64, 128, 0xE8, 0x96, 255))
    yield from (f"shf.{way}.{mode}.b32 %r1, %r2, %r3, %r4;" for way in "lr" for mode in ("wrap", "clamp"))
    yield "prmt.b32 %r1, %r2, %r3, %r4;"
    yield "prmt.b32 %r1, %r2, %r3, 0x5410;"
    yield "prmt.b32 %r1, %r2, %r3, 0x9C71;"
    yield "bfe.u32 %r1, %r2, %r3, %r4;"
    yield "bfe.s32 %r1, %r2, %r3, %r4;"


def predicates() -> Iterator[str]:
    for name, a, b in itertools.product(("and", "or", "xor"), ("%p2", "!%p2"), ("%p3", "!%p3")):
        if "!" not in a + b:
            yield f"{name}.pred %p1, {a}, {b};"
    yield "not.pred %p1, %p2;"
    yield "mov.pred %p1, %p2;"
    yield "mov.pred %p1, 1;"


def moves() -> Iterator[str]:
    yield "mov.b64 %d1, {%r1, %r2};"
    yield "mov.b32 %r1, {%h1, %h2};"
    yield "mov.b64 {%r1, %r2}, %d1;"
    yield "mov.b64 {_, %r2}, %d1;"
    yield "mov.b32 {%h1, %h2}, %r1;"
    yield "mov.f32 %r1, 0f7FC00001;"
    yield from (f"cvta{to}.{space}.u64 %d1, %d2;" for to in ("", ".to") for space in ("global", "shared", "local"))
    types = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
    for given, made in itertools.product(types, types):
        for into in {register(made, 1), "%d1", "%r1" if made[1:] != "64" else "%d1"}:
            yield f"cvt.{made}.{given} {into}, {register(given, 2)};"
    for given in types:
        yield f"cvt.rn.f32.{given} %r1, {register(given, 2)};"
        yield f"cvt.rn.f64.{given} %d1, {register(given, 2)};"
    yield "cvt.u32.u8 %r1, %r2;"
    yield "cvt.s16.s8 %r1, %d2;"


def floats() -> Iterator[str]:
    for modifiers in ("", ".rn", ".ftz", ".sat", ".rn.ftz.sat"):
        yield from (f"{name}{modifiers}.f32 %r1, %r2, %r3;" for name in ("add", "sub", "mul"))
    yield from (f"fma.rn{modifiers}.f32 %r1, %r2, %r3, %r4;" for modifiers in ("", ".ftz", ".sat", ".ftz.sat"))
    for name, ftz in itertools.product(("neg", "abs"), ("", ".ftz")):
        yield f"{name}{ftz}.f32 %r1, %r2;"
    for name, ftz in itertools.product(("min", "max"), ("", ".ftz")):
        yield f"{name}{ftz}.f32 %r1, %r2, %r3;"
    yield from (f"{name}.rn.f64 %d1, %d2, %d3;" for name in ("add", "sub", "mul"))
    yield "fma.rn.f64 %d1, %d2, %d3, %d4;"
    for compare in (*COMPARES, *UNORDERED):
        yield f"setp.{compare}.f32 %p1, %r2, %r3;"
        yield f"setp.{compare}.ftz.f32 %p1|%p2, %r2, %r3;"
        yield f"setp.{compare}.f64 %p1, %d2, %d3;"
    yield "cvt.f64.f32 %d1, %r2;"
    yield "cvt.rn.f32.f64 %r1, %d2;"
    yield "cvt.f32.bf16 %r1, %h2;"
    yield "cvt.f32.f16 %r1, %h2;"
    for type in ("f16", "bf16"):
        yield f"cvt.rn.{type}.f32 %h1, %r2;"
        yield f"cvt.rn.{type}x2.f32 %r1, %r2, %r3;"
    yield "cvt.rn.f16.f32 %r1, %r2;"
    for ftz in ("", ".ftz"):
        yield from (f"{name}{ftz}.f32x2 %d1, %d2, %d3;" for name in ("add", "sub", "mul"))
        yield f"fma.rn{ftz}.f32x2 %d1, %d2, %d3, %d4;"
        yield from (f"div.{how}{ftz}.f32 %r1, %r2, %r3;" for how in ("rn", "full", "approx"))
        yield from (f"{name}{ftz}.f32 %r1, %r2;" for name in ("rcp.rn", "sqrt.rn", *APPROXIMATIONS))
    yield "tanh.approx.f32 %r1, %r2;"
    for rounding, made in itertools.product(("rzi", "rni", "rmi", "rpi"), ("u32", "s32")):
        yield f"cvt.{rounding}.{made}.f32 %r1, %r2;"
        yield f"cvt.{rounding}.{made}.f64 %r1, %d2;"


#: Instructions that are compared on many numbers.
MANY = re.compile(r"approx|\.full|(div|rcp|sqrt)\.rn|cvt\.rn\.b?f16x?2?\.f32")

LINES = [*integers(), *predicates(), *moves(), *floats()]

#: Bits of numbers where arithmetic has its corners.
SINGLES = (0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x3F800000, 0x3F7FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00123,
           0x7FFFFFFF, 0x4F000000, 0x4EFFFFFF, 0x4F800000, 0x33800000, 0x3F000000, 0x3FC00000, 0x20000000)  # fmt: skip
DOUBLES = (0, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000,
           0x7FF0000000000001, 0x7FF8000000000123, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0x41EFFFFFFFE00000,
           0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x3690000000000000, 0x380FFFFFF0000000)  # fmt: skip


def values(bits: int, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Registers of some width: random bits, small and large integers, and special floats with some neighbors."""
    if bits == 1:
        return random.integers(0, 2, shape).astype(np.bool_)
    dtype = np.dtype(f"u{bits // 8}")
    whole = random.integers(0, (1 << bits) - 1, shape, dtype=np.uint64, endpoint=True).astype(dtype)
    small = random.integers(-70, 70, shape).astype(np.int64).astype(dtype)
    special = np.array({32: SINGLES, 64: DOUBLES}.get(bits, (0, 1, 0x7FFF, 0x8000, 0xFFFF)), np.uint64).astype(dtype)
    chosen = random.choice(special, shape) ^ (random.integers(0, 2, shape).astype(dtype) << dtype.type(bits - 1))
    near = chosen + random.integers(-1, 2, shape).astype(np.int64).astype(dtype)
    # Magnitudes around 1, whose sums and products round.
    floats = np.where(random.integers(0, 2, shape), 1, -1) * np.exp2(random.uniform(-40, 40, shape))
    around = {32: floats.astype(np.float32).view(np.uint32), 64: floats.view(np.uint64)}.get(bits, whole)
    return np.choose(random.integers(0, 5, shape), [whole, small, chosen, near, around]).astype(dtype)


@pytest.fixture(scope="module")
def lanes() -> Library:
    main()
    found = library()
    if found is None:
        pytest.skip("no library of machine code here")
    return found


@pytest.fixture(scope="module")
def program() -> Program:
    kernel = ptxgen.Kernel.from_ptx(HEADER + "\n".join(LINES) + "\nret;\n}\n")
    assert [each.message for each in kernel.diagnostics if each.severity == "error"] == []
    return Program(kernel, parse_target("sm_100a"))


def machine_of(program: Program, random: np.random.Generator, warps: int = WARPS) -> SimpleNamespace:
    """As much of a machine as instructions on registers use."""
    registers: list[NDArray[Any]] = [np.zeros((warps, 32), np.uint32) for _ in range(RESERVED)]
    registers += [values(each.bits, (warps, 32), random) for each in program.registers]
    return SimpleNamespace(warps=warps, registers=registers, views=[], register_addresses=0)


def execute(program: Program, operation: Operation, machine: SimpleNamespace, group: Group) -> list[NDArray[Any]]:
    """What registers hold after an instruction, by the NumPy code or as one run of machine code."""
    machine.registers = [each.copy() for each in machine.registers]
    machine.views = [machine.registers[index].view(dtype) for index, dtype in program.views]
    addresses = np.array([each.ctypes.data for each in machine.registers], np.uint64)
    machine.register_addresses = addresses.ctypes.data
    acting: Group | None = group
    if operation.guard is not None:
        acting = group.narrowed(group.full(operation.guard(group)))
    if acting is not None:
        with np.errstate(all="ignore"):
            operation.run(acting)
    return machine.registers


def groups(machine: SimpleNamespace, random: np.random.Generator) -> Iterator[Group]:
    some = np.array([1, 2, 5])
    yield Group(machine, np.arange(WARPS), None)  # type: ignore[arg-type]
    yield Group(machine, np.arange(WARPS), random.integers(0, 2, (WARPS, 32)).astype(np.bool_))  # type: ignore[arg-type]
    yield Group(machine, some, None)  # type: ignore[arg-type]
    yield Group(machine, some, random.integers(0, 2, (3, 32)).astype(np.bool_))  # type: ignore[arg-type]


def test_each_operation_has_a_line(program: Program, lanes: Library) -> None:
    """No operation of the library is without a test."""
    codes = [encode(each, lanes) for each in program.operations]
    used = {int.from_bytes(code[:4], "little") for code in codes if code is not None}
    assert {name for name, number in lanes.numbers.items() if number not in used} == set()


def test_registers_are_the_same(program: Program, lanes: Library) -> None:
    """Every instruction, for all lanes and some, of all warps and some."""
    random = np.random.default_rng(35)
    compared = 0
    for operation in program.operations:
        if encode(operation, lanes) is None:
            assert operation.kind == "terminator", operation.statement.text
            continue
        (run,) = runs.with_runs([operation], [operation], program.native, lanes)
        assert run.parts == (operation,)
        machine = machine_of(program, random)
        before = machine.registers
        for group in groups(machine, random):
            machine.registers = before
            wanted = execute(program, operation, machine, group)
            machine.registers = before
            found = execute(program, run, machine, group)
            for number, (a, b, old) in enumerate(zip(wanted, found, before, strict=True)):
                if not (a.view(np.uint8) == b.view(np.uint8)).all():
                    at = tuple(np.argwhere(a.view(f"u{a.itemsize}") != b.view(f"u{a.itemsize}"))[0])
                    inputs = [hex(int(each[at])) for each in before]
                    pytest.fail(
                        f"{operation.statement.text}: register {number} {hex(int(a[at]))} by NumPy, "
                        f"{hex(int(b[at]))} by machine code, of {inputs}, {hex(int(old[at]))} before"
                    )
            compared += 1
    assert compared == 4 * (len(program.operations) - 1)


def test_functions_of_many_numbers(program: Program, lanes: Library) -> None:
    """What has a table or rounds in steps, of numbers of all exponents and signs, some beside powers of two."""
    random, warps = np.random.default_rng(38), 1024
    quarter = warps // 4
    words = random.integers(0, 1 << 32, (warps, 32), dtype=np.uint64).astype(np.uint32)
    words[:quarter] = (np.arange(quarter * 32) << 19).reshape(-1, 32) + random.integers(-2, 3, (quarter, 32))
    # Where ex2 changes its way, and what lies halfway between two numbers of 16 bits, or beside that.
    exponents = random.uniform(-150, 130, (quarter, 32))
    exponents[: quarter // 2] = random.uniform(-127.5, -125.5, (quarter // 2, 32))
    words[quarter : 2 * quarter] = exponents.astype(np.float32).view(np.uint32)
    halfway = np.exp2(random.integers(-26, 17, (quarter, 32))) * (1 + random.integers(0, 2048, (quarter, 32)) / 2048)
    words[2 * quarter : 3 * quarter] = halfway.astype(np.float32).view(np.uint32)
    words[2 * quarter : 3 * quarter : 2] += random.integers(-1, 2, words[2 * quarter : 3 * quarter : 2].shape).astype(
        np.uint32
    )
    machine = machine_of(program, random, warps)
    group = Group(machine, np.arange(warps), None)  # type: ignore[arg-type]
    compared = 0
    for operation in program.operations:
        if not MANY.search(operation.statement.text):
            continue
        (run,) = runs.with_runs([operation], [operation], program.native, lanes)
        a, b, _ = _sources(operation)
        machine.registers[a][:], machine.registers[b][:] = words, random.permutation(words.ravel()).reshape(warps, 32)
        before = machine.registers
        wanted = execute(program, operation, machine, group)
        machine.registers = before
        found = execute(program, run, machine, group)
        machine.registers = before
        for number in operation.writes:
            np.testing.assert_array_equal(wanted[number], found[number], operation.statement.text)
        compared += 1
    assert compared > 25


def test_runs_execute_in_order(program: Program, lanes: Library) -> None:
    """All instructions as one run: the same as one after the other."""
    random = np.random.default_rng(36)
    operations = [each for each in program.operations if each.kind == "plain"]
    (run,) = runs.with_runs(operations, operations, program.native, lanes)
    assert len(run.parts) == len(operations) > 300
    for turn in range(4):
        machine = machine_of(program, random)
        before = machine.registers
        group = list(groups(machine, random))[turn]
        for operation in operations:
            execute(program, operation, machine, group)
        wanted, machine.registers = machine.registers, before
        found = execute(program, run, machine, group)
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


def test_fma_at_the_limit_of_ftz(program: Program, lanes: Library) -> None:
    """Sums beside 2**-126 - 2**-151, from where on they round to a normal number: their rest decides.

    1632737 * 2693665 is 2**42 + 1, and 1048575 * 1048577 is 2**40 - 1.
    """
    text = "fma.rn.ftz.f32 %r1, %r2, %r3, %r4;"
    (operation,) = [each for each in program.operations if str(each.statement).strip() == text]
    (run,) = runs.with_runs([operation], [operation], program.native, lanes)
    machine = machine_of(program, np.random.default_rng(37))
    rows = [
        (sign * first, -second * 2.0**scale, sign * 2.0**-126)
        for sign in (1, -1)
        for first, second, bits in ((1632737, 2693665, 42), (1048575, 1048577, 40), (1, 1, 0))
        for scale in range(-153 - bits, -149 - bits)
    ]
    a, b, c = (np.array(each, np.float64) for each in zip(*rows, strict=True))
    wanted = [each.astype(np.float32) for each in (a * 2.0**-60, b * 2.0**60, c)]
    for number, value in zip(_sources(operation), wanted, strict=True):
        machine.registers[number].view(np.float32)[0, : len(rows)] = value
    group = Group(machine, np.array([0]), None)  # type: ignore[arg-type]
    before = machine.registers
    expected = execute(program, operation, machine, group)
    machine.registers = before
    found = execute(program, run, machine, group)
    (to,) = operation.writes
    np.testing.assert_array_equal(expected[to], found[to])
    assert 0 < np.count_nonzero(expected[to][0, : len(rows)].view(np.float32)) < len(rows)


def _sources(operation: Operation) -> list[int]:
    """The registers %r2, %r3 and %r4."""
    found = [operation.names(f"%r{number}") for number in (2, 3, 4)]
    return [each.index for each in found if each is not None]  # type: ignore[union-attr]
