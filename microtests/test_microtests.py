"""The microtests among the tests: in the emulator against references and recordings, and a sample through ptxas.

What the emulator does not model is red too, unless the definition says so; and where it says so for nothing.
"""

from __future__ import annotations

import random

import pytest

from microtests.harness import assembling, recordings
from microtests.harness.covered import covered
from microtests.harness.definition import Definition, definitions
from microtests.harness.run import run
from ptxgen.coverage import microtested
from ptxgen.emulator import Emulator

#: Of so many definitions whose operands alone differ one is run here; `python -m microtests` runs all.
_ONE_OF = 2
#: Kernels that are assembled here.
_ASSEMBLED = 150


def _sample() -> list[Definition]:
    """Every definition of its own, and some of the many variants of arithmetic."""
    seen: dict[str, int] = {}
    chosen = []
    for definition in definitions().values():
        head = definition.name.partition("[")[0]
        seen[head] = seen.get(head, -1) + 1
        if seen[head] % _ONE_OF == 0:
            chosen.append(definition)
    return chosen


@pytest.mark.parametrize("definition", _sample(), ids=lambda definition: definition.name)
def test_emulator(definition: Definition) -> None:
    """The emulator has the results of the reference, and of the GPU that was recorded."""
    draft = definition.home()
    assert covered(definition, draft) <= microtested().keys(), "run: python -m microtests --coverage"
    result = run(definition, Emulator(draft.target), draft)
    if definition.unmodelled:
        assert result.verdict == "incomplete", f"it is modelled now ({result.verdict}): take its reason away"
        assert definition.unmodelled in result.message
        return
    assert result.verdict == "passed", result.message
    kept = recordings.recorded(definition)
    if kept is not None:
        assert not recordings.difference(draft, result, kept)


def test_ptxas_sample() -> None:
    """ptxas takes the kernels for targets that the model says have them."""
    chosen = random.Random(0).sample(list(definitions().values()), _ASSEMBLED)
    drafts = assembling.drafts(chosen, ("sm_90a", "sm_100a"))
    refused = [refusal for _, refusals in assembling.refused(drafts) for refusal in refusals]
    assert not refused, "\n".join(f"{each.name} for {each.target}: {each.message}" for each in refused[:10])


def test_recordings_are_of_definitions() -> None:
    """No recording is of a definition that is gone."""
    known = definitions()
    for path in recordings.FOLDER.glob("*.json"):
        heading, entries = recordings.load(path.stem)
        assert {"device", "driver", "date"} <= heading.keys()
        assert not [name for name in entries if name not in known]
