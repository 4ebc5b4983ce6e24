"""The fix that a finding names cures: applied to the text of a bug by machine, the kernel runs clean.

Of 40 bugs, drawn at random once (2026-11-28), those whose fix is no single insertion are listed with
the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ptxgen.device.report import Finding
from tests.bugs import BUGS
from tests.bugs.bug import Bug

#: Bugs whose fix is a decision, not an insertion: why.
BY_HAND = {
    "mbarrier-waiter-a-round-behind": "the counts of two mbarriers change",
    "tensormap-changed-while-loading": "the wait needs a phase of an mbarrier, or a second map",
    "tensormap-not-acquired": "the address of the map belongs into the fence",
    "setmaxnreg-over-budget": "which register count to lower is a choice",
    "lanes-store-different-shared": "which lane stores is a choice",
    "barrier-under-a-condition-on-the-thread": "the barrier moves out of its condition",
    "step-of-half-k": "the step is computed elsewhere",
    "k-major-tile-read-mn-major": "an operand of the MMA changes",
    "pair-allocation-by-its-leader-alone": "a deadlock: the peer lacks an instruction that only its author knows",
    "exit-before-the-second-commit-of-a-peer": "the wait needs a phase of an mbarrier",
    "tutorial-allocates-before-its-peer-has-started": "the barrier goes before a branch, not before a line",
    "stage-reused-after-a-commit-of-another-thread": "the commit moves to the thread that issues the MMA",
    "relay-publishes-for-its-cta-alone": "a modifier of the arrival changes",
    "barrier-in-both-branches": "two barriers become one behind the branch",
    "barrier-without-one-of-its-producers": "a deadlock: which thread should arrive is a choice",
    "scales-of-b-over-those-of-a": "columns of tensor memory are allocated anew",
    "counter-reset-under-its-pollers": "a deadlock: the counter needs a second word or a phase",
    "pair-allocates-between-arrive-and-wait": "the wait for the cluster moves",
    "mbarrier-dealloc-handshake-by-a-whole-warp": "either a count or the arriving lanes change",
    "arrival-before-the-last-copy": "the arrival moves behind the copy",
    "barrier-after-other-warps-exit": "either the exit or the barrier changes",
    "fixup-waits-for-too-few-threads": "how many signals there are is the kernel's to say",
}
#: The other bugs of the draw.
BY_MACHINE = frozenset((
    "count-read-after-atomics-of-other-warps", "exit-while-a-peer-reduces-there", "exit-while-peers-count",
    "exit-while-peers-store", "fence-after-the-ticket", "group-barrier-without-syncthreads",
    "histogram-read-before-all-have-counted",
    "lock-given-back-without-a-fence", "mbarrier-init-not-fenced", "next-mma-without-a-fence-after-the-wait",
    "one-barrier-in-a-loop", "one-thread-writes-all-read", "published-by-one-lane",
    "read-only-load-of-data-written-here", "second-try-wait-taken-for-a-wait", "slot-released-while-lanes-read",
    "stored-tile-read-after-a-wait-for-its-source", "stream-k-partials-without-a-fence",
))  # fmt: skip
DRAW = [each for each in BUGS if each.name in BY_MACHINE or each.name in BY_HAND]

#: A fix by its beginning, and where what goes: the instructions, and whether before the second line (True) or after
#: the first (False).
Edit = tuple[str, int, bool]
Cure = Callable[[re.Match[str], Finding], Edit]

_WHOLE, _PAIR = "bar.sync 0;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


def _writer(finding: Finding) -> int:
    """The last line of the finding's writers and initializers."""
    lines = [each.line for each in finding.accesses if each.role in ("writer", "initializer")]
    return max(line for line in lines if line is not None)


def _other(finding: Finding) -> int:
    """The line of the finding's second access."""
    return finding.accesses[1].line or 0


