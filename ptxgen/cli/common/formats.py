"""`--format` of the commands that report findings: which formats, and to where."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.errors import InputError, choose

if TYPE_CHECKING:
    from ptxgen.reports import Report

FORMATS = ("text", "json", "sarif", "github")
#: Formats of their own besides text, which a report as a whole gives.
_OF_REPORTS = ("sarif", "github")

Formats = Annotated[
    list[str],
    typer.Option(
        "--format",
        metavar="FORMAT[=FILE]",
        help="text, json, sarif or github (annotations of a pull request), to a file or standard output; may be "
        "repeated.",
        show_default="text",
        autocompletion=completion.words(*FORMATS),
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Short for --format json.")]


@dataclass(frozen=True)
class Output:
    """What a command writes: `printed` is the format of standard output, `files` are further ones by format."""

    printed: str
    files: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, formats: Sequence[str], *, as_json: bool = False) -> Output:
        """What `--format` and `--json` say. Raises InputError."""
        from ptxgen.cli.common.files import require_writable

        printed: list[str] = ["json"] if as_json else []
        files: list[tuple[str, str]] = []
        for each in formats:
            name, equals, file = each.partition("=")
            choose("--format", name, FORMATS)
            if not equals or file == "-":  # as for other files, "-" is standard output
                printed.append(name)
                continue
            if not file:
                raise InputError(f"--format {each} names no file")
            if name == "text":
                raise InputError("--format text is for standard output; redirect it (> FILE)")
            require_writable(file)
            files.append((name, file))
        chosen = list(dict.fromkeys(printed))
        if len(chosen) > 1:
            raise InputError(
                f"standard output takes one format, not {' and '.join(chosen)}; give one a file: "
                f"--format {chosen[-1]}=FILE"
            )
        return cls(chosen[0] if chosen else "text", tuple(files))

    @property
    def text(self) -> bool:
        """Whether people read standard output."""
        return self.printed == "text"

    def wants(self, *formats: str) -> bool:
        """Whether one of these formats is written anywhere."""
        return self.printed in formats or any(name in formats for name, _ in self.files)

    @property
    def wants_report(self) -> bool:
        """Whether a report must be made."""
        return self.wants(*_OF_REPORTS)

    def write(
        self, *, text: Callable[[], object], data: Callable[[], object], report: Callable[[], Report], indent: int = 2
    ) -> None:
        """Write all: `text` prints, `data` gives what `json` is, `report` what the other formats are made of."""
        from ptxgen.cli.common.files import write_output
        from ptxgen.reports.paths import readable_path

        made = report() if self.wants_report else None
        value = data() if self.wants("json") else None

        def rendered(name: str) -> str:
            return readable_path(json.dumps(value, indent=indent) if name == "json" else _rendered(name, made))

        for name, file in self.files:
            write_output(file, rendered(name) + "\n")
        if self.printed == "text":
            text()
        else:
            shown = rendered(self.printed)
            if isinstance(sys.stdout, io.TextIOWrapper):  # programs read UTF-8, whatever the locale says
                sys.stdout.reconfigure(encoding="utf-8")
            sys.stdout.write(f"{shown}\n" if shown else "")


def _rendered(name: str, report: Report | None) -> str:
    from ptxgen.reports import sarif, workflow_commands

    assert report is not None
    if name == "sarif":
        return json.dumps(sarif(report), indent=2, ensure_ascii=False)
    return "\n".join(workflow_commands(report))
