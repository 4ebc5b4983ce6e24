"""The server as an editor talks to it: a client of pygls over standard input and output."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ptxgen.gemm import find

types = pytest.importorskip("lsprotocol.types", reason="pygls is not installed")
URI = "file:///k.ptx"
#: Seconds until an answer must be there; the targets are 0.1 for hover and completion and 1 for diagnostics.
_PATIENCE = 60


class Session:
    """An editor with one document open."""

    def __init__(self, uri: str = URI) -> None:
        from pygls.lsp.client import LanguageClient

        self.client: Any = LanguageClient("test", "1")
        self.published: asyncio.Queue[Any] = asyncio.Queue()
        self.version = 1
        self.uri = uri
        self.shown: list[str] = []

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _published(params: Any) -> None:
            self.published.put_nowait(params)

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def _shown(params: Any) -> None:
            self.shown.append(params.message)

    async def open(self, text: str) -> Any:
        await self.client.start_io(sys.executable, "-m", "ptxgen", "language-server")
        answer = await self.client.initialize_async(
            types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri="file:///")
        )
        self.client.initialized(types.InitializedParams())
        item = types.TextDocumentItem(self.uri, "ptx", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return answer

    async def diagnostics(self) -> Any:
        return await asyncio.wait_for(self.published.get(), _PATIENCE)

    def change(self, line: int, begin: int, end: int, text: str) -> None:
        self.version += 1
        where = types.Range(types.Position(line, begin), types.Position(line, end))
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangePartial(where, text)],
            )
        )

    def place(self, line: int, column: int) -> dict[str, Any]:
        return {"text_document": types.TextDocumentIdentifier(self.uri), "position": types.Position(line, column)}

    async def close(self) -> int | None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await asyncio.wait_for(self.client._server.wait(), _PATIENCE)
        await self.client.stop()
        return self.client._server.returncode


def test_a_session() -> None:
    asyncio.run(_a_session())


async def _a_session() -> None:
    text = (
        ".version 8.7\n.target sm_90a\n.address_size 64\n.entry k()\n{\n    .reg .b32 %a; /* \U0001f600é */ "
        ".reg .b64 %b;\n    add.u32 %a, %b, 1;\n    ret;\n}\n"
    )
    session = Session()
    answer = await session.open(text)
    assert (answer.server_info.name, answer.capabilities.hover_provider) == ("ptxgen", True)
    (found,) = (await session.diagnostics()).diagnostics
    assert (found.range.start, found.range.end) == (types.Position(6, 16), types.Position(6, 18))
    assert (found.severity, found.code, found.source) == (types.DiagnosticSeverity.Error, "operand-type", "ptxgen")

    hovered = await session.client.text_document_hover_async(types.HoverParams(**session.place(6, 6)))
    assert "integer.add(" in hovered.contents.value

    session.change(6, 4, 22, "/*\U0001f600*/ wgmma.f")
    offered = await session.client.text_document_completion_async(types.CompletionParams(**session.place(6, 18)))
    assert [each.label for each in offered] == ["wgmma.fence"]
    # Columns are in the client's units, UTF-16.
    assert offered[0].text_edit.range == types.Range(types.Position(6, 11), types.Position(6, 18))
    session.change(6, 11, 18, "wgmma.fence.sync.aligned;")
    published = await session.diagnostics()
    while published.version != session.version:
        published = await session.diagnostics()
    assert not published.diagnostics
    assert await session.close() == 0


def test_the_projects_target_and_accepted_findings_count(tmp_path: Path) -> None:
    asyncio.run(_a_project(tmp_path))


async def _a_project(folder: Path) -> None:
    """What `ptxgen check` takes from pyproject.toml, an editor shows."""
    table = folder / "pyproject.toml"
    table.write_text('[tool.ptxgen]\ntarget = "sm_80"\naccept = "ok.toml"\n')
    entry = 'code = "unknown-modifier"\ninstruction = "bar.synk 0;"\nreason = "a test"\n'
    (folder / "ok.toml").write_text(f"[[accept]]\n{entry}")
    text = ".version 8.7\n.target sm_90a\n.entry k()\n{\n    wgmma.fence.sync.aligned;\n    bar.synk 0;\n    ret;\n}\n"
    session = Session((folder / "k.ptx").as_uri())
    await session.open(text)
    (found,) = (await session.diagnostics()).diagnostics
    assert (found.range.start.line, "sm_80" in found.message) == (4, True)
    table.write_text('[tool.ptxgen]\ntarget = "sm_8"\n')
    session.change(6, 0, 0, " ")
    assert len((await session.diagnostics()).diagnostics) == 1  # by the file's own target
    assert [each for each in session.shown if "target must be an architecture" in each]
    assert await session.close() == 0


def test_answers_come_quickly() -> None:
    """A file of 2,000 lines. The bounds are ten times the targets, for busy machines."""
    asyncio.run(_answers_come_quickly())


async def _answers_come_quickly() -> None:
    head, _, body = find("blackwell/clc").plan().text.partition(".visible .entry")
    text = head + "".join(f".visible .entry n{number}_{body.lstrip()}\n" for number in range(3))
    lines = text.split("\n")
    assert len(lines) > 2000
    line = next(number for number, each in enumerate(lines) if number > 1500 and "tcgen05.ld." in each)
    column = lines[line].index("tcgen05")
    session = Session()
    await session.open(text)
    assert not [each for each in (await session.diagnostics()).diagnostics if each.code == "syntax"]
    seconds: dict[str, float] = {}

    async def timed(name: str, answer: Any) -> Any:
        begin = time.perf_counter()
        made = await answer
        seconds[name] = time.perf_counter() - begin
        return made

    hover = types.HoverParams(**session.place(line, column + 3))
    assert await timed("hover", session.client.text_document_hover_async(hover)) is not None
    session.change(line, column, len(lines[line]), "tcgen05.ld.")
    complete = types.CompletionParams(**session.place(line, column + len("tcgen05.ld.")))
    assert len(await timed("completion", session.client.text_document_completion_async(complete))) > 0
    begin = time.perf_counter()
    session.change(line, column, column + len("tcgen05.ld."), lines[line][column:])
    while (await session.diagnostics()).version != session.version:
        pass
    seconds["diagnostics"] = time.perf_counter() - begin
    print(" ".join(f"{name} {each * 1000:.0f} ms" for name, each in seconds.items()))
    assert await session.close() == 0
    assert seconds["hover"] < 1
    assert seconds["completion"] < 1
    assert seconds["diagnostics"] < 10


def test_without_pygls_it_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['pygls'] = None; from ptxgen.cli.main import execute; "
    code += "sys.exit(execute(['language-server']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "error: the language server needs pygls, which is not installed: pip install 'ptxgen[lsp]'\n"
    )
