"""Launches that cannot run, and what stops the emulator."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Launches")

LAUNCH_SHAPE = _check(
    code="launch-shape",
    title="illegal launch",
    fault=True,
    section="11.7",
    rule="Grid, block and cluster must be what the kernel's directives allow (.reqntid, .maxntid, .reqnctapercluster, "
    ".explicitcluster, .maxclusterrank).",
    why="The driver refuses the launch.",
    fix="launch with the extents that the directive names",
    example=".reqntid 128      // fixed: block=128",
    fires="emulator/schedule/test_launch.py::test_blocks_that_a_kernel_does_not_take",
    twin="emulator/schedule/test_launch.py::test_blocks_that_a_kernel_does_not_take",
)

ILLEGAL_PTX = _check(
    code="illegal-ptx",
    title="illegal PTX",
    fault=True,
    rule="ptxas would not assemble the module: `ptxgen check` finds an error.",
    why="The kernel does not run anywhere.",
    fix="",
    example="add.u64 %x, %x, %x;      // fixed: .reg .u64 %x;",
    fires="emulator/schedule/test_control.py::test_a_label_that_is_not_there",
    twin="emulator/load/test_calls.py::test_recursion",
)

OTHER_TARGET = _check(
    code="other-target",
    title="other target",
    section="11.1.2",
    rule="The module's .target does not run on the GPU that the emulator stands for: an `a` target runs on that one "
    "alone, an `f` target on its family, others on all that are newer.",
    why="It is emulated as what it was written for; the GPU would refuse it. Emulator() without a target takes all.",
    fix="create the emulator of the module's target",
    example='.target sm_90a      // fixed: Emulator("sm_90a")',
    fires="emulator/schedule/test_launch.py::test_another_target",
    twin="emulator/schedule/test_launch.py::test_another_target",
)

NOT_MODELLED = _check(
    code="not-modelled",
    title="not modelled",
    rule="The kernel has reached something that the emulator does not model; the message says what, and why.",
    why="The status is `incomplete`, never `ok`: nothing is said of the rest.",
    fix="",
    example="tex.1d.v4.f32.f32 {%a, %b, %c, %d}, [%texture, {%x}];",
    fires="emulator/schedule/test_launch.py::test_what_is_not_reached_does_not_matter",
    twin="emulator/schedule/test_launch.py::test_what_is_not_reached_does_not_matter",
)

STEP_LIMIT = _check(
    code="step-limit",
    title="step limit",
    rule="The launch has run as many blocks of instructions as Emulator(max_steps=) allows.",
    why="The status is `incomplete`: nothing is said of the rest. A loop that only spins is a deadlock and found "
    "sooner; one that counts how often it has polled goes on until here.",
    fix="raise max_steps, or launch less",
    example="Emulator(max_steps=1000)      // fixed: Emulator()",
    fires="emulator/schedule/test_watchdog.py::test_steps",
    twin="emulator/schedule/test_watchdog.py::test_steps",
)

TIME_LIMIT = _check(
    code="time-limit",
    title="time limit",
    rule="The launch has taken as many seconds as Emulator(timeout=) or `ptxgen run --timeout` allows.",
    why="The status is `incomplete`: nothing is said of the rest.",
    fix="raise the timeout, or launch less",
    example="Emulator(timeout=0.5)      // fixed: Emulator(timeout=60)",
    fires="emulator/schedule/test_watchdog.py::test_seconds",
    twin="emulator/schedule/test_watchdog.py::test_seconds",
)

NOT_RUN = _check(
    code="not-run",
    title="not run",
    rule="Another launch of the stream ended in a fault or deadlock, or was incomplete or illegal, so this one did not "
    "run to its end.",
    why="Its status is `incomplete`.",
    fix="",
    example="launch_overlapping([broken, other])",
    fires="emulator/schedule/test_grids.py::test_an_illegal_kernel_in_a_stream",
    twin="emulator/schedule/test_grids.py::test_a_chain_of_three",
)

SCHEDULE_DEPENDENT = _check(
    code="schedule-dependent",
    title="result depends on the schedule",
    section="8.10",
    rule="Every order that synchronization allows must leave the same global memory, sums of floating-point atomics "
    "aside.",
    why="An exploration (`ptxgen run --explore`, `Emulator.explore`) ran the launch in two orders that the kernel's "
    "synchronization allows, and they left different results. Hardware may take either.",
    fix="synchronize the access named first with the threads that were held in the other order",
    example="@%first st.global [%out], %winner;   // fixed: let one thread decide, and publish it",
    fires="emulator/explore/test_explore.py::test_a_result_that_depends_on_who_comes_first",
    twin="emulator/explore/test_explore.py::test_a_result_that_does_not",
)

GPU_FAULT = _check(
    code="gpu-fault",
    title="GPU fault",
    fault=True,
    rule="The driver or the GPU refused the launch or ended the kernel; the message holds the driver's own words.",
    why="A GPU says neither which instruction nor which thread.",
    fix="run the kernel in the emulator, which names the instruction",
    example="st.global.u32 [%null], 0;",
    fires="gpu/test_offline.py::test_a_refused_launch_is_a_fault_and_the_gpu_stays",
    twin="gpu/test_offline.py::test_launches_that_overlap_say_so",
)
