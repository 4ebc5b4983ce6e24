"""Assembling: what ptxas reports is read right, by every ptxas that this machine has."""

import pickle
import tempfile
from pathlib import Path

import pytest

from ptxgen.toolchain import (
    AssemblerError,
    AssemblerMessage,
    Cubin,
    FunctionInfo,
    ToolNotFoundError,
    assemble,
    assemble_many,
    disassemble,
    find_ptxas,
    ptxas_version,
    target_of,
)
from ptxgen.toolchain.nvdisasm import DisassemblerError
from ptxgen.toolchain.ptxas import _read_log

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
TOOLKITS = [path for path in sorted(Path("/usr/local").glob("cuda*/bin/ptxas")) if path.parents[1].name != "cuda"]
ALL_PTXAS = [find_ptxas(), *TOOLKITS]


def entry(name: str, body: str) -> str:
    return f".visible .entry {name}(.param .u64 p)\n{{\n{body}\nret;\n}}\n"


def spilling_kernel(values: int = 100) -> str:
    loads = "\n".join(f"ld.volatile.global.f32 %f{i}, [%rd1+{4 * i}];" for i in range(values))
    stores = "\n".join(f"st.volatile.global.f32 [%rd1+{4 * i}], %f{i};" for i in range(values))
    body = f".reg .b64 %rd<2>; .reg .f32 %f<{values}>;\nld.param.u64 %rd1, [p];\n{loads}\n{stores}"
    return HEAD + entry("spills", body).replace("u64 p)", "u64 p) .maxnreg 24")


