"""Compare the instruction model with ptxas, both ways.

Every form that the model calls legal is assembled, and so are its neighbours: the same instruction with one modifier
dropped, added or doubled, with a combination that a rule forbids, with an operand of another kind, width or length, on
other targets and PTX versions. ptxas and `ptxgen.check` must agree on each line.

    python -m tools.certify [family ...] [--neighbours N] [--seed S] [--jobs J]

Many lines share a module, since starting ptxas costs more than one line does; a module that ptxas stops early is
assembled again without the lines that it named.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from ptxgen import syntax
from ptxgen.instr import load_all
from ptxgen.instr.check import check
from ptxgen.instr.form import REGISTRY, Instruction
from ptxgen.instr.operands import EXAMPLE_LABEL, EXAMPLE_PARAMETER
from ptxgen.instr.targets import parse_target, parse_version
from ptxgen.toolchain import find_ptxas
from tools.certify.irreconcilable import BROKEN, STRICTER

NEWEST = "9.5"
TARGETS = (
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a", "sm_103f", "sm_103a",
    "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121a",
)  # fmt: skip
VERSIONS = (
    "6.3", "7.0", "7.1", "7.5", "7.7", "7.8", "8.0", "8.1", "8.3", "8.6", "8.7", "8.8", "9.0", "9.1", "9.2", "9.3",
    "9.4", "9.5",
)  # fmt: skip
#: Forms are tried on the first of these that has them.
HOMES = ("sm_100a", "sm_90a", "sm_103a", "sm_120a", "sm_110a")
BATCH = 60
#: Seconds for one run of ptxas, which takes milliseconds; some lines send it into an endless loop.
TIMEOUT = 5

_REGISTER_TYPES = (
    "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f32",
    "f64",
)  # fmt: skip
#: Operands that replace a legal one.
POOL = (
    *(f"%x_{type}_7" for type in _REGISTER_TYPES),
    "0", "1", "-1", "3", "16", "5000000000", "(1 << 4) | 2", "1.5", "0f3F800000", "0d3FF0000000000000", "WARP_SZ",
    "%tid.x", "%tid", "%clock64", "%laneid", "%gridid", "%nothing", "_", "!%x_pred_7", EXAMPLE_LABEL, "x_function",
    "x_global", "x_shared", "x_const", "x_local", "x_param", "x_global+4", "x_shared+4", "%x_v2_7", "%x_v4_7",
    "%x_v2_7.x", "[%x_b32_7]", "[%x_b64_7]", "[%x_u32_7]", "[%x_s64_7]", "[%x_f32_7]", "[%x_f64_7]", "[%x_b16_7]",
    "[%x_pred_7]", "[%x_b64_7+16]", "[%x_b32_7+-4]", "[x_global]", "[x_shared]", "[x_const]", "[x_local]", "[x_param]",
    "[x_shared+8]", "[16]", "[x_function]", f"[{EXAMPLE_LABEL}]", "[%nothing]", "[%tid.x]", "{%x_b32_7}",
    "{%x_b32_7, %x_b32_8}", "{%x_b16_7, %x_b32_8}", "{%x_f32_7, %x_b32_8}", "{_, %x_b32_8}", "{_, _}", "{%x_b32_7, 1}",
    "{%x_b64_7, %x_b64_8}", "{%x_b16_7, %x_b16_8}", "{%x_b32_7, %tid.x}",
    "{%x_b32_7, %x_b32_8, %x_b32_9}", "{%x_b32_7, %x_b32_8, %x_b32_9, %x_b32_6}", "%x_b32_7.b0", "%x_b32_7.h1",
    "%x_b32_7.h10", "%x_b32_7.b3210", "-%x_b32_7", "-%x_b32_7.h0", "%x_b32_7|%x_pred_7",
)  # fmt: skip

_SHARED_PTXAS_ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


@dataclass(frozen=True, slots=True)
class Case:
    """One instruction line to be judged: which form it comes from, what was done to it, and where it is tried."""

    form: str
    kind: str
    line: str
    target: str
    version: str = NEWEST

    @property
    def topic(self) -> str:
        """What the neighbour differs in: a "modifier", an "operand", or the "gate" of target and version."""
        if self.kind in ("target", "version"):
            return "gate"
        return "modifier" if self.kind.startswith("modifier") else "operand"

    @property
    def group(self) -> tuple[str, str, bool]:
        """Cases that may share a module: a function has one cta_group (ptxas)."""
        return self.target, self.version, "cta_group::2" in self.line


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A case on which the two differ: `ours` and `ptxas` are what each objects to, empty where it accepts."""

    case: Case
    ours: str
    ptxas: str

    def __str__(self) -> str:
        case = self.case
        return (
            f"{case.form} [{case.kind}, {case.target}, {case.version}] {case.line}\n"
            f"    ptxgen: {self.ours or 'legal'}\n    ptxas:  {self.ptxas or 'legal'}"
        )


