"""Keep what a kernel loads alive, so that ptxas removes no access whose value nothing uses.

The kernels of tests/bugs are for an emulator, which executes every instruction. Before a GPU runs them, ptxas removes a
load whose result is unused, and with it the race that a tool could see. Here every result of a load, atomic, shuffle or
vote is copied to a register of its own, and all of these are stored behind `data` at the end of the kernel.
"""

from __future__ import annotations

import re

#: Threads of a launch at most (4 CTAs of 1,024), and the results kept of each at most.
THREADS, RESULTS = 4096, 64
#: Bytes that the stores take behind `data`.
ROOM = 4 * THREADS * RESULTS

_RESULT = re.compile(
    r"^\s*(?P<guard>@!?%\w+\s+)?(?:ld|ldu|ldmatrix|atom|shfl|vote|match|redux|activemask)\b[\w.:]*\s+"
    r"(?P<results>\{[^}]*\}|%\w+)"
)
_DECLARED = re.compile(r"\.reg\s+\.([a-z]+\d*)\s+([^;]*);")
_WIDTHS = {"16": "b16", "32": "b32", "64": "b64"}


def live(text: str, data_bytes: int) -> str:
    """The text of a kernel of tests/bugs whose loaded values are stored from `data_bytes` behind `data` on."""
    widths = _register_widths(text)
    lines, kept = [], 0
    for line in text.splitlines():
        lines.append(line)
        if "[data]" in line or "[matrix]" in line or not (found := _RESULT.match(line)):
            continue
        for register in re.findall(r"%\w+", found["results"]):
            width = _WIDTHS.get(widths.get(register, ""))
            if width is None or kept == RESULTS:
                continue
            lines.append(f"    {found['guard'] or ''}{_copy(kept, register, width)}")
            kept += 1
    head = [f"    .reg .b32 %kept<{kept + 1}>, %position, %threads;", "    .reg .b64 %store, %wide;"]
    head += [f"    mov.b32 %kept{number}, 0;" for number in range(kept)]
    begin = next(number for number, line in enumerate(lines) if "setp.eq.u32 %lane0" in line) + 1
    end = max(number for number, line in enumerate(lines) if line.strip() == "ret;")
    return "\n".join([*lines[:begin], *head, *lines[begin:end], *_stores(kept, data_bytes), *lines[end:]]) + "\n"


def _copy(number: int, register: str, width: str) -> str:
    if width == "b32":
        return f"mov.b32 %kept{number}, {register};"
    return f"cvt.u32.u{width[1:]} %kept{number}, {register};"


def _stores(count: int, data_bytes: int) -> list[str]:
    lines = [
        "    ld.param.u64 %store, [data];",
        "    mov.u32 %position, %tid.x;",
        "    mov.u32 %threads, %ntid.x;",
        "    mad.lo.u32 %position, %cta, %threads, %position;",
        "    mul.wide.u32 %wide, %position, 4;",
        "    add.u64 %store, %store, %wide;",
    ]
    return lines + [
        f"    st.global.u32 [%store+{data_bytes + 4 * THREADS * number}], %kept{number};" for number in range(count)
    ]


def _register_widths(text: str) -> dict[str, str]:
    """The width of every declared register, in bits."""
    widths: dict[str, str] = {}
    for kind, names in _DECLARED.findall(text):
        width = re.sub(r"\D", "", kind)
        for name in re.findall(r"%\w+(?:<\d+>)?", names):
            stem, _, count = name.rstrip(">").partition("<")
            widths |= {f"{stem}{number}": width for number in range(int(count))} if count else {stem: width}
    return widths
