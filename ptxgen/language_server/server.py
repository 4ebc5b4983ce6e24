"""The server: documents of the client, and answers in the types of LSP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import ServerTextPosition, ServerTextRange, TextDocument

from ptxgen.device.accept import Accept, AcceptError
from ptxgen.emulator.load.accepts import reviewed
from ptxgen.instr import load_all
from ptxgen.language_server.completion import Item, opcodes
from ptxgen.language_server.document import Document, Mark
from ptxgen.project import ProjectError, find_project

#: Seconds without a change after which diagnostics are published.
_PAUSE = 0.15
_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}
_KINDS = {
    "opcode": types.CompletionItemKind.Function,
    "modifier": types.CompletionItemKind.EnumMember,
    "register": types.CompletionItemKind.Variable,
    "variable": types.CompletionItemKind.Field,
    "label": types.CompletionItemKind.Reference,
    "function": types.CompletionItemKind.Method,
}


class Server(LanguageServer):
    """Keeps what was read of each open document, for the version of it that the client has."""

    def __init__(self) -> None:
        super().__init__("ptxgen", version("ptxgen"))
        self.read: dict[str, tuple[int | None, Document]] = {}
        self.said: set[str] = set()

    def document(self, uri: str) -> tuple[TextDocument, Document]:
        text = self.workspace.get_text_document(uri)
        known = self.read.get(uri)
        if known is None or known[0] != text.version:
            before = known[1] if known else None
            known = self.read[uri] = text.version, Document(text.source, before, *self.project(uri))
        return text, known[1]

    def project(self, uri: str) -> tuple[str | None, Sequence[Accept]]:
        """The target and the accepted findings of `[tool.ptxgen]` for a document; the client shows what is wrong."""
        path = to_fs_path(uri)
        try:
            found = find_project(Path(path).parent) if path else None
            accept = reviewed(found.accept) if found and found.accept else ()
        except (ProjectError, AcceptError) as error:
            if str(error) not in self.said:
                self.said.add(str(error))
                self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"ptxgen: {error}"))
            return None, ()
        return (found.target if found else None), accept

    def publish(self, uri: str) -> None:
        text, document = self.document(uri)
        found = [_diagnostic(text, each) for each in document.diagnostics()]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, text.version))


def make_server() -> Server:
    """A server that waits for its client: `start_io()` serves standard input and output."""
    load_all()
    server = Server()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _opened(params: types.DidOpenTextDocumentParams) -> None:
        # The first look at a target's opcodes takes longest; a person who types should not wait for it.
        opcodes("", *server.document(params.text_document.uri)[1].target)
        server.publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def _changed(params: types.DidChangeTextDocumentParams) -> None:
        uri, number = params.text_document.uri, params.text_document.version
        await asyncio.sleep(_PAUSE)
        if uri in server.workspace.text_documents and server.workspace.get_text_document(uri).version == number:
            server.publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _closed(params: types.DidCloseTextDocumentParams) -> None:
        server.read.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def _hover(params: types.HoverParams) -> types.Hover | None:
        text, document = server.document(params.text_document.uri)
        at = text.position_from_client_units(params.position)
        found = document.hover(at.line, at.character)
        return None if found is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, found))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "%", "@", ":"]))
    def _completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        text, document = server.document(params.text_document.uri)
        at = text.position_from_client_units(params.position)
        found = document.completions(at.line, at.character)
        return [_item(text, at, number, each) for number, each in enumerate(found)]

    return server


def _range(text: TextDocument, line: int, begin: int, end: int) -> types.Range:
    return text.range_to_client_units(ServerTextRange(ServerTextPosition(line, begin), ServerTextPosition(line, end)))


def _diagnostic(text: TextDocument, mark: Mark) -> types.Diagnostic:
    return types.Diagnostic(
        _range(text, mark.line, mark.begin, mark.end),
        mark.message,
        severity=_SEVERITIES[mark.severity],
        code=mark.code,
        source="ptxgen",
    )


def _item(text: TextDocument, at: ServerTextPosition, number: int, item: Item) -> types.CompletionItem:
    """The whole opcode replaces what is typed of it: editors disagree whether a dot ends a word."""
    where = _range(text, at.line, at.character - len(item.typed), at.character)
    return types.CompletionItem(
        item.text,
        kind=_KINDS[item.kind],
        detail=item.detail,
        text_edit=types.TextEdit(where, item.text),
        filter_text=item.text,
        sort_text=f"{number:05}",
    )
