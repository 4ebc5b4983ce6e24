"""Programs of nvcc under `ptxgen exec`: what they print, what is found, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.driver.programs import SOURCES, compile_cuda, execute

CU = SOURCES / "programs.cu"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cuda(CU, tmp_path_factory.mktemp("nvcc") / "programs")


def line_of(text: str) -> int:
    """The line of the source that contains a text."""
    return next(number for number, line in enumerate(CU.read_text().splitlines(), 1) if text in line)


def test_a_right_program(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "scaled"])
    assert ran.code == 0, ran.said
    assert ran.output == "host speaks first\ndevice says 1000\nsm_90 with 8 multiprocessors\nPASS\n"
    assert ran.launches[0]["site"] == "scaled"
    assert "scale: 1 launch" in ran.said


def test_the_shared_runtime(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # NVIDIA's wheel has no libcudart.so, which -cudart shared links to.
    options = ("-arch=sm_90a", "-cudart", "none", "-Xlinker", "-l:libcudart.so.13")
    program = compile_cuda(CU, tmp_path / "programs", *options)
    ran = execute(capfd, [program, "scaled"], target="sm_90a", multiprocessors=4)
    assert ran.code == 0, ran.said
    assert "with 4 multiprocessors" in ran.output
    assert "version information" not in ran.said


@pytest.mark.parametrize("what", ["no-race", "streams", "graphs", "managed", "sms", "cooperative", "clusters"])
def test_programs_that_pass(capfd: pytest.CaptureFixture[str], program: Path, what: str) -> None:
    ran = execute(capfd, [program, what])
    if "no cooperative groups" in ran.output:
        pytest.skip("nvcc has no cooperative groups without nvidia-cuda-cccl")
    assert (ran.code, ran.output) == (0, "PASS\n"), ran.said
    assert ran.codes() == []


def test_a_race_is_found_at_its_line_once(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "race"])
    assert (ran.code, ran.output) == (1, "PASS\n")
    assert ran.codes("reverse") == ["shared-race"] * 3
    assert ran.sources()[0].startswith(f"programs.cu:{line_of('the race of')}:")
    assert ran.said.count("error [shared-race]") == 1
    assert "tile" in ran.said.partition("error [shared-race]")[2].partition("fix:")[0]
    assert "shared-race ×3" in ran.said


def test_an_overrun_is_a_sticky_error(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "overrun"])
    assert ran.code == 1
    assert ran.output.splitlines()[0] == "cudaSuccess, cudaErrorIllegalAddress, cudaErrorIllegalAddress"
    assert ran.codes() == ["out-of-bounds"]
    assert f"programs.cu:{line_of('the overrun of')}:" in ran.said
    assert "just past its end: allocation 1, 400 bytes" in ran.said


@pytest.mark.parametrize(
    ("what", "error", "code"),
    [
        ("deadlock", "cudaErrorLaunchTimeout", "deadlock"),
        ("freed", "cudaErrorIllegalAddress", "out-of-bounds"),
        ("trapped", "cudaErrorLaunchFailure", "trap"),
    ],
)
def test_kernels_that_do_not_end(
    capfd: pytest.CaptureFixture[str], program: Path, what: str, error: str, code: str
) -> None:
    ran = execute(capfd, [program, what], timeout=60)
    assert (ran.code, ran.output.splitlines()[0]) == (1, error), ran.said
    assert ran.codes() == [code]


def test_calls_that_fail(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "copy"])
    assert ran.output.splitlines()[0] == "cudaErrorInvalidValue"
    assert "a copy or fill of 32 bytes" in ran.said
    assert "allocation 1, 16 bytes" in ran.said
    ran = execute(capfd, [program, "launches"])
    expected = "cudaErrorInvalidConfiguration, cudaErrorInvalidValue, cudaSuccess, cudaSuccess"
    assert ran.output.splitlines()[0] == expected
    assert "no GPU takes grid (1, 1, 1), block (2048, 1, 1)" in ran.said
    assert "at most 49152 are allowed" in ran.said
    assert len(ran.launches) == 1
    ran = execute(capfd, [program, "textures"])
    assert ran.output.splitlines()[0] == "cudaErrorNotSupported"
    reason = "the emulated driver does not support: mipmaps, texture references and sparse arrays are not emulated"
    assert f"cudaMallocMipmappedArray, which {reason}" in ran.said
    assert ran.said.count("does not support") == 1


def test_a_crash_keeps_the_reports(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "crash"])
    assert ran.code == 128 + 6
    assert "the program was ended by SIGABRT" in ran.said
    assert [each["status"] for each in ran.launches] == ["ok"]


def test_machine_code_alone_is_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = compile_cuda(CU, tmp_path / "programs", "-gencode", "arch=compute_90a,code=sm_90a")
    ran = execute(capfd, [program, "scaled"])
    assert ran.code != 0
    assert "machine code and no PTX" in ran.said
    assert "-gencode arch=compute_XX,code=compute_XX" in ran.said


CARELESS = SOURCES / "careless.cu"


def test_a_program_that_ignores_that_nothing_ran_fails(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = compile_cuda(CARELESS, tmp_path / "careless", "-gencode", "arch=compute_90a,code=sm_90a")
    ran = execute(capfd, [program])
    assert (ran.code, ran.output, ran.launches) == (1, "PASS\n", [])
    assert "machine code and no PTX" in ran.said
    assert "increase: 2 launches refused, not run" in ran.said
    assert execute(capfd, [program], fail_on="never").code == 0


def test_a_stripped_runtime_fails(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = compile_cuda(CARELESS, tmp_path / "careless", "-arch=sm_90a", "-Xlinker", "-s")
    ran = execute(capfd, [program])
    assert (ran.code, ran.output, ran.launches) == (1, "PASS\n", [])
    assert "careless has a copy of NVIDIA's runtime without symbols, which cannot be replaced" in ran.said


@pytest.fixture(scope="module")
def directions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cuda(SOURCES / "directions.cu", tmp_path_factory.mktemp("directions") / "directions", "-arch=sm_90a")


def test_a_kind_of_copy_that_its_addresses_contradict_is_noted(
    capfd: pytest.CaptureFixture[str], directions: Path
) -> None:
    ran = execute(capfd, [directions, "wrong"])
    assert ran.output == "PASS\n"
    for sentence in (
        "cudaMemcpy of 64 bytes says cudaMemcpyDeviceToHost but goes from host to device memory: undefined",
        "cudaMemcpyAsync of 63 bytes says cudaMemcpyHostToDevice but goes from device to host memory: undefined",
        "cudaMemcpy of 62 bytes says cudaMemcpyDeviceToDevice but goes from host to device memory: undefined",
        "cudaMemcpy2D of 56 bytes says cudaMemcpyHostToHost but goes from device to host memory: undefined",
    ):
        assert sentence in ran.said


def test_pinned_and_managed_memory_is_of_either_side(capfd: pytest.CaptureFixture[str], directions: Path) -> None:
    ran = execute(capfd, [directions])
    assert (ran.code, ran.output) == (0, "PASS\n")
    assert "undefined" not in ran.said


def test_as_much_shared_memory_as_the_program_has_asked_for(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """TileLang sets the attribute to 48 KiB for as many dynamic bytes, beside its mbarriers."""
    program = compile_cuda(SOURCES / "opted_in.cu", tmp_path / "opted_in", "-arch=sm_90a")
    ran = execute(capfd, [program])
    assert (ran.output, ran.codes()) == ("PASS\n", [])
    assert ran.said.count("49152 bytes of dynamic shared memory, but without") == 1


def test_checks_of_chosen_kernels_and_launches(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    import re

    assert execute(capfd, [program, "race"], kernels=re.compile("scale")).codes() == []
    assert execute(capfd, [program, "race"], launches=(2, 2)).codes() == ["shared-race"]
    assert execute(capfd, [program, "race"], fail_on="never").code == 0


@pytest.mark.parametrize("what", ["no-wait", "read-early"])
def test_a_missing_wait_of_the_host_shows_under_late(
    capfd: pytest.CaptureFixture[str], program: Path, what: str
) -> None:
    assert execute(capfd, [program, what], schedule="eager").output == "PASS\n"
    assert execute(capfd, [program, what], schedule="late").output == "FAIL\n"
    seeds = [execute(capfd, [program, what], schedule="random", seed=seed).output for seed in range(6)]
    assert "FAIL\n" in seeds


@pytest.mark.parametrize(
    ("what", "kernels", "others", "said"),
    [
        (
            "no-wait",
            ["host-race"],
            ["host-race"],
            "add_one of launch 1 (stream 2, issued at two_streams) writes memory",
        ),
        ("read-early", [], ["host-race"], "the program (at read_early) reads memory that the copy (stream 1"),
        ("managed-early", ["host-race"], [], "that add_one of launch 1 (the default stream, issued at managed_early)"),
        ("free-early", ["host-race"], ["host-race"], "the free (stream 2, issued at free_early) writes memory"),
    ],
)
def test_host_races(
    capfd: pytest.CaptureFixture[str], program: Path, what: str, kernels: list[str], others: list[str], said: str
) -> None:
    ran = execute(capfd, [program, what])
    assert (ran.code, ran.output) == (1, "PASS\n"), ran.said  # nothing shows under `eager` but the finding
    assert set(ran.codes()) == set(kernels), ran.said
    assert set(ran.others) <= set(others), ran.said
    assert set(ran.codes() + ran.others) == {"host-race"}
    assert said in ran.said


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    "what", ["scaled", "wait", "read", "managed-late", "free-late", "streams", "managed", "graphs"]
)
def test_programs_that_wait_have_no_host_races(
    capfd: pytest.CaptureFixture[str], program: Path, what: str, schedule: Literal["eager", "late", "random"]
) -> None:
    ran = execute(capfd, [program, what], schedule=schedule, seed=2)
    assert (ran.code, ran.output.splitlines()[-1]) == (0, "PASS"), ran.said
    assert (ran.codes(), ran.others) == ([], []), ran.said


def test_equal_launches_are_not_run_again(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    ran = execute(capfd, [program, "repeated"])
    assert ran.code == 0, ran.said
    repeated = {
        name: [each["repeated"] for each in ran.launches if name in each["kernel"]] for name in ("store", "add")
    }
    assert repeated["store"] == [False, False] + [True] * 18 + [False]
    assert repeated["add"] == [False] * 5
    assert "store_index: 21 launches, 18 of them equal and not run again" in ran.said


def test_a_program_whose_only_launch_is_refused_fails(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "refused.cu"
    source.write_text("__global__ void k() {}\nint main() { k<<<1, 2048>>>(); return 0; }\n")
    ran = execute(capfd, [compile_cuda(source, tmp_path / "refused")])
    assert (ran.code, ran.launches) == (1, [])
    assert "launch of k refused: no GPU takes grid (1, 1, 1), block (2048, 1, 1)" in ran.said
