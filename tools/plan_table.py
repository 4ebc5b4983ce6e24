"""Write the generated parts of docs/plan.md again, each between its two markers: `python -m tools.plan_table`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxgen.cli.kernels.plan import HEAD, LEGEND, row
from ptxgen.gemm.prediction.estimate import Estimate
from ptxgen.gemm.selection.planner import Planning, plan_gemm
from ptxgen.timing import MACHINES

PAGE = Path(__file__).parents[1] / "docs" / "plan.md"
B200 = MACHINES["b200"]


@dataclass(frozen=True)
class Shape:
    """A problem that an article measures; `article` says which."""

    article: str
    m: int
    n: int
    k: int
    dtype: str
    c_dtype: str = ""
    machine: str = "b200"
    kernel: str | None = None

    def plan(self, clock: float | None = None, count: int = 5) -> Planning:
        fixed = {"dtype": self.dtype, "c_dtype": self.c_dtype}
        machine, kernel = MACHINES[self.machine], self.kernel
        return plan_gemm(self.m, self.n, self.k, machine, count=count, clock=clock, fixed=fixed, kernel=kernel)


def cube(article: str, size: int, dtype: str, machine: str = "b200") -> Shape:
    return Shape(article, size, size, size, dtype, machine=machine)


def mxfp8(size: int) -> Shape:
    """A size of the MXFP8 article, by the last rung of its ladder."""
    return Shape(_MXFP8, size, size, size, "e4m3", "f32", kernel="mxfp8-o11")


_MODULAR, _TILUS, _MXFP8 = "Modular, matrix multiplication on Blackwell", "Tilus, Blackwell tutorial", "MXFP8 article"
_HOPPER = "the usual sizes, on Hopper"
SHAPES = (
    cube(_MODULAR, 4096, "bf16"),
    cube(_MODULAR, 8192, "bf16"),
    Shape(f"{_MODULAR}: Gemma 3 27B", 512, 8192, 5376, "bf16"),
    cube(_TILUS, 8192, "f16"),
    *(mxfp8(size) for size in (2048, 4096, 8192, 16384)),
    cube(_HOPPER, 4096, "bf16", machine="h200"),
    cube(_HOPPER, 8192, "bf16", machine="h200"),
)
#: TFLOPS of the MXFP8 article's best kernel, and its part of cuBLAS, by size.
ARTICLE = {2048: (986.90, 0.99), 4096: (2200.29, 0.87), 8192: (2599.07, 0.97), 16384: (2487.72, 0.97)}
#: Clocks in MHz for the open problem.
CLOCKS = (1100, 1300, 1500, 1700, 1900)


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(tuple(head))}"]
    lines += [f"| {' | '.join(map(str, each))} |" for each in rows]
    return "\n".join(lines) + "\n"


def open_problem() -> str:
    """What the article measures at each size, beside the waves of its 256x256 tiles."""

    def rows() -> Iterator[tuple[object, ...]]:
        for size, (tflops, ratio) in ARTICLE.items():
            each = mxfp8(size).plan(count=1).shipped
            seconds = 2 * size**3 / tflops / 1e12
            yield (
                f"{size}³", tflops, ratio, each.tiles, f"{each.waves:.2f}", f"{each.wave_efficiency:.1%}",
                f"{each.tensor_cycles:.0f}", f"{each.tensor_cycles / seconds / 1e9:.2f} GHz",
            )  # fmt: skip

    head = (
        "size",
        "TFLOPS",
        "of cuBLAS",
        "tiles",
        "waves",
        "wave efficiency",
        "tensor cycles",
        "cycles / measured time",
    )
    return _table(head, rows())


def by_clock() -> str:
    """What the planner picks for it, by clock."""

    def rows() -> Iterator[tuple[object, ...]]:
        for clock in CLOCKS:
            found = mxfp8(4096).plan(clock)
            best = found.chosen
            yield clock, best.tile, f"{best.waves:.2f}", row(best)[8], best.bound_by, f"{found.gain:.0%}"

    return _table(("MHz", "picked", "waves", "useful", "bound by", "predicted gain over 256×256"), rows())


def shapes() -> str:
    """The best configurations of every shape, with the sentences."""
    return "\n".join(_section(shape) for shape in SHAPES)


def _section(shape: Shape) -> str:
    found = shape.plan()
    sizes = f"{shape.m}³" if shape.m == shape.n == shape.k else f"{shape.m}×{shape.n}×{shape.k}"
    types = f"{found.chosen.plan.a.dtype} -> {found.chosen.plan.c_dtype}"
    title = f"### {sizes} {types} on {found.chosen.machine.title} ({shape.article})\n"

    def cells(each: Estimate, mark: str = "") -> tuple[str, ...]:
        first, *rest = row(each)
        return f"{first}{mark}", *rest, each.order

    rows = [cells(each) for each in found.ranked]
    if found.shipped.plan.config not in [each.plan.config for each in found.ranked]:
        rows.append(cells(found.shipped, " (shipped)"))
    return f"{title}\n{_table((*HEAD, 'order'), rows)}\n{' '.join(found.explain())}\n"


def machines() -> str:
    """Every number of the machines with its status and source."""

    def rows() -> Iterator[tuple[object, ...]]:
        for machine in MACHINES.values():
            for name, figure in machine.figures():
                yield machine.title, name, figure.shown, figure.evidence.kind, figure.evidence.source

    return _table(("machine", "name", "number", "status", "source"), rows())


PARTS = {
    "open problem": open_problem,
    "by clock": by_clock,
    "shapes": lambda: f"{LEGEND[:1].upper()}{LEGEND[1:]}.\n\n{shapes()}",
    "machines": machines,
}


def renewed(page: str) -> str:
    """The page with its parts as the planner has them now."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}: begin, by make docs -->\n", f"<!-- {name}: end -->\n"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}{part()}{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
