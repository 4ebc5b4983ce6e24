"""Clusters: ranks, multicast, peers' shared memory, launch control."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Clusters")

CLUSTER_RANK = _check(
    code="cluster-rank",
    title="no such CTA in the cluster",
    fault=True,
    section="5.1.7",
    rule="An access to shared::cluster must name a rank that the cluster has.",
    why="mapa may form the address of a rank that does not exist (CuTe DSL's lanes do); only using it is an error.",
    fix="map a rank below %cluster_nctarank",
    example="mapa.shared::cluster.u32 %peer, data, 2;      // fixed: 1, in a cluster of 2\nst.shared::cluster.u32 "
    "[%peer], 0;",
    fires="emulator/semantics/test_cluster.py::test_addresses_of_nobody",
    twin="emulator/semantics/test_cluster.py::test_ranks_of_addresses",
)

MULTICAST_MASK = _check(
    code="multicast-mask",
    title="illegal multicast mask",
    fault=True,
    section="9.7.9.25.4",
    rule="A multicast mask must select at least one rank, and only ranks of the cluster.",
    why="Data for other ranks has no destination.",
    fix="set only bits below %cluster_nctarank",
    example="cp.async.bulk ... .multicast::cluster [tile], [%source], 4096, [full], 0xf;      // fixed: 0x3 in a "
    "cluster of 2",
    fires="emulator/semantics/test_tma.py::test_masks_of_ctas_that_are_not_there",
    twin="emulator/semantics/test_tma.py::test_copies_to_a_cluster[.cta_group::2-0-15-expect4--late]",
)

NOT_OWN_SHARED = _check(
    code="not-own-shared",
    title="peer address in shared::cta",
    fault=True,
    section="5.1.7",
    rule="An operand in .shared::cta must be in the shared memory of the CTA itself.",
    why="A peer's address is outside of that window.",
    fix="use .shared::cluster",
    example="mapa.shared::cluster.u32 %peer, data, 1;\nld.shared::cta.u32 %value, [%peer];      // fixed: "
    "ld.shared::cluster.u32",
    fires="emulator/semantics/test_cluster.py::test_another_cta_is_not_in_shared_cta",
    twin="emulator/semantics/test_tma.py::test_copies_to_a_cluster[.cta_group::2-0-15-expect4--late]",
)

COPY_MBARRIER_CTA = _check(
    code="copy-mbarrier-cta",
    title="data and mbarrier in different CTAs",
    section="9.7.9.25.5.2",
    rule="The mbarrier of a bulk or tensor copy must be in the CTA that receives the data; with .cta_group::2 it may "
    "be in its peer.",
    why="The completion must arrive where the data does. Clearing bit 24 of the address (0xFEFFFFFF) selects the even "
    "CTA of a pair, which only .cta_group::2 allows. The emulator goes on as if the mbarrier at this offset of the CTA "
    "that receives the data were named. So does Hopper (measured, H200, driver 580.159.04, 2026-11-23), where it is "
    "advice: hardware ignores the CTA in the mbarrier's address. Blackwell does not with .cta_group::2.",
    fix="map both addresses to the same rank, or use .cta_group::2 where the target has it",
    example="and.b32 %bar, %bar, 0xFEFFFFFF;      // fixed: without\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%source], 4096, [%bar];",
    fires="bugs/test_bugs.py::test_bug_is_reported[mbarrier-address-masked-eager]",
    twin="bugs/test_bugs.py::test_right_twin_is_clean[mbarrier-address-masked-eager]",
)

ASYNC_STORE_CTA = _check(
    code="async-store-cta",
    title="data and mbarrier in different CTAs",
    fault=True,
    section="9.7.9.12",
    rule="The data and the mbarrier of st.async and red.async must be in the same CTA.",
    why="The completion must arrive where the data does.",
    fix="map both addresses to the same rank",
    example="st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%in_rank_1], %value, [%bar_in_rank_0];\n"
    "// fixed: [%bar_in_rank_1]",
    fires="emulator/semantics/test_async_store.py::test_an_mbarrier_of_another_cta",
    twin="emulator/semantics/test_async_store.py::test_stores_to_a_peer[4-True-late]",
)

CANCEL_AFTER_REFUSAL = _check(
    code="cancel-after-refusal",
    title="try_cancel after a refusal",
    section="9.7.13.17",
    rule="clusterlaunchcontrol.try_cancel must not follow a response that was seen to be a refusal.",
    why="The behavior is undefined.",
    fix="leave the loop at the first refusal",
    example="clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %more, %response;\n// fixed: @!%more bra done;\n"
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar];",
    fires="emulator/semantics/test_miscellaneous.py::test_a_request_after_a_refusal",
    twin="emulator/semantics/test_miscellaneous.py::test_taking_over_what_has_not_begun[1-late]",
)

CANCEL_REFUSED = _check(
    code="cancel-refused",
    title="CTA of a refusal",
    section="9.7.13.17",
    rule="The CTA in a response of try_cancel may be read only if query_cancel.is_canceled says true.",
    why="The value is undefined in a refusal.",
    fix="branch on query_cancel.is_canceled first",
    example="clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %more, %response;\n"
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %x, %response;      // fixed: @%more ...",
    fires="emulator/semantics/test_miscellaneous.py::test_a_refusal_that_nobody_looks_at",
    twin="emulator/semantics/test_miscellaneous.py::test_taking_over_what_has_not_begun[1-late]",
)
