"""Cluster launch control: requests for the work of CTAs that have not begun, and their responses."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

#: A persistent kernel with cluster launch control: thread 0 requests the next CTA, all threads read the response.
CLAIM = """
    .shared .align 16 .b8 response[16];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    .reg .b32 %phase, %parity, %x, %rounds;
    .reg .b64 %low, %high;
    .reg .b128 %got;
    .reg .pred %more;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 mbarrier.init.shared.b64 [empty], 64;
    bar.sync 0;
    mov.u32 %phase, 0;
    mov.u32 %rounds, 0;
    mov.u32 %x, %cta;
NEXT:
    mad.wide.u32 %rd0, %x, 256, %data;
    mad.wide.u32 %rd0, %thread, 4, %rd0;
    st.global.u32 [%rd0], %x;
    @!%thread0 bra WAIT;
"""
EMPTY = """
    xor.b32 %parity, %phase, 1;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %parity;
    @!%done bra EMPTY;
"""
#: The request, without its last qualifiers.
TRY_CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
REQUEST = """
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [full]; // <--
WAIT:
"""
FULL = """
    mbarrier.try_wait.parity.shared.b64 %done, [full], %phase;
    @!%done bra WAIT;
"""
READ = """
    ld.shared.v2.b64 {%low, %high}, [response]; // <--
"""
RELEASE = """
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared.b64 _, [empty];
"""
QUERY = """
    mov.b128 %got, {%low, %high};
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %more, %got;
"""
AGAIN = """
    @!%more bra DONE;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %x, %got;
    and.b32 %x, %x, 3;
    xor.b32 %phase, %phase, 1;
    bra NEXT;
DONE:
"""


def _only(mark: str, lines: str) -> str:
    """Lines of the bug alone (`-`), or of its right twin alone (`+`)."""
    return "\n" + "\n".join(mark + line for line in lines.strip("\n").splitlines()) + "\n"


BUGS = [
    Bug(
        name="response-read-before-it-has-come",
        source=REBUILT,
        what="cluster launch control: the response of try_cancel is read without a wait for its mbarrier",
        code="shared-race",
        also=("uninitialized-shared", "mbarrier-split", "mbarrier-round-behind"),
        block=64,
        grid=4,
        target="sm_100a",
        multiprocessors=1,
        ptx=CLAIM + EMPTY + REQUEST + _only("+", FULL) + READ + RELEASE + QUERY + AGAIN,
    ),
    Bug(
        name="response-overwritten-while-it-is-read",
        source=REBUILT,
        what="cluster launch control: the next try_cancel writes to the slot that slower warps have yet to read",
        code="shared-race",
        also=("mbarrier-round-behind",),
        block=64,
        grid=4,
        target="sm_100a",
        multiprocessors=1,
        ptx=CLAIM
        + _only("+", EMPTY)
        + REQUEST
        + FULL
        + READ
        + RELEASE.replace("    mbarrier", "+    mbarrier")
        + QUERY
        + AGAIN,
    ),
    Bug(
        name="response-read-without-a-proxy-fence",
        source=REBUILT,
        what="cluster launch control: no fence.proxy.async between the reads of a response and the next try_cancel",
        code="missing-proxy-fence",
        severity="advice",
        block=64,
        grid=4,
        target="sm_100a",
        multiprocessors=1,
        ptx=CLAIM + EMPTY + REQUEST + FULL + READ + RELEASE.replace("    fence", "+    fence") + QUERY + AGAIN,
    ),
    Bug(
        name="request-after-a-refusal",
        source=REBUILT,
        what="cluster launch control: the loop runs a fixed number of rounds and requests on after a refusal",
        code="cancel-after-refusal",
        block=64,
        grid=4,
        target="sm_100a",
        multiprocessors=1,
        ptx=CLAIM
        + EMPTY
        + REQUEST
        + FULL
        + READ
        + RELEASE
        + QUERY
        + """
    add.u32 %rounds, %rounds, 1;
-    setp.lt.u32 %p0, %rounds, 6;
-    @!%p0 bra DONE;
+    @!%more bra DONE;
    @%more clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %x, %got;
    xor.b32 %phase, %phase, 1;
    bra NEXT;
DONE:
""",
    ),
    Bug(
        name="response-of-all-ctas-expected-by-the-first",
        source="facebookexperimental/triton#1024",
        what="try_cancel multicasts its response, but only CTA 0 announces its bytes to its mbarrier: CTA 1 hangs",
        code="deadlock",
        target="sm_100a",
        grid=4,
        cluster=2,
        multiprocessors=2,
        block=32,
        ptx=f"""
    .shared .align 16 .b8 response[16];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    setp.eq.u32 %p1, %rank, 0;
    and.pred %p2, %p1, %thread0;
-    @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
+    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p2 {TRY_CANCEL}.multicast::cluster::all.b128 [response], [full]; // <--
FULL:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0; // <--
    @!%done bra FULL;
    ld.shared.v2.b64 {{%rd0, %rd1}}, [response];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
]
