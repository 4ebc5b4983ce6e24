"""`ptxgen run` of PTX with arrays, scalars and tensormaps from the command line."""

from __future__ import annotations

import json
import runpy
from collections import OrderedDict
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ptxgen.cli.errors import InputError
from ptxgen.cli.launch.values import load, parse_outputs, parse_values, save
from tests.support.command_line import Cli
from tests.support.paths import ROOT

ROWSUM = ROOT / "docs" / "examples" / "rowsum.py"

#: A CTA loads one box of a matrix by TMA, and stores it by one bulk copy.
TILE = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry tile(.param .align 64 .b8 map[128], .param .u64 out)
.reqntid 32
{
    .shared .align 1024 .b8 box[1024];
    .shared .align 8 .b64 full;
    .reg .pred %p, %done;
    .reg .b32 %box, %full;
    .reg .b64 %map, %out;
    mov.u32 %box, box;
    mov.u32 %full, full;
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    ld.param.u64 %out, [out];
    elect.sync _|%p, 0xffffffff;
    @!%p ret;
    mbarrier.init.shared::cta.b64 [%full], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 1024;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%box], [%map, {32, 8}], [%full];
$wait:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%full], 0;
    @!%done bra $wait;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [%box], 1024;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""


@pytest.fixture
def rowsum(tmp_path: Path) -> Path:
    path = tmp_path / "rowsum.ptx"
    path.write_text(runpy.run_path(str(ROWSUM))["PTX"])
    return path


def test_ptx_with_generated_arrays(cli: Cli, rowsum: Path, tmp_path: Path) -> None:
    x, y = tmp_path / "x.npy", tmp_path / "y.npz"
    np.save(x, np.arange(3700, dtype=np.float32).reshape(37, 100))
    words = ["--arg", f"x={x}", "--arg", "1=empty:f32:37", "--arg", "rows=37", "--arg", "columns=100", "--grid", "10"]
    outcome = cli("run", rowsum, *words, "--out", f"y={y}")
    assert (outcome.code, outcome.err) == (0, "")
    np.testing.assert_allclose(load(str(y)), np.load(x).sum(axis=1), rtol=1e-6)
    assert outcome.out.splitlines()[-1] == "✓ clean"
    assert "x: f32 37x100, 0 to 3699, mean 1849.5, unchanged" in outcome.out
    assert f"y: f32 37, 4950 to 364950, mean 184950; written to {y}" in outcome.out


def test_the_next_run_checks_and_recognizes_nothing(
    cli: Cli, rowsum: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path / "cache"))

    def anew(*_: object, **__: object) -> object:
        raise AssertionError("found anew")

    words = ["--arg", "x=ones:f32:3x5", "--arg", "y=zeros:f32:3", "--arg", "rows=3", "--arg", "columns=5"]
    for _ in range(2):
        monkeypatch.setattr("ptxgen.device.kernel._RECENT", OrderedDict())  # as in another process
        outcome = cli("run", rowsum, *words)
        assert (outcome.code, outcome.err) == (0, "")
        monkeypatch.setattr("ptxgen.instr.model.check.check", anew)
        monkeypatch.setattr("ptxgen.instr.model.analyze.recognized", anew)
        monkeypatch.setattr("ptxgen.instr.model.analyze._RECOGNIZED", {})


def test_a_python_file_with_a_kernel(cli: Cli, rowsum: Path, tmp_path: Path) -> None:
    path = tmp_path / "rowsum.py"
    path.write_text(f"from ptxgen import Kernel\nkernel = Kernel.from_file({str(rowsum)!r})\n")
    words = ["--arg", "x=ones:f32:3x5", "--arg", "y=zeros:f32:3", "--arg", "rows=3", "--arg", "columns=5"]
    said = json.loads(cli("run", path, *words, "--schedules", 3, "--jobs", 0, "--json").out)
    assert (said["ok"], said["schedules_tried"]) == (True, 3)
    assert said["outputs"]["y"] == {"dtype": "float32", "shape": [3], "file": None}


def test_a_finding_is_exit_code_1(cli: Cli, rowsum: Path) -> None:
    words = ["--arg", "x=ones:f32:3x5", "--arg", "y=zeros:f32:3", "--arg", "rows=4", "--arg", "columns=5"]
    outcome = cli("run", rowsum, *words)
    assert outcome.code == 1
    assert "out-of-bounds" in outcome.out


