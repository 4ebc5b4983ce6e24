"""The rungs: every one right under every schedule, and a ladder in a folder outside the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ptxgen
from ptxgen import assemble, check
from ptxgen.builder import KERNELS_FOLDER
from ptxgen.gemm import PlanError, find, kernels
from ptxgen.gemm.job import run_gemm
from tools import rung_table

#: Block-scaled kernels are tested in test_scaled.py.
NAMES = [name for name, entry in kernels().items() if "kind" not in entry.options]
SCHEDULES = [("eager", 0), ("late", 0), ("random", 1)]


def require_right(
    name: str, shape: tuple[int, int, int], schedule: Any, seed: int, multiprocessors: int | None, **choices: Any
) -> None:
    plan = find(name).plan(**choices)
    device = ptxgen.Emulator(plan.target, schedule, seed=seed, multiprocessors=multiprocessors)
    result = run_gemm(device, plan, *shape, seed=seed)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("name", NAMES)
def test_a_rung_is_right(name: str, schedule: str, seed: int) -> None:
    require_right(name, (150, 133, 200), schedule, seed, None)


@pytest.mark.one_in(10)
@pytest.mark.parametrize("name", NAMES)
def test_a_rung_is_right_for_one_element(name: str) -> None:
    require_right(name, (1, 1, 64), "random", 2, None)


PERSISTENT = [name for name in NAMES if "scheduler" in find(name).defaults]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("name", PERSISTENT)
def test_more_tiles_than_cta_slots(name: str, schedule: str, seed: int) -> None:
    """Small tiles, so that few elements make many: some CTAs take over tiles, some are canceled, some come late."""
    slots = {"slots": 4} if "slots" in find(name).options else {}
    require_right(name, (600, 136, 136), schedule, seed, 4, n_tile=64, **slots)


#: Choices that each reach other parts of the blocks.
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("blackwell/core-matrices", {"a_major": "mn", "b_major": "mn"}),
    ("blackwell/swizzled", {"dtype": "s8", "a_major": "mn", "n_tile": 64}),
    ("blackwell/tma-store", {"dtype": "f16", "c_dtype": "f32", "m_tile": 64, "stages": 3}),
    ("blackwell/pair", {"dtype": "e4m3", "b_dtype": "e5m2", "cluster_m": 4, "n_tile": 64}),
    ("blackwell/pipelined", {"dtype": "tf32", "n_tile": 96, "swizzle": "64B"}),
    ("blackwell/pair", {"dtype": "tf32", "a_major": "mn", "b_major": "mn"}),
    ("blackwell/overlapped", {"b_major": "mn", "n_tile": 128, "tmem_load": "32x32b"}),
    ("blackwell/clc", {"cta_group": 1, "cluster_m": 1, "m_tile": 128, "n_tile": 48, "stages": 3}),
    ("blackwell/panels", {"n_tile": 224, "cluster_m": 4, "cluster_n": 2, "panel": 3, "stages": 5}),
    ("blackwell/tilus-copies", {"dtype": "e4m3", "m_tile": 64, "c_dtype": "f32"}),
    ("blackwell/swizzled", {"n_tile": 16, "m_tile": 64}),
    ("blackwell/clc", {"n_tile": 16, "b_major": "k", "accumulators": 4, "stages": 2}),
    ("blackwell/clc", {"scheduler": "static", "slots": 4, "n_tile": 64, "batched": True}),
    ("blackwell/tilus-roles", {"scheduler": "static", "slots": 3, "accumulators": 2, "n_tile": 64, "panel": 3}),
    ("hopper/wgmma", {"dtype": "tf32"}),
    ("hopper/ring", {"dtype": "e5m2", "b_dtype": "e4m3", "n_tile": 48}),
    ("hopper/persistent", {"dtype": "e4m3", "n_tile": 64, "slots": 4}),
    ("hopper/ring", {"a_major": "mn", "b_major": "mn", "c_dtype": "f32"}),
    ("hopper/specialized", {"dtype": "s8", "b_dtype": "u8", "n_tile": 64}),
    ("hopper/specialized", {"m_tile": 192, "n_tile": 192, "stages": 3}),
    ("hopper/specialized", {"m_tile": 256, "n_tile": 128, "stages": 3}),
    ("hopper/persistent", {"cluster_m": 1, "cluster_n": 2, "swizzle": "64B", "n_tile": 64, "slots": 4}),
    ("hopper/overlapped", {"dtype": "f16", "b_major": "mn", "n_tile": 128, "panel": 3, "slots": 6}),
]


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("name", "choices"), CHOICES, ids=str)
@pytest.mark.parametrize("schedule", ["late", "random"])
def test_other_choices(name: str, choices: dict[str, Any], schedule: str) -> None:
    config = find(name).plan(**choices).config
    # Three tiles down and across, four for panels of three, the last in part: small tiles need few elements.
    across = 3 if "panel" in choices else 2
    shape = (min(300, 2 * config.m_tile + 44), min(260, across * config.n_tile + 4), 136)
    require_right(name, shape, schedule, 3, 8, **choices)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "choices"), [*((name, {}) for name in NAMES), *CHOICES], ids=str)
def test_the_ptx_is_small_and_clean(name: str, choices: dict[str, Any]) -> None:
    text = find(name).plan(**choices).text
    assert len(text.encode()) < 60_000
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


_COMBINED: dict[str, Any] = {"alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu"}


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        # fp32 rows through shared memory, with as many columns as there are
        ("blackwell/pipelined", {"c_dtype": "f32", "stages": 2}),
        ("blackwell/clc", {"c_dtype": "f32", "chunk": 128, "chunk_buffers": 1, "stages": 2}),
        ("blackwell/tilus-clc", {"dtype": "e4m3", "chunk": 256, "stages": 2}),
        ("blackwell/pipelined", {"tmem_load": "32x32b"}),
        # batches, and terms of the epilogue
        ("blackwell/tilus-ring", {"cluster_n": 2, "batched": True, "chunk": 256, "panel": 13}),
        ("blackwell/clc", {"c_dtype": "f16", "n_tile": 64, "chunk": 64, "batched": True, "order": "hilbert"}),
        ("blackwell/tilus-tma", {"bias": "bf16", "source": "f16", "a_major": "mn", "tmem_load": "16x256b",
                                 "batched": True, "stages": 3}),
        ("blackwell/pipelined", {"n_tile": 64, "stages": 2, "a_major": "mn", "order": "hilbert", "alpha": True,
                                 "source": "bf16"}),
        ("blackwell/panels", {"epilogue": "direct", "dtype": "e4m3", "c_dtype": "bf16", "n_tile": 48, "stages": 2,
                              "a_major": "mn", "source": "bf16", "bias": "f16", "activation": "silu", "batched": True}),
        # the longest texts
        ("blackwell/panels", {**_COMBINED, "batched": True, "dtype": "e4m3", "c_dtype": "f32", "panel": 3}),
        ("blackwell/mxfp8-wide-stores", {"c_dtype": "bf16", "alpha": True, "scheduler": "clc", "phases": "local"}),
        ("hopper/specialized", {"split_k": 8, "panel": 15}),
        ("hopper/gemv", {"vectors": 4, "dtype": "f16"}),
        ("hopper/gemv", {"vectors": 4, "warp_rows": 4, "dtype": "f16"}),
    ],
    ids=str,
)  # fmt: skip
def test_the_ptx_of_other_options_is_small_and_clean(name: str, choices: dict[str, Any]) -> None:
    test_the_ptx_is_small_and_clean(name, choices)


def test_a_random_config_is_right_or_says_why_not() -> None:
    """Each takes some options of any rung at their first, last or a random value."""
    random, right = Random(20), 0
    while right < 10:
        entry = random.choice(list(kernels().values()))
        described = entry.described()
        choices = {name: _value(random, described[name]) for name in random.sample(sorted(described), 3)}
        stages = {"stages": 2} if "stages" in described else {}
        try:
            plan = entry.plan(**{**stages, **choices})
            result = run_gemm(ptxgen.Emulator(plan.target, "random", seed=right), plan, 129, 96, 128, seed=right)
        except PlanError:
            continue
        assert result.ok, f"{entry.name} {choices}\n{result.summary()}"
        assert not result.launch.findings, f"{entry.name} {choices}\n{result.summary()}"
        assert len(plan.text.encode()) < 60_000, f"{entry.name} {choices}"
        right += 1


def _value(random: Random, option: dict[str, Any]) -> Any:
    if "choices" in option:
        return random.choice(option["choices"])
    first, last, step = option["range"]
    return random.choice((first, last, random.randrange(first, last + 1, step)))


def test_a_rung_is_at_most_ten_lines_and_says_who_chose_what() -> None:
    for path in KERNELS_FOLDER.glob("*/ladder.toml"):
        text = path.read_text()
        for rung in re.split(r"^\[\[rung\]\]\n", text, flags=re.MULTILINE)[1:]:
            own = re.split(r"^(\[|#)", rung, flags=re.MULTILINE)[0]
            assert 2 < len(own.strip().splitlines()) < 10  # and its [[rung]]
        for rung in tomllib.loads(text)["rung"]:
            assert rung["summary"]
            assert "id" not in rung or rung["article"]


def test_the_table_of_the_docs_is_that_of_the_ladders() -> None:
    page = rung_table.PAGE.read_text()
    shown = rung_table.registers_shown(page)
    assert set(shown) == set(kernels())
    assert rung_table.renewed(page, lambda name, _: shown[name]) == page


def test_rungs_are_found_by_id() -> None:
    assert find("modular-k8").name == "blackwell/clc"
    ids = [rung for entry in kernels().values() for rung in entry.rungs]
    assert len(ids) == len(set(ids))


LADDER = """
[[rung]]
name = "two-stages"
from = "blackwell/overlapped"
summary = "a ring of two"
set = { stages = 2, n_tile = 64 }
"""


def test_a_ladder_outside_the_package(tmp_path: Path) -> None:
    (tmp_path / "ladder.toml").write_text(LADDER)
    name = f"{tmp_path}#two-stages"
    assert find(name).defaults["stages"] == 2
    require_right(name, (130, 70, 200), "late", 0, None)


def test_a_template_outside_the_package(tmp_path: Path) -> None:
    text = (KERNELS_FOLDER / "blackwell" / "serial.ptx.j2").read_text()
    (tmp_path / "mine.ptx.j2").write_text(text.replace("// Main loop, ", "// My own loop, "))
    own = LADDER.replace("overlapped", "swizzled").replace("set =", 'template = "mine.ptx.j2"\nset =')
    (tmp_path / "ladder.toml").write_text(own)
    name = f"{tmp_path}#two-stages"
    assert "// My own loop, " in find(name).plan().text
    require_right(name, (130, 70, 200), "late", 0, None)


@pytest.mark.parametrize(
    ("ladder", "words"),
    [
        ("x", "cannot read .*ladder.toml: "),
        ("[[rung]]\nname = 'a'\nsteps = 3", "the rung a has steps; a rung takes article, from, id, large, name,"),
        ("[[rung]]\nid = 'a'", "a rung has no name"),
        ("[[rungs]]\nname = 'a'", "the file has rungs; a ladder takes rung, templates"),
        ("[rung]\nname = 'a'", r"rung of the file must be a list: write \[\[rung\]\]"),
        ("rung = ['a']", "the rung 1 must be a table of article, from,"),
        ("[[rung]]\nname = 'a'\nset = 'stages=2'", "set of the rung a must be a table"),
        ("[[rung]]\nname = 'a'\nfrom = ['blackwell/pair']", "from of the rung a must be text"),
        ("templates.x.option = []", r"\[templates.'x'\] has option; a template takes design, options, target"),
        ("[[rung]]\nname = 'a'\nfrom = 'blackwell/pair'\n[[rung]]\nname = 'a'", "two rungs have the name a"),
        ("[[rung]]\nname = 'a'\nfrom = 'b'", "a comes from 'b', which there is not before it"),
        ("[[rung]]\nname = 'a'", "a must name a template, or the rung that it comes from"),
        ("[[rung]]\nname = 'a'\nfrom = 'modular-k5'", "a comes from 'modular-k5', which there is not before it; "
         r"did you mean blackwell/pair\?"),
        ("[[rung]]\nname = 'a'\nfrom = 'b'\n[[rung]]\nname = 'b'\nfrom = 'a'", "a comes from 'b', which there is not"),
        ("[[rung]]\nname = 'a'\nfrom = 'blackwell/pair'\nset = { x = 1 }", "a sets x, which .*serial.ptx.j2 has not"),
        ("[[rung]]\nname = 'b'\nfrom = 'blackwell/pair'", "ladder.toml has no rung 'a'; it has: b"),
    ],
)  # fmt: skip
def test_ladders_that_make_no_sense(tmp_path: Path, ladder: str, words: str) -> None:
    (tmp_path / "ladder.toml").write_text(ladder)
    with pytest.raises(PlanError, match=words):
        find(f"{tmp_path}#a")