@cache
def _prelude(has_b128: bool) -> str:
    registers = "\n".join(f".reg .{type} %x_{type}_<400>;" for type in _REGISTER_TYPES if has_b128 or type != "b128")
    return f"""\
.address_size 64
.global .align 16 .b8 x_global[64];
.const .align 16 .b8 x_const[64];
.func x_function() {{ ret; }}
.visible .entry k(.param .b64 x_param) {{
{registers}
.reg .v2 .b32 %x_v2_<9>;
.reg .v4 .b32 %x_v4_<9>;
.shared .align 16 .b8 x_shared[64];
.local .align 16 .b8 x_local[64];
.param .align 16 .b8 {EXAMPLE_PARAMETER}[64];
"""


def module(lines: Sequence[str], target: str, version: str) -> tuple[str, int]:
    """A module with these lines in its entry, and the number of the first of them."""
    head = f".version {version}\n.target {target}\n{_prelude(parse_version(version) >= (8, 3))}{EXAMPLE_LABEL}:\n"
    return head + "\n".join(lines) + "\nret;\n}\n", head.count("\n") + 1


# The two judges: for each line what they object to, "" where they accept it.


def ours(lines: Sequence[str], target: str, version: str) -> list[str]:
    """What `ptxgen.check` objects to."""
    text, first = module(lines, target, version)
    try:
        found = check(text, target)
    except syntax.PtxSyntaxError as error:
        if len(lines) == 1:
            return [f"syntax: {error}"]
        return [ours([line], target, version)[0] for line in lines]
    verdict = [""] * len(lines)
    for diagnostic in found:
        index = diagnostic.line - first
        if diagnostic.severity == "warning" and diagnostic.code != "not-declared":
            continue
        if 0 <= index < len(lines):
            verdict[index] = verdict[index] or str(diagnostic)
        else:
            verdict = [each or str(diagnostic) for each in verdict]
    return verdict


def _assemble(lines: Sequence[str], target: str, version: str) -> tuple[bool, dict[int, str], str]:
    """Whether ptxas accepts a module of these lines, the lines that it names with its words, and all it says."""
    text, first = module(lines, target, version)
    # /dev/stdin and /dev/null save the temporary files, which cost more than ptxas itself.
    command = [str(find_ptxas()), "-arch", target, "-O0", "-o", "/dev/null", "/dev/stdin"]
    try:
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return False, {}, f"ptxas does not end within {TIMEOUT} seconds"
    said = done.stdout + done.stderr
    named: dict[int, str] = {}
    for match in _SHARED_PTXAS_ERROR.finditer(said):
        index = int(match[1]) - first
        if 0 <= index < len(lines):
            named.setdefault(index, match[2])
    return done.returncode == 0, named, said.strip() or f"status {done.returncode}"


def ptxas(lines: Sequence[str], target: str, version: str) -> list[str]:
    """What ptxas objects to."""
    verdict = [""] * len(lines)
    left = list(range(len(lines)))
    while left:
        accepted, named, said = _assemble([lines[index] for index in left], target, version)
        if accepted:
            return verdict
        if not named:
            if len(left) == 1:
                verdict[left[0]] = said.splitlines()[0]
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


def _is_broken(case: Case, objection: str) -> bool:
    return any(line.search(case.line) and wanted.search(objection) for line, wanted in BROKEN)


