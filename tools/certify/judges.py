"""The two judges, ptxas and `ptxgen.check`: what each objects to in lines of PTX.

Many lines share a module, since starting ptxas costs more than hundreds of lines do. A module that ptxas stops early is
assembled again without the lines that it named; lines on which it crashes without a word are found by halving.
"""

from __future__ import annotations

import re
import resource
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ptxgen import syntax
from ptxgen.instr.model.check import check
from ptxgen.instr.model.operands import (
    EXAMPLE_BRANCHES,
    EXAMPLE_FUNCTION,
    EXAMPLE_LABEL,
    EXAMPLE_OPAQUE,
    EXAMPLE_PARAMETER,
    EXAMPLE_PROTOTYPE,
    EXAMPLE_RESULT,
)
from ptxgen.instr.model.targets import parse_version
from ptxgen.toolchain import find_ptxas
from tools.certify.broken import BROKEN
from tools.certify.cases import Case, needs_samplers
from tools.certify.irreconcilable import STRICTER, Irreconcilable

#: Lines in a module: of legal forms, and of neighbors, of which many are refused.
BATCH_FORMS, BATCH_NEIGHBOURS = 400, 250
#: Seconds of CPU for one run of ptxas, which takes a fraction of one; some lines send it into an endless loop.
TIMEOUT = 5

_REGISTER_TYPES = (
    "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f32",
    "f64",
)  # fmt: skip
#: Errors in lines of the module; ptxas also names lines of its own functions for wmma, which says nothing of ours.
_PTXAS_ERROR = re.compile(r"(?<!<builtin>), line (\d+); (?:error|fatal)\s*: (.*)")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A case on which the two differ: `ours` and `ptxas` are what each objects to, empty where it accepts."""

    case: Case
    ours: str
    ptxas: str
    #: Why, where `irreconcilable` names a reason.
    reason: str = ""
    #: Both refuse a line of which `irreconcilable` says that ptxas may take it.
    agreed: bool = False

    def __str__(self) -> str:
        case = self.case
        return (
            f"{case.form} [{case.kind}, {case.target}, {case.version}] {case.line}\n"
            f"    ptxgen: {self.ours or 'legal'}\n    ptxas:  {self.ptxas or 'legal'}"
        )


@cache
def _prelude(has_b128: bool, samplers: bool) -> str:
    registers = "\n".join(f".reg .{type} %x_{type}_<400>;" for type in _REGISTER_TYPES if has_b128 or type != "b128")
    opaque = "\n".join(
        f".global .{type} {name};" for type, name in EXAMPLE_OPAQUE.items() if samplers or type != "samplerref"
    )
    return f"""\
