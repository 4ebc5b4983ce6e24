"""Files of `cuobjdump --dump-sass` and `--dump-ptx`, in the form that cuobjdump prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxgen.files import ptx_of_dump
from ptxgen.sass import ContainerError, Listing, compare, load, summarize
from ptxgen.sass.show import comparison_lines
from tests.support.cubins import listing, pipeline, pipeline_text

_HEAD = """
Fatbin elf code:
================
arch = {0}
code version = [1,8]
host = linux
compile_size = 64bit

\tcode for {0}
"""
_LABEL = re.compile(r"`\((\.L_x_\d+)\)")


def dump(whole: Listing) -> str:
    """As cuobjdump prints a listing: branch targets as addresses, two lines an instruction, NOPs at the end."""
    lines = [_HEAD.format(whole.target)]
    for function in whole.functions:
        lines.append(f'\t\tFunction : {function.name}\n\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_SM90"')
        places = [*(each.address for each in function.instructions), function.instructions[-1].address + 16]
        for each in function.instructions:
            text = each.text
            for label in _LABEL.findall(text):
                text = text.replace(f"`({label})", f"{places[function.labels[label]]:#x}")
            low, high = each.word & (1 << 64) - 1, each.word >> 64
            lines.append(f"        /*{each.address:04x}*/                   {text} ;   /* 0x{low:016x} */")
            lines.append(f"{'':60}/* 0x{high:016x} */")
        for place in range(places[-1], places[-1] + 64, 16):
            lines.append(f"        /*{place:04x}*/                   NOP ;   /* 0x0000000000007918 */")
            lines.append(f"{'':60}/* 0x000fc00000000000 */")
        lines.append("\t\t..........\n")
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["pipe", "groups"])
def test_a_dump_is_the_listing_of_its_cubin(name: str) -> None:
    whole = pipeline(12) if name == "pipe" else listing(name)
    read = load(dump(whole).encode(), origin="dump")
    assert read.target == whole.target
    one, other = whole.functions[0], read.functions[0]
    assert [(each.address, each.mnemonic, each.word) for each in other.instructions] == [
        (each.address, each.mnemonic, each.word) for each in one.instructions
    ]
    found, expected = summarize(other), summarize(one)
    assert [(each.address, each.instructions, each.stall) for each in found.loops] == [
        (each.address, each.instructions, each.stall) for each in expected.loops
    ]
    assert found.classes == expected.classes
    assert compare(read, read).same
    against = compare(whole, read)
    assert not against.pairs[0].differences, "\n".join(comparison_lines(against))


def test_targets_of_a_dump() -> None:
    both = dump(pipeline(12)) + dump(listing("groups")).replace("sm_90a", "sm_100a")
    assert load(both.encode(), target="sm_90a").functions[0].name == "pipe"
    with pytest.raises(ContainerError, match=r"has 2 targets with functions \(sm_90a, sm_100a\); name a target"):
        load(both.encode())
    bare = re.sub(r" */\* 0x\w+ \*/", "", dump(pipeline(12)))
    with pytest.raises(ContainerError, match="this dump has no encodings"):
        load(bare.encode())


def test_a_dump_of_ptx(tmp_path: Path) -> None:
    head = "\nFatbin ptx code:\n================\narch = sm_90a\ncode version = [8,7]\nhost = linux\ncompressed\n\n"
    path = tmp_path / "pipe.dump"
    path.write_text(head + pipeline_text(12))
    assert compare(load(path), pipeline(12)).same
    path.write_text(head + pipeline_text(12) + head + pipeline_text(12).replace("sm_90a", "sm_100a"))
    assert load(path, target="sm_90a").target == "sm_90a"
    with pytest.raises(ContainerError, match=r"2 PTX modules \(sm_90a, sm_100a\)"):
        load(path)


def test_what_else_cuobjdump_prints_is_named() -> None:
    for said, wanted in (
        ("PTX file    1: k.1.sm_90.ptx\n", "list of files"),
        ("ELF file    1: k.1.sm_90.cubin\nELF file    2: k.2.sm_80.cubin\n", "list of files"),
        ("\n64-bit ELF: type=ET_EXEC, ABI=8, sm=90, toolkit=13.0\nSections:\n", "listing of an ELF object"),
        ("symbols:\nSTT_FUNC         STB_GLOBAL STO_ENTRY      add\n", "listing of an ELF object"),
        ("\nFatbin elf code:\n================\narch = sm_90a\n\n\tcode for sm_90a\n", "has no PTX"),
    ):
        with pytest.raises(ValueError, match=wanted):
            ptx_of_dump(said)


def test_a_dump_and_its_cubin_are_the_same_code() -> None:
    """A dump does not say how many registers a kernel has, which is no difference."""
    whole = listing("groups")
    found = compare(load(dump(whole).encode(), origin="dump"), whole)
    assert found.same
    assert ("registers", None, whole.functions[0].registers) in found.pairs[0].resources
    assert any("life ranges" in each for each in found.gaps)
