"""What every page of a report has: the frame of the document, its style for light and dark, its first lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ptxgen.device import Finding
from ptxgen.reports.paths import readable_path


def framed(title: str, parts: Iterable[str]) -> str:
    """The document, as UTF-8 text that needs no other file."""
    return readable_path(_FRAME.format(title=escape(title), style=_STYLE, body="\n".join(parts)))


def head(title: str, ok: bool, verdict: str, findings: Sequence[Finding]) -> Iterator[str]:
    """The title, the verdict, and how many findings there are."""
    mark, kind = ("✓", "good") if ok else ("✗", "bad")
    yield f"<header><h1>{escape(title)}</h1>"
    yield f'<p class="verdict {kind}"><b>{mark} {escape(verdict)}</b>'
    yield f"<span>{counted(findings) or 'no findings'}</span></p></header>"


def counted(findings: Sequence[Finding]) -> str:
    """`2 errors, 1 advice`; empty without findings."""
    errors = sum(each.severity == "error" for each in findings)
    advice = len(findings) - errors
    parts = ((errors, "error" + "s" * (errors != 1)), (advice, "advice"))
    return ", ".join(f"{count} {word}" for count, word in parts if count)


def gaps_section(gaps: Sequence[str], whole: str) -> Iterator[str]:
    """What was left out; `whole` is said where nothing was."""
    yield "<section><h2>What was checked</h2>"
    if gaps:
        yield '<p class="warn">In part. Left out:</p><ul>'
        yield "".join(f"<li>{escape(each)}</li>" for each in gaps)
        yield "</ul></section>"
    else:
        yield f"<p>{escape(whole)}</p></section>"


_FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""

_STYLE = """
:root{--bg:#fff;--fg:#1c2024;--dim:#667079;--line:#dfe3e7;--box:#f5f7f9;--good:#18794e;--bad:#c4302b;--warn:#9a6700;
--hit:#ffe9e7;--bar:#d9e8fb;--p0:#3b7dd8;--p1:#9cc2f2;--work:#d97b29;--read:#2f9e6e;--write:#d97b29;--acc:#8a5cd1}
@media (prefers-color-scheme:dark){:root{--bg:#15181b;--fg:#e3e7ea;--dim:#929ca5;--line:#31373d;--box:#1e2327;
--good:#4cc38a;--bad:#ff8178;--warn:#e0b050;--hit:#4a2321;--bar:#223a57;--p0:#4b8ee8;--p1:#27517f;--work:#e08a3c;
--read:#3fb982;--write:#e08a3c;--acc:#a57fe6}}
*{box-sizing:border-box}body{margin:0 auto;padding:1.5rem 1.25rem 4rem;max-width:72rem;background:var(--bg);
color:var(--fg);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2.25rem 0 .5rem;
border-bottom:1px solid var(--line);padding-bottom:.25rem}h3{font-size:1rem;margin:0}p{margin:.4rem 0;max-width:60rem}
.verdict{display:flex;gap:1rem;flex-wrap:wrap;font-size:1.1rem}.verdict span{color:var(--dim)}
.good b{color:var(--good)}.bad b{color:var(--bad)}.warn{color:var(--warn)}
pre,code{font:13px/1.45 ui-monospace,Consolas,monospace}pre{background:var(--box);padding:.75rem;border-radius:6px;
overflow-x:auto;margin:.5rem 0}
article{border-left:4px solid var(--warn);padding:.25rem 0 .25rem 1rem;margin:1.25rem 0}article.error{
border-color:var(--bad)}article p{overflow-wrap:anywhere}.fix{color:var(--good)}
.source{color:var(--dim);font-weight:400}
.excerpt span,.lines span{display:block;white-space:pre}.excerpt a{color:var(--dim);text-decoration:none}
.hit{background-color:var(--hit)!important}.lines{padding:.5rem 0}.lines span{
background:linear-gradient(var(--bar),var(--bar)) no-repeat 0 0/calc(var(--w,0%)*.09) 100%}
.lines b,.lines i{display:inline-block;font-style:normal;font-weight:400;text-align:right;color:var(--dim);
user-select:none}.lines b{width:9%;min-width:5rem;padding-right:.75rem}.lines i{width:3.5rem;padding-right:1rem}
.lines .never{color:var(--dim)}.scroll{overflow-x:auto}
svg{width:100%;height:auto;display:block;margin:.5rem 0}svg text{font:11px ui-monospace,Consolas,monospace;
fill:var(--fg)}svg .l{text-anchor:end}svg .a{fill:var(--dim)}.free{fill:var(--box)}
.phase0{fill:var(--p0)}.phase1{fill:var(--p1)}.work0{fill:var(--work)}
.read{fill:var(--read);background:var(--read)}.write{fill:var(--write);background:var(--write)}
.accumulate{fill:var(--acc);background:var(--acc)}rect:hover{opacity:.7}
i.read,i.write,i.accumulate,td i{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;vertical-align:-1px}
table{border-collapse:collapse;font-size:14px;display:block;overflow-x:auto}td,th{padding:.2rem .9rem .2rem 0;
text-align:left}th{color:var(--dim);font-weight:400}.n{white-space:nowrap;text-align:right;font-variant-numeric:tabular-nums}
.c0{fill:#3b7dd8;background:#3b7dd8}.c1{fill:#d97b29;background:#d97b29}.c2{fill:#2f9e6e;background:#2f9e6e}
.c3{fill:#8a5cd1;background:#8a5cd1}.c4{fill:#c2548e;background:#c2548e}.c5{fill:#a08519;background:#a08519}
.c6{fill:#218f9b;background:#218f9b}.c7{fill:#7b8794;background:#7b8794}
@media (max-width:40rem){svg.wide{width:720px;max-width:none}section{overflow-x:auto}}
@media print{.scroll{display:none}}
"""
