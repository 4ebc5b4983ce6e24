"""Checks the HTML of the site: every local link and anchor leads somewhere, and nothing is loaded from other hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes by which a page loads something at once.
_LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("object", "data")}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str, str]] = []
        self.anchors: set[str] = set()
        self.doubled: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.doubled += [value] if value in self.anchors else []
                self.anchors.add(value)
            elif name == "name" and tag == "a" and value:
                self.anchors.add(value)
            elif name in ("href", "src", "data") and value:
                self.links.append((tag, name, value))


def problems(folder: Path) -> list[str]:
    """One sentence for each link that leads nowhere, and for each thing that is loaded from another host."""
    return sorted(set(_problems(folder)))


def _problems(folder: Path) -> Iterator[str]:
    pages: dict[Path, _Page] = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        name = path.relative_to(folder)
        for each in page.doubled:
            yield f"{name}: two elements have the id {each}"
        for tag, attribute, target in page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if (tag, attribute) in _LOADS and parts.scheme != "data":
                    yield f"{name}: <{tag}> loads {target} from another host"
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists():
                yield f"{name}: {target} leads nowhere"
            elif parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].anchors:
                yield f"{name}: {target} has no such anchor"
    for path in sorted(folder.rglob("*.css")):
        for url in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(folder)}: loads {url} from another host"
