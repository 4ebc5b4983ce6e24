"""`ptxgen explain`: values of each format, however a person writes them, compared, as JSON, and the facts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command_line import Cli

SMEM = "0x4000404000010000"
MAP = bytes(range(128)).hex()


@pytest.mark.parametrize(
    "value", [SMEM, "4611756662049538048", f"{SMEM}ULL", f"{SMEM}ul", "0x4000_4040_0001_0000", f" {SMEM} "]
)
def test_numbers_as_people_write_them(cli: Cli, value: str) -> None:
    outcome = cli("explain", "smem", value)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"SmemDescriptor {SMEM}\n")
    assert "note: LBO is ignored for swizzled K-major layouts" in outcome.out


def test_a_number_that_ptx_prints_as_negative(cli: Cli) -> None:
    outcome = cli("explain", "wgmma", str(0xC000001000010000 - (1 << 64)))
    assert outcome.out.startswith("WgmmaDescriptor 0xc000001000010000\n")
    assert "32B" in outcome.out


def test_files(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "descriptor"
    path.write_bytes(int(SMEM, 16).to_bytes(8, "little"))
    assert cli("explain", "smem", path).out == cli("explain", "smem", SMEM).out
    assert cli("explain", "idesc", path).err == f"error: an idesc value has 4 bytes, but {path} has 8\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["smem", SMEM, "--major", "k"], ["LBO: ignored)", "SBO: between groups of 8 rows)"]),
        (["smem", "0x400800000040", "--use", "scales"], ["fact lbo-scale-factors", "fact sfb-both-ctas"]),
        (["wgmma", "0x4000004000400000"], ["warning: LBO is ignored for swizzled K-major layouts"]),
        (
            ["idesc", "0x08200490"],
            ["bf16 × bf16 → f32", "also legal as kind::f16 (cta_group::2)"],
        ),
        (["idesc", "0x08200490", "--kind", "f8f6f4", "--cta-group", "2"], ["e5m2 × e5m2 → f32, over the pair of CTAs"]),
        (["idesc", "0x08A00000"], ["kind=mxf8f6f4", "scaled by ue8m0"]),
        (["idesc", "0x08200480", "--scale-vec", "4X"], ["kind=mxf4nvf4", "ue4m3"]),
        (["zero-mask", "0x0003028000000000", "--m", "64"], ["3 zero columns", "fact zero-mask-spans (inferred)"]),
    ],
)
def test_words(cli: Cli, arguments: list[str], words: list[str]) -> None:
    outcome = cli("explain", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    for each in words:
        assert each in outcome.out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["smem", "0x4000004000010000"], "error: bits 46-48 must be 0b1 (fixed), not 0b0"),
        (["smem", "0x6000404000010000"], "error: swizzle must be one of 0 (none)"),
        (["wgmma", SMEM], "error: reserved bits must be 0, not 1 in bit 46"),
        (["idesc", "0x08200490", "--kind", "tf32"], "error: a_type must be 2 (tf32), not 1"),
        (["idesc", "0x08210490", "--kind", "f8f6f4"], ""),
        (["tensormap", MAP], "error: reserved bits must be 0"),
    ],
)
def test_illegal_values_are_shown_with_what_is_wrong(cli: Cli, arguments: list[str], error: str) -> None:
    outcome = cli("explain", *arguments)
    assert outcome.err == ""
    if error:
        assert outcome.code == 1
        assert error in outcome.out
    found = json.loads(cli("explain", *arguments, "--json").out)
    assert found["legal"] == (not error)
    assert bool(found["problems"]) == bool(error)


def test_json(cli: Cli) -> None:
    found = json.loads(cli("explain", "smem", SMEM, "--json").out)
    assert (found["format"], found["bits"], found["legal"]) == ("SmemDescriptor", SMEM, True)
    fields = {row["name"]: row for row in found["fields"]}
    assert (fields["stride_byte_offset"]["value"], fields["stride_byte_offset"]["unit"]) == (1024, "bytes")
    assert fields["base_offset"]["evidence"]["kind"] == "measured"
    assert {each["name"] for each in found["facts"]} >= {"lbo-swizzled-k-major"}
    assert "kind::i8" not in str(json.loads(cli("explain", "idesc", "0x08200490", "--json").out)["also"])


@pytest.mark.parametrize("before", [[], ["smem"]])
def test_diff(cli: Cli, before: list[str]) -> None:
    outcome = cli("explain", *before, "--diff", SMEM, "0x8000402000010040")
    assert (outcome.code, outcome.err) == (0, "")
    assert "3 of 7 fields differ" in outcome.out
    assert outcome.out.startswith(f"- SmemDescriptor {SMEM}\n+ SmemDescriptor 0x8000402000010040\n")
    found = json.loads(cli("explain", *before, "--diff", SMEM, "0x8000402000010040", "--json").out)
    assert [each["name"] for each in found["differences"]] == ["start_address", "stride_byte_offset", "swizzle"]


def test_diff_of_each_format(cli: Cli, tmp_path: Path) -> None:
    assert "idesc" in cli("explain", "--diff", "0x08200490", SMEM).err
    assert "n " in cli("explain", "--diff", "0x08200490", "0x08400490").out
    assert cli("explain", "--diff", "0x4000004000010000", "0x8000004000010000").out.startswith("- WgmmaDescriptor")
    other = tmp_path / "map"
    other.write_bytes(bytes(range(1, 129)))
    outcome = cli("explain", "--diff", MAP, other)
    assert (outcome.code, outcome.out.startswith("- TensorMap")) == (1, True)
    assert "address" in outcome.out


def test_facts(cli: Cli) -> None:
    text = " ".join(cli("explain", "facts").out.split())
    for words in ("lbo-scale-factors", "sfb-both-ctas", "scale-copy-warpx4", "tma-and-mma-swizzle-agree", "unverified"):
        assert words in text
    (found,) = json.loads(cli("explain", "facts", "sfb-both", "--json").out)
    assert (found["name"], found["evidence"]) == ("sfb-both-ctas", "inferred")
    assert cli("explain", "facts", "--markdown").out.startswith("# Facts that no manual states\n")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "tcgen05.ld",
            [
                "tcgen05.ld",
                "  lacks .sync .aligned .shape (.16x64b .16x128b .16x256b .32x32b)",
                "  legal tcgen05.ld.sync.aligned.32x32b.x1.b32",
                "  legal tcgen05.ld.sync.aligned.32x32b.x2.b32",
                "  tcgen05.ld_halves ",
                "tcgen05.ld.red",
            ],
        ),
        ("cp.async.bulk.tensor", ["  lacks .dim (.1d .2d .3d .4d .5d)", "  tma.load ", "  tma.store "]),
        ("wgmma", ["wgmma.fence", "wgmma.mma_async", "  wgmma.mma_async_f16 "]),
        ("tensormap", ["tensormap.replace"]),
        ("ld", ["  legal ld.b32", "  legal ld.global.b32", "ldmatrix", "  memory.ldu "]),
        ("mbarrier.try", ["mbarrier.try_wait", "mbarrier.try_wait.parity"]),
    ],
)
def test_the_beginning_of_an_opcode_lists_forms(cli: Cli, text: str, lines: list[str]) -> None:
    outcome = cli("explain", text)
    assert (outcome.code, outcome.err) == (0, "")
    printed = outcome.out.splitlines()
    for line in lines:
        assert any(each.startswith(line) for each in printed), line
    assert max(len(each) for each in printed if not each.startswith(("  l", "    ")) or each[-1] != ";") <= 80
    found = json.loads(cli("explain", text, "--json").out)
    assert found["meant"] == ""
    assert all(each["key"] and each["call"] and each["signature"] and each["spellings"] for each in found["forms"])


def test_a_misspelt_opcode_lists_the_forms_that_are_meant(cli: Cli) -> None:
    outcome = cli("explain", "tcgn05.ld")
    assert outcome.code == 1
    assert outcome.out.startswith("PTX has no tcgn05.ld; did you mean tcgen05.ld?\ntcgen05.ld\n")
    outcome = cli("explain", "tcgen05.ld.sync.aligned.32x32b.x3.b32")
    assert "the nearest legal form is tcgen05.ld.sync.aligned.32x32b.x4.b32" in outcome.out


def test_a_number_is_tried_as_each_descriptor(cli: Cli) -> None:
    outcome = cli("explain", SMEM)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"as smem (ptxgen explain smem {SMEM}):\nSmemDescriptor {SMEM}\n")
    assert "\nno legal wgmma: reserved bits must be 0, not 1 in bit 46\n" in outcome.out
    assert "\nno legal zero-mask: " in outcome.out
    outcome = cli("explain", "0x08200490")
    assert outcome.out.startswith("as idesc ")
    assert "also legal as wgmma: ptxgen explain wgmma 0x08200490\n" in outcome.out
    found = json.loads(cli("explain", "0x08200490", "--json").out)
    assert list(found) == ["idesc", "wgmma", "zero-mask", "smem"]
    assert found["idesc"]["legal"]
    assert cli("explain", "0xffffffffffffffff").code == 1
    assert cli("explain", str(0xC000001000010000 - (1 << 64))).out.startswith("as wgmma ")


def test_a_form_shows_its_call_and_who_has_tried_it(cli: Cli) -> None:
    line = "ld.global.v2.f32 {%f1, %f2}, [%rd2+16];"
    words = " ".join(cli("explain", line).out.split())
    assert 'Python memory.ld(["%f1", "%f2"], "%rd2+16", space="global", vec="v2", type="f32") signature ' in words
    assert "signature memory.ld(d, a, policy=None, *, weak: True|False = False, space:" in words
    assert "against ptxas 13." in words
    assert "microtest python -m microtests '" in words
    assert "an H200 has answered " in words
    [found] = json.loads(cli("explain", "tcgen05.ld.sync.aligned.32x32b.x4.b32", "--json").out)
    assert found["call"] == 'tcgen05.ld(r, taddr, shape="32x32b", num=4)'
    assert found["evidence"]["hardware"].startswith("none of ours; on Blackwell others: recorded: ")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("fp8", "sum-fp8-13-bits"),
        ("FP8", "sum-fp8-mma-sync"),
        ("nvfp4", "scaled-f4-groups"),
        ("tma", "tma-strided-rows"),
        ("expect_tx", "tma-strided-rows"),
        ("sfb", "scale-copy-warpx4"),
    ],
)
def test_facts_by_what_people_call_things(cli: Cli, word: str, name: str) -> None:
    outcome = cli("explain", "facts", word)
    assert outcome.code == 0
    assert name in outcome.out


def test_matrix_descriptors_of_two_formats_are_compared(cli: Cli) -> None:
    outcome = cli("explain", "--diff", "0x4000404000010000", "0x4000004000010000")
    assert outcome.code == 0
    assert outcome.out.startswith("- is a descriptor of tcgen05, + of wgmma\n")
    assert re.search(r"swizzle +0x2  128B +0x1  128B", outcome.out)
    assert "3 of 7 fields differ" in outcome.out
    outcome = cli("explain", "--diff", "0x4000004000010000", "0x4000404000010000", "--major", "mn")
    assert outcome.out.startswith("- is of wgmma, + of tcgen05\n")
    assert cli("explain", "--json", "--diff", "0x4000404000010000", "0x4000004000010000").code == 0


def test_values_without_common_fields(cli: Cli) -> None:
    outcome = cli("explain", "--diff", "0x4000404000010000", "0x08200490")
    assert outcome.code == 2
    assert "a matrix descriptor of tcgen05 (smem), the second an instruction descriptor (idesc)" in outcome.err
