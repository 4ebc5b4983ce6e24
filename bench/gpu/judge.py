"""Judges the dispatcher on drawn shapes that never tuned it.

python -m bench.gpu.judge choices choices.json                 # what `best` takes for them, on either card
python -m bench.gpu.survey choices.json --out judged.jsonl --algorithms 32 --judged 18
python -m bench.gpu.judge report choices.json judged.jsonl     # bench/data/hopper-held-out.json, docs/hopper.md
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.gpu.arms import Spec
from bench.gpu.held_out import CLASSES, class_of, draw, part_of
from bench.gpu.menu import PRODUCTS
from bench.gpu.records import geometric_mean
from bench.gpu.report import markdown
from bench.gpu.suite import Row
from ptxgen.gemm import best, find
from ptxgen.gemm.selection.dispatch import GEMV, tuning_table
from tools.measurements import replace_section

ROOT = Path(__file__).parents[2]
PAGE, DATA = ROOT / "docs" / "hopper.md", ROOT / "bench" / "data" / "hopper-held-out.json"
CARDS = ("h200", "h100")
#: Rows of each product, and the seed of the draw.
DRAWN = {"bf16": (220, 1134), "fast": (160, 1134), "promoted": (160, 1134)}
TITLES = {"bf16": "bf16", "fast": "fp8 fast", "promoted": "fp8 promoted"}
_WORST = 8


@dataclass(frozen=True)
class Judged:
    """Microseconds of the best of cublasLt, of torch and of ours on a row; `expected`: what `best` said."""

    product: str
    m: int
    n: int
    k: int
    cublaslt: float
    torch: float
    ours: float
    expected: float
    kernel: str

    @property
    def ratio(self) -> float:
        """cublasLt's time over ours: above 1 ours is faster."""
        return self.cublaslt / self.ours

    @property
    def aligned(self) -> bool:
        """Whether rows of A and B are whole lines of the L2."""
        return self.k * (2 if self.product == "bf16" else 1) % 128 == 0


def choices() -> dict[str, Any]:
    """The judging rows with the kernels that `best` takes on either card, as the survey reads them."""
    names: dict[str, int] = {}
    made: list[tuple[float, dict[str, Any]]] = []
    for product, (count, seed) in DRAWN.items():
        for at, row in enumerate(draw("judging", count, "bf16" if product == "bf16" else "e4m3", seed)):
            taken = {}
            for card in CARDS:
                found = best(row.m, row.n, row.k, device=card, **PRODUCTS[product])
                settings = find(found.plan.name).settings(found.plan.config)
                name = Spec(found.plan.name, tuple(settings)).name
                taken[card] = [names.setdefault(name, len(names)), found.us]
            tried = sorted({number for number, _ in taken.values()})
            made.append((at / count, {"row": asdict(row), "product": product, "try": tried, "of": taken}))
    for row, product in _known_rows():
        found = best(row.m, row.n, row.k, device="h200", **PRODUCTS[product])
        name = Spec(found.plan.name, tuple(find(found.plan.name).settings(found.plan.config))).name
        made.append((1.0, {"row": asdict(row), "product": product, "try": [names.setdefault(name, len(names))]}))
    return {"names": list(names), "rows": [each for _, each in sorted(made, key=lambda each: each[0])]}


def _known_rows() -> Iterator[tuple[Row, str]]:
    """A sample of the shapes of the tuning tables, which were timed before: to see whether they got slower."""
    source = random.Random(37)
    plain = [each for each in tuning_table("h200").rows if not each.dependent and each.kernel != GEMV]
    for each in (*source.sample(plain, 24), *source.sample(tuning_table("h200", "fp8").rows, 16)):
        yield Row("known", each.m, each.n, each.k, each.dtype), each.product or "bf16"


