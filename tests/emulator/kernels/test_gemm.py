"""Whole kernels: the GEMM under every schedule, its planted errors, and random edits of its text."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from ptxgen.device import KernelArgumentError, KernelError, LaunchError
from ptxgen.emulator import Emulator
from ptxgen.syntax import PtxSyntaxError
from tests.support.gemm import bare, plan, run
from tests.support.harness import codes

SHAPES = [(128, 128, 128), (256, 384, 192), (511, 253, 72), (1, 1, 64), (512, 512, 512)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_right_and_clean(shape: tuple[int, int, int], dtype: str, schedule: Any) -> None:
    done = run(*shape, dtype, schedule=schedule, seed=1)
    assert done.report.status == "ok", done.report.summary()
    assert done.report.findings == []
    assert done.right


CONFIGS = [
    {"c_dtype": "f32"}, {"m_tile": 64, "n_tile": 32, "c_dtype": "f32"}, {"m_tile": 64, "n_tile": 256}, {"n_tile": 48},
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_other_tiles(config: dict[str, Any], schedule: Any) -> None:
    done = run(150, 301, 136, schedule=schedule, **config)
    assert (done.report.status, done.report.findings, done.right) == ("ok", [], True), done.report.summary()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(6))
def test_few_multiprocessors_many_schedules(seed: int) -> None:
    done = run(384, 256, 128, emulator=Emulator(schedule="random", seed=seed, multiprocessors=2))
    assert (done.report.status, done.report.findings, done.right) == ("ok", [], True), done.report.summary()


def test_seeds_are_reproducible() -> None:
    counts = [run(256, 128, 128, schedule="random", seed=3).report.instructions for _ in range(2)]
    assert counts[0] == counts[1]


# Planted errors. Each must end as a finding, deadlock, fault or wrong result, and name the edited line or its victim.


def swap(old: str, new: str, count: int = 1) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, count)

    return edit


def drop(pattern: str, count: int = 0) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, "", text, count=count)


DESCRIPTOR = "0x4000404000010000"
IDESC = "0x8200490"
WAIT_LOADED = r"\$wait:\n.*%r_use_slot.*\n.*bra \$wait;\n"
WAIT_MULTIPLIED = r"\$wait:\n.*(%r_ab_slot|%r_acc_slot).*\n.*bra \$wait;\n"


def without_last_barrier(text: str) -> str:
    return re.sub(r"(before_thread_sync;\n).*bar.sync 0;\n(.*after.*\n.*\n.*freed)", r"\1\2", text)


ALLOC_AGAIN = """tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem+32792], 32;
    tcgen05.relinquish_alloc_permit"""

#: (name, edit, codes of which one must come ("wrong": a wrong result alone), how the line named begins)
PLANTED: list[tuple[str, Callable[[str], str], str, str]] = [
    ("stride of 512 bytes", swap(DESCRIPTOR, "0x4000402000010000"), "operand-layout", "tcgen05.mma"),
    ("64-byte swizzle", swap(DESCRIPTOR, "0x8000404000010000"), "swizzle-mismatch illegal-descriptor",
     "tcgen05.mma"),
    ("no such swizzle", swap(DESCRIPTOR, "0x6000404000010000"), "illegal-descriptor", "tcgen05.mma"),
    ("another version of the descriptor", swap(DESCRIPTOR, "0x4000804000010000"), "illegal-descriptor",
     "tcgen05.mma"),
    ("N of 64", swap(IDESC, "0x8100490", 4), "uninitialized-tensor", "tcgen05.ld"),
    ("M of 64", swap(IDESC, "0x4200490", 4), "wrong", ""),
    ("inputs of f16", swap(IDESC, "0x8200010", 4), "operand-element-type", "tcgen05.mma"),
    ("too few bytes expected", swap("[%r_full], 32768;", "[%r_full], 16384;"),
     "shared-race mbarrier-overflow deadlock", "tcgen05.mma mbarrier.try_wait mbarrier.arrive cp.async"),
    ("too many bytes expected", swap("[%r_full], 32768;", "[%r_full], 32784;"), "deadlock",
     "mbarrier.try_wait"),
    ("no wait for the loads", drop(WAIT_LOADED, 1), "shared-race", "tcgen05.mma"),
    ("no wait for the products", drop(WAIT_MULTIPLIED), "shared-race tensor-race",
     "cp.async tcgen05.ld tcgen05.dealloc"),
    ("parity begins with 1", swap("mov.b32 %r_use_phase, 0;", "mov.b32 %r_use_phase, 1;"), "mbarrier-parity deadlock",
     "tcgen05.mma mbarrier.try_wait"),
    ("parity never flips", swap("xor.b32 %r_use_phase, %r_use_phase, 1;", ""), "mbarrier-parity deadlock",
     "cp.async tcgen05.mma mbarrier.try_wait"),
    ("no commit", drop(r".*tcgen05.commit.*\n"), "deadlock", "mbarrier.try_wait"),
    ("no wait for the load of the accumulator", drop(r".*tcgen05.wait::ld.*\n"), "missing-tcgen05-wait", "cvt"),
    ("no fence after the wait", lambda text: re.sub(r"(// Epilogue(?s:.*?)}\n).*after_thread_sync;\n", r"\1", text),
     "missing-tcgen05-fence", "tcgen05.ld"),
    ("no dealloc", drop(r".*tcgen05.dealloc.*\n"), "tmem-not-freed", ""),
    ("no fence after the init", drop(r".*fence.mbarrier_init.*\n"), "mbarrier-init-proxy", "cp.async"),
    (
        "another fence after the init",
        lambda text: text.replace("fence.mbarrier_init.release.cluster;", "fence.proxy.async.global;"),
        "mbarrier-init-proxy", "cp.async",
    ),
    ("no first barrier", drop(r".*bar.sync 0;\n", 1), "mbarrier-init-race mbarrier-uninitialized shared-race", ""),
    ("no last barrier", without_last_barrier, "tmem-freed-in-use", "tcgen05.dealloc"),
    ("all threads issue", drop(r"@!%p_elected bra \$multiplied;"), "mbarrier-overflow", "mbarrier.arrive"),
    ("B on top of A", swap("[%r_smem_b+16384]", "[%r_smem_b+8192]"), "shared-race",
     "cp.async"),
    ("B off its alignment", swap("[%r_smem_b+16384]", "[%r_smem_b+16400]"),
     "misaligned", "cp.async"),
    ("coordinates swapped", swap("{ %r_k, %r_row_a }", "{ %r_row_a, %r_k }"), "wrong", ""),
    ("accumulating onto nothing",
     swap("mov.pred %p_accumulate, 0;", "mov.pred %p_accumulate, 1;"),
     "uninitialized-tensor", "tcgen05.mma"),
    ("two arrivals expected", swap("[smem+32768], 1;", "[smem+32768], 2;"), "deadlock", "mbarrier.try_wait"),
    ("an instruction that is not modelled",
     swap("mov.b32 %r_use_phase, 0;", "vadd.u32.u32.u32.sat %r_use_phase, %r_thread, %r_thread;"),
     "not-modelled", "vadd"),
    ("the address of a generic map", drop(r"\n.*cvta.param.u64 %rd_tensormap_a.*"), "out-of-bounds", "cp.async"),
    ("no relinquish and a second alloc",
     swap("tcgen05.relinquish_alloc_permit", ALLOC_AGAIN), "tmem-relinquished", "tcgen05.alloc"),
    ("another warp's lanes",
     swap("shl.b32 %r_quarter, %r_warp, 21;", "xor.b32 %r_quarter, %r_warp, 1;shl.b32 %r_quarter, %r_quarter, 21;"),
     "tmem-lane-rights", "tcgen05.ld"),
    ("stores past the row", swap("lt.u32 %p_row_in_c, %r_row,", "le.u32 %p_row_in_c, %r_row,"), "wrong", ""),
]  # fmt: skip


@pytest.mark.one_in(6)
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("name", "edit", "accepted", "lines"), PLANTED, ids=[each[0] for each in PLANTED])
def test_planted_errors(name: str, edit: Callable[[str], str], accepted: str, lines: str, schedule: Any) -> None:
    shape = (200, 100, 256) if name.startswith("stores") else (256, 128, 256)
    done = run(*shape, edit=edit, schedule=schedule)
    if accepted == "wrong":
        assert not done.right
        return
    found = [finding for finding in done.report.all_findings if finding.code in accepted.split()]
    assert found, f"{done.report.summary()}, right: {done.right}"
    text = done.text.splitlines()
    if lines:
        finding = found[0]
        assert finding.line is not None
        named = text[finding.line - 1].strip()
        assert named.startswith(tuple(lines.split())) or any(f" {part}" in named for part in lines.split()), named
        assert finding.instruction in named


# Random edits: whatever they make of the kernel, the launch ends with a report or with an error that is documented.

DOCUMENTED = (PtxSyntaxError, KernelError, KernelArgumentError, LaunchError)
OPTIONS = [
    ("eq", "ne", "lt", "le", "gt", "ge", "lo", "hi"), ("u32", "s32", "b32", "f32"), ("u64", "s64", "b64"),
    ("b16", "u16", "s16"), ("lo", "hi", "wide"), ("x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"),
    ("32x32b", "16x64b", "16x128b", "16x256b"), ("global", "shared", "param", "local", "const"),
    ("shared::cta", "shared::cluster"), ("v2", "v4"), ("rn", "rz", "rm", "rp"), ("1d", "2d", "3d", "4d", "5d"),
    ("before_thread_sync", "after_thread_sync"), ("cta_group::1", "cta_group::2"), ("wait::ld", "wait::st"),
    ("kind::f16", "kind::tf32", "kind::f8f6f4"), ("bf16", "f16", "bf16x2", "f16x2"), ("add", "sub", "and", "or", "xor"),
    ("try_wait", "test_wait"), ("init", "inval", "arrive", "expect_tx", "complete_tx"), ("sync", "arrive"),
]  # fmt: skip


def mutant(text: str, rng: random.Random) -> str:
    """One to three random edits of the body's lines."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if "// Setup" in line)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(first, len(lines) - 1)
        line, kind = lines[at], rng.randrange(8)
        numbers = list(re.finditer(r"(?<![\w%$.])(0x[0-9a-fA-F]+|\d+)(?![\w:])", line))
        registers = list(re.finditer(r"%[a-z_0-9]+", line))
        tokens = [
            (found, group)
            for group in OPTIONS
            for name in group
            for found in re.finditer(rf"(?<=\.){name}\b|\b{name}(?=\.)", line)
        ]
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, line)
        elif kind == 2:
            other = rng.randrange(first, len(lines) - 1)
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3 and numbers:
            found = rng.choice(numbers)
            value = int(found[0], 0)
            flipped = value ^ (1 << rng.randrange(64))
            new = rng.choice([0, 1, value + 1, value - 1, value * 2, flipped, 2**31, 2**32 - 1])
            lines[at] = f"{line[: found.start()]}{new:#x}{line[found.end() :]}".replace("-0x", "0x")
        elif kind == 4 and registers:
            found = rng.choice(registers)
            prefix = rng.choice(registers)[0] if rng.random() < 0.3 else None
            others = re.findall(r"%[a-z_0-9]+", "\n".join(lines[first:]))
            lines[at] = line[: found.start()] + (prefix or rng.choice(others)) + line[found.end() :]
        elif kind == 5 and tokens:
            found, group = rng.choice(tokens)
            lines[at] = line[: found.start()] + rng.choice(group) + line[found.end() :]
        elif kind == 6:
            stripped = line.strip()
            if stripped.startswith("@"):
                lines[at] = "    " + stripped.partition(" ")[2]
            elif stripped and not stripped.endswith(":") and not stripped.startswith("//"):
                guard = rng.choice(["%p_elected", "!%p_elected", "%p_more", "%p_done", "!%p_row_in_c", "%p_other_warp"])
                lines[at] = f"    @{guard} {stripped}"
        else:
            lines[at] = line.replace("0;", "1;") if rng.random() < 0.5 else line.replace("1;", "0;")
    return "\n".join(lines) + "\n"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(10))
def test_random_edits_end(part: int) -> None:
    text = bare(plan().text)
    for number in range(30):
        rng = random.Random(f"{part} {number}")
        edited = mutant(text, rng)
        if edited == text:
            continue
        schedule: Any = rng.choice(["eager", "late", "random"])
        try:
            done = run(
                130,
                20,
                136,
                edit=lambda _, edited=edited: edited,
                emulator=Emulator(schedule=schedule, seed=number, max_steps=2_000),
            )
        except DOCUMENTED:
            continue
        assert done.report.status in ("ok", "findings", "incomplete", "deadlock", "fault")
        assert (done.report.status == "ok") <= (not [f for f in done.report.findings if f.severity == "error"])
        if done.report.status != "ok":
            assert codes(done.report)
