"""Loops: what polls or elects is no work, all others are matched, and each is gated."""

from __future__ import annotations

import re

import pytest

from ptxgen.sass import Listing, compare, load, summarize
from ptxgen.sass.diff import within
from ptxgen.sass.flow import Flow
from ptxgen.sass.loops import LoopPair, NoLoopError, chosen
from ptxgen.sass.show import broken_thresholds, comparison_lines
from ptxgen.toolchain import assemble
from tests.support.cubins import CONSUMER, LOCK, PRODUCER, listing, pipeline


def pairs(a: Listing, b: Listing) -> dict[str, LoopPair]:
    return {each.place: each for each in compare(a, b).pairs[0].loops}


def test_what_loops_are() -> None:
    summary = summarize(pipeline(12).kernel())
    roles = sorted((each.role, each.place) for each in summary.loops)
    assert roles == [
        ("", f"pipe.cu:{PRODUCER}"),
        ("", f"pipe.cu:{CONSUMER}"),
        ("election", f"pipe.cu:{PRODUCER + 2}"),
        ("spin", f"pipe.cu:{PRODUCER + 1}"),
        ("spin", f"pipe.cu:{CONSUMER + 1}"),
        ("spin", f"pipe.cu:{LOCK}"),
    ]
    assert summary.main_loop is not None
    assert summary.main_loop.place == f"pipe.cu:{CONSUMER}"


def test_loops_of_real_kernels_work() -> None:
    """No loop with stores, MMAs or a running sum is taken for a spin."""
    for name in ("groups",):
        flow = Flow(listing(name).functions[0])
        for loop, figures in zip(flow.loops, summarize(flow.function).loops, strict=True):
            if figures.role:
                opcodes = {each.opcode for each in flow.instructions(loop)}
                assert opcodes & {"SYNCS", "ELECT", "LDG", "LD", "ATOMG", "ATOM"}, (name, hex(figures.address))
                assert not [each for each in opcodes if each.startswith("ST") or each.endswith("MMA")], name


def test_a_slower_loop_fails_though_another_is_innermost() -> None:
    a, b = pipeline(12), pipeline(36)
    found = compare(a, b)
    (broken,) = broken_thresholds(found, "loop-stalls+5%")
    words = rf"loop-stalls: loop at pipe.cu:{CONSUMER}: (\d+) -> (\d+) instructions, stall sum (\d+) -> (\d+); 0x"
    match = re.match(words, broken)
    assert match is not None, broken
    counts = [int(each) for each in match.groups()]
    # Each value takes a load and an FFMA, from both sides' listings.
    lines = [
        sum(each.opcode in ("LDS", "FFMA") for each in side.kernel().instructions) for side in (a, b)
    ]  # fmt: skip
    assert counts[1] - counts[0] >= (lines[1] - lines[0]) * 0.9 > 20
    assert counts[3] > 1.5 * counts[2]
    assert broken_thresholds(compare(b, a), "loop-stalls+5,loop-instructions") == []
    assert broken_thresholds(found, "loop-stalls+1000%") == []
    text = "\n".join(comparison_lines(found))
    assert f"  loop at pipe.cu:{CONSUMER}: {counts[0]} -> {counts[1]} instructions, stall sum " in text
    assert re.search(rf"    pipe.cu:{CONSUMER + 2}: \d+ -> \d+ instructions, stall sum \d+ -> \d+", text)


def test_all_loops_are_matched() -> None:
    found = pairs(pipeline(12), pipeline(36))
    assert set(found) == {f"pipe.cu:{PRODUCER}", f"pipe.cu:{CONSUMER}"}
    assert all(each.a is not None and each.b is not None for each in found.values())
    same = pairs(pipeline(12), pipeline(12))
    assert all(each.same and not each.lines for each in same.values())


def test_a_loop_that_only_one_side_has() -> None:
    """One that is new counts from 0; one that is gone fails nothing."""
    without = listing("groups")
    found = compare(without, pipeline(12), kernel=None)
    broken = broken_thresholds(found, "loop-stalls")
    assert any("in B only" in each for each in broken) or len(broken) == 2
    gone = load(assemble(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry pipe() { ret; }\n"))
    assert broken_thresholds(compare(pipeline(12), gone), "loop-stalls+5,loop-instructions") == []
    new = broken_thresholds(compare(gone, pipeline(12)), "loop-instructions")
    assert len(new) == 2
    assert all("in B only" in each for each in new)


def test_one_loop_by_line_or_address() -> None:
    one = pipeline(12)
    flow = Flow(one.kernel())
    main = chosen(flow, "main")
    head = flow.function.instructions[flow.blocks[main.header].start].address
    inside = flow.instructions(main)[-1].address
    for word in (str(CONSUMER), f"pipe.cu:{CONSUMER}", f"/src/pipe.cu:{CONSUMER}", str(CONSUMER + 2), f"{head:#x}"):
        assert chosen(flow, word) == main, word
    assert chosen(flow, f"{inside:#x}").header in {each.header for each in flow.loops}
    with pytest.raises(NoLoopError, match=r"no loop at 99; there are: pipe.cu:\d+ \(0x"):
        chosen(flow, "99")
    none = load(assemble(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry pipe() { ret; }\n"))
    with pytest.raises(NoLoopError, match=r"^the kernel has no loop$"):
        chosen(Flow(none.kernel()), "99")
    found = compare(one, pipeline(36))
    producer = within(found, str(PRODUCER))
    assert broken_thresholds(producer, "loop-instructions+2") == []
    assert len(producer.pairs[0].differences) < len(found.pairs[0].differences)
    assert broken_thresholds(within(found, str(CONSUMER)), "loop-instructions+2")


def straight(extra: str, spin: str) -> Listing:
    """A kernel of eight unrolled values, with a spin or without."""
    body = "\n".join(
        f"    ld.global.f32 %v, [%p+{4 * i}];\n{extra}    st.global.f32 [%p+{4 * i}], %v;" for i in range(8)
    )
    return load(assemble(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
        "    .reg .b64 %p;\n    .reg .f32 %v;\n    .reg .b32 %r;\n    .reg .pred %q;\n    ld.param.u64 %p, [p];\n"
        f"{spin}{body}\n    ret;\n}}\n"
    ).data)  # fmt: skip


SPIN = "W:\n    ld.acquire.gpu.global.u32 %r, [%p+64];\n    setp.eq.u32 %q, %r, 0;\n    @%q bra W;\n"


@pytest.mark.parametrize("spin", ["", SPIN])
def test_kernels_without_loops_are_gated_as_a_whole(spin: str) -> None:
    a = straight("", spin)
    b = straight("    div.rn.f32 %v, %v, 0f40400000;\n    bar.warp.sync 0xffffffff;\n    bar.sync 0;\n", spin)
    assert broken_thresholds(compare(a, straight("", spin)), "loop-stalls,loop-instructions,loop-waits,loop-BAR") == []
    for limit in ("loop-stalls+5%", "loop-instructions+5%", "loop-waits", "loop-BAR"):
        (broken,) = broken_thresholds(compare(a, b), limit)
        assert broken.startswith(f"{limit.partition('+')[0]}: code without loops: "), broken
    assert broken_thresholds(compare(a, b), "loop-BAR+8") == []
    assert broken_thresholds(compare(b, a), "loop-stalls+5%") == []
    (lost,) = broken_thresholds(compare(b, a), "loop-waits")
    polls = int(bool(spin))  # the fence of the acquire
    assert f", {8 + polls} -> {polls} of SYNCS, BAR, fence in k" in lost
