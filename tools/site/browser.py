"""`python -m tools.site.browser`: look at the site in headless Chromium, as `make site-look` does.

Pages at two widths, light and dark: no message on the console, nothing from another host, no page wider than the
window, no command or report cut at the right edge; then a live layout by keyboard, pointer and labels. Screenshots are
in build/site/shots. Needs playwright in .venv-site and a Chromium of the system (`CHROMIUM=` names another one).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.site.stage import ROOT

PAGES = (
    "index", "layouts/operand", "layouts/fragment", "layouts/swizzle", "api/ptxgen.emulator", "instructions/tcgen05",
    "checks/shared-race", "bugs", "course/01-phases", "tutorial-blackwell", "search",
)  # fmt: skip
#: Blocks of code whose lines wrap: site.css.
_WRAPPED = ", ".join(f".highlight-{each} pre" for each in ("text", "none", "console", "sh", "bash", "toml", "yaml"))
_CUT = f"[...document.querySelectorAll({_WRAPPED!r})].filter(each => each.scrollWidth > each.clientWidth).length"
WIDTHS = (1280, 390)


def problems(html: Path, shots: Path) -> Iterator[str]:
    """What is wrong in the browser, one sentence each."""
    from playwright.sync_api import sync_playwright  # pyright: ignore[reportMissingImports]  (in .venv-site)

    shots.mkdir(parents=True, exist_ok=True)
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                page, said = _page(browser, scheme, width)
                for name in PAGES:
                    said.clear()
                    query = "?q=mbarrier" if name == "search" else ""
                    page.goto((html / f"{name}.html").as_uri() + query)
                    page.wait_for_timeout(300 if not query else 2500)
                    where = f"{name}, {scheme}, {width} pixels"
                    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    yield from (f"{where}: {each}" for each in said)
                    if wider > 0:
                        yield f"{where}: the page is {wider} pixels wider than the window"
                    if cut := page.evaluate(_CUT):
                        yield f"{where}: {cut} blocks of code are cut at the right edge"
                    page.screenshot(path=str(shots / f"{name.replace('/', '_')}-{scheme}-{width}.png"))
        page, said = _page(browser, "light", WIDTHS[0])
        page.goto((html / "layouts/operand.html").as_uri())
        yield from _live(page)
        yield from said
        browser.close()


def _page(browser: Any, scheme: str, width: int) -> tuple[Any, list[str]]:
    """A new page, and the list that gets its messages."""
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    said: list[str] = []
    page.on("console", lambda each: said.append(each.text) if each.type in ("error", "warning") else None)
    page.on("pageerror", lambda each: said.append(str(each)))
    page.on("request", lambda each: None if each.url.startswith(("file:", "data:")) else said.append(each.url))
    return page, said


def _live(page: Any) -> Iterator[str]:
    """The live layout of operands: what it says is known from `ptxgen layout operand`."""
    said = page.locator(".live-readout")

    def expect(action: str, words: str) -> Iterator[str]:
        if words not in (text := said.inner_text()):
            yield f"layouts/operand, {action}: {text!r} lacks {words!r}"

    page.locator(".live-frame svg").focus()
    for key in ("ArrowRight", "ArrowDown", "End"):
        page.keyboard.press(key)
    yield from expect("keys", "row 1, k 63: address 0xee, bank 27")
    page.locator(".live-frame rect[data-index='201']").hover()
    yield from expect("pointer", "row 3, k 9: address 0x1a2, bank 8")
    for label, value in (("major", "mn"), ("swizzle", "64B"), ("rows", "64")):
        page.get_by_label(label, exact=True).select_option(value)
    page.get_by_label("find address", exact=True).fill("0x10")
    yield from expect("choices and find", "row 8, k 0: address 0x10, bank 4")
    unlabeled = (
        "[...document.querySelectorAll('.live-layout select, .live-layout input')].filter(e => !e.labels.length)"
    )
    if page.evaluate(f"{unlabeled}.length"):
        yield "layouts/operand: a control has no label"


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    folder = ROOT / "build" / "site"
    found = list(problems(folder / "html", folder / "shots"))
    for each in found:
        print(each, file=sys.stderr)
    print(f"{len(PAGES)} pages at {len(WIDTHS)} widths, light and dark: {len(found)} problems; {folder / 'shots'}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
