"""mbarriers: their life, counts, bytes and parities."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="mbarriers")

#: Findings that follow from a barrier whose phases complete at the wrong time.
_AFTER_A_WRONG_PHASE = (
    "deadlock",
    "shared-race",
    "tensor-race",
    "cta-exit",
    "mbarrier-overflow",
    "mbarrier-tx",
    "mbarrier-parity",
    "missing-proxy-fence",
    "tmem-freed-in-use",
    "uninitialized-shared",
    "uninitialized-tensor",
)

MBARRIER_UNINITIALIZED = _check(
    code="mbarrier-uninitialized",
    title="uninitialized mbarrier",
    fault=True,
    section="9.7.13.15.9",
    rule="An operation on an mbarrier needs an mbarrier.init of this address before it, and no mbarrier.inval since.",
    why="Without one the 64 bits are whatever memory held: the operation is undefined.",
    fix="initialize it with mbarrier.init before the first use",
    example="// fixed: mbarrier.init.shared.b64 [full], 1;\nmbarrier.arrive.shared.b64 _, [full];",
    fires="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
    twin="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
)

MBARRIER_INIT_RACE = _check(
    code="mbarrier-init-race",
    title="mbarrier used before its init is visible",
    section="9.7.13.15.9",
    rule="A warp that uses an mbarrier must have synchronized with the warp that initialized it.",
    why="Otherwise the init may come after the use. It is advice where barrier.cluster.arrive.relaxed lies between and "
    "only the fence is missing, as in CUTLASS's GEMMs for CTA pairs.",
    fix="put bar.sync between init and use; for peer CTAs fence.mbarrier_init.release.cluster and barrier.cluster",
    example="@%first mbarrier.init.shared.b64 [full], 1;\n// fixed: bar.sync 0;\nmbarrier.arrive.shared.b64 _, [full];",
    fires="emulator/semantics/test_mbarrier.py::test_init_must_be_seen_before_use",
    twin="emulator/semantics/test_mbarrier.py::test_init_must_be_seen_before_use",
    explains=("mbarrier-init-race", "mbarrier-uninitialized"),
)

MBARRIER_INIT_PROXY = _check(
    code="mbarrier-init-proxy",
    title="missing fence.mbarrier_init",
    severity="advice",
    section="9.7.13.15.9",
    rule="The async proxy must see the init of an mbarrier before a copy completes on it: fence.mbarrier_init or "
    "fence.proxy.async after the init, ordered before the copy; of a peer's mbarrier with barrier.cluster after it.",
    why="The copy may complete on an mbarrier that, as far as it can see, has not been initialized.",
    fix="put fence.mbarrier_init.release.cluster behind mbarrier.init, by the same thread, before the barrier",
    example="mbarrier.init.shared.b64 [full], 1;\n// fixed: fence.mbarrier_init.release.cluster;\nbar.sync 0;",
    fires="emulator/checks/order/test_cluster_peers.py::test_fence_of_a_peers_mbarrier",
    twin="emulator/checks/order/test_cluster_peers.py::test_fence_of_a_peers_mbarrier",
)

MBARRIER_INVAL_RACE = _check(
    code="mbarrier-inval-race",
    title="mbarrier invalidated while in use",
    section="9.7.13.15.10",
    rule="mbarrier.inval must come after all uses of the mbarrier by other warps.",
    why="A use after it is undefined. It is advice where that use is a wait for a phase that is over, and the "
    "invalidating warp has waited for that phase too: compilers invalidate so, and hardware still answers. It stays an "
    "error where an mbarrier.init at the same address follows: the wait may then be for the new one.",
    fix="put a barrier between the last use and mbarrier.inval",
    example="// fixed: bar.sync 0;\n@%first mbarrier.inval.shared.b64 [full];",
    fires="emulator/semantics/test_mbarrier.py::test_the_end_must_come_after_all_arrivals",
    twin="emulator/semantics/test_mbarrier.py::test_the_end_must_come_after_all_arrivals",
    explains=("mbarrier-inval-race",),
)

MBARRIER_REINITIALIZED = _check(
    code="mbarrier-reinitialized",
    title="mbarrier initialized twice",
    section="9.7.13.15.9",
    rule="mbarrier.init of an address that holds a live mbarrier is undefined.",
    why="Pending arrivals and bytes are lost. It is advice where lanes of a warp initialize the same mbarrier in one "
    "instruction, as ThunderKittens does.",
    fix="execute mbarrier.inval first; initialize from one lane only (elect.sync)",
    example="// fixed: mbarrier.inval.shared.b64 [full];\nmbarrier.init.shared.b64 [full], 2;",
    fires="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
    twin="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
    explains=("mbarrier-uninitialized",),
)

MBARRIER_OVERWRITTEN = _check(
    code="mbarrier-overwritten",
    title="mbarrier overwritten",
    section="9.7.13.15",
    rule="Only mbarrier operations may write to the bytes of a live mbarrier.",
    why="A store or copy there is undefined: its phase and counts are lost.",
    fix="correct the address, or end the mbarrier by mbarrier.inval first",
    example="st.shared.u64 [full], 0;      // fixed: st.shared.u64 [data], 0;",
    fires="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
    twin="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
)

MBARRIER_COUNT = _check(
    code="mbarrier-count",
    title="illegal mbarrier count",
    fault=True,
    section="9.7.13.15.9",
    rule="The count of mbarrier.init must be 1 to 1048575.",
    why="Other counts are undefined.",
    fix="initialize with the number of arrivals of a phase",
    example="mbarrier.init.shared.b64 [full], 0;      // fixed: 1",
    fires="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
    twin="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
)

MBARRIER_SPLIT = _check(
    code="mbarrier-split",
    title="arrivals split over two phases",
    section="9.7.13.15.3",
    rule="The arrivals of the lanes of a warp by one instruction must count in one phase, and an arrival must be "
    "ordered after those of the phase before. An arrival of the phase must come after the increment of each "
    "cp.async.mbarrier.arrive without .noinc.",
    why="If a phase ends among the arrivals of one round, the count of mbarrier.init is too small: the phase completes "
    "before all threads have arrived, and each round moves further. A wait then passes early, or waits forever for the "
    "wrong parity. The same happens if a thread arrives again before it has waited.",
    fix="initialize with the number of threads that arrive in a phase, or let one lane of each warp arrive",
    example="mbarrier.init.shared.b64 [bar], 127;      // fixed: 128\n"
    "mbarrier.arrive.shared.b64 _, [bar];      // by 128 threads",
    fires="bugs/test_bugs.py::test_bug_is_reported[mbarrier-all-lanes-arrive-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[mbarrier-all-lanes-arrive-eager]",
    explains=(*_AFTER_A_WRONG_PHASE, "mbarrier-round-behind"),
)

MBARRIER_ROUND_BEHIND = _check(
    code="mbarrier-round-behind",
    title="waiter may be a round behind",
    section="9.7.13.15.16",
    rule="A phase of an mbarrier must not complete before all waits for the phase before it have passed: one of its "
    "arrivals must be ordered after each of these waits.",
    why="A wait names a phase by its parity. A waiter that is slower than a whole phase finds the parity of the next "
    "one but one, and waits forever or takes other data for its own. It is advice where the waiter accesses no memory "
    "and arrives nowhere from then on, and another warp copies after the same wait (TileLang lets whole warps wait "
    "for a free stage, which one thread fills).",
    fix="let every waiter arrive on the mbarrier that gives the stage back (its init count: all of them), or put a "
    "barrier between the wait and the next phase",
    example="mbarrier.init.shared.b64 [empty], 1;      // 2 warps wait on [full]; fixed: 2, and both arrive",
    fires="bugs/test_bugs.py::test_bug_is_reported[mbarrier-waiter-a-round-behind-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[mbarrier-waiter-a-round-behind-eager]",
    explains=_AFTER_A_WRONG_PHASE,
)

MBARRIER_OVERFLOW = _check(
    code="mbarrier-overflow",
    title="too many arrivals",
    fault=True,
    section="9.7.13.15.2",
    rule="A phase must not get more arrivals than it expects, nor lose more expected arrivals than it has.",
    why="The pending count wraps, and the phase completes at the wrong time. A tcgen05.commit is one arrival, too.",
    fix="make the count of mbarrier.init the number of arrivals in a phase, or guard the arrival by one thread",
    example="mbarrier.init.shared.b64 [full], 1;\nmbarrier.arrive.shared.b64 _, [full];      // fixed: @%leader "
    "mbarrier...",
    fires="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
    twin="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
)

MBARRIER_TX = _check(
    code="mbarrier-tx",
    title="tx-count out of range",
    fault=True,
    section="9.7.13.15.3",
    rule="The tx-count of a phase must stay within -1048575 to 1048575.",
    why="It leaves the range if bytes are expected over and over, or if copies complete that no expect_tx covers.",
    fix="announce the bytes of whole boxes by expect_tx, including those outside the tensor",
    example="mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 2097152;      // fixed: the bytes of the copies",
    fires="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
    twin="emulator/semantics/test_mbarrier.py::test_faults_and_their_twins",
)

EXPECT_TX = _check(
    code="expect-tx",
    title="wrong expect_tx",
    section="9.7.13.15.3",
    rule="expect_tx must announce the bytes of all copies of a phase before the phase's last arrival. Reported: a "
    "phase that completes while a copy for it is under way; a copy that no expect_tx covers, by a warp that has not "
    "waited for the phase before; an expect_tx that no arrival of the phase follows; in a deadlock, a phase held open "
    "by bytes alone; and a CTA exit or mbarrier.inval after more bytes than were expected (advice: fewer).",
    why="A phase completes as soon as no arrivals are pending and its tx-count is zero. Bytes that are announced "
    "late, or not at all, may arrive after that: the waiting thread reads stale data, and the next phase counts wrong "
    "or never completes. Whether that happens depends on how fast memory answers. Whole boxes count, including what "
    "lies outside the tensor; each CTA of a multicast counts them on its own mbarrier; with .cta_group::2 the leader "
    "counts those of both CTAs. A phase whose count a thread has lowered by mbarrier.complete_tx is not judged.",
    fix="announce the bytes of all copies of the phase by mbarrier.arrive.expect_tx in the thread that issues them",
    example="mbarrier.arrive.expect_tx.shared.b64 _, [full], 4096;      // fixed: 8192\n"
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [%a], 4096, [full];\n"
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [b], [%b], 4096, [full];",
    fires="emulator/checks/mbarrier/test_transactions.py::test_wrong_ways[too large]",
    twin="emulator/checks/mbarrier/test_transactions.py::test_right_ways[arrive.expect_tx-late]",
    explains=_AFTER_A_WRONG_PHASE,
)

MBARRIER_PARITY = _check(
    code="mbarrier-parity",
    title="wrong parity",
    section="9.7.13.15.16",
    rule="A wait must name the parity of the next phase for its warp: try_wait.parity with p succeeds once the current "
    "phase has the other parity. Reported in place of a race if a wait with the wrong parity explains it, and in a "
    "deadlock if the next phase is over but the wait is for a later one.",
    why="A wait names only the parity of a phase, so a wrong one succeeds at once, or never. Before the first phase "
    "completes, a wait for parity 1 succeeds.",
    fix="keep a parity per mbarrier, or per round of a ring, and flip it after each wait; start with 0 to wait for the "
    "first phase, with 1 where the first wait must pass, as a producer's wait for an empty stage",
    example="L: mbarrier.try_wait.parity.shared.b64 %done, [full], %parity; @!%done bra L;\n"
    "// fixed: xor.b32 %parity, %parity, 1;\nbra next_stage;",
    fires="emulator/checks/mbarrier/test_stale_waits.py::test_a_phase_that_does_not_come",
    twin="emulator/checks/mbarrier/test_stale_waits.py::test_a_phase_that_does_not_come",
    explains=(
        "mbarrier-parity",
        "deadlock",
        "shared-race",
        "tensor-race",
        "cta-exit",
        "mbarrier-overflow",
    ),
)

MBARRIER_NO_COMPLETE = _check(
    code="mbarrier-no-complete",
    title=".noComplete completes a phase",
    section="9.7.13.15.13",
    rule="An arrival with .noComplete must not be the last of its phase.",
    why="Otherwise the behavior is undefined.",
    fix="leave out .noComplete",
    example="mbarrier.arrive.noComplete.shared.b64 %state, [full], 1;      // fixed: mbarrier.arrive.shared.b64 ...",
    fires="emulator/semantics/test_mbarrier.py::test_arrivals_that_may_not_complete",
    twin="emulator/semantics/test_mbarrier.py::test_arrivals_that_may_not_complete",
)

DEADLOCK = _check(
    code="deadlock",
    title="deadlock",
    section="9.7.13.15",
    rule="No warp can proceed, and no asynchronous work is left.",
    why="The launch never ends. There is a finding for each cause; waits for warps that wait themselves are its "
    "consequences. Each names what it waits for: an mbarrier with phase and parity, pending arrivals and the lines of "
    "past ones, the bytes expected and transferred; a barrier with the number of threads that have arrived, there and "
    "at other barriers of the CTA, and the warps that have exited.",
    fix="arrivals pending: the init count is too large, or an arrival is guarded away. Bytes outstanding: expect_tx is "
    "too large, or a copy is missing. Neither: the wait is for a phase that has not begun, so its parity is wrong",
    example="mbarrier.init.shared.b64 [full], 2;      // fixed: 1\n@%leader mbarrier.arrive.shared.b64 _, [full];",
    fires="emulator/semantics/test_mbarrier.py::test_waiting_without_end_is_a_deadlock",
    twin="emulator/semantics/test_mbarrier.py::test_states_of_arrivals",
    explains=("deadlock", "mbarrier-round-behind"),
)
