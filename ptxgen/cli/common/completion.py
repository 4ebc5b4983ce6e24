"""Shell completion of kernels, targets and subjects of `explain`. Must be fast and never raise."""

from __future__ import annotations


def kernel_names(incomplete: str) -> list[tuple[str, str]]:
    """Kernels and rungs that begin so, with what they are."""
    from ptxgen.gemm import kernels

    found = [(entry.name, entry.summary) for entry in kernels().values()]
    return [(name, help) for name, help in found if name.startswith(incomplete)]


def targets(incomplete: str) -> list[str]:
    """Architectures that begin so."""
    from ptxgen.instr.model.targets import TARGETS

    return [each for each in TARGETS if each.startswith(incomplete)]


def subjects(incomplete: str) -> list[tuple[str, str]]:
    """What `explain` explains: formats, codes of findings, and opcodes up to the next dot."""
    from ptxgen.cli.reference.explain import FORMATS
    from ptxgen.emulator.checks.registry import CHECKS
    from ptxgen.instr import load_all
    from ptxgen.instr.model.form import REGISTRY

    load_all()
    found = {"facts": "what no manual states", "checks": "all codes of findings"}
    found |= dict.fromkeys(FORMATS, "the bits of a descriptor")
    found |= {check.code: check.title for check in CHECKS.values()}
    dots = incomplete.count(".")
    for forms in REGISTRY.values():
        for form in forms:
            words = form.form.opcode.split(".")
            found.setdefault(".".join(words[: dots + 1]), "instruction")
    return sorted((name, help) for name, help in found.items() if name.startswith(incomplete))
