"""The texts: pieces of real files and lines of every family, changed in one of several ways, and pure chance."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tools.recorded.files import compiled

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "tests" / "instr" / "lines"

HEAD = """\
.version {version}
.target {target}
.address_size 64
.global .align 16 .b8 array[64];
.global .texref tex;
.global .surfref surf;
.const .b8 table[64];
.func helper() {{ ret; }}
.visible .entry kernel(.param .u64 pointer, .param .u32 size)
{{
\t.reg .pred %p<9>;
\t.reg .b16 %h<9>;
\t.reg .b32 %r<140>;
\t.reg .b64 %rd<9>;
\t.reg .u32 %u<9>;
\t.reg .f32 %f<9>;
\t.reg .f64 %fd<9>;
\t.reg .v2 .b32 %v2;
\t.reg .v4 .f32 %v4;
\t.shared .align 16 .b8 smem[64];
\t.local .align 16 .b8 local[64];
here:
"""
#: Where lines of real files begin that declare what others use.
_DECLARES = re.compile(r"\s*\.(reg|shared|local)\b")
_TOKEN = re.compile(r"[%$]?\w+(?:::\w+)*|\s+|.", re.DOTALL)

#: Characters that PTX gives a meaning, and some that it does not.
CHARACTERS = (
    *"{}()[]<>;:,.@!|+-*/%~?=&^_\"'#$\\ \t\n\r\0\x0b\x0c\x7f0123456789abcdefxXpPuUrRZ",
    "é",
    "²",
    "٣",
    "Ⅷ",
    "\u00a0",
    "\u2028",
    "\u200b",
    "\ufeff",
    "😀",
    "\ud800",
    "İ",
    "ſ",
)
TOKENS = (
    "0x", "0b", "0f", "0d", "1e", "09", "//", "/*", "*/", "::", "<<", ">>", "&&", "||", "==", "!=", "<=", ">=", "?",
    ":", "{{", "}}", "..", "@!", "@@", "call", "call.uni", ".b32", ".v4", ".reg", ".entry", ".func", ".loc", ".file",
    ".param", ".section", ".pragma", ".version", ".target", ".branchtargets", ".callprototype", ".alias",
    ".shared::cta",
    ".align", ".attribute", "generic", "nan", "inf", "sm_90a", "sm_999f", "99.99", "(.s64)", "%r<9>",
)  # fmt: skip
OPERANDS = (
    "0", "1", "-1", "17", "0F3F800000", "0d3FF0000000000000", "1.5e-3", ".5", "0x1U", "-0", "WARP_SZ", "_", "(1 << 31)",
    "-2147483648", "18446744073709551616", "~1 ^ 3", "1 ? 2 : 3", "%tid.x", "%tid", "%clock64", "%p1", "!%p1", "%h1",
    "%r1", "%u1", "%rd1", "%f1", "%fd1", "%q1", "%v2", "%v4", "%v2.x", "%r5000000000", "%r٣", "%nothing", "[%rd1]",
    "[%rd1+16]", "[%rd1+-8]", "[%rd1].unified", "[%r1]", "[smem]", "[array+4]", "[16]", "[%rd1, {%r1, %r2}]",
    "[tex, {%f1, %f2}]", "[surf, {%r1}]", "{%r1, %r2}", "{%r1, 1, _, %u1}", "{%f1, %f2, %f3, %f4}", "{}", "%r1|%p1",
    "kernel", "here", "helper", "smem+4", "table[3]", "(%r1, %r2)", "()", "%r1.b0", "-%r1.h1", "%r1.b3210", "tex",
)  # fmt: skip


@cache
def _files() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(path.read_text().split("\n")) for path in compiled())


@cache
def _bodies(lines: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Where functions begin and end: the lines of their outermost braces."""
    opened = [index for index, line in enumerate(lines) if line.startswith("{")]
    return tuple((start, next(index for index in range(start, len(lines)) if lines[index] == "}")) for start in opened)


@cache
def _rows() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Verdict and line of every row of the tables of the families, by target and version."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path in sorted(ROWS.glob("*.txt")):
        for text in path.read_text().splitlines():
            if text.strip() and not text.startswith("#"):
                verdict, target, version, line = text.split(None, 3)
                found.setdefault((target, version), []).append((verdict, line))
    return found


def _row(rng: random.Random) -> str:
    """The line of a row."""
    return rng.choice(rng.choice(list(_rows().values())))[1]


def _piece(rng: random.Random) -> str:
    """A few lines of a function of a real file, with its head and its declarations; sometimes a whole file."""
    lines = rng.choice(_files())
    if rng.random() < 0.02:
        return "\n".join(lines)
    first, last = rng.choice(_bodies(lines))
    start = rng.randrange(first + 1, last + 1)
    window = [line for line in lines[start : min(start + rng.randint(1, 12), last)] if line.strip() not in ("{", "}")]
    declared = [line for line in lines[first + 1 : start] if _DECLARES.match(line)][:40]
    head = [line for line in lines[:20] if line.startswith((".version", ".target", ".address_size"))]
    return "\n".join([*head, ".visible .entry made(.param .u64 a)", "{", *declared, *window, "}"])


def _lines(rng: random.Random) -> str:
    """Lines of the tables of the families, in a module that declares what they use; most of them legal."""
    (target, version), rows = rng.choice(list(_rows().items()))
    chosen = [rng.choice(rows) for _ in range(rng.randint(1, 6))]
    kept = [line for verdict, line in chosen if verdict == "legal"] or [chosen[0][1]]
    wide = "\t.reg .b128 %q<9>;\n" if any("%q" in line for line in kept) else ""
    return HEAD.format(version=version, target=target) + wide + "\n".join(kept) + "\nret;\n}\n"


def _original(rng: random.Random) -> str:
    return _lines(rng) if rng.random() < 0.6 else _piece(rng)


def _times(rng: random.Random) -> int:
    return 1 + min(int(rng.expovariate(0.7)), 8)


def characters(rng: random.Random) -> str:
    """Characters inserted, dropped, replaced, doubled."""
    text = _original(rng)
    for _ in range(_times(rng)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 0, 1, 1, 2, 5)))
        text = text[:at] + rng.choice(("", rng.choice(CHARACTERS), text[at:end] * 2)) + text[end:]
    return text


