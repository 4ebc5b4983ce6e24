"""Every spelling of operands in every declared form: `check` and ptxas must agree, the emulator must not crash.

Each operand of a form, each element of its vectors and each part of its brackets in turn is spelled in every way of
PTX ISA 4.5 and 6: constants of all bases, types and operators, symbols with offsets and elements, addresses with and
without brackets, special registers, elements of vector registers, the sink, labels.
"""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from ptxgen.emulator.load.program import Program
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.operands import EXAMPLE_LABEL
from ptxgen.instr.model.targets import parse_target
from tools.certify.cases import NEWEST, declared, forms_of, home, split_operands
from tools.certify.judges import module, ours, ptxas

#: Constants of every base, type and operator (PTX ISA 4.5).
CONSTANTS = (
    "5", "-1", "0", "0x10", "0X1f", "017", "0b101", "7U", "0x10U", "+1", "~0", "!1", "-(3)", "(1 << 4) | 2", "7 / 2",
    "2 * 3 + 1", "7 % 4", "1 ? 2 : 3", "5 > 3", "1 && 0", "(.s64)-1", "(.u64)5", "WARP_SZ", "WARP_SZ * 2", "-WARP_SZ",
    "1.5", "-1.5", "1e3", "1.5 + 2.0", "2.5 > 1.5", "0f3F800000", "0F3f800000", "0d3FF0000000000000",
    "18446744073709551615",
)  # fmt: skip
#: Addresses as values: symbols of every space, with offsets, and elements of arrays; sums of registers.
SYMBOLS = (
    "x_global", "x_shared", "x_const", "x_local", "x_param", "x_global+4", "x_shared+8", "x_local+4", "x_const+4",
    "x_param+4", "x_shared+(1+3)", "x_shared+-4", "x_shared + 4", "x_shared-4", "x_shared[2]", "x_global[1]",
    "x_local[1]", "x_const[0]", "x_shared[1+1]", "x_shared[-1]", "x_shared[0x3]", "x_shared[%x_b32_7]",
    "x_shared[%x_b32_7+1]", "x_param[1]", "x_shared[1.5]", "generic(x_shared)", "x_function", "x_function+4",
    EXAMPLE_LABEL, "%x_b32_7+1", "%x_b64_7+-8", "%x_b16_7+1", "%x_f32_7+1",
)  # fmt: skip
REGISTERS = (
    "%tid.x", "%laneid", "%clock", "%clock64", "%lanemask_lt", "%x_v2_7.x", "%x_v4_7.w", "%x_v2_7.r", "%x_v2_7",
    "%x_v4_7", "%tid", "%x_b32_7.b0", "%x_b32_7.h1", "-%x_b32_7", "!%x_pred_7", "%x_pred_7", "_", "%x_b8_7", "%x_b16_7",
    "%x_b32_7", "%x_b64_7", "%x_b128_7", "%x_u8_7", "%x_s16_7", "%x_u32_7", "%x_s64_7", "%x_f16_7", "%x_f32_7",
    "%x_f64_7",
)  # fmt: skip
ADDRESSES = (
    *(
        spelling.format(name)
        for name in ("x_global", "x_shared", "x_const", "x_local", "x_param")
        for spelling in (
            "[{}]", "[{}+8]", "[{}+-8]", "[{}-8]", "[{}[2]]", "{}", "{}+8", "{}[2]", "{}[1+1]", "[ {} + 0x8 ]",
            "[{}+(2*4)]", "[{}+4U]",
        )
    ),
    "[%x_b64_7]", "[%x_b32_7]", "[%x_u64_7+8]", "[%x_b64_7+-8]", "[%x_b64_7-8]", "[%x_b64_7+0x10]",
    "[%x_b64_7+(1<<3)]", "[%x_b32_7+8]", "[%x_b32_7+-8]", "[%x_b32_7-8]", "[%x_b64_7[1]]", "%x_b64_7", "%x_b32_7",
    "%x_b32_7+8", "[16]", "[0x10]", "[16+8]", "[-16]", "16", "[WARP_SZ]", "[%x_v2_7.x]", "[%tid.x]", "[x_function]",
    "[_]", "[%x_b64_7].unified", "[x_global].unified", "[generic(x_shared)]",
)  # fmt: skip
VECTORS = (
    "%x_v2_7", "%x_v4_7", "%tid", "_", "%x_b32_7", "{%x_v2_7.x, %x_v2_7.y}", "{1, 2}", "{1.5, 2.5}",
    "{%x_v4_7.x, %x_v4_7.y, %x_v4_7.z, %x_v4_7.w}", "{%x_b32_7, %x_b32_7}", "{_, _}", "{x_shared, x_shared}",
    "{%x_b32_7}", "{ %x_b32_7 , %x_b32_8 }",
)  # fmt: skip
#: What ptxas 13.5 takes without a check, against the manual, and differently from operand to operand: the name of a
#: function as a number, a sum of a register of another width, an element of a vector that is no register of its type.
LAX = re.compile(
    r"(?<!\[)x_function\b|%x_(?:b|u|s)\d+_\d+\+|\{.*(?:x_param|%x_pred|%x_b32_7\.|%tid|%laneid|%clock|%lanemask)"
)
#: What registers hold, by their bits: small numbers and addresses.
_VALUES = {
    "8": "cvt.u8.u32 {}, 3;",
    "16": "mov.b16 {}, 2;",
    "32": "mov.b32 {}, x_shared;",
    "64": "mov.b64 {}, x_global;",
}


