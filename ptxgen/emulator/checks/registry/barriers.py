"""Barriers, convergence of warps, and registers that warps hand over."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Barriers and warps")

BARRIER_MISMATCH = _check(
    code="barrier-mismatch",
    title="barrier mismatch",
    section="9.7.13.1",
    rule="All warps that arrive at a barrier must give the same thread count and the same operation (sync or "
    "reduction).",
    why="Otherwise the behavior is unpredictable.",
    fix="give each use its own barrier number, with one count",
    example="@%producer bar.sync 1, 64;\n@!%producer bar.sync 1, 128;      // fixed: 64",
    fires="emulator/semantics/test_barrier.py::test_counts_that_do_not_match",
    twin="emulator/semantics/test_barrier.py::test_counts_that_do_not_match",
    explains=("barrier-exited", "barrier-sites", "deadlock"),
)

BARRIER_SHARED = _check(
    code="barrier-shared",
    title="barrier shared without order",
    section="9.7.13.1",
    rule="A warp must not arrive at a barrier before all threads that the generation before counts have arrived there.",
    why="A barrier counts threads, not which ones. Where two groups of warps use one number, or a warp arrives "
    "twice, arrivals are counted in the wrong generation: some warps go on too early, others wait forever.",
    fix="give each group of warps a barrier number of its own",
    example="@%first bar.sync 1, 64;      // warps 0 and 1\n"
    "@!%first bar.sync 1, 64;     // warps 2 and 3; fixed: bar.sync 2, 64;",
    fires="bugs/test_bugs.py::test_bug_is_reported[barrier-number-of-two-groups-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[barrier-number-of-two-groups-eager]",
    explains=("barrier-exited", "deadlock", "shared-race", "global-race"),
)

BARRIER_SITES = _check(
    code="barrier-sites",
    title="divergent barrier",
    section="9.7.13.1",
    rule="All threads of a CTA must execute the same bar.sync (__syncthreads), where it names no number of threads.",
    why="A bar.sync in a branch that only some warps take completes together with another one that the others reach "
    "later: it does not order what the source says, and all later ones are off by one. synccheck of compute-sanitizer "
    "reports divergent threads. barrier.sync without .aligned and a named barrier with a thread count allow it.",
    fix="move the barrier out of the branch, or give the warps of the branch a barrier number with their thread count",
    example="@%some bra A;\nbar.sync 0;\nbra B;\nA: bar.sync 0;      // fixed: one bar.sync 0 after B\nB:",
    fires="bugs/test_bugs.py::test_bug_is_reported[barrier-in-both-branches-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[barrier-in-both-branches-eager]",
    explains=("barrier-sites", "barrier-exited", "deadlock", "shared-race"),
)

BARRIER_EXITED = _check(
    code="barrier-exited",
    title="barrier after threads have exited",
    severity="advice",
    section="9.7.13.1",
    rule="A bar.sync without a thread count (__syncthreads) is one of all threads of the CTA; some have exited.",
    why="Since sm_70 hardware does not wait for threads that have exited, but synccheck of compute-sanitizer reports "
    "them, and projects have seen kernels hang there.",
    fix="let all warps reach the barrier before they exit, or use a named barrier with the count of those that do",
    example="@%producer ret;\nbar.sync 0;      // fixed: bar.sync 1, 128;",
    fires="bugs/test_bugs.py::test_bug_is_reported[barrier-after-other-warps-exit-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[barrier-after-other-warps-exit-eager]",
)

BARRIER_NUMBER = _check(
    code="barrier-number",
    title="illegal barrier number",
    fault=True,
    section="9.7.13.1",
    rule="A CTA has the barriers 0 to 15.",
    why="Other numbers are undefined.",
    fix="use 0 to 15",
    example="bar.sync 16;      // fixed: bar.sync 15;",
    fires="emulator/schedule/test_control.py::test_bad_barrier_operands",
    twin="emulator/schedule/test_control.py::test_bad_barrier_operands",
)

BARRIER_COUNT = _check(
    code="barrier-count",
    title="illegal thread count",
    fault=True,
    section="9.7.13.1",
    rule="The thread count of a barrier must be a multiple of 32 and not 0.",
    why="A barrier counts whole warps.",
    fix="use a multiple of 32",
    example="bar.sync 1, 100;      // fixed: bar.sync 1, 128;",
    fires="emulator/schedule/test_control.py::test_bad_barrier_operands",
    twin="emulator/schedule/test_control.py::test_bad_barrier_operands",
)

CLUSTER_BARRIER_ORDER = _check(
    code="cluster-barrier-order",
    title="cluster barrier out of order",
    section="9.7.13.3",
    rule="A thread must alternate barrier.cluster.arrive and barrier.cluster.wait, beginning with arrive.",
    why="A second arrival in a phase, or a wait without an arrival, is undefined.",
    fix="execute one barrier.cluster.wait after each barrier.cluster.arrive",
    example="barrier.cluster.arrive.aligned;\n// fixed: barrier.cluster.wait.aligned;\nbarrier.cluster.arrive.aligned;",
    fires="emulator/semantics/test_cluster.py::test_order_of_arrivals_and_waits",
    twin="emulator/semantics/test_cluster.py::test_order_of_arrivals_and_waits",
    explains=("mbarrier-init-race", "mbarrier-uninitialized", "cta-exit", "shared-race"),
)

DIVERGENT_WARP = _check(
    code="divergent-warp",
    title="divergent warp",
    section="9.7.13.1",
    rule="An instruction with .aligned, and bar, requires all threads of the warp to execute it together.",
    why="In a divergent warp the behavior is undefined. Where the other lanes wait for something that never comes, the "
    "deadlock is reported alone.",
    fix="let all lanes execute it, outside of a branch or guard that only some take; if the others come too, but "
    "later, let the warp reconverge first (bar.warp.sync)",
    example="@%leader bar.sync 0;      // fixed: bar.sync 0;",
    fires="emulator/semantics/test_mma.py::test_divergent_warp",
    twin="emulator/semantics/test_mma.py::test_divergent_warp",
    explains=("barrier-exited",),
)

WARP_MASK = _check(
    code="warp-mask",
    title="lane not in its own mask",
    section="9.7.9.6",
    rule="A lane that executes shfl.sync, vote.sync, match.sync, redux.sync or elect.sync must be in its own mask. The "
    "instruction waits for all lanes of the mask that have not exited; it need not be the same line.",
    why="Otherwise the result is undefined (also 9.7.13.9 to 14), or the warp hangs. A lane that never comes leaves "
    "the others waiting: that is a deadlock, which names them.",
    fix="name the lane itself and those that execute the instruction with it: 0xffffffff for the whole warp. Do not "
    "take the mask from activemask after a branch",
    example="shfl.sync.idx.b32 %value, %value, 0, 31, 0x0000ffff;      // fixed: 0xffffffff",
    fires="emulator/semantics/test_warp.py::test_lanes_that_the_mask_does_not_name",
    twin="emulator/semantics/test_warp.py::test_lanes_that_the_mask_does_not_name",
)

SHUFFLE_SOURCE = _check(
    code="shuffle-source",
    title="undefined shuffle",
    section="9.7.9.6",
    rule="Results must not depend on a value that shfl.sync takes from a lane that is not in the mask, has exited or "
    "does not exist.",
    why="The value is undefined. It is reported where a rerun with other values there changes what the launch does; "
    "reductions that shuffle past the last lane and drop the value are not reported.",
    fix="let the source lane execute the shuffle and name it in the mask, or discard the value (selp, or bound the "
    "source lane by c)",
    example="@%low shfl.sync.bfly.b32 %other, %sum, 16, 31, 0x0000ffff;      // fixed: 8 instead of 16",
    fires="bugs/test_bugs.py::test_bug_is_reported[shuffle-from-outside-the-mask-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[shuffle-from-outside-the-mask-eager]",
)

SETMAXNREG_DIRECTION = _check(
    code="setmaxnreg-direction",
    title="setmaxnreg in the wrong direction",
    section="9.7.19.5",
    rule="setmaxnreg.inc must not name fewer registers than the warp has, nor .dec more.",
    why="The behavior is undefined.",
    fix="swap .inc and .dec, or correct the count",
    example="setmaxnreg.inc.sync.aligned.u32 40;      // fixed: setmaxnreg.dec.sync.aligned.u32 40;",
    fires="emulator/semantics/test_miscellaneous.py::test_directions",
    twin="emulator/semantics/test_miscellaneous.py::test_what_does_nothing",
)

SETMAXNREG_BUDGET = _check(
    code="setmaxnreg-budget",
    title="register pool exhausted",
    section="9.7.19.5",
    rule="The registers that the warps of a CTA hold and request must not exceed those with which they began "
    "(.maxnreg times the warps, counted for a thread of each warp).",
    why="setmaxnreg.inc waits for registers that no warp can give back. A deadlock there without this finding means "
    "that the sum fits, and a setmaxnreg.dec is missing or comes after something else that waits.",
    fix="lower the counts so that their sum fits the pool",
    example=".maxnreg 128      // 8 warps\nsetmaxnreg.inc.sync.aligned.u32 240;      // fixed: 160, with .dec 96 in "
    "the others",
    fires="emulator/semantics/test_miscellaneous.py::test_directions",
    twin="emulator/semantics/test_miscellaneous.py::test_registers_move_between_warps",
    explains=("deadlock",),
)

SETMAXNREG_WARPGROUP = _check(
    code="setmaxnreg-warpgroup",
    title="setmaxnreg not by the whole warpgroup",
    section="9.7.19.5",
    rule="All warps of a warpgroup must execute the same setmaxnreg instructions.",
    why="If only some warps of a warpgroup execute it, or with other counts, the behavior is undefined: registers that "
    "others wait for may never come free.",
    fix="execute setmaxnreg before the branch that selects a warp of the warpgroup",
    example="@%producer setmaxnreg.dec.sync.aligned.u32 40;      // one warp: fixed: without the guard",
    fires="bugs/test_bugs.py::test_bug_is_reported[setmaxnreg-one-warp-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[setmaxnreg-one-warp-eager]",
    explains=("setmaxnreg-warpgroup", "deadlock"),
)

SETMAXNREG_IGNORED = _check(
    code="setmaxnreg-ignored",
    title="setmaxnreg is ignored",
    severity="advice",
    section="9.7.19.5",
    rule="ptxas ignores setmaxnreg unless a directive says how many registers a thread begins with.",
    why="The warps keep the registers that ptxas chose. ptxas begins with no more than the largest setmaxnreg.inc asks "
    "for; .reqntid or .maxntid alone is enough where the registers of a wgmma let no two CTAs share a multiprocessor.",
    fix="add .maxnreg, or .minnctapersm beside .reqntid or .maxntid",
    example=".visible .entry k() .reqntid 128      // fixed: .reqntid 128 .maxnreg 128",
    fires="emulator/semantics/test_miscellaneous.py::test_directions",
    twin="emulator/semantics/test_miscellaneous.py::test_what_does_nothing",
)
