"""Atomic operations: values, what each lane gets back, lanes and warps that meet, locks; cp.async and its groups.

References are computed one lane after the other, in Python's integers and exact fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptxgen.emulator.memory.atomics import swap
from tests.support.exact import FORMATS, add, canonical_nan, decode, float_edges, flushed, less
from tests.support.harness import WORDS, bits_of, codes, edges, launch, poisoned, signed

THREADS = 80
HEAD = """
    .reg .b64 %at, %from, %wide, %address;
    .reg .u32 %i, %t, %cta, %n, %x, %y, %place;
    .reg .pred %p, %q;
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %cta, %n, %t;
    mul.wide.u32 %wide, %i, 4;
"""


# What one operation does to one word, and the operations that exist.


def to_number(word: int, type: str) -> int:
    bits = bits_of(type)
    return signed(word, bits) if type[0] == "s" else word


def integer(op: str, old: int, b: int, type: str) -> int:
    bits = bits_of(type)
    x, y = to_number(old, type), to_number(b, type)
    result = {
        "and": x & y, "or": x | y, "xor": x ^ y, "exch": y, "add": x + y, "min": min(x, y), "max": max(x, y),
        "inc": 0 if x >= y else x + 1, "dec": y if x == 0 or x > y else x - 1,
    }[op]  # fmt: skip
    return result % (1 << bits)


def element(type: str) -> str:
    return type.removesuffix("x2")


def floating(op: str, old: int, b: int, type: str, *, ftz: bool = False) -> int:
    format = FORMATS[element(type)]
    if ftz:
        old, b = flushed(old, format), flushed(b, format)
    x, y = decode(old, format), decode(b, format)
    if op == "add":
        result = add(x, y, format, "rn")
        return flushed(result, format) if ftz else result
    if x.kind == "nan" or y.kind == "nan":
        return canonical_nan(format) if x.kind == y.kind else (b if x.kind == "nan" else old)
    below = less(x, y) or (not less(y, x) and old > b)  # -0 is less than +0
    return (old if below else b) if op == "min" else (b if below else old)


Apply = Callable[[int, int], int]
#: Where an address may lead: with the state space, or generic to global or shared memory.
SPACES = ("global", "shared", "generic", "shared, generic")


class Case(NamedTuple):
    """An operation with its modifiers, its type, and where it is done."""

    op: str
    type: str
    space: str

    def __str__(self) -> str:
        return f"{self.space} {self.op}.{self.type}"

    @property
    def opcode(self) -> str:
        return (f".{self.space}" if "generic" not in self.space else "") + f".{self.op}.{self.type}"

    def apply(self, old: int, b: int) -> int:
        if element(self.type) not in FORMATS:
            return integer(self.op, old, b, self.type)
        flushes = self.type == "f32" and "noftz" not in self.op and "shared" not in self.space
        return floating(self.op.split(".")[0], old, b, self.type, ftz=flushes)


INTEGERS = {
    **dict.fromkeys(("and", "or", "xor", "exch"), ("b32", "b64")), "add": ("u32", "s32", "u64"), "inc": ("u32",),
    "dec": ("u32",), "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
}  # fmt: skip
SCALARS = [Case(op, type, space) for space in SPACES for op, types in INTEGERS.items() for type in types]
SCALARS += [Case("add", type, space) for space in SPACES for type in ("f32", "f64")]
SCALARS += [Case("add.noftz", type, space) for space in SPACES for type in ("f16", "bf16", "f32")]


def words_of(type: str, count: int, seed: int) -> Any:
    name = element(type)
    return float_edges(name, count, seed) if name in FORMATS else edges(bits_of(type), count, seed)


def one_after_the_other(memory: list[int], bucket: list[int], values: list[int], apply: Apply) -> list[int]:
    """What each lane finds; `memory` ends as the operations leave it."""
    found = []
    for place, value in zip(bucket, values, strict=True):
        found.append(memory[place])
        memory[place] = apply(memory[place], value)
    return found


def run_atomic(
    opcode: str,
    bits: int,
    space: str,
    memory: Any,
    at: Any,
    values: Any,
    result: bool = True,
    third: str = "",
    **options: Any,
) -> tuple[list[int], list[int]]:
    """Thread i does the operation with value i at word `at[i]`: what memory holds then, and what the threads found."""
    size, shared = bits // 8, "shared" in space
    blocks = 1 if shared else 2
    d, give = ("%d, ", f"st.global.b{bits} [%at], %d;") if result else ("", "")
    where = f"mov.u32 %place, table; mad.lo.u32 %place, %x, {size}, %place;"
    before = after = ""
    to_generic = "cvt.u64.u32 %address, %place; cvta.shared.u64 %address, %address;"
    if shared:
        before = f"""mov.u32 %x, %i; {where}
            @%p ld.global.b{bits} %d, [%from];
            @%p st.shared.b{bits} [%place], %d;
            bar.sync 0;
            """
        after = f"""mov.u32 %x, %i;
{where} bar.sync 0;
            @%p ld.shared.b{bits} %d, [%place];
            @%p st.global.b{bits} [%from], %d;
            """
    body = f"""{HEAD} .reg .b{bits} %b, %d; .shared .align 8 .b8 table[{size * len(memory)}];
        mad.wide.u32 %from, %i, {size}, %in0;
        ld.global.b{bits} %b, [%from];
        mad.wide.u32 %at, %i, {size}, %out1;
        mad.wide.u32 %from, %i, {size}, %out0;
        setp.lt.u32 %p, %i, {len(memory)};
        {before}
        mad.wide.u32 %wide, %i, 4, %in1;
        ld.global.u32 %x, [%wide];
        mad.wide.u32 %address, %x, {size}, %out0;
        {where} {to_generic if space == "shared, generic" else ""}
        {opcode} {d}[{"%place" if space == "shared" else "%address"}], %b{third}; {give} {after} ret;"""
    out = [memory.copy(), poisoned(len(values), WORDS[bits])]
    report, (left, found) = launch(
        body, out, block=len(values) // blocks, grid=blocks, inputs=[values, at], version="9.4", **options
    )
    assert report.status == "ok", report.summary()
    return left.tolist(), found.tolist()


def buckets_of(count: int, lanes: int) -> Any:
    return np.array([(i * 5) % count if count < lanes else lanes - 1 - i for i in range(lanes)], np.uint32)


@pytest.mark.parametrize("case", SCALARS, ids=str)
def test_every_scalar_operation(case: Case) -> None:
    """A partial warp, several warps and CTAs, lanes that meet at a word and not: as if one after the other.

    The first time with a result, then as red without.
    """
    bits, lanes = bits_of(case.type), THREADS if "shared" in case.space else 2 * THREADS
    for count, result in ((7, True), (THREADS, True), (7, False)):
        if not result and case.op == "exch":
            continue
        at = buckets_of(count, lanes)
        memory, values = words_of(case.type, max(at) + 1, count), words_of(case.type, lanes, len(case.op))
        expected = [int(word) for word in memory]
        expected_found = one_after_the_other(expected, at.tolist(), values.tolist(), case.apply)
        opcode = ("atom" if result else "red") + case.opcode
        left, found = run_atomic(opcode, bits, case.space, memory, at, values, result)
        assert plain(left, case.type) == plain(expected, case.type)
        assert plain(found, case.type) == plain(
            expected_found if result else poisoned(lanes, WORDS[bits]).tolist(), case.type
        )


def plain(words: list[int], type: str) -> list[str]:
    """Words to compare: PTX leaves open which NaN a 64-bit sum is (9.7.3)."""
    format = FORMATS["f64"]
    return ["nan" if type == "f64" and decode(word, format).kind == "nan" else hex(word) for word in words]


@pytest.mark.parametrize("type", ["b16", "b32", "b64"])
@pytest.mark.parametrize("space", SPACES)
def test_compare_and_swap(space: str, type: str) -> None:
    """Lanes look for what the one before them left, or for something else: some swap, and find what was there."""
    bits, lanes = bits_of(type), THREADS if "shared" in space else 2 * THREADS
    rng = np.random.default_rng(bits)
    at = buckets_of(5, lanes)
    memory, values = rng.integers(0, 3, 5).astype(WORDS[bits]), rng.integers(0, 3, lanes).astype(WORDS[bits])
    expected = [int(word) for word in memory]
    swap = {0: 1, 1: 2, 2: 0}
    wanted = one_after_the_other(expected, at.tolist(), values.tolist(), lambda old, b: swap[b] if old == b else old)
    dot = f".{space}" if "generic" not in space else ""
    setp = f"setp.eq.u{bits} %p2, %b, 2; add.u{bits} %c, %b, 1; @%p2 mov.b{bits} %c, 0;"
    opcode = f".reg .b{bits} %c; .reg .pred %p2; {setp} atom{dot}.cas.{type}"
    left, found = run_atomic(opcode, bits, space, memory, at, values, third=", %c")
    assert (left, found) == (expected, wanted)


@pytest.mark.parametrize("op", ["exch", "cas"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_128_bits(space: str, op: str) -> None:
    """Both halves together: a word whose halves are swapped is another word."""
    lanes = 40
    rng = np.random.default_rng(9)
    values = rng.integers(0, 2, (lanes, 4)).astype(np.uint64)  # what to look for, and what to put there
    memory = np.zeros((3, 2), np.uint64)
    body = f"""{HEAD} .reg .b64 %h<8>; .reg .b128 %b, %c, %d; .shared .align 16 .b8 table[48];
        mad.wide.u32 %from, %i, 32, %in0;
        ld.global.b128 %b, [%from];
        ld.global.b128 %c, [%from+16];
        rem.u32 %x, %i, 3;
        mov.u32 %place, table;
        mad.lo.u32 %place, %x, 16, %place;
        mad.wide.u32 %address, %x, 16, %out0;
        setp.lt.u32 %p, %i, 3;
        mad.wide.u32 %at, %i, 16, %out1;
        mov.u64 %h4, 0;
        @%p st.shared.v2.u64 [%place], {{%h4, %h4}};
        bar.sync 0;
        atom.{space}.{op}.b128 %d, [{"%place" if space == "shared" else "%address"}], %b{", %c" if op == "cas" else ""};
        st.global.b128 [%at], %d;
        bar.sync 0;
        {"@%p ld.shared.b128 %d, [%place]; @%p st.global.b128 [%address], %d;" if space == "shared" else ""} ret;"""
    out = [memory.copy().reshape(-1), poisoned(2 * lanes, np.uint64)]
    report, (left, found) = launch(body, out, block=lanes, inputs=[values.reshape(-1)])
    assert report.status == "ok", report.summary()
    words = [(0, 0)] * 3
    expected = []
    for i, row in enumerate(values.tolist()):
        old = words[i % 3]
        expected.append(old)
        b, c = tuple(row[:2]), tuple(row[2:])
        if op == "exch" or old == b:
            words[i % 3] = c if op == "cas" else b
    assert [tuple(pair) for pair in found.reshape(-1, 2).tolist()] == expected
    assert [tuple(pair) for pair in left.reshape(-1, 2).tolist()] == words


VECTORS = [
    (op, vec, type)
    for op in ("add", "min", "max")
    for vec, types in (("v2", ("f16", "bf16x2", "f32")), ("v4", ("bf16", "f16x2", "f32")), ("v8", ("f16", "bf16")))
    for type in types
    if op == "add" or type != "f32"
] + [("add", "", "f16x2"), ("add", "", "bf16x2")]


@pytest.mark.parametrize("opcode", ["atom", "red"])
@pytest.mark.parametrize(("op", "vec", "type"), VECTORS)
def test_vectors_and_packed_values(op: str, vec: str, type: str, opcode: str) -> None:
    """Element by element, in a sum or as the lesser or greater; in .global and by generic addresses."""
    count, lanes, name = int(vec[1:] or 1), 2 * THREADS, element(type)
    bits = FORMATS[name].bits
    register, packed = bits_of(type), bits_of(type) // bits
    each = count * packed
    memory, values = float_edges(name, 6 * each, 1), float_edges(name, lanes * each, 2)
    names = [[f"%{letter}{i}" for i in range(count)] for letter in "db"]
    d, b = ("{" + ", ".join(each) + "}" if vec else each[0] for each in names)
    size = each * bits // 8
    loads = "".join(f"ld.global.b{register} {r}, [%from+{i * register // 8}];" for i, r in enumerate(names[1]))
    stores = "".join(f"st.global.b{register} [%at+{i * register // 8}], {r};" for i, r in enumerate(names[0]))
    noftz, vector = "" if type == "f32" else ".noftz", f".{vec}" if vec else ""
    space = ".global" if op == "add" else ""
    result, stores = (f"{d}, ", stores) if opcode == "atom" else ("", "")
    body = f"""{HEAD} .reg .b{register} {", ".join(names[0] + names[1])}; rem.u32 %x, %i, 6;
        mad.wide.u32 %address, %x, {size}, %out0; mad.wide.u32 %from, %i, {size}, %in0; {loads}
        mad.wide.u32 %at, %i, {size}, %out1;
        {opcode}{space}.{op}{noftz}{vector}.{type} {result}[%address], {b};
        {stores} ret;
        """
    out = [memory.copy(), poisoned(lanes * each, memory.dtype)]
    report, (left, found) = launch(body, out, block=THREADS, grid=2, inputs=[values])
    assert report.status == "ok", report.summary()
    expected = [int(word) for word in memory]
    bucket = [(i % 6) * each + k for i in range(lanes) for k in range(each)]
    apply = lambda old, b: floating(op, old, b, name, ftz=type == "f32")  # noqa: E731
    wanted = one_after_the_other(expected, bucket, values.tolist(), apply)
    assert plain(left.tolist(), name) == plain(expected, name)
    assert found.tolist() == (wanted if opcode == "atom" else poisoned(lanes * each, memory.dtype).tolist())


def test_the_order_of_lanes_is_open() -> None:
    """With the schedule random, lanes take a word in another order, but each of them once; a seed gives it again."""
    body = f"{HEAD} atom.global.add.u32 %x, [%out0], 1; add.u64 %at, %out1, %wide; st.global.u32 [%at], %x; ret;"
    orders = []
    for seed in (1, 2, 1):
        zero = np.zeros(1, np.uint32)
        report, (left, found) = launch(
            body, [zero, poisoned(2 * THREADS)], block=THREADS, grid=2, schedule="random", seed=seed
        )
        assert report.status == "ok", report.summary()
        assert left.tolist() == [2 * THREADS]
        assert sorted(found.tolist()) == list(range(2 * THREADS))
        orders.append(found.tolist())
    assert orders[0] == orders[2] != orders[1]


def test_many_lanes_at_one_word() -> None:
    """12 CTAs of 1024 threads count; floating-point sums are rounded one after the other."""
    body = f"{HEAD} red.global.add.u32 [%out0], 3; red.global.add.f32 [%out1], 0f3F8CCCCD; ret;"
    report, (count, total) = launch(
        body, [np.zeros(1, np.uint32), np.zeros(1, np.float32)], block=1024, grid=12, checks=False
    )
    assert report.status == "ok", report.summary()
    expected = np.float32(0)
    for _ in range(12 * 1024):
        expected += np.float32(1.1)
    assert (count[0], total[0]) == (3 * 12 * 1024, expected)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_lock_between_ctas(schedule: Any) -> None:
    """A spin lock, with what it guards in plain global memory: CTAs make progress, and no increment is lost."""
    body = f"""{HEAD} setp.ne.u32 %p, %t, 0;
