"""The microtests among the tests: in the emulator against references and recordings, and a sample through ptxas.

What the emulator does not model is red too, unless the definition says so; and where it says so for nothing.
"""

from __future__ import annotations

import random

import pytest

from microtests.harness import assembling, recordings
from microtests.harness.covered import covered
from microtests.harness.definition import HOMES, Definition, definitions
from microtests.harness.draft import NEWEST
from microtests.harness.run import run
from ptxgen.coverage import microtested
from ptxgen.emulator import Emulator
from ptxgen.emulator.semantics import find
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.targets import parse_target, parse_version

#: Of so many definitions whose operands alone differ one is run here; `python -m microtests` runs all.
_ONE_OF = 4
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


@pytest.mark.one_in(3)
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


#: Declarations that Hopper has, but whose microtests a GPU does not run: they need a multicast object over several.
_UNANSWERED = "multimem"
#: Video instructions: tests/data/silicon/video.npz has an H200's answers to all their forms. Textures and surfaces: a
#: GPU's objects are made by its driver, which microtests do not call; tests/emulator/semantics has theirs.
_ANSWERED_ELSEWHERE = ("video.", "texture.", "surface.")
#: Forms of PTX 9.4 without a microtest.
_WITHOUT = frozenset(("cache.prefetch_valid", "tcgen05.commit_multicast"))


def _on(form: type[Instruction], target: str) -> bool:
    """Whether a target has a declaration, in the newest version."""
    declared, home, version = form.form, parse_target(target), parse_version(NEWEST)
    gone = declared.removed is not None and declared.removed.has_version(version) and declared.removed.has_target(home)
    return declared.availability.has_target(home) and not gone


def test_every_declaration_has_a_microtest() -> None:
    """What the emulator executes is tested alone, and a Hopper has answered what Hoppers have."""
    load_all()
    tested = microtested()
    emulated = [form for forms in REGISTRY.values() for form in forms if find(form) is not None]
    emulated = [form for form in emulated if not form.form.key.startswith(_ANSWERED_ELSEWHERE)]
    emulated = [form for form in emulated if form.form.key not in _WITHOUT]
    anywhere = [form.form.key for form in emulated if any(_on(form, home) for home in HOMES)]
    without = [key for key in anywhere if key not in tested]
    assert not without, "write microtests of these, then run: python -m microtests --coverage"
    here = [form.form.key for form in emulated if _on(form, "sm_90a")]
    unanswered = [key for key in here if not tested[key][1]]
    assert unanswered == [key for key in here if _UNANSWERED in key], "record them: --device gpu --record"


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
