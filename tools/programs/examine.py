"""A random program, and how it ends."""

from __future__ import annotations

import functools
import random
import re
import traceback
from dataclasses import dataclass

import numpy as np

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from ptxgen.emulator.semantics import find
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.operands import EXAMPLE_LABEL
from ptxgen.instr.model.targets import parse_target, parse_version
from tools.programs.values import PROLOGUE, SHARED, TENSOR_MEMORY, tensormap, values_for

TARGETS = ("sm_90a", "sm_100a")
#: Opcodes of which some programs are made alone.
FAMILIES = {
    "sm_90a": ("wgmma.", "cp.", "mbarrier.", "tensormap.", "mma.", "st.", "ld", "atom", "red"),
    "sm_100a": ("tcgen05.", "tcgen05.mma", "cp.", "mbarrier.", "tensormap.", "clusterlaunchcontrol.", "mma."),
}
VERSION = "9.5"
#: Blocks of instructions that a program may run.
STEPS = 2000
#: Forms of each declaration that programs are made of.
_FORMS = 24
_REGISTER = re.compile(r"%x_(pred|b8|b16|b32|b64|b128|f32|f64)_\d+")
_SCHEDULES = ("eager", "late", "random")


@dataclass(frozen=True)
class Crash:
    """A program that ended in a traceback."""

    seed: int
    text: str
    trace: str


@functools.cache
def lines(target: str) -> list[list[str]]:
    """For each declaration that the target and the emulator have, some of its forms as text."""
    load_all()
    rng = random.Random(7)
    found = []
    for forms in REGISTRY.values():
        for form in forms:
            if find(form) is None:
                continue
            texts = [str(made) for made in form.sample(_FORMS, rng) if _fits(made, target)]
            if texts:
                found.append(texts)
    return found


def _fits(made: Instruction, target: str) -> bool:
    """Whether the target has it, and it names nothing but registers and the label."""
    if made.availability_problems(parse_target(target), parse_version(VERSION)):
        return False
    names = set(re.findall(r"\b(?:EXAMPLE_\w+|x_\w+)", _REGISTER.sub("", str(made))))
    return names <= {EXAMPLE_LABEL}


def program(seed: int) -> tuple[str, str]:
    """(target, text) of a random program."""
    rng = random.Random(seed)
    target = rng.choice(TARGETS)
    pool = lines(target)
    ready = rng.random() < 0.6
    family = rng.choice(FAMILIES[target]) if ready and rng.random() < 0.5 else ""
    pool = [texts for texts in pool if texts[0].startswith(family)]
    body = []
    for _ in range(rng.randint(1, 6)):
        line = rng.choice(rng.choice(pool))
        if "cta_group::2" in line and ready:
            line = line.replace("cta_group::2", "cta_group::1")
        if ready:
            body.append(values_for(line, rng))
        chance = rng.random()
        if chance < 0.15:
            line = f"@{'!' * rng.randrange(2)}%x_pred_{rng.randrange(3)} {line}"
        elif chance < 0.25:
            label = f"SKIP{len(body)}"
            line = f"@%x_pred_{rng.randrange(3)} bra {label};\n    {line}\n{label}:"
        body.append(line)
    text = "\n    ".join(body)
    names = sorted({match.group(0) for match in _REGISTER.finditer(text)})
    registers = "".join(f"    .reg .{_REGISTER.fullmatch(name)[1]} {name};\n" for name in names)  # type: ignore[index]
    values = "".join(_initial(name, rng) for name in names if rng.random() < 0.9)
    loops = "    add.u32 %turns, %turns, 1;\n    setp.lt.u32 %again, %turns, 3;\n    @%again bra LOOP;\n"
    loop = rng.random() < 0.2
    prologue = PROLOGUE + (TENSOR_MEMORY if target == "sm_100a" else "") if ready else ""
    return target, (
        f".version {VERSION}\n.target {target}\n.address_size 64\n"
        ".visible .entry k(.param .u64 data, .param .align 64 .b8 map[128])\n{\n"
        f"    .shared .align 1024 .b8 shared[{SHARED}];\n    .reg .b32 %turns, %at; .reg .pred %again;\n"
        "    .reg .b64 %data;\n"
        f"{registers}    ld.param.u64 %data, [data];\n    mov.u32 %at, shared;\n    mov.u32 %turns, 0;\n{prologue}"
        f"{values}"
        f"{'LOOP:' if loop else ''}\n    {text}\n{loops if loop else ''}{EXAMPLE_LABEL}:\n    ret;\n}}\n"
    )


def _initial(name: str, rng: random.Random) -> str:
    """What a register holds at first: an address, the lane, a small number or random bits."""
    kind = name.split("_")[1]
    chance = rng.random()
    if kind == "pred":
        return f"    setp.{rng.choice(('eq', 'ne', 'lt'))}.u32 {name}, %turns, {rng.randrange(2)};\n"
    if kind == "b128":
        return ""
    bits = int(kind[1:])
    if kind == "b64" and chance < 0.6:
        return f"    add.u64 {name}, %data, {16 * rng.randrange(64)};\n"
    if kind == "b32" and chance < 0.5:
        return f"    add.u32 {name}, %at, {16 * rng.randrange(64)};\n"
    if kind == "b32" and chance < 0.6:
        return f"    mov.u32 {name}, %laneid;\n"
    value = rng.choice((0, 1, 2, 8, 32, 128, (1 << bits) - 1, rng.getrandbits(bits)))
    if bits == 8:
        return f"    cvt.u8.u32 {name}, {value};\n"
    return f"    mov.b{bits} {name}, {value & ((1 << bits) - 1)};\n"


def examine(seed: int) -> tuple[str, Crash | None]:
    """Run a program: its outcome, and the crash if there was one."""
    target, text = program(seed)
    rng = random.Random(seed)
    try:
        emulator = Emulator(target, _SCHEDULES[seed % 3], seed, max_steps=STEPS)
        data = emulator.array(np.random.default_rng(seed).integers(0, 256, 4096).astype(np.uint8))
        arguments = [data, tensormap(rng, data.address)]
        report = emulator.launch(Kernel.from_ptx(text), rng.choice((1, 2)), rng.choice((32, 64, 128)), arguments)
        report.summary()
    except Exception:  # what must not happen
        return "crash", Crash(seed, text, traceback.format_exc())
    return report.status, None


def examine_all(seeds: range) -> list[tuple[str, Crash | None]]:
    """Run some programs, one after the other."""
    return [examine(seed) for seed in seeds]