def tokens(rng: random.Random) -> str:
    """Tokens dropped, doubled, replaced, exchanged."""
    parts = _TOKEN.findall(_original(rng))
    for _ in range(_times(rng)):
        at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        what = rng.randrange(5)
        if what == 0:
            parts[at] = ""
        elif what == 1:
            parts[at] *= rng.randint(2, 3)
        elif what == 2:
            parts[at] = rng.choice(TOKENS)
        elif what == 3:
            parts[at], parts[other] = parts[other], parts[at]
        else:
            parts[at] = parts[other]
    return "".join(parts)


def lines(rng: random.Random) -> str:
    """Lines dropped, doubled, exchanged, cut off, or taken from elsewhere."""
    found = _original(rng).split("\n")
    for _ in range(_times(rng)):
        at, other = rng.randrange(len(found)), rng.randrange(len(found))
        what = rng.randrange(5)
        if what == 0 and len(found) > 1:
            del found[at]
        elif what == 1:
            found.insert(at, found[other])
        elif what == 2:
            found[at], found[other] = found[other], found[at]
        elif what == 3:
            found[at] = found[at][: rng.randint(0, len(found[at]))]
        else:
            found.insert(at, rng.choice(rng.choice(_files())) if rng.random() < 0.5 else _row(rng))
    return "\n".join(found)


def operands(rng: random.Random) -> str:
    """Instructions with operands replaced, dropped, added or exchanged, and with other modifiers."""
    found = _original(rng).split("\n")
    instructions = [index for index, line in enumerate(found) if line.rstrip().endswith(";") and " " in line.strip()]
    for _ in range(_times(rng)):
        if not instructions:
            break
        index = rng.choice(instructions)
        head, _, rest = found[index].strip().partition(" ")
        parts = re.split(r",(?![^\[{(]*[\]})])", rest.rstrip("; \t"))
        at = rng.randrange(len(parts))
        what = rng.randrange(6)
        if what == 0:
            del parts[at]
        elif what == 1:
            parts.insert(at, rng.choice(OPERANDS))
        elif what == 2:
            parts[at] = number(rng)
        elif what == 3:
            names = head.split(".")
            names.insert(rng.randint(1, len(names)), rng.choice(_row(rng).split()[0].split(".")))
            head = ".".join(names)
        elif what == 4:
            rng.shuffle(parts)
        else:
            parts[at] = rng.choice(OPERANDS)
        found[index] = f"{head} {', '.join(part.strip() for part in parts)};"
    return "\n".join(found)


