"""Listings: every instruction, its control code, its PTX line, blocks and loops."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ptxgen.sass import Control, load, summarize
from ptxgen.sass.flow import Flow
from ptxgen.toolchain import assemble, disassemble
from tests.support.cubins import cubin, listing, starved, text_offset

#: The address of an instruction, at the beginning of its line.
_ADDRESS = re.compile(r"\s*/\*[0-9a-f]{4,}\*/")
KERNELS = ["hopper_gemm", "blackwell_clc", "groups", "flash2", "language"]


@pytest.mark.parametrize("name", KERNELS)
def test_every_instruction_is_read(name: str) -> None:
    """As nvdisasm lists them without options, padding apart, with the words of the ELF file."""
    data = cubin(name).data
    plain = [
        line.split("*/", 1)[1].split(";")[0].strip() for line in disassemble(data).splitlines() if _ADDRESS.match(line)
    ]
    plain = [text for text in plain if text != "NOP"]
    found = [each for function in listing(name).functions for each in function.instructions if each.opcode != "NOP"]
    assert len(found) == len(plain)
    for each, text in zip(found, plain, strict=True):
        words = text.replace(".reuse", "").replace(" ,", ",").split('(*"')[0].split()
        assert each.text.split() == words, (each.text, text)
    for function in listing(name).functions:
        start = text_offset(data, function.name)
        for each in function.instructions:
            word = data[start + each.address : start + each.address + 16]
            assert each.word == int.from_bytes(word, "little")


@pytest.mark.parametrize("name", KERNELS)
def test_control_codes_round_trip(name: str) -> None:
    for function in listing(name).functions:
        for each in function.instructions:
            control = each.control
            assert control.encode(each.word) == each.word
            assert Control.decode(control.encode()) == control
            assert control.stall <= 15
            assert {control.write, control.read} <= {*range(6), 7}


def test_control_fields() -> None:
    """Stall in bits 105 to 108, yield in 109, scoreboards from 110 and 113 on, waits from 116, reuse from 122."""
    word = 5 << 105 | 1 << 109 | 2 << 110 | 7 << 113 | 0b101 << 116 | 0b1001 << 122
    assert Control.decode(word) == Control(5, True, 2, 7, 0b101, 0b1001)
    assert str(Control.decode(word)) == "B0-2---:R-:W2:-:S05"
    assert Control.decode(word).waits == (0, 2)
    with pytest.raises(ValueError, match=r"stall must be in 0..15, not 16"):
        Control(16, False, 7, 7, 0, 0).encode()


@pytest.mark.parametrize("name", ["hopper_gemm", "blackwell_clc"])
def test_ptx_lines_are_those_of_nvdisasm(name: str) -> None:
    """Our reading of the line table against `nvdisasm -gp`."""
    line, expected = None, []
    for text in disassemble(cubin(name).data, options=("-c", "-gp")).splitlines():
        if "## File" in text:
            line = int(text.rsplit("line ", 1)[1].split()[0])
        elif _ADDRESS.match(text):
            expected.append(line)
    found = [each.ptx_line for function in listing(name).functions for each in function.instructions]
    assert found == expected[: len(found)]  # what follows is padding
    assert found[0] is not None
    assert listing(name).ptx.splitlines()[found[0] - 1]


def test_live_registers_are_those_of_nvdisasm() -> None:
    text = disassemble(cubin("hopper_gemm").data, options=("-c", "-lrm", "count"))
    counts = [line.split("// |")[1].split("|")[0].strip() for line in text.splitlines() if _ADDRESS.match(line)]
    found = [each.registers.live[0] for each in listing("hopper_gemm").functions[0].instructions]
    assert found == [int(count or 0) for count in counts]


def test_blocks_cover_the_function() -> None:
    """Every instruction lies in one block, and every branch target begins one."""
    for name in KERNELS:
        for function in listing(name).functions:
            flow = Flow(function)
            covered = [index for block in flow.blocks for index in range(block.start, block.end)]
            assert covered == list(range(len(function.instructions)))
            starts = {block.start for block in flow.blocks}
            for each in function.instructions:
                if each.opcode == "BRA":
                    (target,) = (function.labels[label] for label in each.targets)
                    assert target in starts
                    assert flow.block_of[target] in flow.blocks[flow.block_of[each.index]].following


def test_the_main_loop() -> None:
    """The loop over K of the consumer: 16 wgmma in 4 stages of 4, the loop of waits in it left out."""
    summary = summarize(listing("hopper_gemm").kernel(), listing("hopper_gemm"))
    main = summary.main_loop
    assert main is not None
    ptx = listing("hopper_gemm").ptx.splitlines()
    assert main.ptx_lines is not None
    first, last = main.ptx_lines
    assert main.classes["HGMMA"] == sum("wgmma.mma_async" in line for line in ptx[first - 1 : last])
    assert (summary.registers, summary.local_loads, summary.local_stores) == (168, 0, 0)
    assert main.stall > main.issue_slots


def test_spills_are_counted() -> None:
    """The same kernel with fewer registers has to spill."""
    spilled = load(assemble(starved("flash2"), options=("-maxrregcount", "40")))
    plain, less = summarize(listing("flash2").kernel()), summarize(spilled.kernel())
    assert plain.local_loads == 0
    assert less.local_loads > 0
    assert less.local_stores > 0
    assert less.registers is not None
    assert less.registers <= 40


def test_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second reading starts no nvdisasm and gives the same; a damaged entry is made anew."""
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path))
    data = cubin("groups").data
    first = load(data)
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(subprocess, "Popen", None)
    assert load(data) == first
    monkeypatch.undo()
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path))
    (kept,) = (tmp_path / "sass").iterdir()
    kept.write_text(kept.read_text()[:1000])
    assert load(data) == first