def spellings(operand: str) -> Iterator[str]:
    """What is put in place of an operand: of its own kind, and the plain other kinds."""
    if operand.startswith("["):
        yield from ADDRESSES
        inner = operand.strip("[]")
        yield from (inner, f"[{inner}+8]", f"[{inner}-8]")
    elif operand.startswith("{"):
        yield from VECTORS
        elements = operand[1:-1].split(", ")
        for other in (*CONSTANTS[:12], *SYMBOLS[:8], *REGISTERS):
            for index in {0, len(elements) - 1}:
                yield "{" + ", ".join([*elements[:index], other, *elements[index + 1 :]]) + "}"
    else:
        yield from (*CONSTANTS, *SYMBOLS, *REGISTERS, f"[{operand}]", f"{{{operand}}}")


def lines_of(made: Instruction) -> Iterator[str]:
    """An instruction with each operand spelled in every way, one at a time."""
    operands = split_operands(made)
    for index, operand in enumerate(operands):
        for other in spellings(operand):
            yield f"{made.opcode_text} {', '.join([*operands[:index], other, *operands[index + 1 :]])};"
        if operand.startswith("[") and "," in operand:
            parts = re.findall(r"\{[^}]*\}|[^,\s{}\[\]]+", operand)
            for place in range(len(parts)):
                for other in (*SYMBOLS[:12], *REGISTERS[:8], *CONSTANTS[:6]):
                    inside = ", ".join([*parts[:place], other, *parts[place + 1 :]])
                    yield f"{made.opcode_text} {', '.join([*operands[:index], f'[{inside}]', *operands[index + 1 :]])};"


@dataclass
class Outcome:
    """What became of the lines of a declaration: how many are legal, disagreements, and tracebacks.

    `lax` counts what ptxas takes by `LAX`; it is no disagreement.
    """

    lines: int = 0
    legal: int = 0
    lax: int = 0
    disagreements: list[str] = field(default_factory=list)
    crashes: list[tuple[str, str]] = field(default_factory=list)


def examine(key: str, each: int = 1, seed: int = 0, judge: bool = True) -> Outcome:
    """The lines of `each` forms of a declaration. Without `judge`, ptxas is not asked."""
    (form,) = declared([key])
    rng, outcome = random.Random(seed), Outcome()
    for made in forms_of(form, each, rng):
        target = home(made)
        assert target is not None
        lines = list(dict.fromkeys(lines_of(made)))
        outcome.lines += len(lines)
        legal = []
        for start in range(0, len(lines), 250):
            batch = lines[start : start + 250]
            mine = ours(batch, target, NEWEST)
            theirs = ptxas(batch, target, NEWEST) if judge else mine
            for line, left, right in zip(batch, mine, theirs, strict=True):
                if left and not right and LAX.search(line):
                    outcome.lax += 1
                elif bool(left) != bool(right):
                    both = f"    ptxgen: {left or 'legal'}\n    ptxas:  {right or 'legal'}"
                    outcome.disagreements.append(f"[{target}] {line}\n{both}")
                if not left:
                    legal.append(line)
        outcome.legal += len(legal)
        outcome.crashes += crashes(legal, target, rng)
    return outcome


def crashes(lines: Sequence[str], target: str, rng: random.Random) -> list[tuple[str, str]]:
    """The lines that end in a traceback when the emulator loads them, or runs them alone; with the traceback."""
    found = list(_unloadable(lines, target))
    for line in set(lines) - {line for line, _ in found}:
        try:
            _run(line, target, rng.randrange(1 << 16))
        except Exception:  # what must not happen
            found.append((line, traceback.format_exc()))
    return found


def _unloadable(lines: Sequence[str], target: str) -> Iterator[tuple[str, str]]:
    """The lines that cannot be loaded: all together, and in halves where that fails."""
    try:
        text, _ = module(lines, target, NEWEST)
        Program(Kernel.from_ptx(text), parse_target(target))
    except Exception:
        if len(lines) == 1:
            yield lines[0], traceback.format_exc()
            return
        for half in (lines[: len(lines) // 2], lines[len(lines) // 2 :]):
            yield from _unloadable(half, target)


def _run(line: str, target: str, seed: int) -> None:
    """Run one instruction by a warp and a half, whose registers hold addresses and small numbers."""
    whole, _ = module([line], target, NEWEST)
    # Only what the line names is declared: the rest costs more than the run.
    names = set(re.findall(r"%x_\w+?_\d+", line))
    registers = "".join(f".reg {_declared(name)} {name};\n" for name in sorted(names))
    text = re.sub(r"\.reg [^;]*;\n", "", whole)
    fill = "".join(_VALUES[bits].format(name) for name in sorted(names) if (bits := _bits(name)) in _VALUES)
    text = text.replace(f"{EXAMPLE_LABEL}:\n{line}", f"{registers}{EXAMPLE_LABEL}:\n{fill}\n{line}", 1)
    emulator = Emulator(target, ("eager", "random")[seed % 2], seed, checks=False, max_steps=200)
    data = emulator.array(np.zeros(64, np.uint8))
    emulator.launch(Kernel.from_ptx(text), 1, 48, [data]).summary()


def _declared(name: str) -> str:
    kind = name.split("_")[1]
    return f".{kind} .b32" if kind in ("v2", "v4") else f".{kind}"


def _bits(name: str) -> str:
    found = re.fullmatch(r"%x_[bus](8|16|32|64)_\d+", name)
    return found[1] if found else ""
