"""Reads what `ncu --csv --page details|raw|source` prints into the schema of .ncu-rep files.

What the pages lack: the version of ncu and the driver; instances of metrics (unless printed with
--print-metric-instances values, then without their addresses); sizes on the source page; full precision anywhere.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from ptxgen.ncu.binary import described
from ptxgen.ncu.counters import column_metric, is_counter, samples_of
from ptxgen.ncu.labels import labelled_metric
from ptxgen.ncu.schema import Device, Instance, Launch, Metric, Page, Report, ReportError, Rule, Value
from ptxgen.ncu.sources import Places, join
from ptxgen.ncu.units import LocaleError, check_locale, parse_number

#: Columns of the details and raw pages that say which launch a row is of.
_LAUNCH = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
_DETAILS = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
_NVTX = re.compile(r":(Push/Pop|Start/Stop)_Range:")
_SIZES = re.compile(r"\(\s*(\d+),\s*(\d+),\s*(\d+)\s*\)$")
_INSTANCES = re.compile(r"(.*?) \((.*)\)$", re.S)
#: The first line of a page, after what the program printed.
_START = re.compile(
    r'^("?ID"?,("[^"]*",|[^",]*,)*"?Kernel Name"?,|"?(Kernel|Function) Name"?,|"?File Path"?,|'
    r'"?(Address|Line No|#)"?,("[^"]*",|[^",]*,)*"?Source"?,?)',
    re.M,
)
_SEMICOLONS = re.compile(r'^"?(ID|Address|Kernel Name|Line No|#)"?;', re.M)
#: Cells that say that there is no value.
_NO_VALUE = ("", "-", "no data", "n/a", "N/A", "(!) n/a", "(!) nan")
_MADE = "ncu --csv --page details, raw or source prints such files"

_Row = tuple[int, list[str]]


def is_page(data: bytes) -> bool:
    """Whether bytes look like text, so that a page may be in them."""
    return b"\0" not in data[:4096] or data[:2] in (b"\xff\xfe", b"\xfe\xff")


def read_page(path: str, data: bytes) -> Report:
    """A CSV page. Raises ReportError: no page of ncu, no launch, a row that does not fit, numbers of another locale."""
    text = _decoded(path, data)
    if _SEMICOLONS.search(text):
        raise ReportError(f"{path} separates its fields with ';', as spreadsheets of some locales do; {_MADE}")
    rows = _rows(path, text)
    page = _page(path, rows[0][1])
    if page != "source" and len(rows) == 1:
        raise ReportError(f"{path} has the header of a {page} page and no kernel")
    readers = {"raw": _raw_page, "details": _details_page, "source": _source_page}
    launches = readers[page](path, rows)
    return Report(path, page, tuple(launches), gaps=("a CSV page does not say which ncu and driver measured it",))


def _decoded(path: str, data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ReportError(
            f"{path} is neither a .ncu-rep file nor text: byte {data[error.start]:#04x} at {error.start}"
        ) from None


def _rows(path: str, text: str) -> list[_Row]:
    """The rows from the header on with their line numbers, without empty lines and ncu's own messages (==PROF==)."""
    start = _START.search(text)
    if start is None:
        said = next((line for line in text.splitlines() if line.strip() and not line.startswith("==")), "")
        if not said:
            raise ReportError(f"{path} is empty: {_MADE}")
        raise ReportError(
            f"{path} is neither a .ncu-rep file nor a CSV page of ncu: it begins with {said[:60]!r}; {_MADE}"
        )
    before = text.count("\n", 0, start.start())
    reader = csv.reader(io.StringIO(text[start.start() :], newline=""), strict=True)
    found: list[_Row] = []
    try:
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()) and not row[0].startswith("=="):
                found.append((before + reader.line_num, row))
    except csv.Error as error:
        raise ReportError(
            f"{path}: line {before + reader.line_num} is no CSV ({error}): the file is damaged or cut short"
        ) from None
    return found


def _page(path: str, header: Sequence[str]) -> Page:
    """Which page begins so."""
    if header[0] != "ID":
        return "source"
    if all(name in header for name in _DETAILS):
        return "details"
    if "Average" in header and "Maximum" in header:
        raise ReportError(f"{path} is a summary over launches (--print-summary); {_MADE}")
    return "raw"


