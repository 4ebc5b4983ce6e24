"""Which SASS ptxas makes of each declared form: the index that `ptxgen explain` shows.

    python -m tools.certify.emitted --record

Every form stands alone in a kernel that loads its registers from memory (volatile) and stores them all afterwards, so
that ptxas at -O3 can neither drop it nor fold it into its neighbors. What has a meaning among others alone stands
among them (`_CONTEXTS`): setmaxnreg in a kernel with a bound on its registers, tcgen05.wait behind a tcgen05.ld whose
registers are used. The line table says which SASS comes from its
line, except for texture and surface instructions: ptxas gives theirs the line of a neighbor. Theirs is what a kernel
has more than the same one without the line; handles are in registers, and samplers are those of the textures. Of a
declaration with many forms as many are taken as show every modifier once. --record of some families keeps the rest.
"""

from __future__ import annotations

import argparse
import datetime
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.operands import (
    EXAMPLE_BRANCHES,
    EXAMPLE_FUNCTION,
    EXAMPLE_LABEL,
    EXAMPLE_OPAQUE,
    EXAMPLE_PARAMETER,
    EXAMPLE_PROTOTYPE,
    EXAMPLE_RESULT,
)
from ptxgen.sass import Function, load
from ptxgen.sass.index import TARGETS, Index, index, write
from ptxgen.sass.parse import UNNAMED
from ptxgen.toolchain import AssemblerError, assemble, find_ptxas, ptxas_version
from tools.certify import cases

#: Forms among which those of a declaration are chosen, and how many a declaration has at most that is taken whole.
_DRAWN, _WHOLE = 3_000, 32
#: Kernels in one module.
_BATCH = 60
#: Mnemonics that are listed of one form.
_LISTED = 12
_SINK = re.compile(r"(?<![\w%])_(?!\w)")
_NAMED = re.compile(r"%x_(pred|[bsuf]\d+)_(\d+)")


@dataclass(frozen=True)
class Context:
    """What a form stands in: directives of its kernel, lines before it, and lines behind it."""

    directives: str = ""
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


#: By declaration.
_CONTEXTS = {
    "miscellaneous.setmaxnreg": Context(".reqntid 256 .maxnreg 128"),
    "tcgen05.wait": Context(
        "",
        (
            ".reg .b32 %x_address, %x_loaded<2>;",
            "ld.volatile.global.b32 %x_address, [%x_memory];",
            "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%x_loaded0, %x_loaded1}, [%x_address];",
        ),
        tuple(f"st.volatile.global.b32 [%x_memory+{8192 + 4 * each}], %x_loaded{each};" for each in range(2)),
    ),
}


@dataclass(frozen=True)
class Form:
    """One legal form: its declaration, opcode with modifiers, and a line of it."""

    key: str
    spelling: str
    line: str

    @property
    def has_no_line(self) -> bool:
        """Whether ptxas's line table does not lead to it."""
        return self.key.split(".")[0] in ("texture", "surface")

    @property
    def context(self) -> Context:
        """What it stands in."""
        return _CONTEXTS.get(self.key, Context())


def chosen(declaration: type[Instruction], target: str) -> list[Form]:
    """The forms of a declaration that a target has: all if they are few, else the shortest with each modifier.

    Of forms with the same modifiers the one with the fewest operands is taken, and none of them `_`.
    """
    drawn = declaration.sample(_DRAWN, random.Random(declaration.form.key))
    spelled: dict[str, Instruction] = {}
    for each in sorted(drawn, key=_plainness):
        if target in cases.targets_of(each) and EXAMPLE_OPAQUE["samplerref"] not in str(each):
            spelled.setdefault(each.opcode_text, each)
    forms = sorted(spelled.values(), key=lambda each: (len(each.modifiers), each.opcode_text))
    covered: set[str] = set()
    taken: list[Form] = []
    for each in forms:
        if len(forms) <= _WHOLE or not taken or not covered.issuperset(each.modifiers):
            covered.update(each.modifiers)
            taken.append(Form(declaration.form.key, each.opcode_text, _with_handle(str(each))))
    return taken


