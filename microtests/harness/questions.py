"""Questions: microtests whose answer nobody has seen, with the results that each candidate rule predicts.

The first candidate is the emulator's rule. A GPU's words support the candidates whose results they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from microtests.harness import recordings
from microtests.harness.definition import Definition, definitions, microtest
from microtests.harness.draft import Draft


@dataclass(frozen=True)
class Question:
    """A question, and the answer of each candidate rule: `make(draft, rule, *arguments)` drafts its microtest."""

    asks: str
    candidates: tuple[str, ...]
    make: Callable[..., None]
    arguments: tuple[Any, ...]

    def draft(self, candidate: str, target: str) -> Draft:
        """The microtest with the results, or the fault, that a candidate predicts."""
        made = Draft(target)
        self.make(made, candidate, *self.arguments)
        return made

    def supported(self, answer: dict[str, Any], target: str) -> list[str]:
        """The candidates that an answer of a kit fits."""
        return [each for each in self.candidates if _fits(self.draft(each, target), answer)]


_QUESTIONS: dict[str, Question] = {}


def question(asks: str, candidates: tuple[str, ...], *arguments: Any) -> Callable[..., Callable[..., None]]:
    """Decorator of `function(draft, rule, *arguments)`: a microtest for each of the arguments (a tuple is several)."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        family = function.__module__.rpartition(".")[2]
        before = set(_registered(family))

        def asked(draft: Draft, *values: Any) -> None:
            function(draft, candidates[0], *values)

        asked.__module__, asked.__name__, asked.__doc__ = function.__module__, function.__name__, function.__doc__
        microtest(*arguments)(asked)
        made = [name for name in _registered(family) if name not in before]
        for name, each in zip(made, arguments or ((),), strict=True):
            values = each if isinstance(each, tuple) else (each,)
            _QUESTIONS[name] = Question(asks, candidates, function, values)
        return function

    return decorate


def _registered(family: str) -> list[str]:
    from microtests.harness.definition import registered

    return [name for name in registered() if name.startswith(f"{family}.")]


def questions() -> dict[str, Question]:
    """All questions by the name of their microtest."""
    definitions()
    return _QUESTIONS


def is_question(definition: Definition) -> bool:
    """Whether a microtest is a question: it runs in a process of its own."""
    return definition.name in questions()


def _fits(draft: Draft, answer: dict[str, Any]) -> bool:
    faulted = "fault" in answer or "CUDA_ERROR" in answer.get("message", "")
    if draft.fault:
        return faulted
    kept = answer.get("outputs", {})
    return bool(kept) and all(
        each.name in kept and kept[each.name]["sha"] == recordings.digest(each.expected_bytes())
        for each in draft.outputs
    )


#: What else the facts file of Blackwell leaves open: answered by ordinary microtests, whose names begin so.
OPEN = {
    "tcgen05.cp of every shape, multicast, swizzle and decompression": ("tcgen05_copy.",),
    "tcgen05.shift of a pair, and before a copy": ("tcgen05_copy.shift",),
    ".ashift": ("tcgen05_mma.ashift", "tcgen05_sparse.ashift", "tcgen05_pairs.ashift"),
    "zero-column masks and column shifts": ("tcgen05_ws.zero_columns", "tcgen05_ws.column_shift"),
    ".ws layouts of D, A and metadata": ("tcgen05_ws.",),
    "lane masks at M 64 and in pairs": ("tcgen05_mma.disable_output_lane", "tcgen05_pairs.options"),
    "collector buffers": ("tcgen05_mma.collector",),
    "scale-factor ids, layouts and SFB of both CTAs": ("tcgen05_scaled.", "tcgen05_pairs."),
    "sparse metadata by row, M, pair and selector": ("tcgen05_sparse.", "tcgen05_pairs."),
    "A in tensor memory of every type": ("tcgen05_mma.a_in_tensor_memory", "tcgen05_scaled.sizes"),
    "tcgen05.ld and st, .pack::16b and .unpack::16b": ("tcgen05_load.",),
    "tcgen05.ld.red": ("tcgen05_load.ld_red",),
    "cluster launch control": ("launch_control.",),
    "cvt to and from narrow formats, cvt.rs": ("conversion.",),
    "mma.sync of mxf8f6f4, mxf4 and nvf4 on sm_120": ("mma_scaled.",),
    "96-byte and 32-byte-atom swizzles of TMA": ("tma_packed.", "tma."),
}
