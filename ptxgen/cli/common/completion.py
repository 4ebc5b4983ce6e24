"""Shell completion of kernels, their options, targets and subjects of `explain`. Must be fast and never raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer


def kernel_names(incomplete: str) -> list[tuple[str, str]]:
    """Kernels and the ids of their rungs that begin so, with what they are; ids only where something is given."""
    from ptxgen.catalog import kernels

    found = [(entry.name, entry.summary) for entry in kernels().values()]
    if incomplete:
        found += [(rung, entry.summary) for entry in kernels().values() for rung in entry.rungs]
    return [(name, help) for name, help in found if name.startswith(incomplete)]


def words(*known: str) -> Callable[[str], list[str]]:
    """Completion of an option that takes one of some words."""

    def complete(incomplete: str) -> list[str]:
        return [each for each in known if each.startswith(incomplete)]

    return complete


def settings(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """OPTION=VALUE of the kernel that the words before name: the options, and after = their values."""
    from ptxgen.catalog import find

    options: dict[str, dict[str, Any]] = {}
    for word in (context.params.get("kernel"), *context.args):  # where the last option lacks its value, the latter
        try:
            options = find(word or "").described()
        except (ValueError, LookupError, OSError):
            continue
    name, equals, value = incomplete.partition("=")
    if equals:
        return [(f"{name}={each}", "") for each in _values(options.get(name, {})) if each.startswith(value)]
    found = {each: option for each, option in options.items() if each.startswith(name)}
    made = [(f"{each}=", option["help"]) for each, option in found.items()]
    if len(found) == 1:  # the values too: after a single word, shells put a space
        made += [(f"{each}={value}", "") for each, option in found.items() for value in _values(option)]
    return made


def _values(option: Mapping[str, Any]) -> list[str]:
    """What an option of a kernel can be, as `--set` takes it."""
    if "range" in option:
        first, last, step = option["range"]
        return [str(each) for each in range(first, last + 1, step)]
    return [
        str(each).lower() if isinstance(each, bool) else str(each) for each in option.get("choices", ()) if each != ""
    ]


def types(incomplete: str) -> list[str]:
    """Element types of A, B and C that begin so."""
    from ptxgen.gemm.types import TYPES

    return [each for each in TYPES if each.startswith(incomplete)]


def planned_types(incomplete: str) -> list[str]:
    """Element types, and block-scaled formats, that begin so."""
    from ptxgen.gemm.selection.planner import FORMATS

    return [*types(incomplete), *(each for each in FORMATS if each.startswith(incomplete))]


def machines(incomplete: str) -> list[str]:
    """Machines of the performance model that begin so."""
    from ptxgen.timing import MACHINES

    return [each for each in MACHINES if each.startswith(incomplete)]


def pictures(incomplete: str) -> list[str]:
    """Kinds of layouts that begin so."""
    from ptxgen.pictures import KINDS

    return [each for each in KINDS if each.startswith(incomplete)]


def targets(incomplete: str) -> list[str]:
    """Architectures that begin so."""
    from ptxgen.instr.model.targets import TARGETS

    return [each for each in TARGETS if each.startswith(incomplete)]


def subjects(incomplete: str) -> list[tuple[str, str]]:
    """What `explain` explains: formats, codes of findings, and opcodes up to the next dot."""
    from ptxgen.cli.reference.explain import FORMATS
    from ptxgen.concepts import concepts
    from ptxgen.emulator.checks.registry import CHECKS
    from ptxgen.instr import load_all
    from ptxgen.instr.model.form import REGISTRY

    load_all()
    found = {"facts": "what no manual states", "checks": "all codes of findings", "concepts": "all concepts"}
    found |= dict.fromkeys(FORMATS, "the bits of a descriptor")
    found |= {check.code: check.title for check in CHECKS.values()}
    found |= dict.fromkeys(concepts(), "concept")
    dots = incomplete.count(".")
    for forms in REGISTRY.values():
        for form in forms:
            words = form.form.opcode.split(".")
            found.setdefault(".".join(words[: dots + 1]), "instruction")
    return sorted((name, help) for name, help in found.items() if name.startswith(incomplete))
