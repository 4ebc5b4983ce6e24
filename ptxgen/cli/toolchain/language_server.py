"""`ptxgen language-server`: an editor starts it and talks to it."""

from __future__ import annotations

import typer

from ptxgen.cli.errors import OK, InputError


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="PTX files")(language_server)


def language_server() -> int:
    """Serve an editor over standard input and output (LSP): diagnostics, hover and completion of .ptx files."""
    try:
        from ptxgen.language_server.server import make_server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise InputError("the language server needs pygls, which is not installed: pip install 'ptxgen[lsp]'") from None
    make_server().start_io()
    return OK
