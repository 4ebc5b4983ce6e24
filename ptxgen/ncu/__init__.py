"""Nsight Compute profiles as data: read reports, summarize launches, compare two reports.

`read` takes a .ncu-rep file (through NVIDIA's ncu-report package, the extra `ptxgen[ncu]`) or a CSV page of ncu
(details, raw or source) and gives a `Report` of one schema. `summarize` picks what kernel authors look at; `compare`
matches the launches of two reports and sorts their differences by what explains the difference in time. The modules:
`schema` and `units` (the data), `container` and `binary` (.ncu-rep), `pages` and `labels` (CSV), `counters` and
`sources` (samples of single instructions), `curated` and `summary`, `diff`, `show` (text), `profile` (runs ncu).
"""

from ptxgen.ncu.diff import Comparison, compare
from ptxgen.ncu.read import read
from ptxgen.ncu.schema import Clocks, Device, Instance, Launch, Metric, Report, ReportError, Rule, Sample
from ptxgen.ncu.summary import Summary, summarize

__all__ = [
    "Clocks",
    "Comparison",
    "Device",
    "Instance",
    "Launch",
    "Metric",
    "Report",
    "ReportError",
    "Rule",
    "Sample",
    "Summary",
    "compare",
    "read",
    "summarize",
]
