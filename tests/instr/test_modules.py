"""Small modules of PTX, legal and not, by what surrounds the instructions: `modules/<subject>.txt`.

A row is a verdict, a target, a PTX version and the text of a module after its header; a text that begins with a header
of its own stands alone. Lines that begin with `before` and `after` put text around the rows that follow. The verdict is
`legal`, or the code of the one error that `check` must find; `!` before it marks what ptxas lets pass. ptxas must agree
with every other row, where it is enough that it takes the module with --compile-only, which leaves names to the linker.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxgen.instr import module
from ptxgen.instr.model import check
from ptxgen.instr.model.operands import callables
from ptxgen.instr.model.targets import parse_target, parse_version
from ptxgen.syntax import parse
from ptxgen.toolchain import AssemblerError
from tests.support.instr_tables import Row, assembled

FOLDER = Path(__file__).parent / "modules"
SUBJECTS = sorted(path.stem for path in FOLDER.glob("*.txt"))
RULES = Path(inspect.getfile(module)).parent


def rows(subject: str) -> Iterator[Row]:
    """The rows of a table, with the whole module as `line`."""
    around = {"before": "", "after": ""}
    previous = ""
    for line in (FOLDER / f"{subject}.txt").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if first in around:
            around[first] = f"{around[first]}{rest}\n" if first == previous else f"{rest}\n"
        elif line.strip() and not line.startswith("#"):
            verdict, target, version, text = line.split(None, 3)
            if not text.startswith((".version", ".target")):
                size = ".address_size 64\n" if parse_version(version) >= (2, 3) else ""
                head = f".version {version}\n.target {target}\n{size}"
                text = f"{head}{around['before']}{text}\n{around['after']}"
            yield Row(verdict.lstrip("!"), target, version, text, verdict.startswith("!"))
        previous = first


def architecture(row: Row) -> str:
    """The architecture to assemble for: the newest that the module names."""
    named = [word for words in re.findall(r"\.target ([\w, ]+)", row.line) for word in re.split(r",? +", words)]
    found = [str(parse_target(word)) for word in named if re.fullmatch(r"(sm|compute)_\d+[af]?", word)]
    return max(found, key=parse_target, default=row.target)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_check_gives_the_verdicts(subject: str) -> None:
    wrong = []
    for row in rows(subject):
        found = [each for each in check.check(row.line) if each.severity == "error"]
        if [each.code for each in found] != ([] if row.verdict == "legal" else [row.verdict]):
            wrong.append(f"{row.line}: not {row.verdict} but {list(map(str, found))}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_ptxas_agrees(subject: str) -> None:
    table = list(rows(subject))
    texts = [(row.line, architecture(row)) for row in table]
    answers = assembled(texts)
    refused = [index for index, answer in enumerate(answers) if isinstance(answer, AssemblerError)]
    again = assembled([texts[index] for index in refused], ["--compile-only"])
    answers = {**dict(enumerate(answers)), **dict(zip(refused, again, strict=True))}
    wrong = [
        f"{row.line}: we say {row.verdict}, ptxas {answers[index]}"
        for index, row in enumerate(table)
        if isinstance(answers[index], AssemblerError) != (row.verdict != "legal" and not row.stricter)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_code_has_a_row() -> None:
    sources = [path.read_text() for path in RULES.glob("*.py")] + list(map(inspect.getsource, (check, callables)))
    codes = {code for source in sources for code in re.findall(r'Problem\(\s*"([a-z-]+)"', source)}
    assert codes - {"address-width", "overlooked-modifier", "repeated-modifier"} <= {
        row.verdict for subject in SUBJECTS for row in rows(subject)
    }
    assert len(codes) > 25


def test_warnings() -> None:
    text = '.version 9.0 .target sm_100a .entry k() .minnctapersm 2 { .pragma "mystery"; ret; }'
    found = check.check(text)
    assert [(each.code, each.severity) for each in found] == [("directive-missing", "warning"), ("pragma", "warning")]
    body = "{ .reg .b32 r; p: .callprototype _; call r, p; ret; }"
    (found,) = check.check(f".version 9.0 .target sm_100a .entry k() {body}")
    assert (found.code, found.severity) == ("address-width", "warning")


def test_places_and_messages() -> None:
    text = """\
.version 9.0
.target sm_100a
.global .b32 x;
.func f(.param .b32 a,
        .param .pred b);
.entry k()
    .maxntid 0
{
    .reg .b32 r;
    .reg .b32 r;
    call f;
}
"""
    assert [str(each) for each in check.check(text)] == [
        "5:9: error: illegal variable type: a .pred is a register, the parameter b cannot be in .param [variable-type]",
        "7:5: error: illegal directive value: .maxntid must be 1 or more, in 32 bits, not 0 [directive-value]",
        "10:5: error: redeclared name: r is declared already in this block [redeclared]",
        "11:10: error: argument count mismatch: f takes 2 values, not 0 [call-count]",
        "4:1: error: undefined function: f is declared, but has no body; declare it .extern if another module has it"
        " [undefined-function]",
    ]


@pytest.mark.parametrize("size", [1000, 4000])
def test_time_is_linear(size: int) -> None:
    """Declarations, labels and blocks in numbers; a quadratic step would take minutes."""
    lines = [f".reg .b32 %a{i}<9>; .reg .b32 b{i}; L{i}: {{ .reg .b32 c; add.u32 c, b{i}, 1; }}" for i in range(size)]
    functions = [f".func f{i}(.param .b32 a) {{ ret; }} .global .u64 g{i} = f{i};" for i in range(size)]
    body = "\n".join([*functions, ".entry k() {", *lines, "ret; }"])
    assert check.check(parse(f".version 9.0 .target sm_100a .address_size 64\n{body}")) == []
