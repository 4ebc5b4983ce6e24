"""`ptxgen run --html`: one page with all sections, well formed, self-contained, small."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from ptxgen import Kernel
from ptxgen.device import Finding
from ptxgen.emulator import Emulator
from ptxgen.emulator.observers.recording import Recording, Span, TensorAccess
from ptxgen.reports.html import Page, Region
from tests.cli.reports.test_launches import RACE, RUN
from tests.support.command_line import Cli

_VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Every tag is closed in order; keeps texts and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.rectangles = 0
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert tag not in ("script", "link", "img", "iframe")
        assert "src" not in values
        self.ids |= {values["id"] or ""} if "id" in values else set()
        self.links |= {values["href"] or ""} if "href" in values else set()
        self.rectangles += tag == "rect"
        if tag == "rect":
            assert all(float(values[name] or "x") >= 0 for name in ("x", "y", "width", "height"))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


def test_the_page_of_a_file_with_a_race(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxgen.cli.toolchain.ptx.assembled", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(RACE)
    outcome = cli(*RUN, "--html", "seite ü.html")
    assert outcome.code == 1
    assert outcome.out.endswith("page: seite ü.html\n")
    page = (tmp_path / "seite ü.html").read_text(encoding="utf-8")
    found = Checker(page)
    assert found.headings == ["k.ptx on emulated sm_90a", "What was checked", "Findings", "Report", "Lines"]
    assert {each[1:] for each in found.links} <= found.ids
    assert "race: ld.shared (line 16, warp 0" in page
    assert '<span class="hit" id="L16"' in page
    assert "<b>2</b><i>17</i>" in page  # two warps came to line 17
    assert "fix: " in page
    assert "http" not in page


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--html", "none/x.html"], "cannot write none/x.html: there is no folder none"),
        (["--html", "x.html", "--schedules", "2"], "--html inspects a single run; omit --schedules"),
        (["--html", "x.html", "--device", "gpu"], "--html requires the emulator: a GPU does not stop at a line"),
    ],
)
def test_unusable_pages(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(RACE)
    assert cli(*RUN, *words).err == f"error: {sentence}\n"


def test_a_thousand_lines_and_many_events_stay_small() -> None:
    text = "\n".join(f"    add.u32 %r{number}, %r1, {number};  // <b>&" for number in range(1000))
    spans = [Span(step, step + 1, f"phase {step}", 3) for step in range(4000)]
    tensor = [TensorAccess(step, "read", 0, 31, 4, "tcgen05.ld") for step in range(4000)]
    finding = Finding("shared-race", "error", "<x> & y", 500, "add", consequences=(Finding("deadlock", "error", "z"),))
    page = Page(
        "k <1>", False, "deadlock", "report <&>", text, [finding] * 100, ["a <gap>"],
        [Region("a", 0, 4096, 4, "A"), Region("full", 4096, 8)], 232448, dict.fromkeys(range(1, 1001), 7),
        {f"full[{number}]": spans for number in range(20)}, {"tensor copy": spans}, tensor, 4000, 5,
    ).html()  # fmt: skip
    assert len(page.encode()) < 2_000_000
    found = Checker(page)
    assert found.headings[2:] == [
        "Findings", "Report", "Shared memory", "Pipelines as they ran", "Tensor memory over time", "Lines"
    ]  # fmt: skip
    assert "<gap>" not in page
    assert "// &lt;b&gt;&amp;" in page
    assert "5 further events are not drawn" in page


def test_phases_and_copies_are_recorded() -> None:
    text = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x)
.reqntid 32
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 128 .b8 data[128];
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra done;
    mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    ld.param.u64 %rd1, [x];
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [full], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%rd1], 128, [full];
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
    @!%p2 bra again;
done:
    ret;
}
"""
    recording = Recording()
    device = Emulator(target="sm_90a", schedule="late", observers=[recording])
    report = device.launch(Kernel.from_ptx(text), 2, 32, [device.empty(128, "u8")])
    assert report.status in ("ok", "findings"), report.summary()
    assert list(recording.mbarriers) == ["full"]
    first, second = recording.mbarriers["full"].phases
    assert (first.label, second.label, second.end) == ("phase 0", "phase 1", None)
    assert first.end == second.begin
    ((work,),) = recording.works.values()
    assert work.line == 19
    assert first.begin <= work.begin <= (work.end or -1) <= recording.steps
