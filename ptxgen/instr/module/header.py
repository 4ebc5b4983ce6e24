"""`.version`, `.target` and `.address_size`. PTX ISA 11.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxgen import syntax
from ptxgen.instr.model.symbols import Problem, TextureMode, unavailable
from ptxgen.instr.model.targets import (
    ALL,
    VERSIONS,
    Availability,
    Target,
    TargetError,
    parse_target,
    parse_version,
    target_problem,
    version_problem,
)
from ptxgen.instr.module.context import Context

_TEXTURE_MODES = ("texmode_unified", "texmode_independent")
#: What may stand in `.target` besides architectures.
OPTIONS = {
    "debug": Availability("3.0", ALL),
    "map_f64_to_f32": Availability("1.0", ALL),
    **dict.fromkeys(_TEXTURE_MODES, Availability("1.0", ALL)),  # measured, ptxas 13.5; 1.5 in the manual
}
_ADDRESS_SIZE = Availability("2.3", ALL)

#: Directives of a module's header.
_HEADER = frozenset({"version", "target", "address_size"})

_NO_DEBUG = Problem("missing-directive", ".target debug requires debug information: a .section such as .debug_info")

Found = tuple[syntax.Statement | None, Problem]


def context_of(module: syntax.Module, target: str | None) -> tuple[Context, list[Found]]:
    """What the header says, and what is wrong with it. `target` stands for the architecture of `.target`."""
    directives = [item for item in module.items if isinstance(item, syntax.Directive)]
    found: list[Found] = []
    version = (99, 0)
    place = next((item for item in directives if item.name == "version"), None)
    if place is None:
        first = module.items[0] if module.items else None
        found.append((first, Problem("missing-directive", "a module begins with .version, for example .version 9.0")))
    else:
        version = parse_version(place.arguments[0])
        message = version_problem(version)
        if message is not None:
            found.append((place, Problem("ptx-version", message)))
        elif version > VERSIONS[-1]:
            newest = ".".join(map(str, VERSIONS[-1]))
            message = f".version {place.arguments[0]} is later than {newest}, the newest of ptxgen and ptxas 13.5"
            found.append((place, Problem("ptx-version", message)))
    architecture, problems = _target(directives, target, version)
    found += problems
    if architecture is not None:
        last = next((item for item in reversed(directives) if item.name == "target"), None)
        message = target_problem(architecture, version)
        if message is not None:
            # ptxas compares the two at what stands behind the header (measured, 13.5).
            is_header = len(directives) == len(module.items) and {each.name for each in directives} <= _HEADER
            exists = target_problem(architecture, VERSIONS[-1]) is None
            found.append((last, Problem("target", message, "warning" if is_header and exists else "error")))
    for item in directives:
        if item.name == "address_size":
            found += [(item, problem) for problem in _address_size(item, version)]
        elif item.name == "target" and "debug" in item.arguments and not _has_debug_sections(module):
            found.append((item, _NO_DEBUG))
    return Context(architecture, version, texture_mode_of(module)), found


def texture_mode_of(module: syntax.Module) -> TextureMode:
    """How `.target` has textures and samplers: unified unless it says otherwise."""
    targets = [item for item in module.items if isinstance(item, syntax.Directive) and item.name == "target"]
    return "independent" if any("texmode_independent" in item.arguments for item in targets) else "unified"


def _target(
    directives: list[syntax.Directive], wanted: str | None, version: tuple[int, int]
) -> tuple[Target | None, list[Found]]:
    """The architecture, which is the last that is named, and what is wrong with the words of `.target`."""
    found: list[Found] = []
    architecture: Target | None = None
    mode: str | None = None
    written = [item for item in directives if item.name == "target"]
    if not written and wanted is None:
        message = ".version must be followed by .target, for example .target sm_100a"
        found.append((directives[0] if directives else None, Problem("missing-directive", message)))
    for item in written:
        architecture, mode, problems = _words(item, architecture, mode, version, in_body=False)
        found += [(item, problem) for problem in problems]
    if wanted is not None:
        found = [(item, problem) for item, problem in found if problem.code != "target"]
        architecture = None
        try:
            architecture = parse_target(wanted)
        except TargetError as error:
            found.append((written[0] if written else None, Problem("target", str(error))))
    return architecture, found


def _words(
    item: syntax.Directive, architecture: Target | None, mode: str | None, version: tuple[int, int], *, in_body: bool
) -> tuple[Target | None, str | None, list[Problem]]:
    """The architecture and texture mode after the words of a `.target`, which starts with these, and what is wrong."""
    found: list[Problem] = []
    for position, word in enumerate(item.arguments):
        if word not in OPTIONS or (position == 0 and not in_body):
            try:
                architecture = parse_target(word)
            except TargetError as error:
                found.append(Problem("target", str(error)))
            continue
        found += unavailable(f".target {word}", OPTIONS[word], None, version)
        if word in _TEXTURE_MODES:
            if mode not in (None, word):
                found.append(Problem("target-option", f".target has one texture mode, not {mode} and {word}"))
            mode = word
        elif word == "map_f64_to_f32" and architecture is not None and architecture.number >= 13:
            message = f"map_f64_to_f32 requires a target without .f64, sm_10 to sm_12, not {architecture}"
            found.append(Problem("target-option", message))
    return architecture, mode, found


def retargeted(item: syntax.Directive, module: syntax.Module, context: Context) -> tuple[Context, list[Problem]]:
    """The context behind a `.target` within a function, and what is wrong with it.

    ptxas 13.5 judges what follows by the new architecture, to the end of the text.
    """
    mode = f"texmode_{context.texture_mode}"
    architecture, _, found = _words(item, context.target, mode, context.version, in_body=True)
    if architecture is not None and not any(problem.code == "target" for problem in found):
        message = target_problem(architecture, context.version)
        if message is not None:
            found.append(Problem("target", message))
    if "debug" in item.arguments and not _has_debug_sections(module):
        found.append(_NO_DEBUG)
    return replace(context, target=architecture), found


def _address_size(item: syntax.Directive, version: tuple[int, int]) -> Iterator[Problem]:
    yield from unavailable(".address_size", _ADDRESS_SIZE, None, version)
    if item.arguments[0] == "32":
        yield Problem("address-size", ".address_size must be 64; ptxas no longer assembles 32-bit code")


def _has_debug_sections(module: syntax.Module) -> bool:
    return any(isinstance(item, syntax.Section) and item.name.startswith(".debug_") for item in module.items)
