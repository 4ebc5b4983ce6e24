"""`ptxgen sweep`: the table, what is illegal and what goes wrong, an author's own kernel, the GPU's times."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from ptxgen import limits
from ptxgen.builder import KERNELS_FOLDER
from ptxgen.cli.kernels.combinations import LAUNCHES, WARM_UP
from ptxgen.device import Finding, LaunchReport
from ptxgen.executor import Executor
from ptxgen.gemm import find
from ptxgen.gemm.prediction.timed import predict_gemm
from ptxgen.toolchain import ToolNotFoundError, assemble
from tests.support.command_line import Cli
from tests.support.fake_device import FakeDevice

LARGE = ("--m", 4096, "--n", 4096, "--k", 4096)
SMALL = ("--m", 128, "--n", 256, "--k", 64)
#: The autotune space of the article on tilus V6: block_m 256; (block_n, e_block_n) 256 with 16 or 32; block_k 64, which
#: 128-byte swizzle gives; tma_stages 5 or 6; mma_stages 2; swizzle_size 4, 8 or 16.
TILUS_V6 = ("tilus-v6", "tile=256x256", "chunk=16,32", "stages=5,6", "accumulators=2", "panel=4,8,16")


def rows(cli: Cli, *arguments: object, code: int = 0) -> list[dict[str, Any]]:
    outcome = cli("sweep", *arguments, "--json")
    assert (outcome.code, outcome.err) == (code, "")
    return json.loads(outcome.out)["rows"]


def test_legal_and_illegal_combinations(cli: Cli) -> None:
    """Figures are those of the plan and of ptxas; what does not fit says why, and is not wrong."""
    found = rows(cli, "modular-k8", "stages=5,7", "tile=256x224,256x256", *LARGE, "--jobs", 2)
    assert [each["options"] for each in found] == [
        {"stages": stages, "tile": tile} for stages in "57" for tile in ("256x224", "256x256")
    ]
    assert [(each["legal"], each["status"]) for each in found] == [(True, "ok")] * 3 + [(False, "illegal")]
    plan = find("modular-k8").plan(stages=5, m_tile=256, n_tile=224)
    cubin = assemble(plan.text, plan.target)
    first, *_, last = found
    assert {key: first[key] for key in ("registers", "shared_bytes", "tmem_columns", "spill_stores", "warnings")} == {
        "registers": cubin.registers, "shared_bytes": plan.shared.bytes, "tmem_columns": 512, "spill_stores": 0,
        "warnings": 0,
    }  # fmt: skip
    # 16 x 19 pairs of CTAs; of 148 multiprocessors each holds one.
    assert (first["tiles"], first["ctas_per_sm"], first["waves"]) == (608, 1, pytest.approx(608 / 148))
    assert last["reason"].startswith("the kernel needs 245972 bytes of shared memory (a 7 x 16384 + b 7 x 16384 + ")
    assert last["registers"] is None


def test_the_table(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    options = ("modular-k8", "stages=7,5", "tile=256x128,256x256", "panel=0")
    outcome = cli("sweep", "blackwell/panels", *options[1:], *LARGE, "--sort", "waves", "--jobs", 0)
    assert (outcome.code, outcome.err) == (0, "")
    title, heads, *lines = outcome.out.splitlines()
    assert title == "blackwell/panels panel=0 for sm_100a, M 4096, N 4096, K 4096"
    assert heads.split() == ["stages", "tile", "registers", "shared", "TMEM", "spills", "CTAs/SM", "tiles", "waves"]
    assert [line.split()[:2] for line in lines[:4]] == [
        ["5", "256x256"], ["7", "256x128"], ["5", "256x128"], ["7", "256x256"],
    ]  # fmt: skip
    assert [line.split()[-2:] for line in lines[:4]] == [["3.46", "✓"], ["6.92", "✓"], ["6.92", "✓"], ["-", "illegal"]]
    assert lines[4].startswith("stages=7 tile=256x256 illegal: the kernel needs 245972 bytes")
    assert "4 combinations: 3 legal, 1 illegal; every legal one is clean." in " ".join(lines)


def test_predicted_times(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of `ptxgen time`; an illegal combination has none."""
    monkeypatch.setenv("COLUMNS", "160")
    sizes = ("--m", 256, "--n", 256, "--k", 256, "--jobs", 0)
    options = ("blackwell/clc", "stages=4,2,7", "tile=256x256", "--time", "b200", "--sort", "predicted")
    found = rows(cli, *options, *sizes)
    assert [each["legal"] for each in found] == [True, True, False]
    plans = {stages: find("blackwell/clc").plan(m_tile=256, n_tile=256, stages=stages) for stages in (2, 4)}
    expected = {stages: predict_gemm(plan, 256, 256, 256, "b200") for stages, plan in plans.items()}
    for each in found[:2]:
        one = expected[int(each["options"]["stages"])]
        assert (each["predicted_us"], each["bound_by"]) == (pytest.approx(one.microseconds, abs=1e-3), one.bound_by)
        assert each["predicted_tflops"] == pytest.approx(one.tflops, abs=0.05)
    assert found[0]["predicted_us"] <= found[1]["predicted_us"]
    assert found[2]["predicted_us"] is None
    title, heads, first, *_ = cli("sweep", *options, *sizes).out.splitlines()
    assert title.endswith("M 256, N 256, K 256, predicted for b200")
    assert heads.split()[-5:] == ["predicted", "µs", "TFLOP/s", "bound", "by"]
    assert f"{found[0]['predicted_us']:.1f}" in first


