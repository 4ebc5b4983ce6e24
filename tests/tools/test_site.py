"""The site without Sphinx: its sections, links, generated pages and the data of its live layouts."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from ptxgen.emulator.checks.registry import CHECKS
from ptxgen.instr.model.symbols import CODES
from ptxgen.pictures import KINDS
from ptxgen.pictures.points import layout_map, locate
from tests.bugs import BUGS
from tests.support.paths import ROOT
from tools.site import api, bugs, checks, instructions, layouts, links, stage
from tools.site.anchors import slug


def test_every_page_is_in_one_section() -> None:
    listed = [page for each in stage.sections() for page in each.pages]
    assert len(listed) == len(set(listed))
    there = {path.name for path in stage.DOCS.glob("*.md")}
    assert there <= set(listed)
    assert {each.name for each in stage.sections()}.isdisjoint(page.removesuffix(".md") for page in listed)


def test_pages_link_to_pages() -> None:
    texts = stage.staged()
    texts["index.md"] = stage.home((ROOT / "README.md").read_text())
    made = {*texts, *checks.pages(), *(each + "/index.md" for each in ("api", "instructions", "layouts"))}
    made |= {f"{each.name}.md" for each in stage.sections()}
    for page, text in texts.items():
        for target in re.findall(r"(?<!\!)\]\(([^)\s]+\.md)(?:#[^)]*)?\)", text):
            if "://" not in target:
                place = (Path("/") / page).parent / target
                assert str(Path(*place.parts[1:])) in made or ".." in target, (page, target)
        prose = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", text)
        targets = {each.partition("#")[0] for each in re.findall(r"\]\(([^)\s]+)\)", prose)}
        others = {
            each for each in targets if each and "://" not in each and not each.endswith((".md", *stage.PICTURES))
        }
        assert others == set(), page


def test_links_of_a_page() -> None:
    def made(text: str) -> str:
        return stage.with_links(text, "a/b.md", stage.DOCS)

    assert (
        made("[x](exec.md#options) ![p](layouts/swizzle.svg)") == "[x](../exec.md#options) ![p](../layouts/swizzle.svg)"
    )
    assert made("[`x`](checks.md#shared-race)") == "[`x`](../checks/shared-race.md)"
    assert made("[y](../ptxgen/job.py)") == "y (`ptxgen/job.py`)"
    assert made("[`ptxgen/job.py`](../ptxgen/job.py)") == "`ptxgen/job.py`"
    assert made("[e](examples/rowsum.py)") == "e (`docs/examples/rowsum.py`)"
    assert made("[z](../CHANGELOG.md)") == "[z](../changelog.md)"
    assert made("[w](https://x.org)\n```\n[x](none.md)\n```") == "[w](https://x.org)\n```\n[x](none.md)\n```"
    for code in ("`a[i](x)`", "``a`[i](x)``", "| `%x_[bu](8\\|16)_7` | `y` |"):
        assert made(f"[x](exec.md) {code}") == f"[x](../exec.md) {code}"
    with pytest.raises(ValueError, match=r"a/b\.md links to none\.md, which does not exist"):
        made("`y` [x](none.md)")


def test_the_api_has_every_public_name() -> None:
    pages = api.pages()
    for module in api.modules():
        text = pages[f"api/{module}.md"]
        for name in api.public(importlib.import_module(module)):
            assert re.search(rf"\}} {name}\b|`[\w.]+\.{name}`", text), (module, name)
    launch = pages["api/ptxgen.device.md"]
    assert "{py:method} raise_for_status(advice: builtins.bool = False) -> ptxgen.device.LaunchReport" in launch
    assert "Reasons why a check is partial, in words" in launch  # the comment of an attribute
    assert "```python\n>>> import numpy as np" in pages["api/ptxgen.emulator.md"]


def test_docstrings_as_markdown() -> None:
    assert api.prose("a <b> *c* `<d>`\n\n    >>> 1\n    1\n\nHead\n----\n") == (
        "a &lt;b> \\*c\\* `<d>`\n\n\n```python\n>>> 1\n1\n```\n\n**Head**"
    )


def test_every_declaration_has_its_page() -> None:
    made = checks.pages() | layouts.pages()
    assert {f"checks/{code}.md" for code in CHECKS.keys() | CODES} <= made.keys()
    assert all(f"(checks/{code}.md)" in made["checks.md"] for code in CODES)
    assert {f"layouts/{kind}.md" for kind in KINDS} <= made.keys()
    for code, check in CHECKS.items():
        assert check.example in made[f"checks/{code}.md"]
    for path, text in made.items():
        for picture in re.findall(r"\]\((pictures/[^)]+)\)", text):
            assert f"layouts/{picture}" in made, path


def test_a_family_has_its_declarations() -> None:
    text = instructions.family_page("cluster")
    assert text.count("\n## ") == 9
    for word in ("| manual | PTX ISA", "| certified |", "| emulated |", "| microtest |", "SASS sm_100a", "| Python |"):
        assert word in text


def test_a_bug_has_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bugs, "report", lambda bug: f"head\n\n    said of {bug.name}\n")
    made = bugs.pages((stage.DOCS / "bugs.md").read_text())
    assert len(made) == len(BUGS) + 1
    for bug in BUGS:
        assert f"said of {bug.name}" in made[f"bugs/{bug.name}.md"]
        assert made["bugs.md"].count(f"(bugs/{bug.name}.md)") == 1, bug.name


@pytest.mark.parametrize("name", layouts.LIVE)
def test_live_data_are_the_maps(name: str) -> None:
    """Whole rectangles in the order of rows, whose fields are what `locate` answers at random elements."""
    live = layouts.LIVE[name]
    data = layouts.live_data(name, live)
    assert " ".join(each["values"][0] for each in data["controls"]) in data["variants"]
    rng = np.random.default_rng(3)
    for key, variant in data["variants"].items():
        rows, columns = variant["labels"]
        assert {len(each) for each in variant["fields"].values()} == {len(rows) * len(columns)}
        words = [*live.fixed, *(f"{n}={v}" for n, v in zip(live.choices, key.split(" "), strict=True))]
        order = layout_map(name, words).at
        for index in rng.integers(len(rows) * len(columns), size=3):
            place = {variant["axes"][0]: rows[index // len(columns)], variant["axes"][1]: columns[index % len(columns)]}
            answers = locate(name, words, at=tuple(place[each] for each in order))
            known = variant["fields"].keys() - {"ldmatrix thread"}
            assert any(all(each[field] == variant["fields"][field][index] for field in known) for each in answers)


def test_who_loads_an_element_by_ldmatrix() -> None:
    data = layouts.live_data("operand", layouts.LIVE["operand"])
    variant = data["variants"]["k none 8"]
    threads = np.reshape(variant["fields"]["ldmatrix thread"], [len(each) for each in variant["labels"]])
    # PTX ISA 9.7.15.5.15: thread t has row t / 4, columns 2 (t % 4) and the next one.
    for row in range(8):
        for column in range(8):
            assert threads[row, column] == 4 * row + column // 2
    turned = data["variants"]["mn none 8"]
    threads = np.reshape(turned["fields"]["ldmatrix thread"], [len(each) for each in turned["labels"]])
    assert threads[5, 3] == 4 * 5 + 3 // 2  # .trans: rows of memory are columns of the matrix


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><a href="https://x.org">4</a>'
        '<script src="https://x.org/y.js"></script><img src="data:image/png;base64,x"><p id="q"></p><p id="q"></p>'
    )
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1><a href="">self</a>')
    (tmp_path / "s.css").write_text(
        "@import 'https://fonts.org/x.css'; a{background:url(//y.org/z.png)} b{background:url(k)}"
    )
    assert links.problems(tmp_path) == [
        "a.html: <script> loads https://x.org/y.js from another host",
        "a.html: b.html#gone has no such anchor",
        "a.html: c.html leads nowhere",
        "a.html: two elements have the id q",
        "s.css: loads //y.org/z.png from another host",
        "s.css: loads https://fonts.org/x.css from another host",
    ]


def test_anchors() -> None:
    assert slug("scale factors of mma.sync") == "scale-factors-of-mmasync"
    assert slug("`shared-race`") == "shared-race"
