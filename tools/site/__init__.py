"""The documentation as a site: `make site` builds it into build/site/html.

Sphinx builds it, with MyST for the Markdown of docs/ and the theme Furo: Sphinx knows Python's names, checks references
between pages, treats warnings as errors and searches without a server; Furo loads nothing from other hosts and has a
light and a dark side. (MkDocs, which Material needs, had its last release in August 2024.)

`nav.toml` says which page is in which section. `stage` copies the pages of docs/ and points their links at pages of the
site; `api`, `instructions`, `checks`, `bugs` and `layouts` generate pages from the declarations; `links` checks what
Sphinx has written. Nothing generated is committed.
"""
