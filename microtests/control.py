"""Control flow: branches, tables of branches, calls, returns. References from PTX ISA 9.7.12, in plain Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.builder import Register
from ptxgen.instr import barrier, control, integer, logic, predicate
from ptxgen.instr.model.operands import Symbol

_THREADS = 96


class Lanes:
    """A kernel in which each thread computes `result`, beginning with 0, from its number."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        draft.launch(block=_THREADS)
        self.tid, self.result = draft.thread, draft.reg("b32", "result")
        self.add(draft.zero())

    def add(self, value: Register | int, to: Register | int = 0) -> None:
        self.draft(integer.add(self.result, value, to, type="u32"))

    def plus(self, value: Register | int) -> None:
        self.add(self.result, value)

    def low_bits(self, count: int) -> Register:
        """The lowest bits of the thread's number."""
        return self.draft.masked(self.tid, count)

    def finish(self, expected: Callable[[int], int]) -> None:
        values = np.array([expected(tid) % 2**32 for tid in range(_THREADS)], np.uint32)
        self.draft.store(self.draft.offset(self.draft.output(values), self.tid, 4), self.result)


@microtest(False, True)
def bra(draft: Draft, uni: bool) -> None:
    """Forwards and backwards: a loop of as many rounds as the thread's number says, or the warp's where all agree."""
    lanes = Lanes(draft)
    left, more, again, end = draft.reg("b32"), draft.reg("pred"), draft.label("again"), draft.label("end")
    if uni:
        draft(logic.shr(left, lanes.tid, 5, type="b32"))
    else:
        draft(integer.add(left, lanes.low_bits(4), 0, type="u32"))
    draft.place(again)
    draft(predicate.setp(more, left, 0, compare="gt", type="u32"), control.bra(end, uni=uni).unless(more))
    lanes.plus(left)
    draft(integer.sub(left, left, 1, type="u32"), control.bra(again, uni=uni))
    draft.place(end)
    lanes.plus(1000)
    rounds = (lambda tid: tid // 32) if uni else (lambda tid: tid % 16)
    lanes.finish(lambda tid: sum(range(rounds(tid) + 1)) + 1000)


@microtest()
def nested(draft: Draft) -> None:
    """Nested branches: lanes diverge and reconverge at the end of each."""
    lanes = Lanes(draft)
    for bit in range(4):
        inside, other, meet, half = draft.reg("pred"), draft.label("other"), draft.label("meet"), draft.label("half")
        draft(integer.bfe(part := draft.reg("b32"), lanes.tid, bit, 1, type="u32"))
        draft(predicate.setp(inside, part, 1, compare="eq", type="u32"), control.bra(other).unless(inside))
        lanes.plus(10**bit)
        draft(predicate.setp(inside, lanes.tid, 40, compare="lt", type="u32"), control.bra(half).when(inside))
        lanes.plus(10**bit)
        draft.place(half)
        draft(control.bra(meet))
        draft.place(other)
        lanes.plus(5 * 10**bit)
        draft.place(meet)

    def expected(tid: int) -> int:
        return sum(10**bit * ((1 if tid < 40 else 2) if tid >> bit & 1 else 5) for bit in range(4))

    lanes.finish(expected)


@microtest(False, True)
def brx_idx(draft: Draft, uni: bool) -> None:
    """The label of a list that an index names: one in each lane, or in each warp."""
    lanes = Lanes(draft)
    index = draft.reg("b32", "index")
    if uni:
        draft(logic.shr(index, lanes.tid, 5, type="b32"))
    else:
        draft(integer.rem(index, lanes.tid, 5, type="u32"))
    labels, table, meet = [draft.label(f"case{number}") for number in range(5)], "$table", draft.label("meet")
    draft.registers.define(Symbol(table, "branch targets"))
    draft.text(f"{table}: .branchtargets {', '.join(labels)};")
    draft(control.brx_idx(index, table, uni=uni))
    for number, label in enumerate(labels):
        draft.place(label)
        lanes.plus(number * number + 3)
        if number != 1:  # which falls through
            draft(control.bra(meet))
    draft.place(meet)
    number = (lambda tid: tid // 32) if uni else (lambda tid: tid % 5)
    lanes.finish(lambda tid: [3, 4 + 7, 7, 12, 19][number(tid)])


@microtest("exit", "ret", "ret.uni")
def ends(draft: Draft, which: str) -> None:
    """A thread that ends early does nothing more; the others go on, and do not wait for it."""
    lanes = Lanes(draft)
    uni = which == "ret.uni"
    gone = draft.reg("pred", "gone")
    limit = 32 if uni else 45
    draft(predicate.setp(gone, lanes.tid, limit, compare="lt", type="u32"))
    before = np.full(_THREADS, 7, np.uint32)
    after = np.where(np.arange(_THREADS) < limit, 7, np.arange(_THREADS) * 3).astype(np.uint32)
    out = draft.offset(draft.output(after, initial=before), lanes.tid, 4)
    draft((control.exit() if which == "exit" else control.ret(uni=uni)).when(gone))
    draft(barrier.bar_sync(0), integer.mul(lanes.result, lanes.tid, 3, half="lo", type="u32"))
    draft.store(out, lanes.result)


_SQUARE = ".func (.reg .u32 %r) ENTRY_square(.reg .u32 %a) { mul.lo.u32 %r, %a, %a; ret; }"
_TWICE = ".func (.reg .u32 %r) ENTRY_twice(.reg .u32 %a) { add.u32 %r, %a, %a; ret.uni; }"
#: The sum of a word and a pair on the stack.
_SUM = """.func (.param .b32 r) ENTRY_sum(.param .b32 a, .param .align 8 .b8 pair[8])
{ .reg .u32 %a, %b, %c; ld.param.u32 %a, [a]; ld.param.v2.u32 {%b, %c}, [pair];
  add.u32 %a, %a, %b; add.u32 %a, %a, %c; st.param.b32 [r], %a; ret; }"""


def _call(draft: Draft, uni: bool, line: str) -> None:
    text = line.replace("ENTRY", draft.entry)
    draft.raw(text.replace("call", "call.uni") if uni else text, control.call)


@microtest(False, True)
def call(draft: Draft, uni: bool) -> None:
    """A value in a register."""
    lanes = Lanes(draft)
    draft.item(_SQUARE)
    _call(draft, uni, f"call ({lanes.result}), ENTRY_square, ({lanes.tid});")
    _call(draft, uni, f"call ({lanes.result}), ENTRY_square, ({lanes.result});")
    lanes.finish(lambda tid: tid**4)


@microtest(False, True)
def call_on_the_stack(draft: Draft, uni: bool) -> None:
    """Values in .param memory, one of them an array."""
    lanes = Lanes(draft)
    draft.item(_SUM)
    draft.text("{ .param .b32 x; .param .align 8 .b8 y[8]; .param .b32 z;")
    draft.text(f"st.param.b32 [x], {lanes.tid}; st.param.v2.b32 [y], {{{lanes.tid}, 100}};")
    _call(draft, uni, "call (z), ENTRY_sum, (x, y);")
    draft.text(f"ld.param.b32 {lanes.result}, [z]; }}")
    lanes.finish(lambda tid: 2 * tid + 100)


@microtest()
def call_divergent(draft: Draft) -> None:
    """Lanes call different functions, or none, and reconverge."""
    lanes = Lanes(draft)
    draft.item(_SQUARE)
    draft.item(_TWICE)
    way, this = lanes.low_bits(2), draft.reg("pred")
    for number, name in ((0, "square"), (1, "twice")):
        skip = draft.label("skip")
        draft(predicate.setp(this, way, number, compare="eq", type="u32"), control.bra(skip).unless(this))
        _call(draft, False, f"call ({lanes.result}), ENTRY_{name}, ({lanes.tid});")
        draft.place(skip)
    draft(predicate.setp(this, way, 2, compare="eq", type="u32"))
    _call(draft, False, f"@{this} call ({lanes.result}), ENTRY_square, (9);")
    draft(barrier.bar_warp_sync(0xFFFFFFFF))
    lanes.finish(lambda tid: [tid * tid, 2 * tid, 81, 0][tid % 4])


@microtest()
def recursion(draft: Draft) -> None:
    """Lanes at different depths; what an outer call keeps in .local memory is still there."""
    lanes = Lanes(draft)
    draft.item(".func (.param .b32 r) ENTRY_fib(.param .b32 n);")
    draft.item(""".func (.param .b32 r) ENTRY_fib(.param .b32 n)
{ .reg .u32 %n, %a, %b; .reg .pred %p; .local .align 4 .b32 kept; ld.param.u32 %n, [n];
  st.local.u32 [kept], %n; setp.lt.u32 %p, %n, 2; @%p bra small;
  { .param .b32 x; .param .b32 y; sub.u32 %a, %n, 1; st.param.b32 [x], %a; call (y), ENTRY_fib, (x); ld.param.u32 %a, [y]; }
  { .param .b32 x; .param .b32 y; sub.u32 %b, %n, 2; st.param.b32 [x], %b; call (y), ENTRY_fib, (x); ld.param.u32 %b, [y]; }
  add.u32 %a, %a, %b; ld.local.u32 %b, [kept]; setp.ne.u32 %p, %b, %n; @%p trap; st.param.b32 [r], %a; ret;
small: st.param.b32 [r], %n; ret; }""")  # noqa: E501
    depth = draft.reg("b32")
    draft(integer.rem(depth, lanes.tid, 9, type="u32"))
    draft.text(f"{{ .param .b32 x; .param .b32 y; st.param.b32 [x], {depth};")
    _call(draft, False, "call (y), ENTRY_fib, (x);")
    draft.text(f"ld.param.b32 {lanes.result}, [y]; }}")
    lanes.finish(lambda tid: [0, 1, 1, 2, 3, 5, 8, 13, 21][tid % 9])


@microtest(*((how, uni) for how in ("prototype", "targets", "table") for uni in (False, True)))
def call_pointer(draft: Draft, how: str, uni: bool) -> None:
    """The function whose address a table holds: one in each lane, or in each warp; three kinds of signature."""
    lanes = Lanes(draft)
    draft.item(_SQUARE)
    draft.item(_TWICE)
    draft.item(".func (.reg .u32 %r) ENTRY_next(.reg .u32 %a) { add.u32 %r, %a, 1; ret; }")
    names = ["ENTRY_twice", "ENTRY_square", "ENTRY_next"]
    draft.item(f".global .align 8 .u64 ENTRY_table[3] = {{{', '.join(names)}}};")
    index, pointer = draft.reg("b32", "index"), draft.reg("b64", "pointer")
    if uni:
        draft(logic.shr(index, lanes.tid, 5, type="b32"))
    else:
        draft(integer.rem(index, lanes.tid, 3, type="u32"))
    draft.text(f"    mov.u64 {pointer}, {draft.entry}_table;")
    draft(integer.mad_wide(pointer, index, 8, pointer, type="u32"))
    draft.text(f"    ld.global.u64 {pointer}, [{pointer}];")
    signature = {"prototype": "shape", "targets": "list", "table": f"{draft.entry}_table"}[how]
    if how == "prototype":
        draft.text("shape: .callprototype (.reg .u32 _) _ (.reg .u32 _);")
    elif how == "targets":
        draft.text(f"list: .calltargets {', '.join(names).replace('ENTRY', draft.entry)};")
    word = "call.uni" if uni else "call"
    draft.raw(f"{word} ({lanes.result}), {pointer}, ({lanes.tid}), {signature};", control.call_pointer)
    chosen = (lambda tid: tid // 32) if uni else (lambda tid: tid % 3)
    lanes.finish(lambda tid: [2 * tid, tid * tid, tid + 1][chosen(tid)])