def _with_handle(line: str) -> str:
    """A line whose texture or surface is in a register."""
    for name in EXAMPLE_OPAQUE.values():
        line = line.replace(name, "%x_b64_999")
    return line


def _plainness(made: Instruction) -> tuple[bool, int, int, str]:
    line = str(made)
    return _SINK.search(line) is not None, line.count(","), len(line), line


_FUNCTIONS = f"""\
.func {EXAMPLE_FUNCTION}()
{{
    .reg .pred %p; .reg .b32 %t;
    mov.u32 %t, %clock; setp.eq.u32 %p, %t, 0;
    @%p call {EXAMPLE_FUNCTION};
    ret;
}}
.func (.param .align 16 .b8 x_result[64]) x_returns() {{ ret; }}
"""


def module(forms: Sequence[Form], target: str) -> tuple[str, list[int]]:
    """A module with a kernel for each form, named f0, f1, ..., and the number of the line of each.

    Of forms to which the line table does not lead there are also kernels without the line: without0, ...
    """
    lines = [
        f".version {cases.NEWEST}",
        f".target {target}",
        ".address_size 64",
        ".global .align 16 .b8 x_global[64];",
        ".const .align 16 .b8 x_const[64];",
        *_FUNCTIONS.splitlines(),
    ]
    places: list[int] = []
    for number, form in enumerate(forms):
        lines += _before(f"f{number}", form)
        lines.append(form.line)
        places.append(len(lines))
        lines += [*_stores(form), "ret;", "}"]
    for number, form in enumerate(forms):
        if form.has_no_line:
            lines += [*_before(f"without{number}", form), *_stores(form), "ret;", "}"]
    return "\n".join(lines) + "\n", places


def _registers(form: Form) -> list[tuple[str, str]]:
    """(name, type) of the registers of a line."""
    return [(match[0], match[1]) for match in {m[0]: m for m in _NAMED.finditer(form.line)}.values()]


def _before(name: str, form: Form) -> Iterator[str]:
    yield f".visible .entry {name}(.param .b64 x_param) {form.context.directives} {{"
    yield ".reg .b64 %x_memory; .reg .b32 %x_flag;"
    for register, type in _registers(form):
        yield f".reg .{type} {register};"
    yield ".shared .align 128 .b8 x_shared[64];"
    yield ".local .align 16 .b8 x_local[64];"
    if EXAMPLE_PARAMETER in form.line:
        yield f".param .align 16 .b8 {EXAMPLE_PARAMETER}[64];"
    if EXAMPLE_RESULT in form.line:
        yield f".param .align 16 .b8 {EXAMPLE_RESULT}[64];"
    if EXAMPLE_BRANCHES in form.line:
        yield f"{EXAMPLE_BRANCHES}: .branchtargets {EXAMPLE_LABEL};"
    if EXAMPLE_PROTOTYPE in form.line:
        yield f"{EXAMPLE_PROTOTYPE}: .callprototype _;"
    yield "ld.param.b64 %x_memory, [x_param];"
    for place, (register, type) in enumerate(_registers(form)):
        if type == "pred":
            yield f"ld.volatile.global.b32 %x_flag, [%x_memory+{16 * place}];"
            yield f"setp.ne.b32 {register}, %x_flag, 0;"
        else:
            yield f"ld{_volatile(type)}.global.{type} {register}, [%x_memory+{16 * place}];"
    if EXAMPLE_RESULT in form.line:
        yield f"call ({EXAMPLE_RESULT}), x_returns;"
    yield from form.context.before
    yield f"{EXAMPLE_LABEL}:"


def _stores(form: Form) -> Iterator[str]:
    yield from form.context.behind
    for place, (name, type) in enumerate(_registers(form)):
        if type == "pred":
            yield f"selp.b32 %x_flag, 1, 0, {name};"
            yield f"st.volatile.global.b32 [%x_memory+{16 * place + 8192}], %x_flag;"
        else:
            yield f"st{_volatile(type)}.global.{type} [%x_memory+{16 * place + 8192}], {name};"