SMALL = HEAD + entry(
    "small",
    ".reg .b64 %rd1; .reg .b32 %r1; .shared .align 16 .b8 buffer[256];\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, buffer;\nst.global.u32 [%rd1], %r1;\nbar.sync 0;",
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every test ends with an empty folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(params=ALL_PTXAS, ids=[ptxas_version(path) for path in ALL_PTXAS])
def ptxas(request: pytest.FixtureRequest) -> Path:
    return request.param


def fake_ptxas(folder: Path, script: str) -> Path:
    path = folder / "ptxas"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_resources_of_one_entry(ptxas: Path) -> None:
    cubin = assemble(SMALL, ptxas=ptxas)
    assert cubin.data[:4] == b"\x7fELF"
    assert cubin.target == "sm_90a"
    assert 4 <= cubin.registers <= 16
    assert (cubin.shared_bytes, cubin.stack_bytes, cubin.spill_stores, cubin.spill_loads) == (256, 0, 0, 0)
    assert cubin.barriers == 1
    assert (cubin.warnings, cubin.advisories) == ([], [])
    assert "Used" in cubin.log
    assert list(cubin.functions) == ["small"]
    assert cubin.functions["small"].is_entry


def test_spills_are_counted_and_warned_about(ptxas: Path) -> None:
    cubin = assemble(spilling_kernel(), ptxas=ptxas)
    assert cubin.registers == 24
    assert cubin.spill_stores >= 4 * (100 - 24)
    assert cubin.spill_loads >= 4 * (100 - 24)
    assert cubin.stack_bytes >= cubin.spill_stores
    assert [message.severity for message in cubin.warnings] == ["warning"]
    assert "spilled" in cubin.warnings[0].message


def test_several_entries_and_a_function(ptxas: Path) -> None:
    function = (
        ".visible .func (.param .f32 o) twice(.param .f32 i)\n{\n.reg .f32 f;\nld.param.f32 f, [i];\n"
        "add.f32 f, f, f;\nst.param.f32 [o], f;\nret;\n}\n"
    )
    larger = spilling_kernel(20).removeprefix(HEAD).replace(".maxnreg 24", "")
    text = HEAD + function + SMALL.removeprefix(HEAD) + larger
    cubin = assemble(text, ptxas=ptxas, options=["-c"])  # without -c, a function that no one calls is dropped
    assert {info.name for info in cubin.entries} == {"small", "spills"}
    assert not cubin.functions["twice"].is_entry
    assert cubin.functions["spills"].registers > cubin.functions["small"].registers
    assert cubin.registers == cubin.functions["spills"].registers
    assert cubin.shared_bytes == cubin.functions["small"].shared_bytes == 256


def test_errors_stand_at_their_source_lines(ptxas: Path) -> None:
    text = HEAD + entry("bad", ".reg .b32 %r<4>;\n    bogus.u32 %r1;\n\tadd.u64 %r1, %r1, 4;")
    with pytest.raises(AssemblerError) as caught:
        assemble(text, ptxas=ptxas)
    error = caught.value
    lines = text.split("\n")
    named = {(lines[message.line - 1].strip(), message.severity) for message in error.diagnostics if message.line}
    assert named == {("bogus.u32 %r1;", "error"), ("add.u64 %r1, %r1, 4;", "error")}
    assert all("aborted" not in message.message for message in error.diagnostics)
    shown = error.render().split("\n")
    at = shown.index("7 |     bogus.u32 %r1;")
    assert shown[at + 1] == "  | error: Not a name of any known instruction: 'bogus'"
    assert shown[at + 2] == "8 |     add.u64 %r1, %r1, 4;"
    assert str(error) == error.render()
    assert "sm_90a" in shown[0]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("marker", ['# 500 "kernel.cu"', '#line 500 "kernel.cu"', '  # line 500 "kernel.cu" 2'])
def test_line_markers_do_not_move_lines(marker: str) -> None:
    text = HEAD + entry("bad", f"{marker}\nbogus;")
    with pytest.raises(AssemblerError) as caught:
        assemble(text)
    assert [message.line for message in caught.value.diagnostics] == [text.split("\n").index("bogus;") + 1]


def test_windows_line_ends_count_once() -> None:
    text = (HEAD + entry("bad", "bogus;")).replace("\n", "\r\n")
    with pytest.raises(AssemblerError) as caught:
        assemble(text)
    assert "6 | bogus;\n" in caught.value.render()


def test_errors_without_a_line(ptxas: Path) -> None:
    huge = HEAD + entry("huge", ".shared .b8 s[300000]; .reg .b32 %r1;\nmov.u32 %r1, s;")
    with pytest.raises(AssemblerError) as caught:
        assemble(huge, ptxas=ptxas)
    (message,) = caught.value.diagnostics
    assert message.line is None
    assert "too much shared data" in message.message
    assert caught.value.render().endswith(f"error: {message.message}")


def test_a_text_for_a_newer_target_is_refused() -> None:
    with pytest.raises(AssemblerError, match=r"for sm_80\nfatal: .*\.target"):
        assemble(SMALL, "sm_80")


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(AssemblerError, match="sm_10x"):
        assemble(SMALL, "sm_10x")


def test_a_text_without_a_target_is_refused() -> None:
    with pytest.raises(AssemblerError, match=r"no \.target.*pass target="):
        assemble(".version 9.0\n// .target sm_90a\n")


def test_a_syntax_error_is_fatal_at_its_line() -> None:
    with pytest.raises(AssemblerError) as caught:
        assemble(HEAD + "garbage $$")
    assert (4, "fatal") in [(message.line, message.severity) for message in caught.value.diagnostics]


def test_advisories_are_not_warnings(ptxas: Path) -> None:
    fragments = "{f0,f1,f2,f3}, {a0,a1}, {a2,a3}, {f0,f1,f2,f3}, a4, 0"
    sparse = f"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {fragments};"
    text = HEAD + entry("sparse", f".reg .b32 a<8>; .reg .f32 f<8>;\n{sparse}")
    cubin = assemble(text, ptxas=ptxas)
    assert cubin.warnings == []
    (advisory,) = cubin.advisories
    assert (advisory.severity, advisory.line) == ("info", text.split("\n").index(sparse) + 1)


def test_what_the_compiler_injects_is_an_advisory_with_its_line(ptxas: Path) -> None:
    mma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0,f1,f2,f3}, d0, d0, p0, 1, 1, 0, 0;"
    body = f""".reg .f32 f<4>; .reg .b64 d0; .reg .pred p0;
ld.param.u64 d0, [p];
setp.eq.u64 p0, d0, 3;
mov.f32 f0, 0f00000000; mov.f32 f1, f0; mov.f32 f2, f0; mov.f32 f3, f0;
wgmma.fence.sync.aligned;
{mma}
add.f32 f1, f1, f0;
{mma}
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
st.global.f32 [d0], f1;"""
    cubin = assemble(HEAD + entry("injected", body), ptxas=ptxas)
    assert any("injected" in message.message and message.line for message in cubin.advisories)
    assert cubin.warnings == []


