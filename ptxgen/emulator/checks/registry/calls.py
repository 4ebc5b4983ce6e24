"""Calls, branches by index, the stack, and how a kernel gives up."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_fault = partial(Check, group="Calls and the end of a kernel", fault=True)

BAD_CALL = _fault(
    code="bad-call",
    title="illegal call",
    section="9.7.12.5",
    rule="A call through a pointer must go to a function whose parameters match the call's prototype.",
    why="The behavior is undefined.",
    fix="take the pointer from a function with this prototype",
    example="call (%result), %pointer, (%a), prototype_of_two_arguments;      // fixed: the prototype of the function",
    fires="emulator/load/test_calls.py::test_a_pointer_to_no_function",
    twin="emulator/load/test_calls.py::test_function_pointers",
)

BRANCH_INDEX = _fault(
    code="branch-index",
    title="branch index out of range",
    section="9.7.12.4",
    rule="The index of brx.idx must be below the length of its list of labels.",
    why="The behavior is undefined.",
    fix="check the index before the branch",
    example="brx.idx %index, labels;      // fixed: @%in_range brx.idx %index, labels;",
    fires="emulator/load/test_calls.py::test_brx_idx",
    twin="emulator/load/test_calls.py::test_brx_idx",
)

STACK_OVERFLOW = _fault(
    code="stack-overflow",
    title="stack overflow",
    section="9.7.17",
    rule="A thread's stack must stay within its limit.",
    why="Hardware ends the kernel.",
    fix="bound the recursion, or allocate less by alloca",
    example="call recurse;      // fixed: @%deeper call recurse;",
    fires="emulator/load/test_calls.py::test_recursion_without_end",
    twin="emulator/load/test_calls.py::test_recursion",
)

BAD_STACK_POINTER = _fault(
    code="bad-stack-pointer",
    title="illegal stack pointer",
    section="9.7.17",
    rule="stackrestore takes a value of stacksave of the same function.",
    why="The behavior is undefined.",
    fix="pass what stacksave gave",
    example="stackrestore.u64 %other;      // fixed: the register of stacksave.u64",
    fires="emulator/semantics/test_async_store.py::test_stack_faults",
    twin="emulator/load/test_calls.py::test_recursion",
)

BAD_FREE = _fault(
    code="bad-free",
    title="illegal free",
    rule="free takes what malloc has given, once.",
    why="The heap is corrupted otherwise.",
    fix="free each pointer once",
    example="call free, (%pointer);\ncall free, (%pointer);      // fixed: once",
    fires="emulator/load/test_calls.py::test_malloc_and_free",
    twin="emulator/load/test_calls.py::test_malloc_and_free",
)

ASSERTION = _fault(
    code="assertion",
    title="assertion failed",
    rule="An assertion of the kernel (__assertfail) does not hold.",
    why="The kernel itself has found that something is wrong.",
    fix="",
    example="call __assertfail, (%message, %file, %line, %function, 1);",
    fires="emulator/load/test_calls.py::test_assertions",
    twin="emulator/load/test_calls.py::test_assertions",
)

TRAP = _fault(
    code="trap",
    title="trap",
    section="9.7.19.4",
    rule="The kernel has reached trap or brkpt.",
    why="They end the kernel.",
    fix="",
    example="trap;",
    fires="emulator/semantics/test_miscellaneous.py::test_traps",
    twin="emulator/load/test_calls.py::test_recursion",
)
