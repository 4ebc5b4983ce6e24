"""Anchors of headings, as GitHub and MyST make them."""

from __future__ import annotations

import re


def slug(heading: str) -> str:
    """The anchor of a heading: `scale factors of mma.sync` is `scale-factors-of-mmasync`."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", "")).replace(" ", "-")
