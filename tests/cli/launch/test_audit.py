"""`ptxgen audit`: which synchronization a kernel needs, which it does not, and what no run reaches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ptxgen.audit.audit import SCHEDULES, begin, judge
from ptxgen.audit.weaken import synchronization
from ptxgen.cli.launch.audit import AuditedGemm
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob
from tests.support.command_line import Cli
from tests.support.paths import ROOT

#: Two warps exchange words; the second barrier orders nothing, and the fence is behind a branch that no thread takes.
EXCHANGE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry exchange(.param .u64 out)
.reqntid 64
{
    .shared .align 4 .b8 words[256];
    .reg .pred %never;
    .reg .b32 %t, %a, %b, %v, %w;
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %w, words;
    mad.lo.u32 %a, %t, 4, %w;
    xor.b32 %b, %t, 32;
    mad.lo.u32 %b, %b, 4, %w;
    add.u32 %v, %t, 1000;
    st.shared.u32 [%a], %v;
    bar.sync 0;
    ld.shared.u32 %v, [%b];
    mul.wide.u32 %out, %t, 4;
    bar.sync 1;
    setp.gt.u32 %never, %t, 64;
    @!%never bra $store;
    fence.acq_rel.gpu;
$store:
    ld.param.u64 %out, [out];
    mad.wide.u32 %out, %t, 4, %out;
    st.global.u32 [%out], %v;
    ret;
}
"""
OUT = ("--arg", "out=zeros:u32:64")
NEEDED, REDUNDANT, UNREACHED = (EXCHANGE[: EXCHANGE.index(each)].count("\n") + 1 for each in
                                ("bar.sync 0", "bar.sync 1", "fence.acq_rel"))  # fmt: skip


@pytest.fixture
def exchange(tmp_path: Path) -> Path:
    path = tmp_path / "exchange.ptx"
    path.write_text(EXCHANGE)
    return path


def verdicts(cli: Cli, *words: object) -> list[tuple[int, str, str, str]]:
    """The line, change, verdict and code of each change."""
    found = cli("audit", *words, "--jobs", 0, "--json")
    assert found.code == 0, found.err
    return [(each["line"], each["change"], each["verdict"], each["code"]) for each in json.loads(found.out)["changes"]]


def test_a_needed_barrier_a_redundant_one_and_an_unreached_fence(cli: Cli, exchange: Path) -> None:
    assert verdicts(cli, exchange, *OUT) == [
        (NEEDED, "dropped", "needed", "shared-race"),
        (REDUNDANT, "dropped", "not needed", ""),
        (UNREACHED, "dropped", "not reached", ""),
        (UNREACHED, "of a narrower scope", "not reached", ""),
    ]


def test_accepted_findings_do_not_count(cli: Cli, exchange: Path) -> None:
    """Neither for the kernel as it is, nor for a change of it."""
    exchange.write_text(EXCHANGE.replace("bar.sync 0;", "// none"))
    assert "an audit requires a kernel that is right and clean" in cli("audit", exchange, *OUT, "--jobs", 0).err
    entry = 'code = "shared-race"\ninstruction = "ld.shared.u32 %v, [%b];"\nreason = "a test"\n'
    accepted = exchange.with_name("ok.toml")
    accepted.write_text(f"[[accept]]\n{entry}")
    assert verdicts(cli, exchange, *OUT, "--accept", accepted)[0] == (REDUNDANT, "dropped", "not needed", "")


def test_what_else_an_instruction_may_be_there_for_is_said(cli: Cli, exchange: Path) -> None:
    """Where no run needs a barrier of a warp, its use for convergence is said, and nothing of other kinds."""
    exchange.write_text(EXCHANGE.replace("bar.sync 1", "bar.warp.sync -1"))
    found = cli("audit", exchange, *OUT, "--jobs", 0)
    assert "note: bar.warp.sync may keep a warp converged" in found.out
    assert "wgmma.fence" not in found.out
    assert "take turns" not in found.out
    (remark,) = json.loads(cli("audit", exchange, *OUT, "--jobs", 0, "--json").out)["remarks"]
    assert remark.startswith("bar.warp.sync")