def _volatile(type: str) -> str:
    return "" if type == "b128" else ".volatile"


def emitted(forms: Sequence[Form], target: str) -> list[tuple[Form, str]]:
    """The SASS of each form, those left out that ptxas refuses here."""
    if not forms:
        return []
    text, places = module(forms, target)
    try:
        listing = load(assemble(text, target, options=("-lineinfo",), timeout=120), cache=False)
    except AssemblerError as error:
        named = {each.line for each in error.diagnostics if each.line is not None and each.severity != "warning"}
        starts = [0, *places]
        bad = {number for number in range(len(forms)) for line in named if starts[number] < line <= starts[number + 1]}
        if not bad and len(forms) > 1:
            middle = len(forms) // 2
            return emitted(forms[:middle], target) + emitted(forms[middle:], target)
        kept = [form for number, form in enumerate(forms) if number not in bad]
        if len(forms) == 1 or not kept:
            return []
        return emitted(kept, target)
    kernels = {function.name: function for function in listing.functions}
    return [
        (form, added(kernels[f"f{number}"], kernels[f"without{number}"]))
        if form.has_no_line
        else (form, sequence(kernels[f"f{number}"], places[number]))
        for number, form in enumerate(forms)
    ]


def sequence(function: Function, line: int) -> str:
    """The mnemonics that come from a line of PTX, in the order of their first appearance, with their numbers."""
    return _listed(Counter(each.mnemonic for each in function.instructions if each.ptx_line == line))


def added(function: Function, without: Function) -> str:
    """The mnemonics of a function beyond those of another, in the order of their first appearance."""
    found, less = (Counter(each.mnemonic for each in one.instructions) for one in (function, without))
    return _listed(found - less)


def _listed(found: Counter[str]) -> str:
    if len(found) > 1:
        del found["NOP"]
    names = {UNNAMED: "(an instruction that nvdisasm does not name)"}
    shown = [
        f"{count} {names.get(name, name)}" if count > 1 else names.get(name, name) for name, count in found.items()
    ]
    more = len(shown) - _LISTED
    return ", ".join(shown[:_LISTED] + ([f"and {more} more"] if more > 0 else []))


def work(families: Sequence[str] = ()) -> Iterator[tuple[str, list[Form]]]:
    """Batches: a target, and forms that share a module."""
    for target in TARGETS:
        forms = [each for declaration in cases.declared(families) for each in chosen(declaration, target)]
        for start in range(0, len(forms), _BATCH):
            yield target, forms[start : start + _BATCH]


def do(batch: tuple[str, list[Form]]) -> tuple[str, list[tuple[Form, str]], int]:
    """One batch: its target, what was emitted, and how many forms ptxas refused."""
    target, forms = batch
    found = emitted(forms, target)
    return target, found, len(forms) - len(found)


def main() -> int:
    """Make the index, and write it with --record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", help="families or declarations (integer, tcgen05.mma); all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="write the index into the package")
    arguments = parser.parse_args()
    batches = list(work(arguments.families))
    forms: dict[str, dict[str, dict[str, str]]] = {}
    refused = 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for number, future in enumerate(as_completed([pool.submit(do, batch) for batch in batches]), 1):
            target, found, missing = future.result()
            refused += missing
            for form, text in found:
                forms.setdefault(form.key, {}).setdefault(target, {})[form.spelling] = text
            print(f"{number}/{len(batches)} modules", file=sys.stderr, flush=True)
    count = sum(len(spellings) for targets in forms.values() for spellings in targets.values())
    print(f"{count} forms of {len(forms)} declarations; ptxas refused {refused}")
    if arguments.record:
        if arguments.families:
            kept = {
                key: {target: dict(each) for target, each in targets.items()} for key, targets in index().forms.items()
            }
            forms = kept | forms
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        write(Index(ptxas_version(find_ptxas()), today, forms))
    else:
        for key, targets in sorted(forms.items()):
            for target, spellings in targets.items():
                for spelling, text in spellings.items():
                    print(f"{key} {target} {spelling}: {text or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