@%p bra done;
        take:
        atom.acquire.gpu.global.cas.b32 %x, [%out0], 0, 1;
        setp.ne.u32 %q, %x, 0;
        @%q bra take;
        ld.global.u32 %y, [%out0+4];
        add.u32 %y, %y, 1;
        st.global.u32 [%out0+4], %y;
        atom.release.gpu.global.exch.b32 %x, [%out0], 0;
        done:
        bar.sync 0;
        ret;
        """
    report, (found,) = launch(body, [np.zeros(2, np.uint32)], block=64, grid=4, schedule=schedule, seed=5)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [0, 4]


def test_lanes_of_a_warp_take_a_lock_in_turn() -> None:
    """Independent thread scheduling: the lane that has the lock goes on while the others of its warp spin."""
    body = f"""{HEAD} setp.gt.u32 %p, %t, 3;
@%p exit;
        take:
        atom.global.cas.b32 %x, [%out0], 0, 1;
        setp.ne.u32 %q, %x, 0;
        @%q bra take;
        ld.global.u32 %y, [%out0+4];
        add.u32 %y, %y, 1;
        st.global.u32 [%out0+4], %y;
        atom.global.exch.b32 %x, [%out0], 0;
        ret;
        """
    report, (found,) = launch(body, [np.zeros(2, np.uint32)], block=32, grid=2, checks=False)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [0, 8]


def test_a_lock_that_nobody_gives_back_is_a_deadlock() -> None:
    body = f"{HEAD} take: atom.global.cas.b32 %x, [%out0], 0, 1; setp.ne.u32 %q, %x, 0;\n@%q bra take; ret;"
    report, _ = launch(body, [np.ones(1, np.uint32)], block=64)
    assert (report.status, codes(report)) == ("deadlock", ["deadlock"])


@pytest.mark.parametrize(
    ("address", "op", "code"),
    [("%out0+2", "add.u32 %x,", "misaligned"), ("%out0+8", "add.u32 %x,", "out-of-bounds"),
     ("%local", "add.u32 %x,", "atomic-space"), ("%param", "add.u32 %x,", "atomic-space"),
     ("%out0+4", "exch.b64 %at,", "misaligned"), ("%out0+4", "add.u32 %x,", None)],
)  # fmt: skip
def test_faults(address: str, op: str, code: str | None) -> None:
    source = "%at" if "b64" in op else "%x"
    body = f"""{HEAD} .reg .b64 %local, %param;
