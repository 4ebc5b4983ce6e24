"""Concepts of GEMM kernels in builders: blocks of templates, and the examples made of them."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxgen import Emulator, Job, Kernel
from ptxgen.builder import BlockError, KernelBuilder, RegisterError, TemplateError
from ptxgen.gemm import Operand, Pipeline, find
from ptxgen.instr import barrier, control, integer, memory
from ptxgen.job import JobResult
from tests.support.paths import ROOT

EXAMPLES = ROOT / "docs" / "examples"
GEMMS = {"gemm_blackwell": "sm_100a", "gemm_pair": "sm_100a", "gemm_hopper": "sm_90a"}
RING = Pipeline("ab", 2, 1, 0, 1, "a number")


def example(name: str, folder: Path | None = None, **edits: str) -> dict[str, Any]:
    """The names of an example, of whose text some lines are replaced."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    if folder is None:
        return runpy.run_path(str(EXAMPLES / f"{name}.py"))
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return runpy.run_path(str(folder / f"{name}.py"))


def run(job: Callable[..., Job], target: str, schedule: str, **sizes: int) -> JobResult:
    return job(1, **sizes).run(Emulator(target, schedule=schedule, seed=2))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", GEMMS)
def test_gemms_of_concepts(name: str) -> None:
    """Tails of M, N and K and more K blocks than stages; one row, one column, less than a K block."""
    made = example(name)
    for schedule, sizes in (
        ("late", {"m": 65, "n": 40, "depth": 264}),
        ("random", {"m": 1, "n": 1, "depth": 8}),
        ("eager", {"m": 130, "n": 104, "depth": 200}),
    ):
        result = run(made["job"], GEMMS[name], schedule, **sizes)
        assert result.ok, result.summary()
        assert not result.launch.findings, result.summary()


def test_a_finding_names_the_line_of_the_author(tmp_path: Path) -> None:
    """Without the wait for a full stage, MMAs race with loads: the author's lines, and regions by their names."""
    made = example("gemm_blackwell", tmp_path, **{"        pipeline.wait_full(ab)\n": ""})
    result = run(made["job"], "sm_100a", "late", m=1, n=1, depth=64)
    (found,) = [each for each in result.launch.findings if each.code == "shared-race"]
    lines = (tmp_path / "gemm_blackwell.py").read_text().splitlines()
    (line,) = re.findall(r"^line \d+ \(gemm_blackwell\.py:(\d+)\): error", result.summary(), re.MULTILINE)
    assert "mma.multiply" in lines[int(line) - 1]
    assert "reads a stage 0 (" in found.message
    assert "ab_full[0]" in found.message


def test_the_text_is_that_of_the_templates() -> None:
    """What blocks append for the concepts of a packaged kernel stands in that kernel, line by line."""
    plan = find("blackwell/tilus-roles").plan()
    packaged = {line.strip() for line in plan.text.splitlines()}
    k = KernelBuilder("gemm", locations=False)
    pipeline, operand, mma = k.block("pipeline"), k.block("operand"), k.block("mma")
    ab, acc = plan.pipeline("ab"), plan.pipeline("acc")
    k.dynamic_shared(plan.shared.named)
    pipeline.initialize([ab, acc])
    pipeline.start(ab, 1)
    pipeline.wait_empty(ab)
    operand.load(plan.a, plan.offset("a"), ab, plan.accumulator.cta_group, "%r_cluster_y")
    operand.descriptor(plan.b, plan.offset("b"))
    mma.multiply(plan.accumulator, plan.a, plan.b)
    body = k.ptx().partition("{\n")[2].rpartition("}")[0]
    lines = [line.strip() for line in body.splitlines()]
    kept = [
        line for line in lines if line.endswith(";") and not line.startswith(".reg") and "%rd_tensormap" not in line
    ]
    assert len(kept) > 25
    registers = re.compile(r"^[%\w, ]+[,;]$")  # the other lines of a .reg
    assert not [line for line in kept if line not in packaged and not registers.match(line) and "smem;" not in line]


