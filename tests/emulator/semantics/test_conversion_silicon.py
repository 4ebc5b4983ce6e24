"""cvt against the words that a B200 gave to others (tests/data/silicon/cvt_b200.jsonl.gz), bit for bit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.emulator import Emulator
from tests.support.harness import launch
from tests.support.silicon import rows

ROWS = rows("cvt_b200.jsonl.gz")
SOURCES = {row["name"]: row for row in ROWS if "name" in row}
RECORDED = [row for row in ROWS if "instruction" in row]
_TYPE = re.compile(r"\b(?:(ue8m0|e2m1|e4m3|e5m2)x(\d)|(f|bf|tf|s|u)(\d+)(?:x(\d))?)\b")


def words_of(row: dict[str, Any], text: str) -> NDArray[Any]:
    """Words of a row's hexadecimal digits."""
    bits = row["bits"]
    data = np.frombuffer(bytes.fromhex(row[text]), f">u{bits // 8}")
    return data.astype(f"u{bits // 8}")


def source_of(name: str) -> NDArray[Any]:
    """A source by its name; `name+k` begins at word k and goes round."""
    plain, _, step = name.partition("+")
    return np.roll(words_of(SOURCES[plain], "words"), -int(step or 0))


def register_of(bits: int, type: str) -> str:
    """The register type for a PTX type of that many bits."""
    return f".{type}" if type in ("f32", "f64", "s64", "u64", "s32", "u32") else f".b{bits}"


def kernel_of(row: dict[str, Any]) -> tuple[str, list[NDArray[Any]]]:
    """(body, sources): one thread for each word."""
    types = [found[0] for found in _TYPE.finditer(row["instruction"].replace("scaled::n2::ue8m0", ""))]
    target, origin = types[-2:]
    sources = [source_of(name) for name in row["sources"]]
    body, operands = "", []
    for number, (name, words) in enumerate(zip(row["sources"], sources, strict=True)):
        bits = 8 * words.itemsize
        plain = name.partition("+")[0].rpartition(".")[2]
        kind = register_of(bits, "b32" if plain in ("rbits", "scale") else origin)
        loaded = f"%r{number}"
        body += f".reg {'.b16' if bits == 8 else kind} {loaded}; .reg .u64 %a{number};\n"
        body += f"mad.wide.u32 %a{number}, %t, {bits // 8}, %in{number};\n"
        body += f"ld.global.{'b8' if bits == 8 else kind[1:]} {loaded}, [%a{number}];\n"
        if bits == 8:  # .e2m1x2 is a .b8 register
            body += f".reg .b8 %n{number}; cvt.u8.u16 %n{number}, {loaded};\n"
            loaded = f"%n{number}"
        operands.append(loaded)
    if len(operands) == 5:  # .rs: four numbers, and random bits
        operands = ["{" + ", ".join(operands[:4]) + "}", operands[4]]
    bits = row["bits"]
    d = "%d"
    if bits == 8 and target.startswith("e2m1"):
        body += ".reg .b8 %d8; .reg .b16 %d;\n"
        d = "%d8"
    else:
        body += f".reg {'.u16' if bits == 8 else register_of(bits, target)} %d;\n"
    body += f"{row['instruction']} {d}, {', '.join(operands)};\n"
    if d != "%d":
        body += "cvt.u16.u8 %d, %d8;\n"
    body += f".reg .u64 %at; mad.wide.u32 %at, %t, {bits // 8}, %out0;\nst.global.b{bits} [%at], %d;\n"
    return ".reg .u32 %t; mov.u32 %t, %tid.x;\n" + body, sources


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["instruction"])
def test_cvt(row: dict[str, Any]) -> None:
    recorded = words_of(row, "d")
    body, sources = kernel_of(row)
    report, (found,) = launch(
        body,
        [np.zeros_like(recorded)],
        inputs=sources,
        block=len(recorded),
        device=Emulator("sm_100a"),
        version="9.2",
    )
    assert report.status == "ok", report.summary()
    wrong = np.flatnonzero(found != recorded)
    assert not len(wrong), [(int(i), hex(found[i]), hex(recorded[i])) for i in wrong[:8]]


def test_all_forms() -> None:
    """39 of FP4, random rounding, ue8m0 and scales; 24 of FP8; 70 scalar ones."""
    assert len(RECORDED) == 133
    assert sum(len(words_of(row, "d")) for row in RECORDED) == 17248