def test_csv(cli: Cli) -> None:
    outcome = cli("sweep", "hopper-2", "--set", "stages=4,2", "dtype=f16,bf16", "--csv", "--sort", "stages")
    assert outcome.code == 0
    found = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [(each["dtype"], each["stages"], each["status"]) for each in found] == [
        ("f16", "2", "ok"), ("bf16", "2", "ok"), ("f16", "4", "ok"), ("bf16", "4", "ok"),
    ]  # fmt: skip
    assert all(int(each["registers"]) > 32 and each["reason"] == each["seconds"] == "" for each in found)


def test_tilus_v6(cli: Cli) -> None:
    found = rows(cli, *TILUS_V6, *LARGE)
    assert len(found) == 12
    assert {each["status"] for each in found} == {"ok"}
    assert {each["spill_stores"] for each in found} == {0}
    assert len({each["shared_bytes"] for each in found}) == 4  # stages and chunks


def test_the_docs_show_the_space_of_tilus_v6() -> None:
    line = f"ptxgen sweep {' '.join(TILUS_V6)} --m 4096 --n 4096 --k 4096"
    assert line in (KERNELS_FOLDER.parent / "docs" / "kernels.md").read_text()


@pytest.fixture
def own(tmp_path: Path) -> str:
    """A kernel of an author's own: right with tiles of 128 columns, a deadlock with 64, no PTX with 32."""
    text = (KERNELS_FOLDER / "blackwell" / "serial.ptx.j2").read_text()
    phase, setup = "mov.b32 %r_ab_phase, 1;", "    // Setup: barriers"
    assert text.count(phase) == text.count(setup) == 1
    text = text.replace(phase, "mov.b32 %r_ab_phase, {{ 0 if plan.n_tile == 64 else 1 }};")
    text = text.replace(setup, '{{ "    mov.b33 %r_thread, 0;" if plan.n_tile == 32 else "" }}\n' + setup)
    (tmp_path / "mine.ptx.j2").write_text(text)
    (tmp_path / "ladder.toml").write_text(
        "[[rung]]\nname = 'mine'\nfrom = 'blackwell/swizzled'\ntemplate = 'mine.ptx.j2'\n"
    )
    return f"{tmp_path}#mine"


def test_an_own_kernel(cli: Cli, own: str) -> None:
    found = rows(cli, own, "n_tile=128,64,32", *SMALL, "--run", "--schedule", "late", "--jobs", 2, code=1)
    assert [(each["legal"], each["status"]) for each in found] == [(True, "ok"), (True, "deadlock"), (True, "refused")]
    assert found[1]["reason"].startswith("[deadlock] ")
    assert "mine.ptx.j2" in found[2]["reason"]
    assert "b33" in found[2]["reason"]
    assert [each["status"] for each in rows(cli, own, "n_tile=64,128")] == ["ok", "ok"]  # nothing was run
    outcome = cli("sweep", own, "n_tile=128,64", *SMALL, "--run")
    assert outcome.code == 1
    assert "✓ correct" in outcome.out
    assert "n_tile=64 ✗ deadlock: [deadlock] " in outcome.out
    assert "1 of the legal ones went wrong" in outcome.out


