"""`ptxgen run` of files and folders: an author's own kernel is run like ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ptxgen.emulator import Emulator
from ptxgen.gemm import KernelEntry, kernels
from ptxgen.job import Job, JobError, load_job
from tests.support.command_line import Cli
from tests.support.paths import ROOT

ROWSUM = ROOT / "docs" / "examples" / "rowsum.py"


def test_a_job_in_a_python_file(cli: Cli) -> None:
    outcome = cli("run", ROWSUM, "--schedules", 3)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == "✓ correct"
    said = json.loads(cli("run", ROWSUM, "--schedule", "late", "--json").out)
    assert (said["ok"], said["status"], said["schedule"], said["findings"]) == (True, "ok", "late", [])


#: Right only where the last warp is the last to come, as it is with most schedules.
LAST_WARP = """
import numpy as np
import ptxgen

PTX = '''
.version 8.0
.target sm_90a
.address_size 64
.visible .entry last(.param .u64 y)
{
    .reg .b32 %warp, %before;
    .reg .b64 %y;
    ld.param.u64 %y, [y];
    mov.u32 %warp, %tid.x;
    shr.u32 %warp, %warp, 5;
    atom.global.exch.b32 %before, [%y], %warp;
    ret;
}
'''
job = ptxgen.Job(
    ptx=PTX, inputs={}, outputs={"y": ((1,), np.uint32)}, arguments=["y"], grid=1, block=64, target="sm_90a",
    reference=lambda inputs: {"y": np.array([1], np.uint32)},
)
"""


def test_the_first_schedule_that_fails(cli: Cli, tmp_path: Path) -> None:
    """It is the first in order, whatever else runs at the same time, and the same as without processes."""
    path = tmp_path / "last.py"
    path.write_text(LAST_WARP)
    assert cli("run", path).code == 0
    outcome = cli("run", path, "--schedules", 30, "--jobs", 2)
    assert (outcome.code, outcome.err) == (1, "")
    here = json.loads(cli("run", path, "--schedules", 30, "--json", "--jobs", 0).out)
    there = json.loads(cli("run", path, "--schedules", 30, "--json", "--jobs", 2).out)
    assert here == there
    tried = [each["status"] for each in here["schedules"]]
    assert (set(tried[:-1]), tried[-1]) == ({"ok"}, "wrong")
    assert 2 < len(tried) < 30
    assert outcome.out.splitlines()[-2].startswith(f"schedules: {len(tried)} of 30 tried, eager, late")
    assert outcome.out.splitlines()[-2].endswith(f"random {len(tried) - 3}: wrong")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("%f_sum, 1, 31", "%f_sum, 2, 31", "37 of 37 elements of y are wrong; the first: y[0] is "),
        ("setp.ge.u32 %p_row, %r_row, %r_rows;", "setp.ge.u32 %p_row, %r_row, 40;", "out-of-bounds"),
        ("add.f32 %f_sum, %f_sum, %f_value;\n    add.u32", "add.u32", "37 of 37 elements of y are wrong"),
    ],
)
def test_a_wrong_job(cli: Cli, tmp_path: Path, old: str, new: str, words: str) -> None:
    text = ROWSUM.read_text()
    assert old in text
    path = tmp_path / "rowsum.py"
    path.write_text(text.replace(old, new, 1))
    outcome = cli("run", path)
    assert outcome.code == 1
    assert words in outcome.out
    assert outcome.out.splitlines()[-1].startswith("✗ ")


def test_outputs_are_guarded() -> None:
    job = load_job(ROWSUM, 0)
    text = job.ptx.replace("st.global.f32 [%rd_at]", "st.global.f32 [%rd_at+8]")
    values = {name: getattr(job, name) for name in Job.__dataclass_fields__}
    result = Job(**{**values, "ptx": text}).run(Emulator("sm_90a"))
    assert not result.ok
    assert "8 bytes beside y were overwritten" in result.wrong


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job = 3", "must have a `job`"),
        ("x = 3", "must have a `job`"),
        (None, "cannot read"),
    ],
)
def test_files_that_hold_no_job(cli: Cli, tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "bad.py"
    if text is not None:
        path.write_text(text)
    outcome = cli("run", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


#: An expect_tx of bytes that no copy transfers, and a wait for them.
SHORT = """\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry short()
.reqntid 32
{
    .shared .align 8 .b64 full;
    .reg .b32 %full; .reg .pred %first, %done; .reg .b32 %t;
    mov.u32 %full, full;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared::cta.b64 [%full], 1;
    bar.sync 0;
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 64;
$wait:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%full], 0;
    @!%done bra $wait;
    ret;
}
"""

BUILDER = """\
from pathlib import Path
import numpy as np
from ptxgen.builder import KernelBuilder, Template
from ptxgen.instr import floating
k = KernelBuilder("k", "sm_90a")
value = k.reg("b64", "value")
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = (", "SyntaxError: '(' was never closed"),
        (
            "k(floating.add(value, value, 1.0, type='f32'))",
            "floating.add: d must be of type .f32, but %value is",
        ),
        ("np.load('missing.npy')", "FileNotFoundError: [Errno 2] No such file or directory: 'missing.npy'"),
        ("Template('x.j2', Path(__file__).parent).render(target='sm_90a', version='8.6')", "x.j2:1: 'y' is undefined"),
        ("import beside", None),
    ],
)
def test_errors_of_a_file_name_its_line(cli: Cli, tmp_path: Path, line: str, said: str | None) -> None:
    path = tmp_path / "bad.py"
    path.write_text(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{BUILDER}{line}\n")
    source = "int('x')"
    (tmp_path / "beside.py").write_text(f"\n{source}\n")
    (tmp_path / "x.j2").write_text("{{ y }}\n")
    outcome = cli("run", path)
    number = BUILDER.count("\n") + 3
    where = f"{path}:{number}: {said}" if said else f"{tmp_path / 'beside.py'}:2: ValueError: invalid literal"
    assert outcome.err.startswith(f"error: {where}")
    assert outcome.err.endswith(f"\n  {line if said else source}\n")
    assert (outcome.code, outcome.out) == (2, "")


def test_a_misspelt_file_says_which_may_be_meant(cli: Cli, tmp_path: Path) -> None:
    for name in ("rowsum.py", "scale.ptx", "x.npy"):
        (tmp_path / name).write_text("")
    for given, meant in (("rowsm.py", "rowsum.py"), ("scal.ptx", "scale.ptx")):
        outcome = cli("run", tmp_path / given)
        assert outcome.err == (
            f"error: cannot read {tmp_path / given}: no such file or directory; did you mean {tmp_path / meant}?\n"
        )


def test_a_job_that_makes_no_sense() -> None:
    job = load_job(ROWSUM, 0)
    values = {name: getattr(job, name) for name in Job.__dataclass_fields__}
    with pytest.raises(JobError, match="the job passes z; its arrays are x, y"):
        Job(**{**values, "arguments": ["x", "z", 1, 2]}).run(Emulator("sm_90a"))


def test_an_edited_ptx_file_says_which_kernel_it_is_of(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.ptx"
    cli("build", "hopper-2", "--set", "tile=64x64", "--set", "dtype=f16", "-o", path)
    sizes = ("--m", 100, "--n", 60, "--k", 72)
    said = json.loads(cli("run", path, *sizes, "--json").out)
    assert (said["ok"], said["kernel"], said["config"]["n_tile"], said["config"]["dtype"]) == (
        True, "hopper/ring", 64, "f16",
    )  # fmt: skip
    path.write_text(path.read_text().replace("mov.pred %p_accumulate, 1;", ""))
    assert cli("run", path, *sizes).code == 1
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    outcome = cli("run", path)
    assert outcome.code == 2
    assert f"{path} does not name its kernel of the library" in outcome.err
    assert "--m is for GEMM kernels" in cli("run", path, *sizes).err


def test_an_option_that_is_the_default_of_all_configs_is_named_too(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.ptx"
    cli("build", "blackwell/clc", "--set", "accumulators=1", "--set", "clc_stages=1", "-o", path)
    assert path.read_text().splitlines()[-1].endswith(" scheduler=clc accumulators=1 clc_stages=1")
    config = json.loads(cli("run", path, "--m", 64, "--n", 64, "--k", 64, "--json").out)["config"]
    assert (config["accumulators"], config["clc_stages"]) == (1, 1)


def test_elements_that_nothing_wrote_are_counted() -> None:
    job = load_job(ROWSUM, 0)
    values = {name: getattr(job, name) for name in Job.__dataclass_fields__}
    text = job.ptx.replace("setp.ge.u32 %p_row, %r_row, %r_rows;", "setp.ge.u32 %p_row, %r_row, 30;")
    assert text != job.ptx
    result = Job(**{**values, "ptx": text}).run(Emulator("sm_90a"))
    assert result.wrong[0].startswith("7 of 37 elements of y are wrong")
    assert result.wrong[1] == "the kernel stored nothing to 7 of them"


def test_consequences_are_shown_on_demand(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "short.ptx"
    path.write_text(SHORT)
    assert "\n    + 1 consequence: deadlock\n" in cli("run", path).out
    assert "\n    + line 16: error [deadlock] deadlock: " in cli("run", path, "-v").out


def test_illegal_ptx_is_refused_in_the_words_of_check(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    head = ".version 8.6\n.target sm_90a\n.address_size 64\n"
    path.write_text(
        head + ".visible .entry k()\n.reqntid 32\n{\n    .reg .u32 %r;\n    add.u33 %r, %r, 1;\n    ret;\n}\n"
    )
    outcome = cli("run", path)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"error: {path}:8: illegal modifier: .u33 of add must be .u32")
    assert outcome.err.splitlines()[1] == "> 8 │     add.u33 %r, %r, 1;"


@pytest.mark.parametrize("entry", kernels().values(), ids=lambda each: each.name)
def test_a_kernel_of_default_options_names_no_more(entry: KernelEntry) -> None:
    plan = entry.plan()
    assert list(plan.settings) == plan.config.chosen()


def test_a_rung_of_a_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ladder.toml").write_text("[[rung]]\nname = 'mine'\nfrom = 'modular-k7'\n")
    assert "comes from 'modular-k7'" in cli("run", f"{tmp_path}#mine").err
    (tmp_path / "ladder.toml").write_text(
        "[[rung]]\nname = 'mine'\nfrom = 'blackwell/overlapped'\nset = { stages = 2, n_tile = 64 }\n"
    )
    outcome = cli("run", f"{tmp_path}#mine", "--m", 100, "--n", 72, "--k", 200, "--schedule", "late")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "✓ correct")
    assert json.loads(cli("kernels", f"{tmp_path}#mine", "--json").out)["options"]["stages"]["default"] == 2
    outcome = cli("run", f"{tmp_path}#other")
    assert (outcome.code, outcome.err) == (2, f"error: {tmp_path}/ladder.toml has no rung 'other'; it has: mine\n")


def test_exploring_a_job(cli: Cli) -> None:
    found = cli("run", ROWSUM, "--explore")
    assert found.code == 0
    assert re.search(
        r"^explored: \d+ of \d+ delay points and 8 random seeds tried.*nothing is left to try$", found.out, re.M
    )
    made = json.loads(cli("run", ROWSUM, "--explore", "30", "--json").out)
    assert "nothing is left to try" in made["explored"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--explore", "0"), "--explore must be more than 0 seconds, not 0"),
        (("--explore", "--schedule", "late"), "leave out --schedule"),
        (("--explore", "5", "--schedules", "4"), "leave out --schedules"),
        (("--explore", "--device", "gpu"), "--explore is for the emulator"),
    ],
)
def test_explorations_that_make_no_sense(cli: Cli, words: tuple[str, ...], said: str) -> None:
    found = cli("run", ROWSUM, *words)
    assert found.code == 2
    assert said in found.err


OWN = """\
import numpy as np
from ptxgen import Job
from ptxgen.builder import KernelBuilder
from ptxgen.instr import control, integer, memory

k = KernelBuilder("twice", "sm_90a", threads=32)
x, at, value = k.pointer("x"), k.reg("b64", "at"), k.reg("b32", "value")
k(integer.mad_wide(at, k.special("tid.x"), 4, x, type="u32"))
k(memory.ld(value, at, space="global", type="u32"))
k(integer.add(value, value, value, type="u32"))
k(memory.st(at, value, space="global", type="u32"))
k(control.ret())
job = Job(ptx=k.ptx(), inputs={}, outputs={"x": ((32,), np.uint32)}, arguments=["x"], grid=1, block=32,
          reference=lambda inputs: {"x": np.full(32, 2 * 0xCDCDCDCD, np.uint64).astype(np.uint32)}, target="sm_90a")
"""


def test_commands_take_the_python_file_and_name_its_lines(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    built = cli("build", path)
    assert built.code == 0
    assert built.out.startswith(".version")
    assert f'.file 1 "{path}"' in built.out
    assert cli("build", path, "-o", tmp_path / "own.ptx").code == 0
    assert (tmp_path / "own.ptx").read_text() == built.out
    assert "leave out tile=1x1" in cli("build", path, "--set", "tile=1x1").err
    assert cli("check", path).out == f"{path}: legal for sm_90a\n"
    assert json.loads(cli("assemble", path, "--json").out)["ok"]
    listing = cli("sass", path)
    assert listing.code == 0
    assert "(own.py:10)" in listing.out.replace(str(tmp_path) + "/", "")
    assert cli("sass", "diff", path, tmp_path / "own.ptx").code == 0
    stopped = cli("run", path, "--at", "own.py:11", "--show", "reg:%value", "--why", "x[3]", "--lines", "-")
    assert stopped.code == 0, stopped.err
    for words in (" (own.py:11), hit 1: st.global", "  // own.py:10", "st.global (line ", " (own.py:11), warp 0"):
        assert words in stopped.out, words
    missing = cli("run", path, "--at", "own.py:2")
    assert missing.err.endswith("own.py:2: there is no instruction of this line; the nearest of own.py are 7 and 8\n")
    path.write_text(OWN.replace("k(memory.ld(", "k.text('ld.global.u33 %value, [%at];')  # k(memory.ld("))
    wrong = cli("check", path)
    assert wrong.code == 1
    assert "(own.py:9) error" in wrong.out