def _is_stricter(case: Case, objection: str) -> bool:
    return any(
        form.match(case.form) and line.search(case.line) and wanted.search(objection) for form, line, wanted in STRICTER
    )


def compare(cases: Iterable[Case], jobs: int = 2) -> Iterator[Disagreement]:
    """The cases on which the two judges differ."""
    groups: dict[tuple[str, str, bool, bool], list[Case]] = defaultdict(list)
    for case in cases:
        # Lines that will hardly be refused share a module; the others cost a run for every syntax error.
        groups[(*case.group, case.kind == "form")].append(case)
    batches = [
        group[start : start + (BATCH if key[3] else BATCH // 3)]
        for key, group in groups.items()
        for start in range(0, len(group), BATCH if key[3] else BATCH // 3)
    ]

    def judge(batch: list[Case]) -> list[str]:
        return ptxas([case.line for case in batch], batch[0].target, batch[0].version)

    with ThreadPoolExecutor(jobs) as pool:
        for batch, theirs in zip(batches, pool.map(judge, batches), strict=True):
            mine = ours([case.line for case in batch], batch[0].target, batch[0].version)
            for case, one, other in zip(batch, mine, theirs, strict=True):
                if bool(one) == bool(other):
                    continue
                # Some objections depend on the lines around, so ask again without them.
                alone = ptxas([case.line], case.target, case.version)[0]
                excused = _is_stricter(case, one) if one else _is_broken(case, alone)
                if bool(one) != bool(alone) and not excused:
                    yield Disagreement(case, one, alone)


# The cases.


def declared(families: Sequence[str] = ()) -> list[type[Instruction]]:
    """The declarations of some families, or all."""
    load_all()
    return [
        form
        for forms in REGISTRY.values()
        for form in forms
        if not families or form.form.key.split(".")[0] in families or form.form.key in families
    ]


def home(made: Instruction) -> str | None:
    """The target on which an instruction is tried: the first of HOMES that has it."""
    for target in HOMES:
        if not made.availability_problems(parse_target(target), parse_version(NEWEST)):
            return target
    return None


def forms_of(form: type[Instruction]) -> Iterator[Case]:
    """Every form that a declaration calls legal."""
    for made in form.variants():
        target = home(made)
        if target is not None:
            yield Case(form.form.key, "form", str(made), target)


def _spelled(made: Instruction, tokens: Sequence[str]) -> str:
    rest = str(made)[len(made.opcode_text) :]
    return ".".join([made.form.opcode, *tokens]) + rest


def _modifier_neighbours(made: Instruction, rng: random.Random) -> Iterator[tuple[str, str]]:
    tokens = made.modifiers
    for index, token in enumerate(tokens):
        yield "modifier dropped", _spelled(made, tokens[:index] + tokens[index + 1 :])
        yield "modifier doubled", _spelled(made, [*tokens[: index + 1], token, *tokens[index + 1 :]])
    yield "modifier unknown", _spelled(made, [*tokens, "bogus"])
    for extra in ("u32", "f64", "v2", "ftz", "sync", "global", "rn", "wide"):
        yield "modifier added", _spelled(made, [*tokens, extra])
    shuffled = list(tokens)
    rng.shuffle(shuffled)
    yield "modifiers in another order", _spelled(made, shuffled)


def _operand_neighbours(made: Instruction) -> Iterator[tuple[str, str]]:
    opcode = made.opcode_text
    written = _written(made)
    for index, operand in enumerate(written):
        for other in POOL:
            if other != operand:
                changed = [*written[:index], other, *written[index + 1 :]]
                yield "operand replaced", f"{opcode} {', '.join(changed)};"
        if operand.startswith("{"):
            inner = operand[1:-1].split(", ")
            for longer in ([*inner, inner[-1]], inner[:-1]):
                changed = [*written[:index], "{" + ", ".join(longer) + "}", *written[index + 1 :]]
                yield "vector length", f"{opcode} {', '.join(changed)};"
        fewer = [*written[:index], *written[index + 1 :]]
        yield "operand dropped", f"{opcode} {', '.join(fewer)};"
    for extra in ("%x_b32_7", "1", "%x_pred_7", "{%x_b32_7, %x_b32_8}", "[%x_b64_7]"):
        yield "operand added", f"{opcode} {', '.join([*written, extra])};"


def _written(made: Instruction) -> list[str]:
    statement = next(
        each
        for each in syntax.walk(syntax.parse(f".version 8.0\n.target sm_80\n.func f() {{ {made} }}").items)
        if isinstance(each, syntax.Instruction)
    )
    return [str(operand) for operand in statement.operands]


def ruled_out(form: type[Instruction], limit: int, rng: random.Random) -> Iterator[Case]:
    """Combinations of modifiers that a rule of the declaration forbids."""
    found: list[Instruction] = []
    for made in form.combinations():
        if made.modifier_problems():
            # A forbidden combination may have no operands that could be made for it.
            with contextlib.suppress(KeyError, TypeError, ValueError):
                found.append(form.bound(made.__dict__, made.example_operands()))
    for made in found if len(found) <= limit else rng.sample(found, limit):
        yield Case(form.form.key, "rule broken", str(made), home(made) or HOMES[0])


def neighbours_of(form: type[Instruction], limit: int, rng: random.Random) -> list[Case]:
    """Up to `limit` neighbours of a declaration's forms."""
    legal = list(form.variants())
    chosen = legal if len(legal) <= 12 else rng.sample(legal, 12)
    cases: set[Case] = set()
    for made in chosen:
        target = home(made)
        if target is None:
            continue
        for kind, line in itertools.chain(_modifier_neighbours(made, rng), _operand_neighbours(made)):
            cases.add(Case(form.form.key, kind, line, target))
        cases.update(Case(form.form.key, "target", str(made), other) for other in TARGETS)
        cases.update(Case(form.form.key, "version", str(made), target, version) for version in VERSIONS)
    picked: list[Case] = []
    for topic in ("modifier", "operand", "gate"):
        ordered = sorted(
            (case for case in cases if case.topic == topic),
            key=lambda case: (case.kind, case.line, case.target, case.version),
        )
        picked += ordered if len(ordered) <= limit // 3 else rng.sample(ordered, limit // 3)
    return [*picked, *ruled_out(form, limit // 3, rng)]


def certify(
    families: Sequence[str] = (), neighbours: int = 100, seed: int = 0, jobs: int = 2, forms: int | None = None
) -> tuple[Counter[tuple[str, str]], list[Disagreement]]:
    """Count of cases by (family, "form" or "neighbour"), and the disagreements.

    `neighbours` limits how many there are for each declaration; `forms` how many of its legal forms are tried.
    """
    rng = random.Random(seed)
    counts: Counter[tuple[str, str]] = Counter()
    differing: list[Disagreement] = []
    by_family: dict[str, list[type[Instruction]]] = defaultdict(list)
    for form in declared(families):
        by_family[form.form.key.split(".")[0]].append(form)
    for family, forms_of_family in by_family.items():
        cases: list[Case] = []
        for form in forms_of_family:
            legal = list(forms_of(form))
            cases += legal if forms is None or len(legal) <= forms else rng.sample(legal, forms)
            cases += neighbours_of(form, neighbours, rng) if neighbours else []
        counts.update((family, "form" if case.kind == "form" else "neighbour") for case in cases)
        differing += compare(cases, jobs)
    return counts, differing


def main() -> int:
    """The command: prints disagreements and a table, exits with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help="families or declarations (integer, tcgen05.mma); all by default")
    parser.add_argument("--neighbours", type=int, default=100, help="neighbours of each declaration (default 100)")
    parser.add_argument("--forms", type=int, default=None, help="legal forms of each declaration (default all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    counts, differing = certify(
        arguments.families, arguments.neighbours, arguments.seed, arguments.jobs, arguments.forms
    )
    for each in differing:
        print(each)
    wrong = Counter(each.case.form.split(".")[0] for each in differing)
    print(f"{'family':<14}{'forms':>9}{'neighbours':>12}{'agreement':>12}")
    for family in sorted({family for family, _ in counts}):
        forms, others = counts[family, "form"], counts[family, "neighbour"]
        print(f"{family:<14}{forms:>9}{others:>12}{1 - wrong[family] / max(1, forms + others):>12.2%}")
    return 1 if differing else 0
