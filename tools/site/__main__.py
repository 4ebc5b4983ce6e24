"""`python -m tools.site`: write the sources of the site, let Sphinx build them, and check every link of the result."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.site import api, bugs, checks, instructions, layouts, stage
from tools.site.links import problems


def sources() -> dict[str, str]:
    """Everything that Sphinx reads, by path: pages of docs/ and generated ones."""
    texts = stage.staged()
    texts |= api.pages() | instructions.pages() | checks.pages() | layouts.pages() | bugs.pages(texts["bugs.md"])
    texts["coverage.md"] = _with_families(texts["coverage.md"])
    for section in stage.sections():
        texts[f"{section.name}.md"] = stage.section_page(section, texts)
    texts["index.md"] = stage.home((stage.ROOT / "README.md").read_text(encoding="utf-8"))
    return texts


def _with_families(page: str) -> str:
    from ptxgen.instr import FAMILIES

    for family in FAMILIES:
        page = page.replace(f"\n| {family} |", f"\n| [{family}](instructions/{family}.md) |")
    return page


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write the sources; files that stay the same keep their time, so that Sphinx builds only what has changed."""
    wanted = {folder / path: text.encode() for path, text in texts.items()}
    for path in stage.DOCS.rglob("*"):
        if path.suffix in stage.PICTURES:
            wanted[folder / path.relative_to(stage.DOCS)] = path.read_bytes()
    for path in folder.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    for path, data in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)


def main(arguments: list[str]) -> int:
    """Build the site; returns 1 where Sphinx warns or a link leads nowhere."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=stage.ROOT / "build" / "site")
    parser.add_argument("--jobs", default="auto", help="processes of Sphinx")
    given = parser.parse_args(arguments)
    from sphinx.cmd.build import main as sphinx  # pyright: ignore[reportMissingImports]  (in .venv-site)

    source, html = given.out / "source", given.out / "html"
    shutil.rmtree(html, ignore_errors=True)
    write(sources(), source)
    settings = str(Path(__file__).parent)
    doctrees = str(given.out / "doctrees")
    options = ["-b", "html", "-W", "--keep-going", "-q", "-j", given.jobs, "-c", settings, "-d", doctrees]
    code = sphinx([*options, str(source), str(html)])
    found = problems(html)
    for each in found:
        print(each, file=sys.stderr)
    pages = sum(1 for _ in html.rglob("*.html"))
    print(f"{html}/index.html: {pages} pages, {len(found)} broken links")
    return code or bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
