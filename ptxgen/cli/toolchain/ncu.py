"""`ptxgen ncu REPORT...` and `ptxgen ncu diff A B`: profiles of Nsight Compute, summarized and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.common.groups import For, Given, Kind, grouped
from ptxgen.cli.errors import OK, WRONG, InputError

if TYPE_CHECKING:
    from ptxgen.ncu import Launch, Metric, Report


#: What the first word asks for.
_SUMMARY, _DIFF = Kind("ptxgen ncu REPORT"), Kind("ptxgen ncu diff")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="SASS and profiles")(ncu)


@grouped
def ncu(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORT... | diff A B",
            help=".ncu-rep files, or CSV pages of ncu: details, raw, source.",
            show_default=False,
        ),
    ],
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", metavar="NAME", help="One kernel of several: its name or a part.", show_default=False),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="REGEX", help="Metrics whose name matches.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every metric; diff: every figure.")] = False,
    lines: Annotated[int, typer.Option("--lines", metavar="N", help="Hottest lines of a summary."), For(_SUMMARY)] = 5,
    by_order: Annotated[
        bool, typer.Option("--by-order", help="diff: match launches by order, ignoring kernel names."), For(_DIFF)
    ] = False,
    threshold: Annotated[
        float,
        typer.Option("--threshold", metavar="PERCENT", help="diff: differences up to PERCENT are noise."),
        For(_DIFF),
    ] = 2.0,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV: one row a metric, in base units."), For(_SUMMARY)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    given: Given,
) -> int:
    """Summarize Nsight Compute profiles, or compare two: ptxgen ncu diff A B.

    diff exits with 0 if both are the same, 1 if they differ, 2 if they cannot be compared.
    """
    given.require(words[0], _DIFF if words[0] == "diff" else _SUMMARY)
    pattern = _pattern(metrics)
    if as_csv and as_json:
        raise InputError("--csv and --json exclude each other")
    if words[0] != "diff":
        return show(words, kernel, pattern, everything=everything, lines=lines, as_csv=as_csv, as_json=as_json)
    if len(words) != 3:
        raise InputError(f"ptxgen ncu diff takes two reports, not {len(words) - 1}")
    if threshold < 0:
        raise InputError(f"--threshold must be 0 or more, not {threshold:g}")
    return diff(
        words[1],
        words[2],
        kernel,
        pattern,
        everything=everything,
        by_order=by_order,
        threshold=threshold / 100,
        as_json=as_json,
    )


def show(
    paths: Sequence[str],
    kernel: str | None,
    pattern: re.Pattern[str] | None,
    *,
    everything: bool,
    lines: int,
    as_csv: bool,
    as_json: bool,
) -> int:
    """Summarize reports, or list their metrics. Raises ReportError, InputError for a pattern that no metric matches."""
    from ptxgen.ncu import read
    from ptxgen.ncu.show import csv_text, figure_metrics, metric_lines, report_lines
    from ptxgen.ncu.summary import summarize

    reports = [read(path).select(kernel) for path in paths]
    listed = everything or pattern is not None
    if pattern is not None and not any(_chosen(each, pattern) for report in reports for each in report.launches):
        count = len({name for report in reports for each in report.launches for name in each.metrics})
        raise InputError(f"none of the {count} metrics matches {pattern.pattern!r}; --all lists them")
    if as_json:
        print(json.dumps({"reports": [_json(report, pattern, lines) for report in reports]}, indent=1))
    elif as_csv:
        rows = [
            (report, each, metric)
            for report in reports
            for each in report.launches
            for metric in (_chosen(each, pattern) if listed else figure_metrics(summarize(each)))
        ]
        print(csv_text(rows), end="")
    elif listed:
        for report in reports:
            for each in report.launches:
                for line in metric_lines(each, _chosen(each, pattern), instances=pattern is not None):
                    print(line)
    else:
        for number, report in enumerate(reports):
            if number:
                print()
            for line in report_lines(report, lines=lines):
                print(line)
    return OK


def diff(
    a: str,
    b: str,
    kernel: str | None,
    pattern: re.Pattern[str] | None,
    *,
    everything: bool,
    by_order: bool,
    threshold: float,
    as_json: bool,
) -> int:
    """Compare two reports; exit code 0 same, 1 different. Raises ReportError where they cannot be compared."""
    from ptxgen.ncu import compare, read
    from ptxgen.ncu.show import comparison_lines

    one, other = read(a).select(kernel), read(b).select(kernel)
    found = compare(one, other, by_order=by_order, threshold=threshold, metrics=pattern)
    if pattern is not None and not any(pair.others for pair in found.pairs):
        raise InputError(f"no metric of both reports matches {pattern.pattern!r}")
    if as_json:
        print(json.dumps(found.to_json(), indent=1))
    else:
        for line in comparison_lines(found, everything=everything):
            print(line)
    return OK if found.same else WRONG


def _json(report: Report, pattern: re.Pattern[str] | None, lines: int) -> dict[str, object]:
    from ptxgen.ncu.summary import summarize

    made = dict[str, object](report.to_json())
    launches: list[dict[str, object]] = []
    for launch in report.launches:
        entry = dict[str, object](launch.to_json())
        if pattern is not None:
            entry["metrics"] = {each.name: each.to_json() for each in _chosen(launch, pattern)}
        entry["summary"] = summarize(launch, lines=lines).to_json()
        launches.append(entry)
    made["launches"] = launches
    return made


def _chosen(launch: Launch, pattern: re.Pattern[str] | None) -> list[Metric]:
    """The metrics of a launch whose names match, in order of their names."""
    return [
        metric for name, metric in sorted(launch.metrics.items()) if pattern is None or pattern.search(name) is not None
    ]


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise InputError(f"--metrics {text!r} is no regular expression: {error}") from None
