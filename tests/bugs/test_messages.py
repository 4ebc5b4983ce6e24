"""What the first sentences of findings say: the cause, and a fix that cures, where a reader was once misled."""

from __future__ import annotations

import pytest

from tests.bugs import BUGS

BY_NAME = {each.name: each for each in BUGS}
#: By bug: what the message says, and what it once said.
SAID = {
    "slot-refilled-without-waiting-for-its-reader": (
        "nothing orders that load before this store",
        "of a flag after line 39, and ld.acquire.gpu of it before line 29",
    ),
    "completion-in-the-peer-not-observed": (
        "of a peer CTA", "whose own threads alone can wait for it", "let a thread of the peer wait for ready",
    ),
    "wait-by-one-warp": (
        "Another warp of its CTA has waited for that grid", "bar.sync after griddepcontrol.wait and before line 29",
    ),
    "mbarrier-init-fenced-by-another-thread": ("behind mbarrier.init, by the same thread",),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_the_message_says_the_cause(name: str) -> None:
    report = BY_NAME[name].run("eager", right=False)
    for part in SAID[name]:
        assert part in report.summary()