.address_size 64
{opaque}
.global .align 16 .b8 x_global[64];
.const .align 16 .b8 x_const[64];
.func {EXAMPLE_FUNCTION}() {{ ret; }}
.func (.param .align 16 .b8 x_result[64]) x_returns() {{ ret; }}
.visible .entry k(.param .b64 x_param) {{
{registers}
.reg .v2 .b32 %x_v2_<9>;
.reg .v4 .b32 %x_v4_<9>;
.shared .align 16 .b8 x_shared[64];
.local .align 16 .b8 x_local[64];
.param .align 16 .b8 {EXAMPLE_PARAMETER}[64];
.param .align 16 .b8 {EXAMPLE_RESULT}[64];
{EXAMPLE_BRANCHES}: .branchtargets {EXAMPLE_LABEL};
{EXAMPLE_PROTOTYPE}: .callprototype _;
"""


def module(lines: Sequence[str], target: str, version: str) -> tuple[str, int]:
    """A module with these lines in its entry, and the number of the first of them."""
    samplers = any(needs_samplers(line) for line in lines)
    mode = ", texmode_independent" if samplers else ""
    prelude = _prelude(parse_version(version) >= (8, 3), samplers)
    call = f"call ({EXAMPLE_RESULT}), x_returns;\n" if any(EXAMPLE_RESULT in line for line in lines) else ""
    head = f".version {version}\n.target {target}{mode}\n{prelude}{call}{EXAMPLE_LABEL}:\n"
    return head + "\n".join(lines) + "\nret;\n}\n", head.count("\n") + 1


def ours(lines: Sequence[str], target: str, version: str) -> list[str]:
    """What `ptxgen.check` objects to, "" where it accepts."""
    verdict = [""] * len(lines)
    left = list(range(len(lines)))
    while True:
        text, first = module([lines[index] for index in left], target, version)
        try:
            found = check(text, target, differences=False)
            break
        except syntax.PtxSyntaxError as error:
            at = min(max(error.line - first, 0), len(left) - 1)
            verdict[left[at]] = f"syntax: {error}"
            del left[at]
    for diagnostic in found:
        at = diagnostic.line - first
        if diagnostic.severity == "warning":
            continue
        for index in [left[at]] if 0 <= at < len(left) else left:
            verdict[index] = verdict[index] or f"{diagnostic.rule} [{diagnostic.code}]"
    return verdict


def _limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT, TIMEOUT))


def _assemble(lines: Sequence[str], target: str, version: str) -> tuple[bool, dict[int, str], str, bool]:
    """Whether ptxas accepts a module of these lines, the lines that it names with its words, all that it says, and
    whether it refuses what stands before the lines.
    """
    text, first = module(lines, target, version)
    # /dev/stdin and /dev/null save the temporary files, which cost more than ptxas itself.
    command = [str(find_ptxas()), "-arch", target, "-O0", "-o", "/dev/null", "/dev/stdin"]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False, preexec_fn=_limit_cpu)
    said = (done.stdout + done.stderr).strip() or f"status {done.returncode}"
    named: dict[int, str] = {}
    head = False
    for match in _PTXAS_ERROR.finditer(said):
        index = int(match[1]) - first
        if 0 <= index < len(lines):
            named.setdefault(index, match[2])
        head = head or index < 0
    return done.returncode == 0, named, said, head


#: Shapes of lines on which ptxas crashed; further ones of the shape are tried alone.
_crashing: set[str] = set()


def _shape(line: str) -> str:
    return re.sub(r"\d+", "0", line)


def ptxas(lines: Sequence[str], target: str, version: str) -> list[str]:
    """What ptxas objects to, "" where it accepts."""
    verdict = [""] * len(lines)
    suspects = [index for index, line in enumerate(lines) if _shape(line) in _crashing]
    for index in suspects if len(lines) > 1 else ():
        verdict[index] = ptxas([lines[index]], target, version)[0]
    left = [index for index in range(len(lines)) if len(lines) == 1 or index not in set(suspects)]
    while left:
        accepted, named, said, head = _assemble([lines[index] for index in left], target, version)
        if accepted:
            return verdict
        if head:
            for index in left:
                verdict[index] = said.splitlines()[0]
            return verdict
        if not named:
            if len(left) == 1:
                verdict[left[0]] = said.splitlines()[0]
                if "error" not in said:
                    _crashing.add(_shape(lines[left[0]]))
                return verdict
            middle = len(left) // 2
            for half in (left[:middle], left[middle:]):
                for index, message in zip(half, ptxas([lines[i] for i in half], target, version), strict=True):
                    verdict[index] = message
            return verdict
        for index, message in named.items():
            verdict[left[index]] = message
        left = [index for position, index in enumerate(left) if position not in named]
    return verdict


def _reason(entries: Iterable[Irreconcilable], case: Case, objection: str) -> str:
    return next((each.reason for each in entries if each.matches(case.form, case.line, objection)), "")


def compare(cases: Iterable[Case]) -> Iterator[Disagreement]:
    """The cases on which the two judges differ, those that have a reason among them; also, marked as agreed, those to
    which a reason to differ would apply.
    """
    groups: dict[tuple[str, str, bool, bool, bool], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.group].append(case)
    for (target, version, *_, legal), group in groups.items():
        size = BATCH_FORMS if legal else BATCH_NEIGHBOURS
        for start in range(0, len(group), size):
            batch = group[start : start + size]
            lines = [case.line for case in batch]
            verdicts = zip(batch, ours(lines, target, version), ptxas(lines, target, version), strict=True)
            for case, mine, theirs in verdicts:
                if mine:
                    reason = _reason(STRICTER, case, mine)
                    if reason:
                        yield Disagreement(case, mine, theirs, reason, agreed=bool(theirs))
                        continue
                if bool(mine) == bool(theirs):
                    continue
                # Some objections depend on the lines around, so ask again without them.
                alone = ptxas([case.line], target, version)[0]
                if bool(mine) != bool(alone):
                    yield Disagreement(case, mine, alone, _reason(BROKEN, case, alone) if alone else "")
