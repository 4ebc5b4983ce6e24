"""Which declarations a definition tests: those of its kernel but for what every kernel needs to get at its data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from microtests.harness import recordings
from microtests.harness.definition import Definition
from microtests.harness.draft import Draft, NotThereError
from ptxgen import coverage

#: What drafts append on their own, by declaration; it counts in the family's own microtests.
PLUMBING = frozenset({
    "address.cvta", "barrier.bar_sync", "control.bra", "control.exit", "conversion.cvt", "integer.add", "integer.mad",
    "integer.mad_wide", "integer.mul", "integer.rem", "logic.and_", "logic.not_", "logic.or_", "logic.shr", "logic.xor",
    "mbarrier.init", "mbarrier.try_wait_parity", "memory.ld", "memory.st", "move.mov", "predicate.selp",
    "predicate.setp",
})  # fmt: skip
#: Of tensor memory's own instructions those that its kernels are made of count in these families.
OWN = {
    "tcgen05.alloc": "tcgen05_allocation",
    "tcgen05.dealloc": "tcgen05_allocation",
    "tcgen05.relinquish_alloc_permit": "tcgen05_allocation",
    "tcgen05.ld": "tcgen05_load",
    "tcgen05.st": "tcgen05_load",
    "tcgen05.wait": "tcgen05_load",
    "tcgen05.commit": "tcgen05_ordering",
    "tcgen05.fence": "tcgen05_ordering",
}
FILE = Path(coverage.__file__).with_name(coverage.MICROTESTED)


def covered(definition: Definition, draft: Draft) -> set[str]:
    """Keys of the declarations that a definition tests."""
    keys = {form.form.key for form in draft.used}
    if definition.family.startswith("tcgen05"):  # what else such a kernel needs is tested elsewhere
        keys = {key for key in keys if key.startswith("tcgen05.")}
    plumbing = {key: key.partition(".")[0] for key in PLUMBING} | OWN
    return {key for key in keys if plumbing.get(key, definition.family) == definition.family}


def write(definitions: Iterable[Definition]) -> int:
    """Record for each declaration how many definitions test it, how many of these a GPU has answered, and one of them.

    That is the first of those that test the fewest declarations.
    """
    tested: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    plainest: dict[str, tuple[int, str]] = {}
    for definition in definitions:
        try:
            keys = covered(definition, definition.home())
        except NotThereError:
            continue
        tested.update(keys)
        for key in keys:
            if key not in plainest or len(keys) < plainest[key][0]:
                plainest[key] = len(keys), definition.name
        if recordings.recorded(definition) is not None:
            answered.update(keys)
    rows = [
        json.dumps({"key": key, "definitions": tested[key], "recorded": answered[key], "microtest": plainest[key][1]})
        for key in sorted(tested)
    ]
    FILE.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    return len(rows)