CURES: list[tuple[str, Cure]] = [
    (r"bar\.warp\.sync between line \d+ and line (\d+)", lambda m, f: ("bar.warp.sync -1;", int(m[1]), True)),
    (r"bar\.warp\.sync before this access", lambda m, f: ("bar.warp.sync -1;", f.line or 0, True)),
    (r"bar\.sync between line \d+ and line (\d+)", lambda m, f: (_WHOLE, int(m[1]), True)),
    (r"bar\.sync after line (\d+), before", lambda m, f: (_WHOLE, int(m[1]), False)),
    (r"bar\.sync before line (\d+), after", lambda m, f: (_WHOLE, int(m[1]), True)),
    (r"barrier\.cluster\.arrive and \S+ between line \d+ and line (\d+)", lambda m, f: (_PAIR, int(m[1]), True)),
    (r"bar\.sync or an mbarrier between line \d+ and line (\d+)", lambda m, f: (_WHOLE, int(m[1]), True)),
    (r"griddepcontrol\.wait before line (\d+)$", lambda m, f: ("griddepcontrol.wait;", int(m[1]), True)),
    (r"(tcgen05\.wait::(?:ld|st)) (?:after) line (\d+)", lambda m, f: (f"{m[1]}.sync.aligned;", int(m[2]), False)),
    (r"(tcgen05\.wait::ld) before line (\d+)", lambda m, f: (f"{m[1]}.sync.aligned;", int(m[2]), True)),
    (r"(tcgen05\.fence::\w+) after line (\d+)", lambda m, f: (f"{m[1]};", int(m[2]), False)),
    (r"tcgen05\.fence::after_thread_sync after", lambda m, f: ("tcgen05.fence::after_thread_sync;", f.line or 0, True)),
    (
        r"cp\.async\.wait_all .*? before line (\d+)(, then bar\.warp)?",
        lambda m, f: (f"cp.async.wait_all; {'bar.warp.sync -1;' if m[2] else _WHOLE}", int(m[1]), True),
    ),
    (
        r"cp\.async\.bulk\.wait_group 0 .*? before line (\d+)",
        lambda m, f: (f"cp.async.bulk.wait_group 0; {_WHOLE}", int(m[1]), True),
    ),
    (r"(fence\.proxy\.async\S*) after line (\d+)", lambda m, f: (f"{m[1]};", int(m[2]), False)),
    (r"(fence\.proxy\.async\S*) after the stores", lambda m, f: (f"{m[1]};", _writer(f), False)),
    (
        r"bar\.warp\.sync between the (?:store|load) and the arrival",
        lambda m, f: ("bar.warp.sync -1;", _other(f), False),
    ),
    (r"use \.release in line (\d+), or put (fence\.acq_rel) before", lambda m, f: (f"{m[2]}.gpu;", int(m[1]), True)),
    (r"use \.acquire in line (\d+), or put (fence\.acq_rel) after", lambda m, f: (f"{m[2]}.gpu;", int(m[1]), False)),
    (r"put (fence\.mbarrier_init\S*) behind", lambda m, f: (f"{m[1]};", _writer(f), False)),
]


def cured(bug: Bug, finding: Finding) -> str | None:
    """The text of a bug with the finding's fix applied; None if that is no insertion."""
    lines = bug.text(right=False).splitlines()
    if finding.fix == "barrier.cluster before the exit":
        return "\n".join([*lines[:-2], _PAIR, *lines[-2:]]) + "\n"  # the last are `ret;` and `}`
    if finding.fix == "use ld.global without .nc":
        at = (finding.line or 0) - 1
        lines[at] = lines[at].replace(".nc", "")
        return "\n".join(lines) + "\n"
    for pattern, cure in CURES:
        if (found := re.match(pattern, finding.fix)) is not None:
            what, line, before = cure(found, finding)
            lines.insert(line - 1 if before else line, what)
            return "\n".join(lines) + "\n"
    return None


def reported(bug: Bug) -> Finding:
    """The finding of a bug, under the first of its schedules that shows it."""
    schedule = bug.schedules[0]
    for seed in bug.seeds if schedule == "random" else (0,):
        for each in bug.run(schedule, right=False, seed=seed).findings:
            if (each.code, each.severity) == (bug.code, bug.severity):
                return each
    raise AssertionError(f"{bug.name} is not reported")


@pytest.mark.parametrize("bug", DRAW, ids=lambda bug: bug.name)
def test_the_fix_cures(bug: Bug) -> None:
    finding = reported(bug)
    text = cured(bug, finding)
    if text is None:
        assert bug.name in BY_HAND, finding.fix
        return
    assert bug.name not in BY_HAND, "this fix is an insertion"
    schedule = bug.schedules[0]
    report, _ = bug.launch(text, schedule, seed=bug.seeds[0])
    assert not [each for each in report.findings if each.code == bug.code], f"{finding}\n{report.summary()}"
    assert report.ok, f"{finding}\n{report.summary()}"