.local .align 8 .b8 mine[8];
mov.u64 %local, mine;
        cvta.local.u64 %local, %local;
        mov.u64 %param, p_out0;
        cvta.param.u64 %param, %param;
        mov.b64 %at, 1;
        mov.b32 %x, 1;
        atom.{op} [{address}], {source};
        ret;
        """
    report, _ = launch(body, [np.zeros(2, np.uint32)], block=1)
    assert codes(report) == ([code] if code else []), report.summary()


@pytest.mark.parametrize(("op", "result"), [("min", 0x8000), ("max", 0x0000)])
@pytest.mark.parametrize("old", [0x0000, 0x8000])
@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_zeros_have_an_order(type: str, old: int, op: str, result: int) -> None:
    """-0 is below +0 (9.7.4), whichever is in memory."""
    body = f".reg .b16 %h; mov.b16 %h, {old ^ 0x8000}; red.global.{op}.noftz.v2.{type} [%out0], {{%h, %h}}; ret;"
    report, (found,) = launch(body, [np.full(2, old, np.uint16)], block=1)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [result, result]


@pytest.mark.parametrize("lanes", [1, 7, 128, 1000])
@pytest.mark.parametrize("places", [1, 3, 40])
@pytest.mark.parametrize("values", [2, 5, 1 << 31])
def test_swaps_of_lanes_take_turns(lanes: int, places: int, values: int) -> None:
    random = np.random.default_rng([lanes, places, values])
    for chained in (False, True):
        words = random.integers(0, values, places).astype(np.uint32)
        index = random.integers(0, places, lanes)
        expected = random.integers(0, values, lanes).astype(np.uint32)
        new = random.integers(0, values, lanes).astype(np.uint32)
        if chained:  # each expects what the one before has stored
            words[:], index, expected, new = (
                0,
                index * 0,
                np.arange(lanes, dtype=np.uint32),
                np.arange(1, lanes + 1, dtype=np.uint32),
            )
        memory, finds = words.tolist(), list[int]()
        for at, before, after in zip(index.tolist(), expected.tolist(), new.tolist(), strict=True):
            finds.append(memory[at])
            memory[at] = after if memory[at] == before else memory[at]
        assert swap(words, index, expected, new).tolist() == finds
        assert words.tolist() == memory