# Values.


def _value(text: str) -> tuple[Value | None, float]:
    if text in _NO_VALUE:
        return None, 0.0
    number = parse_number(text)
    return (text, 0.0) if number is None else (number.value, number.resolution)


def _metric(name: str, text: str, unit: str) -> Metric:
    found = _INSTANCES.match(text)
    if found is not None and ";" in found[2]:
        value, resolution = _value(found[1])
        instances = tuple(Instance(None, _value(each.strip())[0]) for each in found[2].split(";"))
        return Metric(name, value, unit, resolution, instances)
    value, resolution = _value(text)
    return Metric(name, value, unit, resolution)


def _checked(path: str, numbers: Iterable[tuple[int, str]]) -> None:
    try:
        check_locale(numbers)
    except LocaleError as error:
        raise ReportError(f"{path}: {error}; export it with LC_ALL=C ncu --import ... --csv") from None


def _launch(
    path: str, line: int, cells: dict[str, str], index: int, metrics: dict[str, Metric], rules: Sequence[Rule]
) -> Launch:
    def sizes(column: str) -> tuple[int, int, int] | None:
        found = _SIZES.match(cells.get(column, ""))
        return (int(found[1]), int(found[2]), int(found[3])) if found else None

    def whole(column: str) -> int | None:
        text = cells.get(column, "")
        return int(text) if text.isdigit() else None

    if not cells.get("Kernel Name"):
        raise ReportError(f"{path}: line {line} names no kernel")
    return described(
        Launch(
            name=cells["Kernel Name"],
            index=index,
            grid=sizes("Grid Size"),
            block=sizes("Block Size"),
            device=Device(capability=cells.get("CC", ""), index=whole("Device")),
            process=cells.get("Process Name", ""),
            stream=whole("Stream"),
            metrics=metrics,
            rules=tuple(rules),
        )
    )


# The pages.


def _raw_page(path: str, rows: Sequence[_Row]) -> Iterator[Launch]:
    """One row a launch, one column a metric; the row below the header has the units."""
    header = rows[0][1]
    columns = [index for index, name in enumerate(header) if name not in _LAUNCH and not _NVTX.search(name)]
    if len(rows) == 2 or rows[1][1][0]:
        raise ReportError(f"{path} has the header of a raw page, but not its row of units and one row a kernel")
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise ReportError(
                f"{path}: line {line} has {len(row)} fields, its header {len(header)}: it is cut short or mixed with "
                "other output"
            )
    units = rows[1][1]
    _checked(path, ((line, row[index]) for line, row in rows[2:] for index in columns))
    for number, (line, row) in enumerate(rows[2:]):
        cells = dict(zip(header, row, strict=True))
        metrics = {header[index]: _metric(header[index], row[index], units[index]) for index in columns}
        yield _launch(path, line, cells, number, metrics, ())


def _details_page(path: str, rows: Sequence[_Row]) -> Iterator[Launch]:
    """One row a metric or rule; rows of metrics may leave out the columns of rules."""
    header = rows[0][1]
    least = header.index("Metric Value") + 1
    places = {name: index for index, name in enumerate(header)}
    groups: dict[tuple[str, ...], list[_Row]] = {}
    for line, row in rows[1:]:
        if len(row) not in (least, least + 1, len(header)):
            raise ReportError(
                f"{path}: line {line} has {len(row)} fields, its header {len(header)}: it is cut short or mixed with "
                "other output"
            )
        key = tuple(row[places[name]] for name in ("ID", "Process ID", "Kernel Name") if name in places)
        groups.setdefault(key, []).append((line, row))
    value = places["Metric Value"]
    _checked(path, ((line, row[value]) for line, row in rows[1:]))
    for number, group in enumerate(groups.values()):
        metrics: dict[str, Metric] = {}
        rules: list[Rule] = []
        for _, row in group:
            cells = dict(zip(header, row, strict=False))
            if cells.get("Metric Name"):
                name = labelled_metric(cells["Section Name"], cells["Metric Name"])
                metrics[name] = _metric(name, cells["Metric Value"], cells["Metric Unit"])
            elif cells.get("Rule Name"):
                speedup = parse_number(cells.get("Estimated Speedup", ""))
                rules.append(
                    Rule(
                        cells["Rule Name"],
                        cells["Section Name"],
                        cells.get("Rule Type", ""),
                        cells.get("Rule Description", ""),
                        float(speedup.value) if speedup else None,
                        cells.get("Estimated Speedup Type", ""),
                    )
                )
        line, row = group[0]
        yield _launch(path, line, dict(zip(header, row, strict=False)), number, metrics, rules)


