"""Assembling definitions with ptxas for every target that has them, many in one module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from microtests.harness.definition import Definition
from microtests.harness.draft import Draft, NotThereError, header
from ptxgen.toolchain import AssemblerError, assemble

#: One of each generation and family that ptxas 13.5 has.
TARGETS = ("sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a", "sm_103a", "sm_107a", "sm_110a", "sm_120a", "sm_121a")
_AT_ONCE = 40


@dataclass(frozen=True)
class Refusal:
    """A definition that ptxas does not take for a target that the model says has it."""

    name: str
    target: str
    message: str


def drafts(definitions: Sequence[Definition], targets: Sequence[str] = TARGETS) -> list[tuple[str, Draft]]:
    """The kernels of definitions for these targets, with their names."""
    made = []
    for target in targets:
        for number, definition in enumerate(definitions):
            try:
                made.append((definition.name, definition.draft(target, f"k{number}")))
            except NotThereError:
                continue
    return made


def refused(made: Sequence[tuple[str, Draft]], jobs: int = 2) -> Iterator[tuple[int, list[Refusal]]]:
    """After each module: how many kernels were assembled, and which of them ptxas refuses."""
    groups: dict[tuple[str, str, bool], list[tuple[str, Draft]]] = {}
    for name, draft in made:
        # A module has one cta_group.
        key = (draft.target, draft.version, any("cta_group::2" in line for line in draft.lines))
        groups.setdefault(key, []).append((name, draft))
    modules = [group[start : start + _AT_ONCE] for group in groups.values() for start in range(0, len(group), _AT_ONCE)]
    with ThreadPoolExecutor(jobs) as pool:
        for module, found in zip(modules, pool.map(_judge, modules), strict=True):
            yield len(module), found


def _judge(module: Sequence[tuple[str, Draft]]) -> list[Refusal]:
    first = module[0][1]
    text = header(first.target, first.version) + "\n".join(draft.entry_text() for _, draft in module)
    try:
        assemble(text)
    except AssemblerError as error:
        if len(module) == 1:
            words = "; ".join(str(each) for each in error.diagnostics[:3]) or error.log[:300]
            return [Refusal(module[0][0], first.target, words)]
        half = len(module) // 2
        return _judge(module[:half]) + _judge(module[half:])
    return []
