"""The findings of a launch that comments accept, in the PTX of a kernel and in the files that it was compiled from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePath

from ptxgen import syntax
from ptxgen.device import Accept, Kernel
from ptxgen.device.accept import read_accepts
from ptxgen.device.inline import Comment, comments, file_comments, require_code, require_codes
from ptxgen.device.sources import source_places
from ptxgen.emulator.load.source_lines import SourceLines
from ptxgen.files import source_file
from ptxgen.instr.model.symbols import CODES


def inline_accepts(kernel: Kernel) -> tuple[Accept, ...]:
    """What comments accept in this kernel. Raises AcceptError for a comment that cannot be used."""
    if inline_accepts in kernel.cache:  # `ignore_accepts`
        return ()
    # Kernels of the same text are one, and the files may have been edited since.
    key = inline_accepts, _stamps(kernel.module)
    if key not in kernel.cache:
        kernel.cache[key] = tuple(_accepts(kernel))
    found = kernel.cache[key]
    assert isinstance(found, tuple)
    return found


def ignore_accepts(kernel: Kernel) -> None:
    """Accept nothing by comments in this kernel."""
    kernel.cache[inline_accepts] = ()


def source_files(module: syntax.Module) -> dict[str, str]:
    """The paths of the files that a module's `.file` name, by the name that findings have."""
    made: dict[str, str] = {}
    for item in module.items:
        if isinstance(item, syntax.FileDirective):
            path = PurePath(item.path)
            made[path.name if path.is_absolute() else item.path] = item.path
    return made


def _stamps(module: syntax.Module) -> tuple[tuple[str, int, int], ...]:
    """Path, time of the last change and size of each file that a module's `.file` name, where it is there."""
    found = (source_file(path) for path in source_files(module).values())
    stats = ((str(file), file.stat()) for file in found if file is not None)
    return tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats)


def _accepts(kernel: Kernel) -> Iterator[Accept]:
    made = comment_accepts(kernel.text, kernel.module, lambda: _instruction_lines(kernel))
    return (each for each in made if each.code in launch_codes())


def check_accepts(text: str, module: syntax.Module, name: str) -> Iterator[Accept]:
    """What comments accept of the findings of `ptxgen check`; messages call the text `name`. Raises AcceptError."""
    made = comment_accepts(text, module, lambda: sorted({each.line for each in module.statements()}), name)
    return (each for each in made if each.code in CODES or "." in each.code)


def reviewed(path: str | Path) -> tuple[Accept, ...]:
    """The entries of a file of accepted findings (`read_accepts`). Raises AcceptError, for a code of no check too."""
    entries = read_accepts(path)
    if entries:
        known = launch_codes() | CODES
        for number, each in enumerate(entries, 1):
            require_code(each.code, f"{path}, entry {number}", known)
    return entries


def require_comments(text: str, name: str) -> None:
    """Raises AcceptError for a comment of a PTX text, which the message calls `name`, that accepts no finding."""
    if found := comments(text, name):
        require_codes(found, name, launch_codes() | CODES)


def comment_accepts(
    text: str, module: syntax.Module, statements: Callable[[], list[int]], name: str = ""
) -> Iterator[Accept]:
    """An entry for each code of each comment that is for one of these statements (their lines in the PTX), or for none.

    Comments for instructions of other kernels are left out. Raises AcceptError.
    """
    known = launch_codes() | CODES
    lines: list[int] | None = None
    if found := comments(text, name or "PTX"):
        require_codes(found, name or "PTX", known)
        lines = statements()
        every = sorted({each.line for each in module.statements()})
        others = set(_all_instructions(module)).difference(lines)
        for each in found:
            meant = {each.target, _statement_at(every, each.target)}
            targets = meant.intersection(lines)
            if targets or not meant & others:
                yield from _of(each, f"{name}:{each.line}" if name else f"line {each.line}", tuple(sorted(targets)))
    by_name: dict[str, tuple[str, tuple[Comment, ...]]] = {}
    for source, path in source_files(module).items():
        file = source_file(path)
        if file is not None and (found := file_comments(str(file))):
            require_codes(found, source, known)
            by_name[source] = str(file), found
    if by_name:
        lines_of = _lines_by_place(module, lines if lines is not None else statements())
        anywhere = _lines_by_place(module, _all_instructions(module))
        for source, (path, found) in by_name.items():
            for each in found:
                targets = tuple(lines_of.get((source, each.target), ()))
                # All kernels of a .cu are in its module; a header or Python file has some that are in others.
                if targets or (source.endswith(".cu") and (source, each.target) not in anywhere):
                    yield from _of(each, f"{source}:{each.line}", targets, path)


def _of(comment: Comment, place: str, lines: tuple[int, ...], path: str = "") -> Iterator[Accept]:
    return (Accept(code, "", comment.reason, place=place, lines=lines, path=path) for code in comment.codes)


def _all_instructions(module: syntax.Module) -> list[int]:
    """The lines of all instructions of a module."""
    return sorted({each.line for each in module.statements() if isinstance(each, syntax.Instruction)})


def _instruction_lines(kernel: Kernel) -> list[int]:
    """The lines of the entry's instructions, and of those of all functions that are no entries."""
    made: list[int] = []
    ours = False
    for each in kernel.module.statements():
        if isinstance(each, syntax.Function):
            ours = each.kind != "entry" or each.name == kernel.entry.name
        elif ours and isinstance(each, syntax.Instruction):
            made.append(each.line)
    return sorted(set(made))


def _statement_at(lines: list[int], line: int) -> int:
    """The line where the statement begins that a line belongs to."""
    index = bisect_right(lines, line) - 1
    return lines[index] if index >= 0 else line


def _lines_by_place(module: syntax.Module, lines: list[int]) -> Mapping[tuple[str, int], list[int]]:
    """The lines of the PTX by (file, line) of the source, inlined ones by the places of their calls too."""
    sources = SourceLines(module)
    made: dict[tuple[str, int], list[int]] = {}
    for line in lines:
        for name, number, _ in source_places(sources.of(line)):
            made.setdefault((name, number), []).append(line)
    return made


@cache
def launch_codes() -> frozenset[str]:
    """The codes of the emulator's checks."""
    from ptxgen.emulator.checks.registry import CHECKS

    return frozenset(CHECKS)