def _source_page(path: str, rows: Sequence[_Row]) -> Iterator[Launch]:
    """A table a kernel: one row an instruction. The view cuda,sass has lines of the source with theirs below them."""
    for number, (name, file, header, body) in enumerate(_tables(path, rows)):
        if not any(column.startswith(("Warp Stall", "Instructions Executed", "# Samples")) for column in header):
            raise ReportError(
                f"{path} has source lines without metrics of them; print the page with --print-source sass"
            )
        address = header.index("Address") if "Address" in header else None
        if address is None:
            raise ReportError(f"{path} has no addresses; print the page with --print-source sass or cuda,sass")
        code = header.index("Source", address)
        columns: dict[str, int] = {}
        for index in range(code + 1, len(header)):
            columns.setdefault(column_metric(header[index]), index)  # two columns may show one metric
        _checked(path, ((line, row[index]) for line, row in body for index in columns.values()))
        sass: dict[int, str] = {}
        lines: dict[int, str] = {}
        place, cells = "", dict[str, list[Instance]]()
        for line, row in body:
            if row[address] in ("", "-", "..."):  # a line of the source: what it has is the sum of the rows below it
                if "Line No" in header and row[header.index("Line No")]:
                    place = f"{file}:{row[header.index('Line No')]}" if file else row[header.index("Line No")]
                continue
            try:
                where = int(row[address], 16)
            except ValueError:
                raise ReportError(f"{path}: line {line} has the address {row[address]!r}") from None
            sass[where] = row[code]
            if place:
                lines[where] = place
            for metric, index in columns.items():
                cells.setdefault(metric, []).append(Instance(where, _value(row[index])[0]))
        if not sass:
            raise ReportError(f"{path} has no instruction of {name}")
        metrics = {metric: _summed(metric, instances) for metric, instances in cells.items()}
        places = Places(None, lambda pc, sass=sass: sass.get(pc, ""), lambda _: "", lambda pc, at=lines: at.get(pc, ""))
        samples, _ = join(samples_of(metrics), places, None, "")
        yield Launch(name, number, metrics=metrics, samples=samples)


def _tables(path: str, rows: Sequence[_Row]) -> Iterator[tuple[str, str, list[str], list[_Row]]]:
    """(kernel, source file, header, rows) of the tables of a source page."""
    name, file, header, body = "", "", list[str](), list[_Row]()
    for line, row in rows:
        if row[0] in ("Kernel Name", "Function Name", "File Path") and len(row) <= 3:
            if header:
                yield name, file, header, body
                header, body = [], []
            if row[0] == "File Path":
                file = row[1]
            else:
                name = row[1]
        elif row[0] in ("Address", "Line No", "#") and "Source" in row:
            if header:  # without names of kernels between them
                yield name, file, header, body
                body = []
            header = row
        elif not header or len(row) != len(header):
            raise ReportError(
                f"{path}: line {line} has {len(row)} fields, its header {len(header)}: it is cut short or mixed with "
                "other output"
            )
        else:
            body.append((line, row))
    if not header:
        raise ReportError(f"{path} names {name or 'a kernel'} and has no rows of it: it is cut short")
    yield name, file, header, body


def _summed(name: str, instances: Sequence[Instance]) -> Metric:
    """A counter with its sum; of another column (an average, a kind of access) the instances alone."""
    numbers = [each.value for each in instances if isinstance(each.value, (int, float))]
    return Metric(name, sum(numbers) if numbers and is_counter(name) else None, "", 0.0, tuple(instances))