def test_what_is_printed(cli: Cli, exchange: Path) -> None:
    found = cli("audit", exchange, *OUT, "--jobs", 0)
    lines = found.out.splitlines()
    assert lines[0].endswith("3 synchronizing instructions, 4 changes: 1 not needed, 2 not reached, 1 needed")
    assert re.search(rf"line +{REDUNDANT}  dropped +bar\.sync 1 +\(\d+ cycles, depth 0\)", found.out)
    assert "[shared-race]" not in found.out
    assert "--all lists what is needed" in lines
    whole = cli("audit", exchange, *OUT, "--jobs", 0, "--all").out
    assert re.search(rf"line +{NEEDED}  dropped +bar\.sync 0\n +late: \[shared-race\] race: ", whole)


def test_a_weaker_arrival_and_a_wait_are_needed(cli: Cli, tmp_path: Path) -> None:
    """A store that an mbarrier publishes: the release, the arrival and the wait."""
    text = EXCHANGE.replace(
        "bar.sync 0;",
        """mbarrier.arrive.release.cta.shared::cta.b64 _, [full];
$wait:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %never, [full], 0;
    @!%never bra $wait;""",
    ).replace(
        "    ld.param.u64 %out, [out];\n    mov.u32 %t",
        """    .shared .align 8 .b64 full;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %never, %t, 0;
    @%never mbarrier.init.shared::cta.b64 [full], 64;
    bar.sync 2;
    mov.u32 %t""",
    )
    path = tmp_path / "published.ptx"
    path.write_text(text)
    found = {(change, verdict, code) for _, change, verdict, code in verdicts(cli, path, *OUT)}
    assert {
        ("wait dropped", "needed", "shared-race"),
        ("relaxed", "needed", "shared-race"),
        ("dropped", "needed", "deadlock"),
    } <= found


def test_a_job_is_judged_by_its_reference(cli: Cli) -> None:
    assert verdicts(cli, ROOT / "docs" / "examples" / "rowsum.py") == [(37, "dropped", "not needed", "")]


def test_a_wait_for_a_copy_is_needed(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "copy.ptx"
    path.write_text(
        EXCHANGE.replace(
            "bar.sync 0;", "cp.async.ca.shared.global [%a], [%out], 4;\n    cp.async.wait_all;\n bar.sync 0;"
        )
    )
    found = verdicts(cli, path, *OUT)
    assert ("dropped", "needed") in {(change, verdict) for _, change, verdict, _ in found}


def test_the_time_is_bounded(cli: Cli, exchange: Path) -> None:
    found = verdicts(cli, exchange, *OUT, "--time", 1e-9)
    assert sum(verdict == "not judged" for _, _, verdict, _ in found) == 1
    assert "1 not judged" in cli("audit", exchange, *OUT, "--jobs", 0, "--time", 1e-9).out


def test_a_kernel_that_is_wrong_as_it_is(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "racy.ptx"
    path.write_text(EXCHANGE.replace("bar.sync 0;", ""))
    found = cli("audit", path, *OUT, "--jobs", 0)
    assert found.code == 2
    assert "an audit requires a kernel that is right and clean; under late this one ends as findings" in found.err
    assert "[shared-race]" in found.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", "0"), "--time must be more than 0 seconds, not 0"),
        (("--jobs", "-1"), "the number of processes must be 0 or more, not -1"),
        (("--arg", "in=zeros:u32:64"), "in"),
    ],
)
def test_bad_input(cli: Cli, exchange: Path, words: tuple[str, ...], said: str) -> None:
    found = cli("audit", exchange, *OUT, *words)
    assert found.code == 2
    assert said in found.err
    assert len(found.err.splitlines()) <= 3


def test_a_shipped_kernel() -> None:
    """Every wait of the simplest Blackwell pipeline is needed."""
    job = GemmJob(find("blackwell/swizzled").plan(), 128, 128, 128)
    subject = AuditedGemm(job, job.plan.text)
    schedules = SCHEDULES[:1]
    baseline = begin(subject, schedules)
    waits = [each for each in synchronization(subject.text) if each.kind == "wait dropped"]
    assert len(waits) >= 3
    assert [judge(subject, each, baseline, schedules).fate for each in waits] == ["needed"] * len(waits)
