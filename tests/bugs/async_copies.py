"""cp.async: groups, and waits for them."""

from __future__ import annotations

from tests.bugs.bug import Bug

#: The word of this thread in `tile` at %own and that of its neighbor in the next warp at %next; its source at %from.
WORDS = """
    .shared .align 16 .b8 tile[1024];
    .reg .b32 %own, %next;
    .reg .b64 %from;
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, tile;
    add.u32 %own, %r1, %r0;
    xor.b32 %r0, %r0, 128;
    add.u32 %next, %r1, %r0;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %from, %rd0, %data;
"""

BUGS = [
    Bug(
        name="no-wait-before-syncthreads",
        source="NVIDIA/Fuser#3438",
        what="__syncthreads follows cp.async without cp.async.wait_all: it orders threads, not their copies",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    cp.async.ca.shared.global [%own], [%from], 4;
+    cp.async.wait_all;
    bar.sync 0;
    ld.shared.u32 %r2, [%next]; // <--
""",
    ),
    Bug(
        name="commit-after-the-wait",
        source="csarofeen/pytorch#2457",
        what="the main loop commits its group after the wait, so that the wait is for nothing",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    cp.async.ca.shared.global [%own], [%from], 4;
-    cp.async.wait_group 0;
    cp.async.commit_group;
+    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.u32 %r2, [%next]; // <--
    cp.async.wait_all;
""",
    ),
    Bug(
        name="stage-split-into-two-groups",
        source="tile-ai/tilelang#2505",
        what="a stage is committed in two groups but the wait counts stages: one group may still be on its way",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    cp.async.ca.shared.global [%own], [%from], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%own+512], [%from+512], 4;
    cp.async.commit_group;
-    cp.async.wait_group 1;
+    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.u32 %r2, [%next];
    ld.shared.u32 %r3, [%next+512]; // <--
    cp.async.wait_all;
""",
    ),
    Bug(
        name="copy-moved-before-the-last-use",
        source="tile-ai/tilelang#2668",
        what="pipelining moves the copy that overwrites a buffer before the last reads of the buffer",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    st.shared.u32 [%own], %thread;
    bar.sync 0;
+    ld.shared.u32 %r2, [%next];
+    bar.sync 0;
    cp.async.ca.shared.global [%own], [%from], 4; // <--
-    ld.shared.u32 %r2, [%next]; // <--
    cp.async.wait_all;
    bar.sync 0;
""",
    ),
]
