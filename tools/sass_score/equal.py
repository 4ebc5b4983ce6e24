"""Equal pairs: the same kernel under other names, lines, paths, order, or with another kernel next to it."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptxgen.toolchain import find_ptxas
from tools.sass_score.kernels import Source, parts

#: A kernel that goes next to another.
NEIGHBOR = """
.visible .entry zz_neighbor(.param .u64 zz_pointer)
{
    .reg .b64 %zz_address;
    .reg .b32 %zz_value;
    ld.param.u64 %zz_address, [zz_pointer];
    cvta.to.global.u64 %zz_address, %zz_address;
    ld.global.u32 %zz_value, [%zz_address];
    add.u32 %zz_value, %zz_value, 1;
    st.global.u32 [%zz_address], %zz_value;
    ret;
}
"""
_DECLARED = re.compile(r"\.reg\s+((?:\.\w+\s+)+)([^;]+);")
_LABEL = re.compile(r"(?m)^\s*([A-Za-z_$][\w$]*)\s*:(?!:)")


#: Where a text is assembled, unless the path is what differs.
PATH = "kernel.ptx"


@dataclass(frozen=True)
class Build:
    """The other side of a pair: a text, the path under which it is assembled, and options of ptxas."""

    text: str
    path: str = PATH
    options: tuple[str, ...] = ()

    def cubin(self, target: str, folder: Path) -> bytes:
        """The cubin, made in a folder of its own."""
        path = folder / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text)
        made = path.with_suffix(".cubin")
        command = [str(find_ptxas()), "-arch", target, *self.options, str(path), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True)
        return made.read_bytes()


def registers(source: Source, rng: random.Random) -> Build:
    """Other names of registers."""
    names = {
        re.sub(r"<\d+>$", "", name.strip())
        for match in _DECLARED.finditer(source.text)
        for name in match[2].split(",")
        if name.strip().startswith("%")
    }
    fresh = {name: f"%q{number}{rng.choice('abcxyz')}_" for number, name in enumerate(sorted(names))}
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    renamed = re.sub(rf"({pattern})(\d*)(?![\w$])", lambda match: fresh[match[1]] + match[2], source.text)
    renamed = re.sub(rf"({pattern})<", lambda match: f"{fresh[match[1]]}<", renamed)
    return Build(renamed)


def labels(source: Source, rng: random.Random) -> Build:
    """Other labels."""
    names = sorted(set(_LABEL.findall(source.text)) - {"default"}, key=len, reverse=True)
    if not names:
        return registers(source, rng)
    fresh = {name: f"$Z{number}_{rng.randrange(1000)}" for number, name in enumerate(names)}
    pattern = "|".join(re.escape(name) for name in names)
    renamed = re.sub(rf"(?<![\w$%.])({pattern})(?![\w$])", lambda match: fresh[match[1]], source.text)
    return Build(renamed)


def order(source: Source, rng: random.Random) -> Build:
    """The kernels in another order."""
    head, entries = parts(source.text)
    return Build(head + "\n".join(rng.sample(entries, len(entries))))


def neighbor(source: Source, rng: random.Random) -> Build:
    """An unused kernel next to the others."""
    head, entries = parts(source.text)
    entries.insert(rng.randrange(len(entries)), NEIGHBOR)
    return Build(head + "\n".join(entries))


def path(source: Source, rng: random.Random) -> Build:
    """Another folder and file name, with line tables that hold them."""
    other = f"build-{rng.randrange(10**6)}/deep/er/other_name.ptx"
    return Build(source.text, other, ("-lineinfo",))


def lines(source: Source, rng: random.Random) -> Build:
    """Line tables against none, and other lines."""
    moved = "\n".join(f"\n{line}" if rng.random() < 0.1 else line for line in source.text.split("\n"))
    return Build("// moved\n" + moved, options=("-lineinfo",) if rng.random() < 0.5 else ())


KINDS: dict[str, Callable[[Source, random.Random], Build]] = {
    "PTX registers renamed": registers,
    "labels renamed": labels,
    "kernels in another order": order,
    "an unused kernel next to it": neighbor,
    "another path": path,
    "line tables, other lines": lines,
}