def test_anything_whose_str_is_ptx_assembles() -> None:
    class Module:
        def __str__(self) -> str:
            return SMALL

    assert assemble(Module()).data == assemble(SMALL).data


def test_options_reach_ptxas() -> None:
    assert assemble(SMALL, options=["-O0"]).data != assemble(SMALL).data


def test_a_crash_is_reported(tmp_path: Path) -> None:
    program = fake_ptxas(tmp_path, "kill -SEGV $$")
    with pytest.raises(AssemblerError, match="crashed: signal SIGSEGV"):
        assemble(SMALL, ptxas=program)


def test_a_timeout_is_reported(tmp_path: Path) -> None:
    program = fake_ptxas(tmp_path, "exec sleep 60")
    with pytest.raises(AssemblerError, match=r"did not finish within 0\.2 seconds"):
        assemble(SMALL, ptxas=program, timeout=0.2)


@pytest.mark.parametrize("script", ["exit 0", "echo out of luck; exit 3"])
def test_no_cubin_is_an_error_whatever_the_status(tmp_path: Path, script: str) -> None:
    with pytest.raises(AssemblerError, match=r"ended with status [03] and no cubin"):
        assemble(SMALL, ptxas=fake_ptxas(tmp_path, script))


def test_a_program_that_cannot_start_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "ptxas"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    with pytest.raises(AssemblerError, match="could not be started"):
        assemble(SMALL, ptxas=program)


def test_continued_messages_are_joined() -> None:
    messages, _ = _read_log(
        "ptxas kernel.ptx, line 3; warning : first part\n   second part\nptxas info    : 0 bytes gmem\n"
    )
    assert messages == [AssemblerMessage(3, "warning", "first part second part")]


def test_the_registers_of_a_function_are_not_those_of_the_entry_before_it() -> None:
    _, functions = _read_log(
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Function properties for k\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 8 registers, used 2 barriers, 16 bytes smem, 352 bytes cmem[0]\n"
        "ptxas info    : Function properties for f\n"
        "    48 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 40 registers\n"
    )
    assert functions == {
        "k": FunctionInfo("k", is_entry=True, registers=8, shared_bytes=16, barriers=2),
        "f": FunctionInfo("f", is_entry=False, stack_bytes=48, spill_stores=12, spill_loads=8),
    }


def test_many_texts_keep_their_order() -> None:
    texts = [HEAD + entry(f"k{i}", "bogus;" if i % 3 == 2 else "") for i in range(9)]
    answers = assemble_many(texts, "sm_90a", jobs=2)
    assert [isinstance(answer, Cubin) for answer in answers] == [i % 3 != 2 for i in range(9)]
    assert [list(answer.functions) for answer in answers if isinstance(answer, Cubin)] == [
        [f"k{i}"] for i in range(9) if i % 3 != 2
    ]


def test_many_texts_without_ptxas(tmp_path: Path) -> None:
    with pytest.raises(ToolNotFoundError):
        assemble_many([SMALL], ptxas=tmp_path / "none")


def test_versions(ptxas: Path, tmp_path: Path) -> None:
    assert [part.isdigit() for part in ptxas_version(ptxas).split(".")] == [True] * 3
    with pytest.raises(AssemblerError, match="names no release"):
        ptxas_version(fake_ptxas(tmp_path, "echo hello"))


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (SMALL, "sm_90a"),
        (
            '/* .target sm_10\n */ // .target sm_20\n.file 1 ".target sm_30"\n.target sm_100f, debug',
            "sm_100f",
        ),
        (".target /* which */ sm_120a", "sm_120a"),
        ('.file 1 "http://x" .target sm_75', "sm_75"),
        ("%r.target sm_10", None),
        ("", None),
    ],
)
def test_the_target_of_a_text(text: str, target: str | None) -> None:
    assert target_of(text) == target


def test_disassembling() -> None:
    cubin = assemble(SMALL)
    listing = disassemble(cubin)
    assert ".text.small" in listing
    assert "EXIT" in listing
    assert disassemble(cubin.data) == listing
    assert len(disassemble(cubin, options=["-c", "-hex"])) > len(listing)


def test_disassembling_what_is_no_cubin() -> None:
    with pytest.raises(DisassemblerError, match="12 bytes"):
        disassemble(b"not a cubin\n")