def test_a_worker_that_dies(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("ptxgen.cli.kernels.combinations.assemble", broken)
    (row,) = rows(cli, "modular-k3", "--jobs", 0, code=1)
    assert (row["status"], row["reason"]) == ("died", "blackwell/swizzled: MemoryError")


def test_without_ptxas(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ToolNotFoundError("there is no ptxas")

    monkeypatch.setattr("ptxgen.cli.kernels.combinations.assemble", missing)
    outcome = cli("sweep", "modular-k3", "n_tile=64,128", "--jobs", 0)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", "error: there is no ptxas\n")


def test_a_gpu_times_them(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right ones alone, by the median, each in a process of its own."""
    opened: list[FakeDevice] = []
    executors: list[int | None] = []

    class Timer(FakeDevice):
        """Its first launches are slow; with tiles of 64 columns it faults."""

        launches = 0

        def launch(self, kernel: Any, *arguments: Any, **options: Any) -> LaunchReport:
            super().launch(kernel, *arguments, **options)
            self.launches += 1
            if "x64" in kernel.name:
                return LaunchReport("fault", [Finding("gpu-fault", "error", "an illegal address")])
            return LaunchReport("ok", seconds=1.0 if self.launches <= WARM_UP else 1e-6 * self.launches)

    def open_device(device: str, *_: Any, **__: Any) -> FakeDevice:
        assert device == "gpu"
        opened.append(Timer())
        return opened[-1]

    def here(jobs: int | None = None, dask: str | None = None) -> Executor:
        executors.append(jobs)
        return Executor(0)

    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", open_device)
    monkeypatch.setattr("ptxgen.executor.Executor", here)
    right, wrong = rows(cli, "modular-k3", "n_tile=128,64", *SMALL, "--device", "gpu", code=1)
    assert executors == [None, 1, 1]
    assert len(opened) == 3
    launches = range(1 + WARM_UP, 1 + WARM_UP + LAUNCHES)
    median = 1e-6 * sum(launches) / len(launches)
    assert right["seconds"] == pytest.approx(median)
    assert right["tflops"] == pytest.approx(2 * 128 * 256 * 64 / median / 1e12)
    assert (wrong["status"], wrong["seconds"]) == ("fault", None)
    assert "an illegal address" in wrong["reason"]
    outcome = cli("sweep", "modular-k3", "n_tile=128", *SMALL, "--device", "gpu", "--sort", "time")
    assert "µs" in outcome.out
    assert f"{median * 1e6:.1f}" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["modular-k88", "stages=4"], "there is no kernel 'modular-k88'"),
        (["modular-k8", "stage=4"], "blackwell/clc has no option 'stage'; did you mean stages"),
        (["modular-k8", "stages=4,99"], "stages must be 1 to 24, not 99"),
        (["modular-k8", "stages=4,,5"], "stages must be a whole number, not ''"),
        (["modular-k8", "tile=256"], "tile must be M x N such as 256x224, not '256'"),
        (["modular-k8", "epilogue=fast"], "epilogue must be direct or tma, not fast"),
        (["modular-k8", "stages"], "options are OPTION=VALUE,VALUE such as stages=4,5,6, not 'stages'"),
        (["modular-k8", "stages=4", "--set", "stages=5"], "stages is given twice; list its values with commas"),
        (["modular-k8", "tile=256x128", "n_tile=64"], "tile is short for m_tile and n_tile; leave out n_tile"),
        (["modular-k1", "tile=64x64"], "blackwell/naive has no option 'm_tile'"),
        (["modular-k8", "--k", "0"], "--k must be 1 to 2147483647, not 0"),
        (["modular-k8", "--multiprocessors", "0"], "--multiprocessors must be 1 to"),
        (["modular-k8", "--sort", "speed"], "--sort must be registers, shared, tmem, spills, waves, time or predicted"),
        (["modular-k8", "--sort", "predicted"], "--sort predicted goes with --time MACHINE"),
        (["modular-k8", "--time", "a100"], "--time must be b200, h200 or h100, not 'a100'"),
        (["modular-k8", "--time", "h200"], "modular-k8 is for sm_100a, which an NVIDIA H200 (sm_90a) does not run"),
        (["modular-k8", "--jobs", "-2"], "the number of processes must be 0 or more, not -2"),
        (["modular-k8", "--json", "--csv"], "choose one of --json and --csv"),
        (["modular-k8", "--run", "--schedule", "soon"], "--schedule must be eager, late or random, not 'soon'"),
        (["rowsum.py", "stages=4"], "rowsum.py has no options to sweep"),
    ],
    ids=lambda each: each[1] if isinstance(each, list) else "",
)
def test_bad_input(cli: Cli, arguments: list[str], words: str) -> None:
    outcome = cli("sweep", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {words}")
    assert outcome.err.count("\n") == 1


def test_no_gpu(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxgen.gpu import GpuNotFoundError

    def missing(*_: Any, **__: Any) -> None:
        raise GpuNotFoundError("this machine has no NVIDIA driver")

    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", missing)
    outcome = cli("sweep", "modular-k8", "--device", "gpu")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: this machine has no NVIDIA driver\n"


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "columns", "expected"),
    [
        (384, 168, 131136, 0, 1),  # registers: 3 warps in each partition
        (128, 32, 0, 0, 16),  # 64 warps
        (32, 32, 0, 0, 32),  # CTAs
        (128, 255, 0, 0, 2),
        (128, 40, 57372, 128, 3),  # shared memory
        (128, 40, 16384, 256, 2),  # tensor memory
        (128, 40, 232448, 0, 1),
        (1024, 128, 0, 0, 0),
    ],
)
def test_ctas_of_a_multiprocessor(threads: int, registers: int, shared: int, columns: int, expected: int) -> None:
    found = limits.ctas_per_sm(
        "sm_100a", threads=threads, registers=registers, shared_bytes=shared, tmem_columns=columns
    )
    assert found == expected


def test_static_schedulers_count_their_slots(cli: Cli) -> None:
    (row,) = rows(cli, "hopper-4", "slots=8", "--m", 1024, "--n", 1024, "--k", 64)
    assert row["waves"] == row["tiles"] / 8
