"""Pages of docs/ as sources of the site: sections, and links that lead to the site's pages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_NAV = Path(__file__).with_name("nav.toml")
_LINK = re.compile(r"(!?)\[([^\]\n]*(?:\n[^\]\n]*)?)\]\(([^)\s]+)\)")
#: Files of docs/ that the site has beside its pages.
PICTURES = (".svg", ".png")
#: Pages of the site by their file outside docs/.
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
#: Code within a line: what looks like a link in it is text.
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")


@dataclass(frozen=True)
class Section:
    """One section: pages are paths below the site's root."""

    name: str
    title: str
    question: str
    pages: tuple[str, ...]


def sections() -> list[Section]:
    """The sections with the pages that exist; those of docs/ that nav.toml does not list end the reference."""
    declared = tomllib.loads(_NAV.read_text(encoding="utf-8"))["section"]
    there = {path.name for path in DOCS.glob("*.md")} | {"course/index.md"}
    listed = {page for each in declared for page in each["pages"]}
    made = []
    for each in declared:
        pages = [*each.get("generated", ()), *(page for page in each["pages"] if page in there)]
        if each["name"] == "reference":
            pages += [*sorted(there - listed), *OUTSIDE.values()]
        made.append(Section(each["name"], each["title"], each["question"], tuple(pages)))
    return made


def title_of(page: str, text: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"{page} has no heading")
    return found[1].strip()


def staged() -> dict[str, str]:
    """The Markdown of docs/ and of `OUTSIDE` by path, its links rewritten; pictures are not in it."""
    places = {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.md"))}
    places |= {page: ROOT / name for name, page in OUTSIDE.items()}
    texts = {page: with_links(path.read_text(encoding="utf-8"), page, path.parent) for page, path in places.items()}
    for page in texts:
        folder, _, name = page.rpartition("/")
        if folder and name == "index.md":
            beside = [other for other in texts if other.startswith(f"{folder}/") and other != page]
            texts[page] += toctree([other.removeprefix(f"{folder}/") for other in beside])
    return texts


def toctree(pages: Iterable[str], caption: str = "") -> str:
    """Pages of the navigation below the page that this ends."""
    head = f":caption: {caption}\n" if caption else ""
    names = "".join(f"{page.removesuffix('.md')}\n" for page in pages)
    return f"\n```{{toctree}}\n:hidden:\n{head}\n{names}```\n"


def with_links(text: str, page: str, folder: Path) -> str:
    """A text in a folder of the repository as a page of the site: its links lead to pages.

    Links to other files of the repository, which have no address here, are plain words.
    """
    up = "../" * page.count("/")

    def rewritten(found: re.Match[str]) -> str:
        picture, words, target = found[1], found[2], found[3]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, mark, anchor = target.partition("#")
        place = (folder / path).resolve()
        if not place.exists():
            raise ValueError(f"{page} links to {target}, which does not exist")
        if place == DOCS / "checks.md" and anchor in _codes():
            return f"[{words}]({up}checks/{anchor}.md)"
        if place.is_relative_to(DOCS) and place.suffix in (".md", *PICTURES):
            return f"{picture}[{words}]({up}{place.relative_to(DOCS)}{mark}{anchor})"
        name = str(place.relative_to(ROOT))
        if name in OUTSIDE:
            return f"[{words}]({up}{OUTSIDE[name]}{mark}{anchor})"
        return words if words.strip("`") == name else f"{words} (`{name}`)"

    def with_links_of(part: str) -> str:
        code = [found.span() for found in _CODE.finditer(part)]
        return _LINK.sub(
            lambda link: link[0] if any(first < link.start() < stop for first, stop in code) else rewritten(link), part
        )

    return _outside_fences(text, with_links_of)


def _codes() -> Mapping[str, object]:
    from ptxgen.emulator.checks.registry import CHECKS

    return CHECKS


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    made: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        made += [change(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*made, change(text[end:])])


def home(readme: str) -> str:
    """The README as the first page, with the sections at its end; links into docs/ become links of the site."""
    text = with_links(readme, "index.md", ROOT)
    head, *rest = re.split(r"(?m)^(?=## )", text)
    parts = [head, "## Where to go\n\n"]
    for each in sections():
        parts.append(f"- [{each.title}]({each.name}.md): {each.question}\n")
    rest = [each for each in rest if not each.startswith("## Read on")]  # the list above, for readers of files
    trees = [toctree([f"{each.name}.md", *each.pages], each.title) for each in sections()]
    return "".join([*parts, "\n", *rest, *trees])


def section_page(section: Section, texts: Mapping[str, str]) -> str:
    """The first page of a section: its question, and each page with its first sentence."""
    lines = [f"# {section.title}\n", f"{section.question}\n"]
    for page in section.pages:
        lines.append(f"- [{title_of(page, texts[page])}]({page}): {first_sentence(texts[page])}")
    return "\n".join(lines) + "\n"


def first_sentence(text: str) -> str:
    """The first sentence of a page's first paragraph, without links."""
    for block in re.split(r"\n\s*\n", text):
        if re.match(r"[A-Za-z`*\[]", block):
            words = _LINK.sub(r"\2", " ".join(block.split()))
            words = re.split(r"(?<=[.?:])\s", words, maxsplit=1)[0]
            return words.rstrip(":") + ("." if words.endswith(":") else "")
    return ""
