"""Pages of the layouts: for each kind its options, pictures, and a live picture whose data are ptxgen's own maps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np

from ptxgen import concepts
from ptxgen.descriptors.errors import DescriptorError
from ptxgen.pictures import KINDS, draw, svg
from ptxgen.pictures.kinds import Kind
from ptxgen.pictures.points import layout_map
from tools.site.anchors import slug
from tools.site.stage import toctree


@dataclass(frozen=True)
class Live:
    """What a live picture lets the reader choose: values by parameter, the first one is shown first.

    `fixed` are further words of the layout, `color` the column of the map that colors show at first.
    """

    choices: Mapping[str, tuple[str, ...]]
    color: str
    fixed: tuple[str, ...] = ()


LIVE = {
    "swizzle": Live({"mode": ("128B", "64B", "32B", "none"), "rows": ("8", "16", "32")}, "bank"),
    "operand": Live(
        {"major": ("k", "mn"), "swizzle": ("128B", "64B", "32B", "none"), "rows": ("8", "16", "32", "64")}, "bank"
    ),
    "tma": Live(
        {"swizzle": ("128B", "64B", "32B", "none"), "box": ("32x8", "16x8", "16x16", "16x32")}, "bank", ("f32",)
    ),
    "ld": Live(
        {"shape": ("32x32b", "16x64b", "16x128b", "16x256b"), "num": ("1", "2", "4", "8"), "pack": ("no", "yes")},
        "thread",
    ),
    "fragment": Live(
        {"of": ("wgmma-d", "wgmma-a", "mma-a", "mma-b", "mma-d", "ldmatrix", "stmatrix")},
        "thread",
    ),
    "accumulator": Live({"m": ("64", "128"), "cta_group": ("1", "2")}, "lane", ("n=32",)),
    "pitch": Live({"bytes": ("64", "128"), "pitch": ("0", "144", "160"), "rows": ("8", "16", "32")}, "bank"),
}
#: Further pictures, by kind: words of `ptxgen layout`.
PICTURES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "swizzle": (("128B", "access=matrix"), ("64B", "access=matrix"), ("128B_atom_32B", "access=matrix")),
    "operand": (("k", "128B"), ("mn", "64B")),
    "descriptor": ((),),
    "tma": (("box=64x8", "128B"), ("box=64x8", "none", "access=matrix")),
    "accumulator": (("m=128", "n=256", "cta_group=2"), ("m=64",)),
    "ld": (("32x32b", "num=4"), ("16x256b", "num=2")),
    "a": ((), ("m=64", "bits=8")),
    "metadata": ((), ("kind=tf32",)),
    "cp": ((), ("shape=64x128b",)),
    "scales": ((), ("scales=2",)),
    "fragment": (("wgmma-d",), ("mma-a",), ("ldmatrix", "num=4")),
    "row-addresses": (("num=4",), ("num=4", "swizzle=128B"), ("of=stmatrix", "num=2", "pitch=144")),
    "im2col": ((), ("size=5x4", "lower=-1x-1", "upper=-1x-1", "offset=1x2")),
    "cute": ((), ("Swizzle<3,3,3> o (8,64):(64,1)",)),
    "pitch": (("bytes=128", "access=matrix"), ("bytes=128", "pitch=144", "access=matrix")),
}


def pages() -> dict[str, str]:
    """Pages and pictures by path."""
    made = {"layouts/index.md": _index()}
    for name, kind in KINDS.items():
        made |= dict(_files(name, kind))
    return made


def _index() -> str:
    lines = [
        "# Layouts, live and in pictures\n",
        "One page for each layout that `ptxgen layout` draws. On live pages you choose the layout and point at an "
        "element; the data are those of the emulator.\n",
        "| layout | question | live |",
        "|---|---|---|",
    ]
    lines += [
        f"| [{name}]({name}.md) | {_text(kind.summary)} | {'yes' if name in LIVE else ''} |"
        for name, kind in KINDS.items()
    ]
    return "\n".join(lines) + "\n" + toctree(KINDS)


def _files(name: str, kind: Kind) -> Iterator[tuple[str, str]]:
    lines = [f"# {name}\n", f"{_text(kind.summary)}\n"]
    if name in LIVE:
        lines += [_live(name, LIVE[name])]
    lines.append("## Pictures\n")
    for number, words in enumerate(PICTURES.get(name, ())):
        try:
            picture = draw(name, words)
        except DescriptorError as error:
            raise ValueError(f"{name} {words}: {error}") from None
        path = f"layouts/pictures/{name}-{number}.svg"
        yield path, svg(picture)
        lines += [f"`ptxgen layout {' '.join([name, *map(_quoted, words)])}`\n"]
        words_of = _text(f"{picture.title}. {' '.join(picture.subtitle.split())}")
        lines += [f"![{words_of}](pictures/{name}-{number}.svg)\n"]
        lines += [f"- {_text(note)}" for note in picture.notes]
        lines.append("")
    lines += ["## Options\n", "| option | values | default | what |", "|---|---|---|---|"]
    for each in kind.parameters:
        values = " ".join(f"`{choice}`" for choice in each.choices if choice) or each.type.__name__
        default = "" if each.default in ("", None) else f"`{each.default}`"
        lines.append(f"| `{each.name}` | {values} | {default} | {_text(each.help)} |")
    lines.append("")
    if found := concepts.about("layouts", name):
        links = [f"[{each.name}](../concepts.md#{slug(each.name)})" for each in found]
        lines += [f"Concepts: {', '.join(links)}.\n"]
    yield f"layouts/{name}.md", "\n".join(lines) + "\n"


def _live(name: str, live: Live) -> str:
    """The live picture as HTML: controls that a small script fills, and the maps as JSON."""
    data = live_data(name, live)
    text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    return (
        "## Live\n\n```{raw} html\n"
        f'<div class="live-layout" data-kind="{escape(name)}">\n'
        "<noscript><p>The live picture needs JavaScript; the pictures below do not.</p></noscript>\n"
        f'<script type="application/json">{text}</script>\n</div>\n'
        '<script src="../_static/layout.js" defer></script>\n```\n'
    )


def live_data(name: str, live: Live) -> dict[str, Any]:
    """The maps of all combinations that exist, by their values: `k 128B 8`. Fields are lists in the order of rows."""
    variants: dict[str, Any] = {}
    for values in product(*live.choices.values()):
        words = [*live.fixed, *(f"{key}={value}" for key, value in zip(live.choices, values, strict=True))]
        try:
            found = layout_map(name, words)
        except DescriptorError:
            continue
        rows = found.rows()
        first, second = found.at[:2]
        if name == "tma":  # coordinates are innermost first; rows of the picture are the outer ones
            first, second = second, first
        # Elements of several copies or CTAs: the first one.
        where = np.unique(np.stack([rows[first], rows[second]], axis=1), axis=0, return_index=True)[1]
        fields = {key: [int(each) for each in column[where]] for key, column in rows.items() if key not in found.at}
        heads = [sorted({int(each) for each in rows[key][where]}) for key in (first, second)]
        if name == "operand":
            fields["ldmatrix thread"] = _loaded_by(rows[first][where], rows[second][where], "major=mn" in words)
        variants[" ".join(values)] = {
            "title": found.title,
            "axes": [first, second],
            "labels": heads,
            "fields": fields,
            "notes": list(found.notes),
            "bits": found.bits,
        }
    controls = [{"name": key, "values": list(values)} for key, values in live.choices.items()]
    return {"kind": name, "controls": controls, "color": live.color, "variants": variants}


def _loaded_by(rows: np.ndarray, k: np.ndarray, mn_major: bool) -> list[int]:
    """The lane that ldmatrix, with .trans for an MN-major tile, gives each element of its 8×8 matrix to."""
    loads = layout_map("fragment", ["of=ldmatrix", "trans=yes" if mn_major else "trans=no"]).rows()
    thread = np.zeros((8, 8), np.int64)
    thread[loads["row"], loads["column"]] = loads["thread"]
    inner, outer = (rows, k) if mn_major else (k, rows)
    return [int(each) for each in thread[outer % 8, inner % 8]]


def _quoted(word: str) -> str:
    return f"'{word}'" if " " in word or "<" in word else word


def _text(words: str) -> str:
    return words.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*").replace("[", "\\[").replace("]", "\\]")