def number(rng: random.Random) -> str:
    """A number of any length and base, often too large."""
    digits = rng.choice((1, 5, 9, 17, 20, 40, 400, 5000))
    decimal = "".join(rng.choices("0123456789", k=digits))
    return rng.choice(
        (
            decimal, "-" + decimal, "0x" + decimal, "0b" + "10" * (digits // 2 + 1), "0" + decimal,
            decimal + "U",
            decimal + "." + decimal, "1e" + decimal, "1e-" + decimal, "." + decimal, "0f" + decimal[:8].rjust(8, "F"),
            "0d" + decimal[:16].rjust(16, "F"), f"%r{decimal}", f"(1 << {decimal})", f"{decimal} / 0",
            f"({decimal} % 0)",
            f"[%rd1+{decimal}]", f"[{decimal}]", f"(1.5 * {decimal})", f"-{decimal} >> -{decimal}", f"~{decimal}U",
        )
    )  # fmt: skip


def numbers(rng: random.Random) -> str:
    """Huge numbers wherever there are numbers."""
    text = _original(rng)
    places = list(re.finditer(r"\b\d+\b", text))
    for match in rng.sample(places, min(len(places), _times(rng))):
        text = text[: match.start()] + number(rng) + text[match.end() :]
    return text


def nested(rng: random.Random) -> str:
    """Brackets, operators and blocks inside one another, closed or not."""
    depth = rng.choice((3, 30, 60, 99, 101, 210, 1000, 5000))
    opened, closed = rng.choice(
        (
            ("(", ")"), ("{", "}"), ("[", "]"), ("-", ""), ("!", ""), ("~", ""), ("1+", ""), ("1?", ":1"),
            ("(.s64)", ""), ("{ ", " }"), ("@p ", ""), ("a.", ""), ("(1*", ")"), ("{%r1,", "}"), ("[a,", "]"),
            ("/*", "*/"), ("1?1:", ""),
        )
    )  # fmt: skip
    inside = opened * depth + "1" + closed * (depth if rng.random() < 0.8 else depth // 2)
    before, after = rng.choice(
        (
            ("add.u32 %r1, %r2, ", ";"),
            ("", ""),
            ("mov.b64 {", "};"),
            (".reg .b32 x[", "];"),
            ("ld.b32 %r1, [%rd1+", "];"),
        )
    )
    head = HEAD.format(version="9.0", target="sm_90a")
    if rng.random() < 0.3:
        return head + f"ret;\n}}\n.global .b32 many[] = {inside};\n"
    return head + before + inside + after + "\nret;\n}\n"


def noise(rng: random.Random) -> str:
    """Bytes or characters of pure chance, alone or inside a module."""
    length = rng.choice((1, 10, 100, 1000))
    if rng.random() < 0.5:
        made = rng.randbytes(length).decode(rng.choice(("latin-1", "utf-8")), "replace")
    else:
        ranges = ((0, 0x7F), (0, 0x2FF), (0x660, 0x669), (0x2000, 0x206F), (0xD800, 0xDFFF), (0, 0x10FFFF))
        low, high = rng.choice(ranges)
        made = "".join(chr(rng.randint(low, high)) for _ in range(length))
    if rng.random() < 0.5:
        return made
    return HEAD.format(version="9.0", target="sm_100a") + made + "\nret;\n}\n"


KINDS: dict[str, Callable[[random.Random], str]] = {
    "characters": characters,
    "tokens": tokens,
    "lines": lines,
    "operands": operands,
    "numbers": numbers,
    "nested": nested,
    "noise": noise,
}
_WEIGHTS = {"characters": 20, "tokens": 25, "lines": 10, "operands": 30, "numbers": 8, "nested": 2, "noise": 5}


def text_of(seed: int, index: int) -> tuple[str, str]:
    """The kind of a text, and the text."""
    rng = random.Random(f"{seed}/{index}")
    kind = rng.choices(list(KINDS), [_WEIGHTS[name] for name in KINDS])[0]
    return kind, KINDS[kind](rng)
