"""Bad input: one clear sentence on stderr, exit code 2, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxgen.cli import main as cli_main
from tests.support.command_line import Cli
from tests.support.fake_device import FakeDevice

KERNEL = "blackwell/swizzled"
RUN = ["run", KERNEL]

SENTENCES = [
    (["run", "swizzled"], "there is no kernel 'swizzled'; did you mean blackwell/swizzled? ('ptxgen kernels' "
     "lists all)"),
    (["build", "zzz"], "there is no kernel 'zzz' ('ptxgen kernels' lists all)"),
    (["build", "blackwell/swizled"], "there is no kernel 'blackwell/swizled'; did you mean blackwell/swizzled or "
     "blackwell/pipelined? ('ptxgen kernels' lists all)"),
    ([*RUN, "--m", "-5"], "M must be 1 to 2147483647, not -5"),
    ([*RUN, "--n", "0"], "N must be 1 to 2147483647, not 0"),
    ([*RUN, "--dtype", "f64"], "dtype must be bf16, f16, tf32, e4m3, e5m2, e3m2, e2m3, e2m1, s8 or u8, not f64"),
    ([*RUN, "--c-dtype", "s32"], "bf16 accumulates in f32; C cannot be s32"),
    ([*RUN, "--set", "m_tile=100"], "m_tile must be 64 to 256 in steps of 64, not 100"),
    (["build", KERNEL, "--set", "n_tile=512"], "n_tile must be 16 to 256 in steps of 16, not 512"),
    (["build", "modular-k8", "--set", "tile=128x128"],
     "the M tile must be 256 (tcgen05.mma with cta_group::2), not 128"),
    (["build", "modular-k8", "--set", "stages=7"],
     "the kernel needs 245972 bytes of shared memory (a 7 x 16384 + b 7 x 16384 + c 2 x 8192 + response 2 x 16 + "
     "ab_full 7 x 8 + ab_empty 7 x 8 + acc_full 2 x 8 + acc_empty 2 x 8 + clc_full 2 x 8 + clc_empty 2 x 8 + tmem 4); "
     "a CTA on sm_100a has 232448"),
    (["build", KERNEL, "--set", "stage=4"], "blackwell/swizzled has no option 'stage'; did you mean stages? ('ptxgen "
     "kernels blackwell/swizzled' lists them)"),
    (["build", KERNEL, "--set", "stages"], "--set takes OPTION=VALUE, not 'stages'"),
    (["build", KERNEL, "--set", "stages=x"], "stages must be a whole number, not 'x'"),
    (["run", "mine#best"], "there is no mine/ladder.toml; a folder with kernels has a ladder.toml"),
    ([*RUN, "--schedule", "lazy"], "--schedule must be eager, late or random, not 'lazy'; did you mean late?"),
    ([*RUN, "--schedule", "rand"], "--schedule must be eager, late or random, not 'rand'; did you mean random?"),
    ([*RUN, "--device", "tpu"], "--device must be emulator or gpu, not 'tpu'; did you mean gpu?"),
    ([*RUN, "--seed", "-1"], "--seed must be 0 or more, not -1"),
    ([*RUN, "--alpha", "2"], "--alpha is for a kernel that takes it: add --set alpha=true"),
    ([*RUN, "--beta", "2"], "--beta is for a kernel that takes it: add --set source=f32"),
    ([*RUN, "--set", "alpha=true", "--alpha", "nan"], "alpha must be a finite number of fp32, not nan"),
    ([*RUN, "--set", "alpha=true", "--alpha", "1e300"], "alpha must be a finite number of fp32, not 1e+300"),
    ([*RUN, "--set", "source=bf16", "--beta", "-inf"], "beta must be a finite number of fp32, not -inf"),
    ([*RUN, "--schedules", "-1"], "--schedules must be 1 or more, not -1"),
    ([*RUN, "--schedules", "9" * 25], f"--schedules must be at most 100000, not {'9' * 25}"),
    ([*RUN, "--schedules", "3", "--device", "gpu"], "--schedules is for the emulator: a GPU decides for itself when "
     "work completes"),
    ([*RUN, "--advice", "1"], "--advice must be more than 1, not 1: every access takes what it needs"),
    ([*RUN, "--advice", "2", "--device", "gpu"], "--advice is for the emulator; on a GPU, use Nsight Compute"),
    ([*RUN, "--schedules", "3", "--schedule", "late"], "--schedules tries eager, late and random in turn; leave out "
     "--schedule"),
    (["explain", "foo", "1"], "with a VALUE, FORMAT must be smem, wgmma, idesc, zero-mask, policy, tmem or tensormap, "
     "not 'foo'; an instruction goes into one pair of quotes"),
    (["explain", "smem", "1", "--kind", "f16"], "--kind is for idesc, not for smem"),
    (["explain", "smem", "--wrong"], "no such option: --wrong (see 'ptxgen explain --help')"),
    (["explain", "smem", "1", "--diff", "1", "2"],
     "--diff takes two values and at most a FORMAT before them, not '1' too"),
    (["explain", "--diff", "1", "0x4000404000010000"],
     "the first value is an instruction descriptor (idesc), the second a matrix descriptor of tcgen05 (smem); "
     "they have no fields in common"),
    (["explain", "facts", "ldmatrix"],
     "no fact is called or about 'ldmatrix'; 'ptxgen explain ldmatrix' says what the manual has; "
     "'ptxgen explain facts' lists all"),
    (["explain", "facts", "fp8", "zebra"], "no fact is called or about 'fp8 zebra'; 'ptxgen explain facts' lists all"),
    (["explain", "smem", "0x40", "0x41"], "explain takes one VALUE, not '0x41' too; "
     "an instruction goes into one pair of quotes"),
    (["explain", "--diff", "wgmma.fence.sync.aligned", "0x08200490"],
     "--diff compares numbers, 256 hex digits of a tensormap, or files of these; 'wgmma.fence.sync.aligned' is an "
     "instruction, which 'ptxgen explain' takes without --diff"),
    (["explain", "--diff", "0x08200490", "0xzz"],
     "--diff compares numbers, 256 hex digits of a tensormap, or files of these; '0xzz' is none"),
    (["explain", "facts", "zebra"], "no fact is called or about 'zebra'; 'ptxgen explain facts' lists all"),
    (["explain", "smem", "1", "--markdown"], "--markdown is for facts, checks and concepts"),
    (["explain", "shared-rac"], "no check is called 'shared-rac'; did you mean shared-race or shared-size?; 'ptxgen "
     "explain checks' lists all"),
    (["explain", " "], "explain needs an INSTRUCTION, a CONCEPT, a FORMAT with a VALUE, or facts; this is empty"),
    (["explain"], "explain needs an INSTRUCTION, a CONCEPT, a FORMAT with a VALUE, or facts (see 'ptxgen explain "
     "--help')"),
    (["explain", "smem", "1", "--use", "tma"], "use must be one of \"\", mma, cp, scales, not 'tma'"),
    (["explain", "idesc", "1", "--kind", "f32"],
     "kind must be one of f16, tf32, f8f6f4, i8, ti16, mxf8f6f4, mxf4, mxf4nvf4, not 'f32'"),
    (["explain", "add.f32 %f1 %f2"], "this is no PTX instruction: line 1, column 13: expected ',' or ';', found '%f2'"),
    (["explain", "add.f32 %f1, %f2, %f3; ret;"], "one instruction is wanted, not 'add.f32 %f1, %f2, %f3; ret'"),
    (["explain", "smem", "xyz"], "VALUE must be a number such as 0x4000404000010000 or 272, not 'xyz'"),
    (["explain", "smem", str(1 << 64)], "SmemDescriptor must be an unsigned 64-bit number, not 18446744073709551616"),
    (["explain", "tensormap", "abcd"], "a tensormap is 256 hex digits (not 4) or a file of 128 bytes; cannot read "
     "abcd: no such file or directory"),
    (["explain", "pyproject.toml"], "pyproject.toml is a file: 'ptxgen check pyproject.toml' reads PTX, and a FORMAT "
     "before it a descriptor's bytes"),
    (["build", "pyproject.toml"], "pyproject.toml is a file, not a kernel of the library ('ptxgen run pyproject.toml' "
     "launches it)"),
    (["exec"], "missing argument 'PROGRAM [ARGS]...' (see 'ptxgen exec --help')"),
    (["sass"], "missing argument 'FILE | diff A B | gate FILE...' (see 'ptxgen sass --help')"),
    (["ncu"], "missing argument 'REPORT... | diff A B' (see 'ptxgen ncu --help')"),
    (["check", ""], "the name of a file is empty"),
    (["build", KERNEL, "-o", ""], "the name of a file to write is empty"),
    ([*RUN, "--html", ""], "the name of a file to write is empty"),
    (["check", "none.ptx"], "cannot read none.ptx: no such file or directory"),
    (["assemble", "/"], "cannot read /: is a directory"),
    ([*RUN, "--ptx", "none.ptx"], "cannot read none.ptx: no such file or directory"),
    (["build", KERNEL, "-o", "/no/such/x.ptx"], "cannot write /no/such/x.ptx: there is no folder /no/such"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"), SENTENCES, ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: list[str], sentence: str) -> None:
    outcome = cli(*arguments)
    assert outcome.err == f"error: {sentence}\n"
    assert (outcome.code, outcome.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ([*RUN, "--foo"], "error: no such option: --foo"),
        ([*RUN, "--mtile", "3"], "error: no such option: --mtile"),
        (["nonsense"], "error: no such command 'nonsense'"),
        (["run"], "error: missing argument 'KERNEL'"),
        ([*RUN, "--schedle", "late"], "error: no such option: --schedle; did you mean --schedule? (see"),
        ([*RUN, "--fail_on", "error"], "error: no such option: --fail_on; did you mean --fail-on? (see"),
        (["chek", "k.ptx"], "error: no such command 'chek'; did you mean check? (see"),
        ([*RUN, "extra"], "error: unexpected argument: extra (see"),
        ([*RUN, "--m", "abc"], "error: --m must be a whole number, not 'abc' (see"),
        ([*RUN, "--schedules", "x"], "error: --schedules must be a whole number, not 'x' (see"),
        (["run", "--jobs=1.5", "k"], "error: --jobs must be a whole number, not '1.5' (see"),
        (["exec", "--timeout", "1m", "true"], "error: --timeout must be a number, not '1m' (see"),
        (["audit", "k", "--time="], "error: --time must be a number, not '' (see"),
        (["plan", "64", "64", "x"], "error: K must be a whole number, not 'x' (see"),
        (["tune", "64", "64", "x"], "error: M, N and K must be whole numbers, not 'x' (see"),
        ([*RUN, "--m"], "error: option '--m' requires an argument"),
    ],
)
def test_typers_own_errors_are_one_sentence_too(cli: Cli, arguments: list[str], start: str) -> None:
    outcome = cli(*arguments)
    assert outcome.err.startswith(start)
    assert outcome.err.count("\n") == 1
    assert "--help')" in outcome.err
    assert (outcome.code, outcome.out) == (2, "")


def test_ptx_that_does_not_parse_shows_line_column_and_caret(cli: Cli, ptx_file: Path) -> None:
    lines = ptx_file.read_text().splitlines()
    line = next(number for number, each in enumerate(lines, 1) if "mul.lo.u32 %r_tile_row" in each)
    lines[line - 1] = "\tmul.lo.u32 %r_tile_row, , 128;"
    ptx_file.write_text("\n".join(lines))
    for command in (["check", ptx_file], [*RUN, "--ptx", ptx_file]):
        outcome = cli(*command)
        first, source, caret = outcome.err.splitlines()
        assert first.startswith(f"error: {ptx_file}:{line}:26: expected ")
        assert source == f"> {line} │     mul.lo.u32 %r_tile_row, , 128;"
        assert caret.index("^") == source.index(", 128")
        assert (outcome.code, outcome.out) == (2, "")


def test_a_binary_file_is_named_as_such(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.cubin"
    path.write_bytes(b"\x7fELF\x02\x01")
    assert cli("check", path).err.startswith(f"error: {path} is an ELF file (a cubin?), not PTX text; cuobjdump ")
    path.write_bytes(b"abc\xff\xfe")
    assert cli("check", path).err == f"error: {path} is not text: byte 0xff at offset 3\n"
    path.write_bytes(b"ab\0cd")
    outcome = cli("assemble", path)
    assert outcome.err == f"error: {path} is not text: byte 0x00 at offset 2\n"
    assert outcome.code == 2


@pytest.mark.parametrize("words", [["check", "k.ptx"], ["run", "k.ptx"], ["kernels"], ["sass", "k.ptx"]])
def test_a_working_directory_that_is_gone(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    outcome = cli(*words)
    assert outcome.err == "error: cannot use the working directory: no such file or directory\n"
    assert (outcome.code, outcome.out) == (2, "")


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read and write anything")
def test_files_without_permission(cli: Cli, ptx_file: Path) -> None:
    ptx_file.chmod(0)
    assert cli("check", ptx_file).err == f"error: cannot read {ptx_file}: permission denied\n"
    outcome = cli("build", KERNEL, "-o", ptx_file)
    assert outcome.err == f"error: cannot write {ptx_file}: permission denied\n"
    assert outcome.code == 2


#: Enough of a kernel for every option that writes a file.
STORE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 y)
{
    .reg .b64 %at;
    ld.param.u64 %at, [y];
    st.global.u32 [%at], 1;
    ret;
}
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        *(f"run {option} /dev/full" for option in ("--lines", "--trace", "--html")),
        *(f"time {option} /dev/full" for option in ("--trace", "--html")),
        "run --format sarif=/dev/full",
        "check --format sarif=/dev/full",
        "assemble -o /dev/full",
    ],
)
def test_a_full_disk(cli: Cli, tmp_path: Path, words: str) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(STORE)
    command, *options = words.split()
    launch = [] if command in ("check", "assemble") else ["--arg", "y=empty:u32:1", "--block", "1"]
    outcome = cli(command, path, *launch, *options)
    assert outcome.err == "error: cannot write /dev/full: no space left on device\n"
    assert outcome.code == 2


def test_a_missing_ptxas_says_how_to_install_it(
    cli: Cli, ptx_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTXGEN_PTXAS", str(tmp_path / "none"))
    for command in (["assemble", ptx_file], RUN):
        outcome = cli(*command)
        assert outcome.code == 2
        assert outcome.err.startswith("error: the environment variable PTXGEN_PTXAS says that ptxas is ")
        assert "pip install 'ptxgen[tools]'" in outcome.err
        assert outcome.err.count("\n") == 1


def test_assemble_of_text_that_does_not_parse(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.ptx"
    path.write_text(".version 8.6\n.target sm_100a\n.address_size 64\n.entry k() {\n  add.u32 %r1 %r2;\n}\n")
    outcome = cli("assemble", path)
    assert outcome.err.startswith(f"error: {path}:5:15: expected ',' or ';', found '%r2'\n")
    assert outcome.err.splitlines()[-1].endswith("^")
    assert outcome.code == 2


def test_no_gpu(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    import ptxgen.gpu

    def none() -> object:
        raise ptxgen.gpu.GpuNotFoundError("the NVIDIA driver found no usable GPU; Emulator runs kernels without a GPU")

    monkeypatch.setattr("ptxgen.gpu.Gpu", none)
    outcome = cli(*RUN, "--device", "gpu")
    assert outcome.err == "error: the NVIDIA driver found no usable GPU; Emulator runs kernels without a GPU\n"
    assert outcome.code == 2


def test_a_gpu_of_another_architecture(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        name, target = "NVIDIA H200", "sm_90a"

    monkeypatch.setattr("ptxgen.gpu.Gpu", Other)
    outcome = cli(*RUN, "--device", "gpu")
    assert outcome.err == (
        "error: blackwell/swizzled is for sm_100a, but the GPU here (NVIDIA H200) is sm_90a; leave out --device gpu to "
        "use the emulator\n"
    )
    assert outcome.code == 2


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("sm100a", "; did you mean sm_100a"),
        ("sm_999", ""),
        ("", ""),
    ],
)
def test_an_unknown_target(cli: Cli, ptx_file: Path, target: str, words: str) -> None:
    for command in ("assemble", "check"):
        outcome = cli(command, ptx_file, "--target", target)
        start = f"error: --target must be an architecture such as sm_90a or sm_100a, not {target!r}"
        assert outcome.err.startswith(start + words)
        assert outcome.err.count("\n") == 1
        assert outcome.code == 2


def test_a_target_that_ptxas_does_not_have(cli: Cli, ptx_file: Path) -> None:
    outcome = cli("assemble", ptx_file, "--target", "sm_53")
    assert "cannot target sm_53" in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.code == 2


def test_a_problem_larger_than_the_memory(cli: Cli) -> None:
    outcome = cli(*RUN, "--m", 2**31 - 1, "--k", 2**20)
    assert outcome.code == 2
    assert outcome.err.startswith("error: M 2147483647, N 512, K 1048576 takes about ")
    assert outcome.err.endswith("GiB; take smaller sizes\n")


def test_a_text_that_is_no_such_kernel(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", lambda *_, **__: FakeDevice())
    path = tmp_path / "other.ptx"
    path.write_text(".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u32 n) { ret; }\n")
    outcome = cli(*RUN, "--ptx", path, "--m", 64, "--n", 64, "--k", 64)
    assert outcome.code == 2
    assert outcome.err == "error: k takes 1 arguments (0: .u32 n), but 7 were given\n"


def test_ctrl_c_is_quiet(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", interrupted)
    outcome = cli(*RUN)
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "")


def test_a_bug_of_ours_is_not_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("ptxgen.cli.launch.devices.open_device", broken)
    with pytest.raises(ZeroDivisionError):
        cli(*RUN)


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    """The entry point itself: exit code, streams, and no traceback."""
    command = [sys.executable, "-c", "from ptxgen.cli.main import main; main()"]
    done = subprocess.run([*command, *RUN, "--k", "0"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == ("error: K must be 1 to 2147483647, not 0\n")
    assert done.stdout == ""
    assert cli_main.app.info.name == "ptxgen"