def test_a_block_twice_has_labels_of_its_own(tmp_path: Path) -> None:
    """Blocks of the author's own folder; labels outside of { } are renamed, those inside stay."""
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "count.j2").write_text(
        "## Adds to %r_sum in lanes below a limit.\n"
        "{% macro below(limit, step=1) %}\n"
        "    setp.ge.u32 %p_skip, %r_lane, {{ limit }};\n"
        "    @%p_skip bra $skipped;\n"
        "    {\n    bra $inner;\n$inner:\n    add.u32 %r_sum, %r_sum, {{ step }};\n    }\n"
        "$skipped:\n"
        "{% endmacro %}\n"
    )
    k = KernelBuilder("count", "sm_90a", threads=32)
    out, lane = k.pointer("out"), k.named("r_lane", k.special("tid.x"))
    total = k.named("r_sum", 0)
    count = k.block("count", tmp_path)
    count.below(8)
    count.below(20, step=10)
    k(barrier.bar_warp_sync("0xffffffff"))
    at = k.reg("b64", "at")
    k(integer.mad_wide(at, lane, 4, out, type="u32"), memory.st(at, total, space="global", type="u32"), control.ret())
    text = k.ptx()
    assert text.count("$skipped:") == text.count("$skipped_1:") == 1
    assert text.count("$inner:") == 2
    device = Emulator("sm_90a")
    found = device.empty(32, np.uint32)
    report = device.launch(k.kernel(), 1, 32, [found])
    assert report.ok, report.summary()
    lanes = np.arange(32)
    assert np.array_equal(found.numpy(), (lanes < 8) + 10 * (lanes < 20))
    assert "below(limit, step=1)\n    Adds to %r_sum in lanes below a limit." in str(count)
    assert "below" in dir(count)
    (tmp_path / "blocks" / "broken.j2").write_text("{% macro x() %}\n{{ 1 +\n{% endmacro %}\n")
    with pytest.raises(TemplateError, match=r"blocks/broken\.j2:"):
        k.block("broken", tmp_path)


WRONG: dict[str, tuple[Callable[[KernelBuilder], object], str]] = {
    "block": (lambda k: k.block("pipelin"), "there is no block 'pipelin'; did you mean pipeline?"),
    "macro": (lambda k: k.block("pipeline").strat(RING, 0), "has no macro 'strat'; did you mean start?"),
    "argument": (
        lambda k: k.block("pipeline").start(RING),
        r"pipeline.start\(ring, phase\): .*'phase' was not prov",
    ),
    "many": (lambda k: k.block("pipeline").start(RING, 0, 1), "not more than 2"),
    "other": (lambda k: k.block("pipeline").start(RING, face=1), "no keyword argument 'face'"),
    "concept": (lambda k: k.block("pipeline").advance(Operand("a", "bf16", "k", 64, "128B")), "no attribute 'indexed'"),
    "prefix": (lambda k: k.named("sum"), "'sum' must begin with its type: p_, rs_"),
    "type": (lambda k: (k.reg("b64", "r_k"), k.named("r_k")), "%r_k is declared .b64; blocks take it as .b32"),
    "twice": (lambda k: (k.dynamic_shared(), k.dynamic_shared()), "smem is declared twice"),
}


@pytest.mark.parametrize(("wrong", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong(wrong: Callable[[KernelBuilder], object], words: str) -> None:
    with pytest.raises((BlockError, RegisterError), match=words):
        wrong(KernelBuilder("x"))


def test_launch_bounds() -> None:
    k = KernelBuilder("x", threads=64, cluster=(2, 1, 1), ctas_per_sm=1)
    k(control.ret())
    assert ".reqntid 64, 1, 1\n.minnctapersm 1\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{" in k.ptx()
    assert isinstance(k.kernel(), Kernel)
    assert k.parameter("tensormap", "map") == "map"
    assert ".param .align 64 .b8 map[128]" in k.ptx()
    for i in k.range(4, counter=k.named("r_i")):
        assert i == k.named("r_i")


def test_the_page_lists_the_blocks() -> None:
    """Each block of docs/builder.md exists with the macros it names, and each file of kernels/blocks is there."""
    page = (ROOT / "docs" / "builder.md").read_text(encoding="utf-8")
    section = page[page.index("## Concepts of GEMM kernels") :]
    named = dict[str, set[str]]()
    for block, macro in re.findall(r"`(\w\w+)\.(\w+)\(", section):
        named.setdefault(block, set()).add(macro)
    files = {path.stem for path in (ROOT / "kernels" / "blocks").glob("*.j2")}
    assert files == {word for word in re.findall(r"`(\w+)`", section) if word in files} | named.keys()
    for block, macros in named.items():
        assert macros <= KernelBuilder("x").block(block).macros.keys(), block
