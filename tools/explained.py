"""Explain every legal spelling of every declaration, with operands and without, and check what the explanation says.

python -m tools.explained takes all of them (minutes on all cores); the tests take a sample.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from collections.abc import Iterator

from ptxgen.instr import load_all
from ptxgen.instr.model.explain import Explanation, explain
from ptxgen.instr.model.form import REGISTRY, Instruction
from tools import executing

#: Combinations of modifiers in one piece of work.
_CHUNK = 4000


def declarations() -> list[type[Instruction]]:
    """Every declaration."""
    load_all()
    return [form for forms in REGISTRY.values() for form in forms]


def sampled(form: type[Instruction], count: int, seed: int = 0) -> list[str]:
    """What is wrong with the explanations of `count` legal spellings drawn at random."""
    return [each for made in form.sample(count, random.Random(seed)) for each in faults(made)]


def faults(made: Instruction) -> Iterator[str]:
    """What is wrong with the explanations of one legal instruction."""
    text = str(made).rstrip(";")
    for given in (text, made.opcode_text):
        try:
            found = explain(given)
        except Exception as error:  # a crash is what this looks for
            yield f"{given}: {type(error).__name__}: {error}"
            continue
        if problems := [problem for each in found for problem in each.problems]:
            yield f"{given}: {problems[0].message}"
        # Lines that differ in the types of operands alone are one without declarations; the first explains both.
        for each in (each for each in found if each.key == made.form.key):
            yield from _wrong_parts(each, made, given == text)


def _wrong_parts(found: Explanation, made: Instruction, with_operands: bool) -> Iterator[str]:
    form = made.form
    shown = [part.name for part in found.operands]
    present = [name for name in form.operands if getattr(made, name) is not None]
    possible = [name for name, spec in form.operands.items() if not spec.when or spec.wanted(made.__dict__)]
    if shown != (present if with_operands else possible):
        yield f"{found.text}: explains the operands {shown}, not {present if with_operands else possible}"
    if silent := [part.text for part in (*found.modifiers, *found.operands) if not part.meaning]:
        yield f"{found.text}: no meaning of {silent[0]}"
    if not found.targets:
        yield f"{found.text}: legal on no target"
    if with_operands:
        family = form.key.partition(".")[0]
        call = eval(found.call, {family: importlib.import_module(f"ptxgen.instr.{family}")})
        if str(call) != str(made):
            yield f"{found.text}: {found.call} builds {call}"


def _examine(chunk: tuple[str, int, int]) -> tuple[int, list[str]]:
    key, start, stop = chunk
    form = next(each for each in declarations() if each.form.key == key)
    count, wrong = 0, list[str]()
    for made in form.variants(start, stop):
        count += 1
        wrong += faults(made)
    return count, wrong[:3]


def main() -> int:
    """Explain all; print what is wrong, at most three lines a chunk; exit with 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m tools.explained", description=__doc__)
    executing.add_options(parser)
    options = parser.parse_args()
    chunks = [
        (form.form.key, start, start + _CHUNK)
        for form in declarations()
        for start in range(0, form.combination_count(), _CHUNK)
    ]
    explained = bad = 0
    with executing.executor(parser, options) as executor:
        for done in executor.map(_examine, chunks, what="chunks of spellings"):
            count, wrong = done.value or (0, [str(done.problem)])
            explained += count
            bad += len(wrong)
            for each in wrong:
                print(each, flush=True)
    print(f"{explained:,} legal spellings explained" + (f", {bad:,} wrong" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