def judged(chosen: Mapping[str, Any], lines: Sequence[str]) -> tuple[dict[str, str], list[Judged]]:
    """The machine, and the rows of a survey that judge."""
    records = [json.loads(line) for line in lines]
    machine = next(each for each in records if "device" in each)
    card = "h200" if "H200" in machine["device"] else "h100"
    taken = {_key(each): each["of"][card] for each in chosen["rows"] if "of" in each}
    made = []
    for each in records:
        row = each.get("row")
        if row is None or _key(each) not in taken or part_of(row["n"], row["k"]) != "judging":
            continue
        if row["group"] != "drawn":
            continue
        number, expected = taken[_key(each)]
        name, times = chosen["names"][number], each["judged"]
        theirs = min(us for arm, (us, *_) in times.items() if arm.startswith("cublaslt"))
        torch = next(us for arm, (us, *_) in times.items() if arm.startswith("torch"))
        sizes = row["m"], row["n"], row["k"]
        made.append(Judged(each["product"], *sizes, theirs, torch, times[name][0], round(expected, 3), name))
    return machine, made


def _key(each: Mapping[str, Any]) -> tuple[str, int, int, int]:
    row = each["row"]
    return each["product"], row["m"], row["n"], row["k"]


def summary(rows: Sequence[Judged]) -> str:
    """The table of classes."""
    kinds: dict[str, Callable[[Judged], bool]] = {"all": lambda _: True}
    for name in CLASSES:
        words = "M above 512" if name == "above" else f"M {name.replace('-', ' to ')}"
        kinds[words] = lambda each, name=name: class_of(each.m) == name
    kinds["rows of A and B of whole 128-byte lines"] = lambda each: each.aligned
    kinds["other pitches"] = lambda each: not each.aligned

    def lines() -> Iterator[Sequence[object]]:
        for words, kind in kinds.items():
            cells: list[object] = [words]
            for product in PRODUCTS:
                found = [each for each in rows if each.product == product and kind(each)]
                if not found:
                    cells += [0, "-", "-", "-"]
                    continue
                ratios = [each.ratio for each in found]
                torch = geometric_mean([each.torch / each.ours for each in found])
                cells += [len(found), f"{geometric_mean(ratios):.3f}", f"{min(ratios):.3f}", f"{torch:.3f}"]
            yield cells

    head = ["shapes", *(cell for title in TITLES.values() for cell in (f"{title}: rows", "cublasLt", "worst", "torch"))]
    return markdown(head, lines())


def worst(rows: Sequence[Judged]) -> str:
    """The table of the rows where ours is the slowest."""

    def lines() -> Iterator[Sequence[object]]:
        for product, title in TITLES.items():
            found = sorted((each for each in rows if each.product == product), key=lambda each: each.ratio)
            for each in found[:_WORST]:
                options = [word for word in each.kernel.split()[1:] if not word.startswith(("dtype=", "c_dtype="))]
                yield (
                    title, f"{each.m}×{each.n}×{each.k}", f"{each.cublaslt:.1f}", f"{each.torch:.1f}",
                    f"{each.ours:.1f}", f"{each.expected:.1f}", f"{each.ratio:.3f}", f"`{' '.join(options)}`",
                )  # fmt: skip

    head = ("type", "M×N×K", "cublasLt µs", "torch", "ours", "expected", "cublasLt / ours", "kernel")
    return markdown(head, lines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("choices", "report"))
    parser.add_argument("choices", type=Path)
    parser.add_argument("judged", type=Path, nargs="?")
    options = parser.parse_args()
    if options.what == "choices":
        options.choices.write_text(json.dumps(choices()), encoding="utf-8")
        return
    if options.judged is not None:
        machine, rows = judged(
            json.loads(options.choices.read_text(encoding="utf-8")),
            options.judged.read_text(encoding="utf-8").splitlines(),
        )
        lines = ",\n".join(json.dumps(asdict(each)) for each in rows)
        DATA.write_text(f'{{"machine": {json.dumps(machine)},\n"rows": [\n{lines}\n]}}\n', encoding="utf-8")
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def renewed(text: str) -> str:
    """The page with its held-out tables from the recorded data."""
    rows = [Judged(**each) for each in json.loads(DATA.read_text(encoding="utf-8"))["rows"]]
    for name, part in (("held out", summary(rows)), ("held out, worst", worst(rows))):
        text = replace_section(text, name, part)
    return text


if __name__ == "__main__":
    main()
