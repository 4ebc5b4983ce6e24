"""Lines of PTX for tests: a module around one line, and the tables of lines with their verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from ptxgen.instr.model.check import Diagnostic, check
from ptxgen.instr.model.targets import parse_target
from ptxgen.toolchain import AssemblerError, Cubin, assemble_many
from tests.support.paths import TESTS

#: Wide registers exist since PTX 8.3, so they are declared only where they are used.
WIDE = ".reg .b128 %q<9>; "

BODY = """\
.reg .pred %p<9>;
.reg .b8 %b<9>;
.reg .b16 %h<9>;
.reg .b32 %r<140>;
.reg .b64 %rd<9>;
.reg .u32 %u<9>;
.reg .f32 %f<9>;
.reg .f64 %fd<9>;
.reg .v2 .b32 %v2;
.reg .v4 .f32 %v4;
.shared .align 16 .b8 smem[64];
.local .align 16 .b8 local[64];
here:
"""


def module(line: str, target: str = "sm_100a", version: str = "9.0") -> str:
    """A module with this line in its entry. Options may follow the target after a comma."""
    wide = WIDE if "%q" in line else ""
    sampler = ".global .samplerref smp;" if "independent" in target else ""
    return f""".version {version}
.target {target}
.address_size 64
.global .align 16 .b8 array[64];
.const .b8 table[64];
.global .texref tex;
.global .surfref surf;
{sampler}
.func helper() {{ ret; }}
.visible .entry kernel(.param .u64 pointer, .param .u32 size) {{
{BODY}{wide}{line}
ret;
}}
"""


LINE = module("\0").split("\n").index("\0") + 1


def diagnose(line: str, target: str = "sm_100a", version: str = "9.0") -> list[Diagnostic]:
    """What `check` says of a line; every error must stand at it (advice may stand at the kernel that holds it)."""
    found = check(module(line, target, version))
    assert all(each.line == LINE for each in found if each.severity == "error"), found
    return found


FOLDER = TESTS / "instr" / "lines"
FAMILIES = sorted(path.stem for path in FOLDER.glob("*.txt"))


@dataclass(frozen=True)
class Row:
    """One line and what must be said of it.

    `stricter` marks what ptxas lets pass (`!` before the code), `unsteady` what it takes in some runs (`~`).
    """

    verdict: str
    target: str
    version: str
    line: str
    stricter: bool
    unsteady: bool = False


def rows(family: str) -> list[Row]:
    """The rows of a table."""
    found = []
    for text in (FOLDER / f"{family}.txt").read_text().splitlines():
        if text.strip() and not text.startswith("#"):
            verdict, target, version, line = text.split(None, 3)
            found.append(Row(verdict.lstrip("!~"), target, version, line, verdict[0] == "!", verdict[0] == "~"))
    return found


#: The oldest architecture that ptxas assembles for, which it takes older targets for, too.
OLDEST = "sm_75"


def assembled(texts: list[tuple[str, str]], options: Sequence[str] = ()) -> list[Cubin | AssemblerError]:
    """What ptxas makes of modules, each with its target."""
    groups: dict[str, list[int]] = {}
    for index, (_, target) in enumerate(texts):
        wanted = parse_target(target.partition(",")[0])
        groups.setdefault(str(max(wanted, parse_target(OLDEST))), []).append(index)
    answers: dict[int, Cubin | AssemblerError] = {}
    for target, indices in groups.items():
        found = assemble_many([texts[index][0] for index in indices], target, options=["-O0", *options])
        answers.update(zip(indices, found, strict=True))
    return [answers[index] for index in range(len(texts))]