@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_a_tensormap_in_one_line(cli: Cli, tmp_path: Path, swizzle: str) -> None:
    path = tmp_path / "tile.ptx"
    path.write_text(TILE)
    words = ["--arg", "a=randn:f16:32x128", "--arg", f"map=tensormap:a:8x64:{swizzle}", "--arg", "out=empty:f16:8x64"]
    outcome = cli("run", path, *words, "--out", f"a={tmp_path}/a.npy", "--out", f"out={tmp_path}/out.npy")
    assert (outcome.code, outcome.err) == (0, "")
    found, box = np.load(tmp_path / "out.npy"), np.load(tmp_path / "a.npy")[8:16, 32:96]
    if swizzle == "128B":  # 16-byte chunk i of row r is at chunk i ^ r
        chunks = np.arange(8)[None, :] ^ np.arange(8)[:, None]
        box = np.take_along_axis(box.reshape(8, 8, 8), chunks[..., None], axis=1).reshape(8, 64)
    np.testing.assert_array_equal(found, box)


def test_inputs_and_outputs_of_a_job(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "y.npy"
    outcome = cli("run", ROWSUM, "--arg", "x=ones:f32:37x100", "--out", f"y={out}")
    assert (outcome.code, outcome.err) == (0, "")
    np.testing.assert_array_equal(np.load(out), np.full(37, 100, np.float32))
    assert outcome.out.splitlines()[-1] == "✓ correct"


GIVEN = ["x=ones:f32:3x5", "y=zeros:f32:3", "rows=3", "columns=5"]


@pytest.mark.parametrize(
    ("arguments", "more", "sentence"),
    [
        (
            [],
            [],
            "to launch it as it is, say what rowsum takes .u64 x, .u64 y, .u32 rows, .u32 columns, such as --arg x=",
        ),
        (GIVEN[:3], [], "no --arg for columns: rowsum takes .u64 x, .u64 y, .u32 rows, .u32 columns; such as --arg co"),
        ([*GIVEN, "z=ones:f32:3"], [], "--arg z: no parameter has this name, and no tensormap is over it; rowsum take"),
        ([*GIVEN, "0=ones:f32:3"], [], "--arg x= and --arg 0= are for the same parameter, x: numbers begin with 0"),
        ([*GIVEN, "x=1"], [], "--arg x= is given twice"),
        (["x"], [], "--arg takes NAME=VALUE, not 'x'; VALUE is FILE.npy, FILE.npz:KEY or FILE.pt:KEY; KIND:TYPE:SHAPE"),
        (["x=rand:f32:3"], [], "'rand:f32:3' is no value; did you mean randn"),
        (["x=randn:f23:3"], [], "--arg x: there is no type 'f23'; did you mean"),
        (["x=randn:f32:3,4"], [], "--arg x: a shape takes numbers with x between them, such as 512x64, not '3,4'"),
        (["x=randn:f32"], [], "randn takes randn:TYPE:SHAPE, such as randn:f32:512x512"),
        (["x=randn:s32:4"], [], "randn makes fractions, which s32 has none of; take randint:s32:4"),
        (["x=ones:e2m1:4"], [], "e2m1 is packed in memory; give its bytes as u8"),
        (["x=none.npy"], [], "--arg x: cannot read none.npy: no such file or directory"),
        (
            ["x=tensormap:a"],
            [],
            "a tensormap is tensormap:ARRAY:BOX[:SWIZZLE][:OPTION=VALUE], such as tensormap:a:128",
        ),
        (["x=tensormap:a:8x8:oob=nan"], [], "a tensormap has no option 'oob'; did you mean oob_fill"),
        (["x=tensormap:q:8x8", *GIVEN[1:]], [], "--arg x: there is no array 'q'"),
        ([*GIVEN[:3], "columns=1.5"], [], "--arg columns: the parameter is .u32, and '1.5' is no value of it"),
        (
            [*GIVEN[:3], "columns=-99999999999"],
            [],
            "argument 3 of rowsum is for .u32 columns (4 bytes), but the int -",
        ),
        (GIVEN, ["--grid", "4,4"], "--grid takes numbers with x between them, such as 512x64, not '4,4'"),
        (GIVEN, ["--cluster", "3"], "every grid dimension must be a multiple of the cluster's"),
        (GIVEN, ["--out", "q"], "--out q: there is no array of this name; there are x, y"),
        (GIVEN, ["--out", "y=y.txt"], "--out takes NAME or NAME=FILE, a file of .npy, .npz, .pt, not 'y=y.txt'"),
        ([*GIVEN[:3], "4=5"], [], "--arg 4: the numbers of the 4 parameters begin with 0; rowsum takes .u64 x, "),
        ([*GIVEN[:3], "cols=5"], [], "--arg cols: no parameter has this name"),
        (GIVEN, ["--out", "2"], "--out 2: the parameter rows is no array; there are x, y"),
        (GIVEN, ["--target", "sm_80"], "rowsum.ptx is for sm_90a, not sm_80: --target compiles FILE.cu, or picks one"),
        (GIVEN, ["--at", "rowsum.cu:3"], "no instruction of this line; the PTX has no source lines (.loc)"),
        (GIVEN, ["--at", "rowsum.ptx:9999"], "--at line:9999: there is no instruction; the nearest is in line "),
        (GIVEN, ["--entry", "q"], "the PTX text has no entry 'q'; it has rowsum"),
    ],
)
def test_what_cannot_be_launched_is_refused(
    cli: Cli, rowsum: Path, arguments: list[str], more: list[str], sentence: str
) -> None:
    outcome = cli("run", rowsum, *(word for each in arguments for word in ("--arg", each)), *more)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["blackwell/swizzled", "--grid", "3"],
            "--grid is for files of your own; blackwell/swizzled is a GEMM kernel",
        ),
        ([ROWSUM, "--block", "3"], "--block is for files of your own; "),
        ([ROWSUM, "--arg", "y=ones:f32:3"], "has no input array of this name; its inputs are x"),
    ],
)
def test_what_says_its_own_launch_takes_no_other(cli: Cli, words: list[object], sentence: str) -> None:
    outcome = cli("run", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err


def test_a_block_must_be_said_where_the_kernel_says_none(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .f32 x) { ret; }\n")
    outcome = cli("run", path, "--arg", "x=1.5")
    assert (outcome.code, outcome.out) == (2, "")
    assert "has no .reqntid; say the threads of a CTA, such as --block 128" in outcome.err
    assert cli("run", path, "--arg", "x=1.5", "--block", "32").code == 0


def test_files_keep_their_types(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)
    save(f"{tmp_path}/a.npy", values)
    with pytest.raises(InputError, match=r"does not say what its elements of 2 bytes are; say it: .*a.npy:bf16"):
        load(f"{tmp_path}/a.npy")
    assert load(f"{tmp_path}/a.npy", "bf16").tobytes() == values.tobytes()
    np.savez(tmp_path / "b.npz", p=np.ones(2), q=np.zeros(3))
    np.testing.assert_array_equal(load(f"{tmp_path}/b.npz", "q"), np.zeros(3))
    with pytest.raises(InputError, match=r"has 2 arrays; name one of p, q"):
        load(f"{tmp_path}/b.npz")
    with pytest.raises(InputError, match=r"has no array 'r'; name one of p, q"):
        load(f"{tmp_path}/b.npz", "r")
    (tmp_path / "c.npy").write_text("no array")
    with pytest.raises(InputError, match=r"c.npy is no .npy file that can be read"):
        load(f"{tmp_path}/c.npy")


def test_tensors_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    values = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)
    save(f"{tmp_path}/a.pt", values)
    assert torch.load(tmp_path / "a.pt").dtype == torch.bfloat16
    assert load(f"{tmp_path}/a.pt").tobytes() == values.tobytes()
    torch.save({"p": torch.ones(2), "q": torch.zeros(3, dtype=torch.float8_e4m3fn)}, tmp_path / "b.pt")
    assert load(f"{tmp_path}/b.pt", "q").dtype == ml_dtypes.float8_e4m3fn
    (tmp_path / "c.pt").write_text("no tensor")
    with pytest.raises(InputError, match=r"c.pt is no .pt file of tensors"):
        load(f"{tmp_path}/c.pt")


def test_random_arrays_differ_and_are_reproducible() -> None:
    first, again = (parse_values(["a=randn:bf16:4x4", "b=randn:bf16:4x4"], 7) for _ in range(2))
    assert first["a"].values.tobytes() == again["a"].values.tobytes() != first["b"].values.tobytes()  # type: ignore[union-attr]
    assert parse_values(["a=randint:u8:100"], 0)["a"].values.min() >= 0  # type: ignore[union-attr]


def test_an_output_has_a_file_of_its_name() -> None:
    assert parse_outputs(["y", "c=out/c.pt"]) == {"y": "y.npy", "c": "out/c.pt"}
