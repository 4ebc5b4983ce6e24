"""Small modules of PTX, legal and not, by what surrounds the instructions: `modules/<subject>.txt`.

A row is a verdict, a target, a PTX version and the text of a module after its header; a text that begins with a header
of its own stands alone. Lines that begin with `before` and `after` put text around the rows that follow. The verdict is
`legal`, or the code of the one error that `check` must find; `!` before it marks what ptxas lets pass. ptxas must agree
with every other row, where it is enough that it takes the module with --compile-only, which leaves names to the linker;
limits over sums apart, which that leaves to the linker too.
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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_ptxas_agrees(subject: str) -> None:
    table = list(rows(subject))
    texts = [(row.line, architecture(row)) for row in table]
    answers = assembled(texts)
    refused = [
        index
        for index, answer in enumerate(answers)
        if isinstance(answer, AssemblerError) and not re.search(r"uses too much|More than", answer.log)
    ]
    again = assembled([texts[index] for index in refused], ["--compile-only"])
    answers = {**dict(enumerate(answers)), **dict(zip(refused, again, strict=True))}
    wrong = [
        f"{row.line}: we say {row.verdict}, ptxas {answers[index]}"
        for index, row in enumerate(table)
        if isinstance(answers[index], AssemblerError) != (row.verdict != "legal" and not row.stricter)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_code_has_a_row() -> None:
    sources = [
        path.read_text() for path in RULES.glob("*.py") if path.stem not in ("advisories", "text", "waits")
    ] + list(map(inspect.getsource, (check, callables)))
    codes = {code for source in sources for code in re.findall(r'Problem\(\s*"([a-z-]+)"', source)}
    warnings = {
        "address-width",
        "implied-modifier",
        "local-size",
        "old-ptxas",
        "overlooked-modifier",
        "overlooked-result",
        "repeated-modifier",
    }
    assert codes - warnings - {"setmaxnreg-ignored"} <= {row.verdict for subject in SUBJECTS for row in rows(subject)}
    assert len(codes) > 25


def test_warnings() -> None:
    text = '.version 9.0 .target sm_100a .entry k() .minnctapersm 2 { .pragma "mystery"; ret; }'
    found = check.check(text)
    assert [(each.code, each.severity) for each in found] == [("directive-missing", "warning"), ("pragma", "warning")]
    body = "{ .reg .b32 r; p: .callprototype _; call r, p; ret; }"
    (found,) = check.check(f".version 9.0 .target sm_100a .entry k() {body}")
    assert (found.code, found.severity) == ("address-width", "warning")


HEAD = ".version 9.4\n.target sm_90a\n"
#: Limits beyond which ptxas ignores or raises a number, or no launch can go: directives with and without a warning.
PROMISES = [
    (".maxntid 1024", ""),
    (".maxntid 32, 32, 2", ".maxntid asks for 2048 threads, but a CTA has at most 1024"),
    (".reqntid 1, 1, 65", ".reqntid asks for 65 threads in z, but a CTA has at most 64"),
    (".reqnctapercluster 4, 4", ""),
    (".reqnctapercluster 4, 4, 2", ".reqnctapercluster asks for 32 CTAs, but a cluster has at most 8, or 16 if"),
    (".maxnreg 24", ""),
    (".maxnreg 23", ".maxnreg 23 is raised to 24, the least that ptxas gives a thread"),
    (".maxnreg 255", ""),
    (".maxnreg 256", ".maxnreg 256 is ignored: a thread has at most 255 registers"),
    (".maxntid 32 .minnctapersm 32", ""),
    (".maxntid 32 .minnctapersm 33", ".minnctapersm 33 is ignored: an SM of sm_90a holds at most 32 CTAs"),
    (".maxntid 1024 .minnctapersm 2", ""),
    (".maxntid 1024 .minnctapersm 3", ".minnctapersm 3 is ignored: an SM of sm_90a holds at most 2048 threads"),
]


@pytest.mark.parametrize(("directives", "rule"), PROMISES)
def test_promises_of_directives(directives: str, rule: str) -> None:
    found = check.check(f"{HEAD}.entry k() {directives} {{ ret; }}")
    assert [each.severity for each in found] == ["warning"] * bool(rule)
    assert all(each.rule.startswith(rule) for each in found)
    log = assembled([(f"{HEAD}.entry k() {directives} {{ ret; }}", "sm_90a")])[0].log
    if "nreg" in directives or "nctapersm" in directives:
        assert bool(rule) == ("warning" in log), log


def test_limits_that_ptxas_leaves_to_the_launch() -> None:
    body = ".local .b8 x[524289]; ret;"
    (found,) = check.check(f"{HEAD}.entry k() {{ {body} }}")
    assert (found.code, found.severity) == ("local-size", "warning")
    (found,) = check.check(f"{HEAD}.shared .b8 x[49153]; .entry k() {{ st.shared.b8 [x], 0; ret; }}")
    assert (found.code, found.severity) == ("old-ptxas", "warning")
    assert "ptxas before 13.0 allows 49152 on sm_90a too" in found.rule


def test_registers_of_setmaxnreg() -> None:
    body = "setmaxnreg.dec.sync.aligned.u32 240; ret;"
    (found,) = check.check(f"{HEAD}.entry k() {{ {body} }}")
    assert (found.code, found.severity) == ("setmaxnreg-ignored", "warning")
    assert not check.check(f"{HEAD}.entry k() .maxnreg 168 {{ ret; {body} }}"), "ptxas drops what nothing reaches"
    assert [str(each) for each in check.check(f"{HEAD}.entry k() .maxntid 384 .minnctapersm 1 {{ {body} }}")] == [
        "3:43: error: register count mismatch: setmaxnreg.dec to 240 registers is no decrease: a warp has at most 168 "
        "(65536 registers for 384 threads) [register-count]"
    ]


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
