"""Assemble PTX with ptxas, and read what it reports: resources, warnings, errors at their source lines."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ptxgen.files import looks_like_path, ptx_of_dump
from ptxgen.syntax.lexer import LINE_MARKER
from ptxgen.toolchain._process import run_tool
from ptxgen.toolchain.find import find_ptxas

_INPUT = "kernel.ptx"
_OUTPUT = "kernel.cubin"
_SKIPPED = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TARGET = re.compile(r"(?<![\w.$%])\.target\s+(\w+)")
_LINE_MARKER = re.compile(LINE_MARKER, re.ASCII)
_MESSAGE = re.compile(
    r"ptxas (?:(?P<file>\S.*?), line (?P<line>\d+); )?(?P<severity>fatal|error|warning|info)\s*: (?P<text>.*)"
)
_AROUND_LINE = re.compile(r"\baround line (\d+)\b")
_COMPILING = re.compile(r"Compiling entry function '(.+)' for '(.+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_STATISTICS = re.compile(r"\d+ bytes [gc]mem|Compile time = ")
_ABORTED = "Ptx assembly aborted due to errors"


@dataclass(frozen=True)
class AssemblerMessage:
    """One message of ptxas. `line` counts from 1 in the given text; None where ptxas names no line."""

    line: int | None
    severity: str  # "fatal" | "error" | "warning" | "info"
    message: str

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        return f"{place}{self.severity}: {self.message}"


class AssemblerError(RuntimeError):
    """ptxas refused the text, crashed, or ran out of time.

    `.diagnostics` holds its errors and warnings with source lines, `.log` all that it printed, `.target` the
    requested architecture. `str()` is `.render()`.
    """

    def __init__(
        self, target: str | None, diagnostics: Sequence[AssemblerMessage], source: str = "", log: str = ""
    ) -> None:
        super().__init__(target, diagnostics, source, log)
        self.target = target
        self.diagnostics = list(diagnostics)
        self.source = source
        self.log = log

    def __str__(self) -> str:
        return self.render()

    def render(self) -> str:
        """Every message under the text of its source line, in the order of the lines; those without last."""
        head = "ptxas refused the PTX" if self.target is None else f"ptxas refused the PTX for {self.target}"
        shown = [head]
        lines = self.source.split("\n")
        width = max((len(str(message.line)) for message in self.diagnostics if message.line), default=1)
        previous: int | None = None
        for message in sorted(self.diagnostics, key=lambda each: (each.line is None, each.line or 0)):
            if message.line is None:
                shown.append(f"{message.severity}: {message.message}")
                continue
            if message.line != previous:
                text = lines[message.line - 1] if 0 < message.line <= len(lines) else ""
                shown.append(f"{message.line:>{width}} | {text.expandtabs(4).rstrip()}")
                previous = message.line
            shown.append(f"{'':>{width}} | {message.severity}: {message.message}")
        return "\n".join(shown)


@dataclass(frozen=True)
class FunctionInfo:
    """What ptxas reports of one function.

    `registers` is per thread; all others are bytes: stack and spills per thread, `shared_bytes` static shared
    memory per CTA. Device functions that are called have no registers or shared memory of their own (0).
    """

    name: str
    is_entry: bool
    registers: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0
    barriers: int = 0


@dataclass(frozen=True)
class Cubin:
    """An assembled module: its ELF bytes, and what ptxas says of it.

    `.registers`, `.spill_stores`, `.spill_loads`, `.shared_bytes`, `.stack_bytes`, `.barriers` are those of
    the only entry, or the largest over all entries; `.functions` has every function by name; `.warnings` are
    ptxas's warnings, `.advisories` its 'info' remarks without the statistics.
    """

    data: bytes = field(repr=False)
    target: str
    log: str = field(default="", repr=False)
    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    warnings: list[AssemblerMessage] = field(default_factory=list)
    advisories: list[AssemblerMessage] = field(default_factory=list)

    @property
    def entries(self) -> list[FunctionInfo]:
        """The kernels, in the order in which ptxas reports them."""
        return [function for function in self.functions.values() if function.is_entry]

    @property
    def registers(self) -> int:
        """Registers per thread."""
        return max((entry.registers for entry in self.entries), default=0)

    @property
    def spill_stores(self) -> int:
        """Bytes of spill stores per thread."""
        return max((entry.spill_stores for entry in self.entries), default=0)

    @property
    def spill_loads(self) -> int:
        """Bytes of spill loads per thread."""
        return max((entry.spill_loads for entry in self.entries), default=0)

    @property
    def shared_bytes(self) -> int:
        """Bytes of static shared memory per CTA; dynamic shared memory is not in it."""
        return max((entry.shared_bytes for entry in self.entries), default=0)

    @property
    def stack_bytes(self) -> int:
        """Bytes of the stack frame per thread."""
        return max((entry.stack_bytes for entry in self.entries), default=0)

    @property
    def barriers(self) -> int:
        """Named barriers that ptxas counts."""
        return max((entry.barriers for entry in self.entries), default=0)


def target_of(text: str) -> str | None:
    """The architecture in the text's `.target` directive ("sm_90a"), or None where there is none.

    >>> from ptxgen.toolchain import target_of
    >>> target_of(".version 8.6\\n.target sm_90a, debug\\n")
    'sm_90a'
    """
    code = _SKIPPED.sub(lambda match: '""' if match[0].startswith('"') else " ", text)
    match = _TARGET.search(code)
    return None if match is None else match[1]


def assemble(
    text_or_module: object,
    target: str | None = None,
    ptxas: str | os.PathLike[str] | None = None,
    *,
    options: Sequence[str] = (),
    timeout: float | None = 600.0,
) -> Cubin:
    """Assemble PTX text, or anything whose `str()` is PTX text, to a cubin.

    `target` ("sm_100a") defaults to the text's own `.target`; `ptxas` is a path, by default what `find_ptxas`
    finds; `options` are further ptxas options; `timeout` is in seconds. A dump of `cuobjdump --dump-ptx` is taken for
    its module. Raises AssemblerError when ptxas does not make a cubin and ToolNotFoundError when there is no ptxas.
    """
    text = str(text_or_module)
    program = find_ptxas(ptxas)
    try:
        text = ptx_of_dump(text, target)
    except ValueError as error:
        raise AssemblerError(target, [AssemblerMessage(None, "fatal", str(error))], text) from error
    wanted = target if target is not None else target_of(text)
    if wanted is None:
        if looks_like_path(text):
            message = f"{text.strip()!r} looks like a path, not like PTX text; Path(...).read_text() reads a file"
        else:
            message = "the text has no .target directive, so there is no architecture; add one or pass target="
        raise AssemblerError(None, [AssemblerMessage(None, "fatal", message)], text)
    with tempfile.TemporaryDirectory(prefix="ptxgen-") as folder_name:
        folder = Path(folder_name)
        # Line markers would make ptxas count lines of some other file; a blank line keeps ours.
        (folder / _INPUT).write_bytes(_LINE_MARKER.sub("", text.rstrip("\0")).encode("utf-8"))
        command = [str(program), "-v", "--warn-on-spills", "-arch", wanted, *options, _INPUT, "-o", _OUTPUT]
        outcome = run_tool(command, folder, timeout)
        log = outcome.errors + outcome.output
        made = folder / _OUTPUT
        data = made.read_bytes() if outcome.status == 0 and made.is_file() else b""
    messages, functions = _read_log(log)
    if outcome.status == 0 and data:
        return Cubin(
            data,
            wanted,
            log,
            functions,
            [message for message in messages if message.severity == "warning"],
            [message for message in messages if message.severity == "info"],
        )
    raise AssemblerError(wanted, _errors(messages, outcome.failure, outcome.status, log), text, log)


def assemble_many(
    texts: Iterable[object],
    target: str | None = None,
    jobs: int = 2,
    ptxas: str | os.PathLike[str] | None = None,
    *,
    options: Sequence[str] = (),
    timeout: float | None = 600.0,
) -> list[Cubin | AssemblerError]:
    """Assemble many texts, `jobs` at a time; the answers are in the order of the texts.

    A text that ptxas refuses gives its AssemblerError as the answer. Raises ToolNotFoundError at once when
    there is no ptxas.
    """
    program = find_ptxas(ptxas)
    one = partial(_answer, target=target, ptxas=program, options=options, timeout=timeout)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(one, texts))


def ptxas_version(path: str | os.PathLike[str] | None = None) -> str:
    """The release of a ptxas as it states it: "13.5.37". Raises AssemblerError where it states none."""
    program = find_ptxas(path)
    outcome = run_tool([str(program), "--version"], None, 60.0)
    log = outcome.output + outcome.errors
    match = re.search(r"\bV(\d+\.\d+\.\d+)", log) or re.search(r"release (\d+\.\d+)", log)
    if match is None:
        reason = outcome.failure or f"'{program} --version' names no release"
        raise AssemblerError(None, [AssemblerMessage(None, "fatal", reason)], "", log)
    return match[1]


def _answer(
    text: object, target: str | None, ptxas: Path, options: Sequence[str], timeout: float | None
) -> Cubin | AssemblerError:
    try:
        return assemble(text, target, ptxas, options=options, timeout=timeout)
    except AssemblerError as error:
        return error


def _errors(messages: list[AssemblerMessage], failure: str, status: int, log: str) -> list[AssemblerMessage]:
    """The diagnostics of a failed run: at least one error; the closing 'aborted' only if none says why."""
    kept = [message for message in messages if message.severity != "info"]
    if any(_is_cause(message) for message in kept):
        kept = [message for message in kept if message.message != _ABORTED]
    if failure:
        kept.append(AssemblerMessage(None, "fatal", failure))
    if not any(message.severity in ("fatal", "error") for message in kept):
        said = f": {log.strip()}" if log.strip() else ""
        kept.append(AssemblerMessage(None, "fatal", f"ptxas ended with status {status} and no cubin{said}"))
    return kept


def _is_cause(message: AssemblerMessage) -> bool:
    return message.severity in ("fatal", "error") and message.message != _ABORTED


def _read_log(log: str) -> tuple[list[AssemblerMessage], dict[str, FunctionInfo]]:
    messages: list[AssemblerMessage] = []
    functions: dict[str, FunctionInfo] = {}
    entry = current = None
    continues = False  # the line before was a message that may go on
    for line in log.splitlines():
        match = _MESSAGE.fullmatch(line)
        if match is None:
            if (stack := _STACK.search(line)) and current is not None:
                frame, stores, loads = map(int, stack.groups())
                functions[current] = replace(
                    functions[current], stack_bytes=frame, spill_stores=stores, spill_loads=loads
                )
            elif continues and line.strip():
                last = messages[-1]
                messages[-1] = replace(last, message=f"{last.message} {line.strip()}")
            continue
        text = match["text"].strip()
        continues = False
        if match["severity"] == "info" and match["line"] is None:
            if compiling := _COMPILING.fullmatch(text):
                entry = current = compiling[1]
                functions[entry] = FunctionInfo(entry, is_entry=True)
                continue
            if properties := _PROPERTIES.fullmatch(text):
                current = properties[1]
                functions.setdefault(current, FunctionInfo(current, is_entry=False))
                continue
            if used := _USED.match(text):
                if entry is not None:
                    functions[entry] = replace(
                        functions[entry],
                        registers=int(used[1]),
                        barriers=_amount(text, r"used (\d+) barriers"),
                        shared_bytes=_amount(text, r"(\d+) bytes smem"),
                    )
                    entry = None  # one such line for each entry; what follows is of functions
                continue
            if _STATISTICS.match(text):
                continue
        around = _AROUND_LINE.search(text)
        number = match["line"] or (around[1] if around else None)
        messages.append(AssemblerMessage(None if number is None else int(number), match["severity"], text))
        continues = True
    return messages, functions


def _amount(text: str, pattern: str) -> int:
    match = re.search(pattern, text)
    return 0 if match is None else int(match[1])
