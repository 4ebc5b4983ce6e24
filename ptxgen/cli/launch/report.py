"""The report of `ptxgen run`: for people, through rich, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ptxgen.cli.common.source import excerpt
from ptxgen.cli.common.terminal import NARROW, grid
from ptxgen.cli.toolchain.ptx import spills
from ptxgen.gemm.concepts.accumulator import Accumulator

if TYPE_CHECKING:
    from ptxgen.cli.launch.schedules import Search
    from ptxgen.device import Accept, Finding, LaunchReport
    from ptxgen.gemm.job import Diagnosis, GemmResult
    from ptxgen.toolchain import Cubin

_MOST_SHOWN = 8


def correct(verdict: str, launch: LaunchReport) -> Text:
    """The last line of a report of a launch that went well: what was only advised or not checked is part of it."""
    words = Text(f"✓ {verdict}", style="bold green")
    if launch.advised:
        words.append(f", with {launch.advised}", style="yellow")
    if launch.gaps:
        words.append(f"; checked in part: {'; '.join(launch.gaps)}", style="yellow")
    return words


@dataclass(frozen=True)
class RunReport:
    """What `ptxgen run` found; `schedule` is None on a GPU, `edited` the file that replaced the kernel's PTX.

    `search` is what `--schedules` did; the report is of the last schedule that it tried. `verbose` shows what
    follows from each finding, `unused_accepts` are accepted findings that no schedule has.
    """

    kernel: str
    result: GemmResult
    #: None where there is no ptxas.
    cubin: Cubin | None
    timings: Mapping[str, float]
    schedule: str | None = None
    edited: str | None = None
    search: Search | None = None
    verbose: bool = False
    unused_accepts: Sequence[Accept] = ()

    def print(self, console: Console) -> None:
        """Print the whole report."""
        target, device = self.result.problem.plan.target, self.result.launch.device or "the device"
        known = "" if target in device else f" for {target}"
        title = Text.assemble((self.kernel, "bold"), f"{known} on {device}")
        if self.edited:
            title.append(f", with the PTX of {self.edited}", style="yellow")
        console.print(Rule(title, align="left", style="dim"))
        table = grid("cyan", "")
        for label, content in self._rows(console.width < NARROW):
            text = Text(content) if isinstance(content, str) else content
            if console.width < NARROW:
                console.print(Text(label, style="cyan"))
                console.print(Padding(text, (0, 0, 0, 2)))
            else:
                table.add_row(label, text)
        if table.row_count:
            console.print(table)
        for part in self._diagnoses(console.width):
            console.print(part)
        for part in self._unused_accepts():
            console.print(part)
        console.print(self._verdict())

    def _rows(self, narrow: bool) -> list[tuple[str, RenderableType]]:
        problem = self.result.problem
        plan = problem.plan
        grid = problem.grid[: 3 if plan.config.batched or plan.scheduler.split_k > 1 else 2]
        types = plan.a.dtype if plan.a.dtype == plan.b.dtype else f"{plan.a.dtype} and {plan.b.dtype}"
        if plan.scales:
            types += f" with {plan.scales[0].type.scale} scales of {plan.scales[0].type.block}"
        sums = plan.accumulator.d_type
        steps = -(-problem.k // plan.k_tile)
        sizes = ", ".join(f"{name} {value:.12g}" for name, value in problem.sizes.items())
        return [
            (
                "problem",
                f"C = {plan.epilogue.combination.explain()} with {sizes}; "
                f"{types} in, {sums} accumulation, {plan.c_dtype} out; seed {self.result.seed}",
            ),
            (
                "tile",
                f"{plan.m_tile}×{plan.n_tile}, {steps} step{'s' * (steps > 1)} of {plan.k_tile} in K; "
                f"grid {'×'.join(map(str, grid))} = {prod(grid)} CTA{'s' * (prod(grid) > 1)} of {plan.roles.threads} "
                "threads",
            ),
            ("scheduler", plan.scheduler.explain()),
            ("roles", plan.roles.explain()),
            ("shared", self._shared(narrow)),
            ("pipelines", self._pipelines()),
            ("accumulator", plan.accumulator.explain()),
            ("epilogue", plan.epilogue.explain()),
            ("descriptors", self._descriptors(narrow)),
            ("ptxas", self._assembled()),
            ("launch", self._launched()),
            *([("schedules", self.search.summary)] if self.search else []),
            *([("explored", self.result.launch.explored)] if self.result.launch.explored else []),
            *self._compared(),
            ("time", self._times()),
        ]

    def _shared(self, narrow: bool) -> RenderableType:
        shared = self.result.problem.plan.shared
        listed: list[Text] = []
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
        table.add_column("region", no_wrap=True)
        table.add_column("offset", justify="right", no_wrap=True)
        table.add_column("bytes", justify="right", no_wrap=True)
        table.add_column("what it holds")
        for region in shared.regions:
            stages = f"{region.stages} x {region.bytes // region.stages}" if region.stages > 1 else str(region.bytes)
            table.add_row(region.name, str(region.offset), stages, Text(region.holds, style="dim"))
            listed.append(Text(f"{region.name} at {region.offset}, {stages} bytes: {region.holds}"))
        share = shared.bytes / shared.limit
        filled = max(1, round(share * 24))
        total = Text.assemble(
            ("█" * filled, "green" if share < 0.9 else "yellow"),
            ("░" * (24 - filled), "dim"),
            f" {shared.bytes} of {shared.limit} bytes ({share:.0%})",
        )
        return Group(*(listed if narrow else [table]), total)

    def _pipelines(self) -> RenderableType:
        table = grid("", "")
        for each in self.result.problem.plan.pipelines:
            table.add_row(each.name, each.explain())
        return table

    def _descriptors(self, narrow: bool) -> RenderableType:
        problem = self.result.problem
        plan = problem.plan
        rows: list[tuple[str, str, str]] = []
        if plan.a.load != "direct":
            smem = {"A": plan.a.descriptor, "B": plan.b.descriptor}
            if smem["A"] == smem["B"]:
                smem = {"A, B": plan.a.descriptor}
            if plan.scales:
                smem["scales"] = plan.scales[0].descriptor
            for name, each in smem.items():
                words = f"{each.swizzle} swizzle, SBO {each.stride_byte_offset} bytes"
                rows.append((f"smem {name}", f"{each.encode():#018x}", words))
        if isinstance(plan.accumulator, Accumulator):
            mma = plan.accumulator.instruction
            words = f"{plan.accumulator.kind}, {mma.m}×{mma.n}, {mma.a_type}×{mma.b_type}→{plan.accumulator.d_type}"
            rows.append(("instruction", f"{mma.encode():#010x}", words))
        for name, made in problem.encoded.items():
            dims, box = ("×".join(map(str, reversed(sizes))) for sizes in (made.dims, made.box))
            word = int.from_bytes(made.encode()[8:12], "little")
            words = f"{dims}, box {box}, {made.swizzle} swizzle"
            rows.append((f"tensormap {name.upper()}", f"{word:#010x} (word 2)", words))
        if narrow:
            return Group(*(Text(f"{name} {value}: {words}") for name, value, words in rows))
        table = grid("", "magenta", "dim")
        for row in rows:
            table.add_row(*row)
        return table

    def _assembled(self) -> Text:
        cubin, text = self.cubin, self.result.kernel.text
        size = f"; PTX {len(text.encode()) / 1000:.1f} kB, {len(text.splitlines())} lines"
        if cubin is None:
            return Text(f"not installed; registers and spills are unknown (pip install 'ptxgen[tools]'){size}")
        warnings = len(cubin.warnings)
        spilled = bool(cubin.spill_stores or cubin.spill_loads)
        spill_words = f"spills {spills(cubin.spill_stores, cubin.spill_loads)}" if spilled else "no spills"
        return Text.assemble(
            f"{cubin.registers} registers, ",
            (spill_words, "yellow" if spilled else ""),
            ", ",
            (f"{warnings or 'no'} warning{'s' * (warnings != 1)}", "yellow" if warnings else ""),
            size,
        )

    def _launched(self) -> Text:
        launch = self.result.launch
        advice = len(self.result.advice)
        words = Text(launch.status, style="green" if launch.ok else "bold red")
        if launch.instructions:
            words.append(f", {launch.instructions:_} warp-instructions".replace("_", " "))
        if self.schedule:
            words.append(f", {self.schedule} schedule" if self.schedule != "explored" else ", in the first order")
        if advice:
            words.append(f", {advice} piece{'s' * (advice > 1)} of advice", style="yellow")
        return words

    def _compared(self) -> list[tuple[str, RenderableType]]:
        result = self.result
        compared, guards = result.comparison, result.guards
        if compared is None:
            return [("result", Text("C was not compared: the kernel did not run to its end", style="bold red"))]
        right = Text(f"{compared.elements - compared.wrong} of {compared.elements} elements right; ")
        right.stylize("bold red" if compared.wrong else "green")
        surroundings = f"{guards.before} bytes before and {guards.after} after C "
        right.append(surroundings + ("untouched" if guards.ok else "overwritten"), "" if guards.ok else "bold red")
        row, column = compared.largest_at
        share = f"at most {compared.ratio:.0%} of" if compared.ratio <= 1 else f"up to {_times(compared.ratio)} times"
        return [
            ("result", right),
            (
                "error",
                f"largest {compared.largest_error:.3g} at C[{row}, {column}], tolerance there "
                f"{compared.tolerance:.3g}; {share} the tolerance",
            ),
            ("tolerance", Text(result.tolerance_reason, style="dim")),
        ]

    def _diagnoses(self, width: int) -> list[RenderableType]:
        result = self.result
        text = result.kernel.text
        shown: list[RenderableType] = []
        previous: list[str] = []
        for style, diagnoses in (("bold red", result.errors), ("bold yellow", result.advice)):
            name = "error" if style == "bold red" else "advice"
            for each in diagnoses[:_MOST_SHOWN]:
                place = self._place(each)
                first, *rest = each.message.splitlines()
                shown.append(Text.assemble(place, (f"{name}: ", style), first))
                shown.extend(Text(f"    {line}") for line in rest)
                if each.finding is not None and each.finding.order:
                    shown.append(Text(f"    order: {each.finding.order}"))
                shown.extend(self._consequences(each.finding))
                context = excerpt(text, each.shown, around=2 if len(each.shown) == 1 else 1, width=width)
                for line in () if context == previous else context:
                    shown.append(Text(line, style="bold" if line.startswith(">") else "dim"))
                previous = context
            if len(diagnoses) > _MOST_SHOWN:
                shown.append(Text(f"and {len(diagnoses) - _MOST_SHOWN} more; --json lists all", style="dim"))
        return [Text(""), *shown] if shown else []

    def _consequences(self, finding: Finding | None) -> Iterator[Text]:
        """What follows from a finding: how many, or with -v each of them."""
        count = len(finding.consequences) if finding is not None else 0
        if finding is None or not count:
            return
        if not self.verbose:
            yield Text(f"    + {count} consequence{'s' * (count > 1)} (-v shows them)", style="dim")
            return
        for each in finding.consequences:
            yield from (Text(f"    {line}", style="dim") for line in f"+ {each}".splitlines())

    def _unused_accepts(self) -> list[RenderableType]:
        return [Text(f"accepted, but not found any more: {each}", style="yellow") for each in self.unused_accepts]

    def _place(self, diagnosis: Diagnosis) -> str:
        if len(diagnosis.lines) != 1:
            return ""
        return f"{self.edited}:{diagnosis.lines[0]}: " if self.edited else f"line {diagnosis.lines[0]}: "

    def _times(self) -> str:
        names = {"launch": "run" if self.schedule is None else "emulate"}
        return " · ".join(f"{names.get(step, step)} {_seconds(value)}" for step, value in self.timings.items())

    def _verdict(self) -> Text:
        result = self.result
        if result.ok:
            under = f" under all {len(self.search.tried)} schedules" if self.search else ""
            return correct(f"correct{under}", result.launch)
        words = Text(f"✗ {result.status}", style="bold red")
        if self.search:
            words.append(
                f" in schedule {len(self.search.tried)}; again with --schedule {self.schedule} --seed {result.seed}",
                style="yellow",
            )
        if self.edited is None and result.errors:
            words.append("  ('ptxgen build' gives the PTX that the lines are of)", style="dim")
        return words

    def _encoded(self) -> dict[str, str]:
        problem = self.result.problem
        plan = problem.plan
        made = {f"tensormap_{name}": each.encode().hex() for name, each in problem.encoded.items()}
        if plan.a.load != "direct":
            made.update(smem_a=f"{plan.a.descriptor.encode():#018x}", smem_b=f"{plan.b.descriptor.encode():#018x}")
        if isinstance(plan.accumulator, Accumulator):
            made["instruction"] = f"{plan.accumulator.instruction.encode():#010x}"
        return made

    def json(self) -> dict[str, Any]:
        """Everything that the report says, as JSON takes it."""
        result, cubin = self.result, self.cubin
        problem = result.problem
        plan = problem.plan
        return {
            "kernel": self.kernel,
            "ok": result.ok,
            "status": result.status,
            "problem": {**{name.lower(): value for name, value in problem.sizes.items()}, "seed": result.seed},
            "config": {**asdict(plan.config), "c_dtype": plan.c_dtype},
            "target": plan.target,
            "device": result.launch.device,
            "schedule": self.schedule,
            "schedules_tried": len(self.search.tried) if self.search else None,
            "schedules": self.search.json() if self.search else None,
            "explored": result.launch.explored or None,
            "ptx_file": self.edited,
            "grid": problem.grid,
            "block": problem.block,
            "shared": {
                "bytes": plan.shared.bytes,
                "limit": plan.shared.limit,
                "regions": [asdict(region) for region in plan.shared.regions],
            },
            "tmem_columns": plan.accumulator.columns,
            "tmem": [asdict(each) for each in plan.accumulator.regions],
            "pipelines": [asdict(each) for each in plan.pipelines],
            "descriptors": self._encoded(),
            "ptx_bytes": len(result.kernel.text.encode()),
            "ptxas": None
            if cubin is None
            else {
                "registers": cubin.registers,
                "spill_stores": cubin.spill_stores,
                "spill_loads": cubin.spill_loads,
                "warnings": [str(each) for each in cubin.warnings],
            },
            "launch": {
                "status": result.launch.status,
                "instructions": result.launch.instructions,
                "findings": [finding.to_json() for finding in result.launch.findings],
                "checked": result.launch.checked,
                "gaps": result.launch.gaps,
                "unused_accepts": [asdict(each) for each in self.unused_accepts],
            },
            "comparison": _finite(asdict(result.comparison)) if result.comparison else None,
            "guards": {**asdict(result.guards), "ok": result.guards.ok},
            "tolerance_reason": result.tolerance_reason,
            "complaints": [{"message": each.message, "lines": each.lines} for each in result.errors],
            "seconds": dict(self.timings),
        }


def _times(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 1000 or ratio == float("inf") else f"{ratio:.0f}"


def _seconds(value: float) -> str:
    if value >= 0.9995:
        return f"{value:.2f} s"
    return f"{value * 1e3:.0f} ms" if value >= 0.00995 else f"{value * 1e3:.1f} ms"


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: these become strings."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value
