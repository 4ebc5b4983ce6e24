"""The attention kernels: every element under every schedule, all options, tails of queries and keys, and clean SASS."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen import assemble, check
from ptxgen.attention import AttentionProblem, best, find, kernels
from ptxgen.attention.job import job
from ptxgen.attention.reference import expected, random_inputs
from ptxgen.emulator.observers import LineCounts
from ptxgen.options import PlanError
from ptxgen.sass import load, summarize

NAMES = list(kernels())
SCHEDULES = [("eager", 0), ("late", 0), *(("random", seed) for seed in range(5))]
#: Small tiles, so that few keys make many blocks.
SMALL: dict[str, Any] = {"head_size": 64, "key_tile": 32}


def options(name: str, **choices: Any) -> dict[str, Any]:
    """Those choices that a kernel takes; a persistent one has few CTAs, so that each has several tiles."""
    made = {each: value for each, value in choices.items() if each in find(name).options}
    return {"slots": 3, **made} if find(name).defaults.get("scheduler") == "static" else made


def require_right(problem: AttentionProblem, schedule: Any = "eager", seed: int = 0) -> None:
    result = job(problem, seed).run(ptxgen.Emulator(problem.plan.target, schedule, seed=seed))
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


@pytest.mark.one_in(7)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("name", NAMES)
def test_a_rung_is_right(name: str, schedule: str, seed: int) -> None:
    plan = find(name).plan(**options(name, causal=True, lse=True, **SMALL))
    require_right(plan.problem(150, 133, heads=2, kv_heads=1, batches=2), schedule, seed)


LENGTHS = (1, 63, 65, 511, 1000)
TAILS = [(queries, keys) for queries in LENGTHS for keys in LENGTHS]


@pytest.mark.one_in(83)
@pytest.mark.parametrize(("queries", "keys"), TAILS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_tails(name: str, causal: bool, queries: int, keys: int) -> None:
    """With more queries than keys, the first rows of a causal kernel see none: O is 0, log-sum-exp minus infinity."""
    plan = find(name).plan(**options(name, causal=causal, lse=True, head_size=64))
    require_right(plan.problem(queries, keys), "eager" if queries * keys > 10**5 else "random", queries + keys)


#: Choices that each reach other parts of the blocks.
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("hopper/attention-serial", {"dtype": "f16"}),
    ("hopper/attention-pipelined", {"value_size": 128, "head_size": 192, "epilogue": "tma", "key_tile": 64}),
    ("hopper/attention-specialized", {"o_dtype": "f32", "query_tile": 64, "overlap": True}),
    ("hopper/attention-specialized", {"query_tile": 192, "head_size": 64, "epilogue": "tma", "chunk": 32}),
    ("hopper/attention-specialized", {"scheduler": "static", "slots": 2, "panel": 2, "dtype": "f16"}),
    ("hopper/attention-pingpong", {"query_tile": 192, "head_size": 64, "stages": 3, "causal": True}),
    ("hopper/attention-pingpong", {"overlap": False, "panel": 3, "causal": True}),
    ("hopper/attention-pingpong", {"head_size": 256, "key_tile": 64}),
    ("hopper/attention", {"head_size": 192, "value_size": 128, "causal": True}),
    ("hopper/attention", {"overlap": False, "dtype": "f16", "causal": True, "panel": 2}),
    ("hopper/attention", {"o_dtype": "f32", "epilogue": "direct", "head_size": 64, "lse": True}),
    (
        "hopper/attention",
        {"head_size": 64, "key_tile": 160, "chunk_buffers": 2, "consumers": "cooperative"},
    ),
    ("hopper/attention", {"head_size": 64, "value_size": 192, "chunk": 64, "dtype": "f16"}),
    ("blackwell/attention-serial", {"o_dtype": "f32", "head_size": 192, "value_size": 64, "epilogue": "tma"}),
    ("blackwell/attention-pipelined", {"dtype": "f16", "head_size": 256, "key_tile": 64}),
    ("blackwell/attention-specialized", {"head_size": 192, "value_size": 128, "causal": True, "panel": 2}),
    ("blackwell/attention-specialized", {"value_size": 256, "head_size": 64, "scheduler": "static", "stages": 1}),
    ("blackwell/attention-pingpong", {"key_tile": 96, "epilogue": "tma", "chunk": 128, "dtype": "f16"}),
    ("blackwell/attention", {"head_size": 192, "value_size": 128, "key_tile": 64, "causal": True, "panel": 2}),
    ("blackwell/attention", {"o_dtype": "f32", "epilogue": "direct", "head_size": 64, "lse": True}),
    ("blackwell/attention", {"o_dtype": "f32", "chunk": 64, "chunk_buffers": 2, "dtype": "f16", "head_size": 64}),
]


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("name", "choices"), CHOICES, ids=str)
@pytest.mark.parametrize(("schedule", "layout"), [("late", "bhsd"), ("random", "bshd")])
def test_other_choices(name: str, choices: dict[str, Any], schedule: str, layout: Any) -> None:
    plan = find(name).plan(**options(name, **choices))
    require_right(plan.problem(200, 170, heads=3, kv_heads=1, layout=layout), schedule, 3)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("tiles", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["hopper/attention", "blackwell/attention"])
def test_causal_tiles_in_pairs(name: str, tiles: int, slots: int) -> None:
    """The last tile and the first, then the second last and the second; an odd number leaves one in the middle."""
    plan = find(name).plan(head_size=64, key_tile=64, query_tile=128, causal=True, slots=slots, panel=2)
    problem = plan.problem(128 * tiles - 5, 128 * tiles - 5, heads=3)
    assert problem.grid == (min(slots, 3 * -(-tiles // 2)), 1, 1)
    require_right(problem, "random", tiles)


@pytest.mark.parametrize("name", ["hopper/attention", "blackwell/attention"])
@pytest.mark.parametrize("size", [64, 128, 192, 256])
def test_every_head_size_has_a_tile(name: str, size: int) -> None:
    """Also of V: the default tile fits registers, shared memory and tensor memory."""
    for values in (64, 128, 192, 256):
        for causal in (False, True):
            plan = find(name).plan(head_size=size, value_size=values, causal=causal)
            assert plan.config.key_tile >= 64
            assert best(300, 5000, target=plan.target, head_size=size, value_size=values, causal=causal).shared.bytes


def test_the_best_kernel_has_smaller_tiles_for_few_keys() -> None:
    tiles = [best(keys, keys, head_size=128).config for keys in (512, 1025)]
    assert [(each.query_tile, each.key_tile) for each in tiles] == [(128, 128), (192, 80)]
    assert [each.consumers for each in tiles] == ["cooperative", "pingpong"]
    assert best(512, 512, head_size=128, key_tile=96).config.key_tile == 96
    with pytest.raises(PlanError, match="no attention kernel for sm_80; it has some for sm_90a, sm_100a"):
        best(512, 512, target="sm_80")


ALL = [*((name, {"causal": causal, "lse": True}) for name in NAMES for causal in (False, True)), *CHOICES]


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("name", "choices"), ALL, ids=str)
def test_the_machine_code_is_clean(name: str, choices: dict[str, Any]) -> None:
    """No spills, no wgmma that ptxas serializes (a warning), and no local memory."""
    text = find(name).plan(**choices).text
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])
    listing = load(cubin.data)
    summary = summarize(listing.kernel(), listing)
    assert summary.local_loads == summary.local_stores == 0
    assert any(each.opcode in ("HGMMA", "UTCHMMA") for each in listing.kernel().instructions)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_launch_reaches_every_instruction(name: str) -> None:
    plan = find(name).plan(**options(name, causal=True, lse=True, **SMALL))
    # More queries than keys: tiles without keys, with one block and with an even number; masked and whole blocks.
    lines, rows = LineCounts(), plan.config.query_tile
    problem = plan.problem(4 * rows + 88, 2 * rows + 114, heads=2)
    assert job(problem).run(ptxgen.Emulator(plan.target, observers=[lines])).ok
    text = plan.text.splitlines()
    missing = [text[line - 1].strip() for line, count in lines.by_line().items() if not count.threads]
    # A try_wait that suspends its warp until the phase ends needs no second turn.
    assert set(missing) <= {"@!%p_done bra $wait;"}


def test_the_reference_is_softmax() -> None:
    """Against a direct evaluation, row by row, of a head in the middle of grouped heads."""
    problem = find("hopper/attention-serial").plan(head_size=64, causal=True, lse=True).problem(
        5, 7, heads=4, kv_heads=2, batches=2, layout="bshd"
    )  # fmt: skip
    inputs = random_inputs(problem, 1)
    made = expected(problem, inputs)
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    for row in range(5):
        scores = np.array([q[1, row, 2] @ k[1, key, 1] / 8 for key in range(row + 3)])
        weights = np.exp(scores)
        o = sum(weight * v[1, key, 1] for key, weight in enumerate(weights)) / weights.sum()
        np.testing.assert_allclose(made["o"].values[1, row, 2], o, rtol=1e-12)
        np.testing.assert_allclose(made["lse"].values[1, 2, row], np.log(weights.sum()), rtol=1e-12)


@pytest.mark.parametrize(
    ("edit", "output"),
    [
        (("selp.b32 %r_score", "selp.b32 %r_none", 1), None),  # no such register: the check refuses it
        ((r"mul.f32 %r_value(\d+), %r_value\1, %f_shrink0;", r"mov.b32 %r_value\1, %r_value\1;", 1), "o"),
        ((r"sub.rn.f32 %f_lse1, %f_lse1, %f_bias1;", "", 1), "lse"),
        ((r"max.f32 %f_largest0, %f_largest0, %f_other0;", "", 2), "o"),
        ((r"setp.gt.s32 %p_seen, %r_left0, 16;", "setp.gt.s32 %p_seen, %r_left0, 17;", 1), "o"),
    ],
)  # fmt: skip
def test_a_wrong_kernel_is_found(edit: tuple[str, str, int], output: str | None) -> None:
    plan = find("hopper/attention-specialized").plan(causal=True, lse=True, **SMALL)
    text, count = re.subn(*edit[:2], plan.text, count=edit[2])
    assert count == edit[2]
    problem = plan.problem(100, 150)
    if output is None:
        assert check(text)
        return
    result = job(problem, text=text).run(ptxgen.Emulator(plan.target))
    assert not result.ok
    assert any(f"elements of {output} are wrong" in each for each in result.wrong)


def test_an_output_off_16_bytes_is_refused() -> None:
    problem = find("blackwell/attention-serial").plan(head_size=64).problem(8, 8)
    arrays = dict.fromkeys("qkv", 4096)
    with pytest.raises(PlanError, match="O must start on 16 bytes, as its rows are stored in vectors, not at 0x1004"):
        problem.arguments({**arrays, "o": 4100})
    problem.arguments({**arrays, "o": 4112})
