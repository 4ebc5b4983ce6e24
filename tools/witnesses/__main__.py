"""Compile the witnesses again and record them in tests/data/witnesses: see README.md beside this file.

python -m tools.witnesses [--list] [NAME-PART ...]
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import Any

from . import kernels
from .launch import Witness, reference_entry

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "witnesses"


def witnesses() -> list[Witness]:
    """All, of all modules of kernels that this environment can import."""
    found = []
    for module in pkgutil.iter_modules(kernels.__path__):
        try:
            found += importlib.import_module(f"{kernels.__name__}.{module.name}").WITNESSES
        except ImportError as error:
            print(f"    {module.name} needs another compiler: {error}", file=sys.stderr)
    return found


def write(folder: Path, name: str, text: str, launch: dict[str, Any], reference: dict[str, Any]) -> None:
    """Record one: a line of JSON for each buffer and parameter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.ptx").write_text(text)
    lines = []
    for key, value in {"name": name, "reference": reference, **launch}.items():
        if key == "params":
            shown = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        elif key == "buffers":
            shown = "{\n  " + ",\n  ".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in value.items()) + "\n }"
        else:
            shown = json.dumps(value)
        lines.append(f" {json.dumps(key)}: {shown}")
    (folder / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Compile what the installed compiler makes; exit with 1 if something does not compile."""
    parser = argparse.ArgumentParser(prog="python -m tools.witnesses")
    parser.add_argument("parts", nargs="*", help="parts of names; all by default")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--everything", action="store_true", help="all, for both targets, recorded or not")
    parser.add_argument("--list", action="store_true", help="list the names only")
    options = parser.parse_args()
    from . import triton_compiler

    number = "".join(triton_compiler.version().split(".")[:2])
    bad = 0
    for witness in witnesses():
        made = witness.made
        if options.everything:
            made = tuple(f"{witness.made[0][0]}{number}_{target}" for target in (90, 100))
        for compiler in made:
            name = f"{compiler}_{witness.name}"
            if compiler[1:].split("_")[0] != number or not any(part in name for part in options.parts or [""]):
                continue
            if options.list:
                print(name)
                continue
            try:
                text, launch = triton_compiler.compile_witness(witness, int(compiler.split("_")[1]))
            except Exception:
                bad += 1
                print(f"FAIL {name}\n{traceback.format_exc()}", file=sys.stderr)
                continue
            write(options.folder, name, text, launch, reference_entry(witness.reference))
            print(f"{name} {len(text)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
