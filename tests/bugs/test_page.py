"""docs/bugs.md is what the entries say."""

from __future__ import annotations

from tools.bug_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "make docs"
