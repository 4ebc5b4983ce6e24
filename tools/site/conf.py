"""Sphinx's settings of the site; `python -m tools.site` writes its sources and calls Sphinx."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.site.lexer import PtxLexer

project = "ptxgen"
copyright = "ptxgen contributors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_block"]
# Blocks such as `ptx scale.ptx` name a file behind the language.
myst_fence_as_directive: set[str] = set()
exclude_patterns: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "native"
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
html_theme = "furo"
html_title = "ptxgen"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
# Summaries are fetched from pages, which browsers refuse to pages opened from files.
html_show_search_summary = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#3f6600", "color-brand-content": "#3f6600"},
    "dark_css_variables": {"color-brand-primary": "#a6d854", "color-brand-content": "#a6d854"},
}
# Signatures that do not fit a line have a line for each parameter.
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False


def short_name(_app: object, _env: object, node: Mapping[str, str], text: object) -> object:
    """The text of a name in a signature that no page describes: its last part, as for those that have a page."""
    return text if node.get("refdomain") == "py" else None


def setup(app: Any) -> None:
    """Register what colors PTX, and how names without a page are shown."""
    app.add_lexer("ptx", PtxLexer)
    app.connect("missing-reference", short_name)
