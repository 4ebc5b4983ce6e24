"""`ptxgen time`: the predicted cycles of a kernel, and where they go."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.groups import ATTENTION, FILE, GEMM, JOB, For, Given, grouped
from ptxgen.cli.common.options import CDType, Columns, Depth, DType, Rows, Settings, make_plan
from ptxgen.cli.errors import OK, InputError, choose
from ptxgen.cli.launch.attention import AttentionOptions
from ptxgen.cli.launch.words import LaunchOptions

if TYPE_CHECKING:
    from rich.console import Console

    from ptxgen.gemm.prediction.what_if import Study
    from ptxgen.timing import Machine, Prediction

#: A shipped kernel with options of its own: NAME[option=value,...].
_NAMED = re.compile(r"^([^\[\]]+)(?:\[([^\]]*)\])?$")
#: Waits of a role that are shown.
_WAITS = 4
#: Changes that '--what-if best' shows.
_CHANGES = 3


def register(app: typer.Typer) -> None:
    app.command("time", rich_help_panel="Kernels")(time)


@grouped
def time(
    kernels: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL [KERNEL]",
            help="A name or rung from 'ptxgen kernels', with options of its own as NAME[option=value,...], or FILE.ptx "
            "or FILE.py. Two are compared.",
            show_default=False,
            autocompletion=completion.kernel_names,
        ),
    ],
    m: Rows = 4096,
    n: Columns = 4096,
    k: Depth = 4096,
    settings: Settings = [],  # noqa: B006  (typer's way to say many)
    dtype: DType = None,
    c_dtype: CDType = None,
    batches: Annotated[int, typer.Option("--batches", help="Batches of an attention."), For(ATTENTION)] = 1,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="b200, h200 or h100; by default one that runs the kernel's target.",
            show_default=False,
            autocompletion=completion.machines,
        ),
    ] = None,
    l2: Annotated[
        str,
        typer.Option(
            "--l2",
            metavar="warm|cold",
            help="Whether the operands are in the L2 before, as far as they fit.",
            autocompletion=completion.words("warm", "cold"),
        ),
    ] = "warm",
    clock: Annotated[
        float | None,
        typer.Option("--clock", metavar="MHZ", help="The SM clock; the machine's by default.", show_default=False),
    ] = None,
    what_if: Annotated[
        list[str],
        typer.Option(
            "--what-if",
            metavar="OPTION=VALUE|best",
            help="Predict again with one option changed: stages=+1, n_tile=224. 'best': try others and show the three "
            "that save most.",
            show_default=False,
        ),
        For(GEMM),
    ] = [],  # noqa: B006
    seconds: Annotated[
        float, typer.Option("--seconds", help="Time to try changes for '--what-if best'."), For(GEMM)
    ] = 60,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Write a timeline for ui.perfetto.dev.", show_default=False),
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write the timeline as a page.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    attention: AttentionOptions,
    launch: LaunchOptions,
    given: Given,
) -> int:
    """Predict the cycles of one launch, what bounds it, and what its warps wait for.

    The CTAs of one SM are emulated under a schedule of cycles; docs/timing.md says how right that is.
    """
    from ptxgen.cli.common.files import require_writable, write_output

    warmth: Literal["warm", "cold"] = choose("--l2", l2, ("warm", "cold"))
    if len(kernels) > 2:
        raise InputError(f"'ptxgen time' predicts one kernel or compares two, not {len(kernels)}")
    if clock is not None and not 100 <= clock <= 5000:
        raise InputError(f"--clock must be 100 to 5000 MHz, not {clock:g}")
    for path in (trace, html):
        if path is not None:
            require_writable(path)
            if len(kernels) > 1:
                raise InputError("--trace and --html show one kernel")
    if what_if and len(kernels) > 1:
        raise InputError("--what-if changes one kernel")
    if "--seconds" in given and "best" not in what_if:
        raise InputError("--seconds goes with --what-if best")
    found = [
        _predict(each, (m, n, k), settings, dtype, c_dtype, machine, warmth, clock, launch, attention, batches, given)
        for each in kernels
    ]
    changes = None
    if what_if:
        changes = _study(kernels[0], (m, n, k), settings, dtype, c_dtype, found[0], warmth, clock, what_if, seconds)
    if trace is not None:
        from ptxgen.timing.trace import trace_of

        write_output(trace, trace_of(found[0]))
    if html is not None:
        from ptxgen.timing.page import page_of

        write_output(html, page_of(found[0]))
    if as_json:
        shown = [each.as_dict() for each in found]
        if changes is not None:
            shown[0]["what_if"] = [each.as_dict() for each in changes.changes]
        print(json.dumps(shown[0] if len(shown) == 1 else {"a": shown[0], "b": shown[1]}, indent=2))
        return OK
    from ptxgen.cli.common.terminal import output

    with output() as out:
        for each in found:
            _print(out, each)
        if len(found) == 2:
            _compare(out, found[0], found[1])
        if changes is not None:
            _print_changes(out, changes, of_words="best" not in what_if)
    return OK


def _predict(
    word: str,
    problem: tuple[int, int, int],
    settings: list[str],
    dtype: str | None,
    c_dtype: str | None,
    machine: str | None,
    l2: Literal["warm", "cold"],
    clock: float | None,
    launch: LaunchOptions,
    attention: AttentionOptions,
    batches: int,
    given: Given,
) -> Prediction:
    """Raises InputError, PlanError, TimingError, and what running a file does."""
    from ptxgen.cli.common.files import is_file, read_ptx
    from ptxgen.cli.launch.jobs import named_in

    path = word
    if is_file(word):
        text = None if word.endswith(".py") else read_ptx(word, launch.target)
        named = named_in(text) if text is not None and not given.words(FILE, JOB) else None
        if named is None:
            return _file(word, text, machine, l2, clock, launch, given)
        word, own = named
        settings = [*own, *settings]
    match = _NAMED.match(word)
    if match is None:
        raise InputError(f"there is no kernel {word!r}; options of its own are written NAME[option=value,...]")
    own = [each.strip() for each in (match[2] or "").split(",") if each.strip()]
    of_attention = attention.problem(match[1], [*settings, *own], dtype, c_dtype, given, batches, path=path)
    if of_attention is not None:
        from ptxgen.attention.timed import predict_attention

        return predict_attention(of_attention, _machine(machine, of_attention.plan.target), l2=l2, clock=clock)
    plan = make_plan(match[1], [*settings, *own], dtype, c_dtype, problem)
    from ptxgen.gemm.prediction.timed import predict_gemm

    return predict_gemm(plan, *problem, _machine(machine, plan.target), l2=l2, clock=clock)


def _study(
    word: str,
    problem: tuple[int, int, int],
    settings: list[str],
    dtype: str | None,
    c_dtype: str | None,
    before: Prediction,
    l2: Literal["warm", "cold"],
    clock: float | None,
    words: list[str],
    seconds: float,
) -> Study:
    """The changes that are asked for. Raises InputError, PlanError, TimingError."""
    from ptxgen.cli.common.files import is_file
    from ptxgen.cli.common.options import find_kernel, parse_settings
    from ptxgen.gemm.prediction.timed import predict_gemm
    from ptxgen.gemm.prediction.what_if import study

    match = _NAMED.match(word)
    if is_file(word) or match is None or "attention" in word:
        raise InputError(f"--what-if changes options of a GEMM kernel of 'ptxgen kernels', which {word} is not")
    if "best" in words and len(words) > 1:
        raise InputError("--what-if takes 'best' or changes, not both")
    entry = find_kernel(match[1])
    own = [each.strip() for each in (match[2] or "").split(",") if each.strip()]
    given = parse_settings(entry, match[1], [*settings, *own], dtype, c_dtype)
    return study(
        entry,
        {**entry.choices_for(*problem), **given},
        before,
        lambda plan: predict_gemm(plan, *problem, before.machine, l2=l2, clock=clock),
        [] if "best" in words else words,
        seconds=seconds,
    )


def _print_changes(out: Console, found: Study, *, of_words: bool) -> None:
    """The changes with their cycles; of the tried ones the three that save most."""
    from rich.markup import escape

    from ptxgen.cli.common.terminal import grid

    shown = found.changes if of_words else [each for each in found.changes if each.gain > 0][:_CHANGES]
    table = grid("", "", "")
    table.add_row("what if", "cycles", "fewer")
    for each in shown:
        table.add_row(escape(f"{each.option}={each.value}"), f"{each.cycles:,.0f}", f"{each.gain:+.1%}")
    if shown:
        out.print(table)
    if not of_words:
        saved = "" if shown else "no change of one option saves cycles; "
        out.print(
            escape(
                f"{saved}{len(found.changes)} changes predicted, {found.refused} fit no kernel, "
                f"{found.left} not tried (--seconds)"
            )
        )


def _machine(name: str | None, target: str) -> Machine:
    """The machine of a name, else the first that runs a target: sm_90a machines run sm_90, too."""
    from ptxgen.instr.model.targets import parse_target
    from ptxgen.timing import MACHINES

    if name is not None:
        return MACHINES[choose("--machine", name, list(MACHINES))]
    number = parse_target(target).number
    found = next((each for each in MACHINES.values() if parse_target(each.target).number == number), None)
    if found is None:
        raise InputError(f"no machine with a description runs {target}; they are {', '.join(MACHINES)}")
    return found


def _file(
    path: str,
    text: str | None,
    machine: str | None,
    l2: Literal["warm", "cold"],
    clock: float | None,
    launch: LaunchOptions,
    given: Given,
) -> Prediction:
    from ptxgen.timing.device import TimingDevice

    runnable = launch.runnable(path, 0, given, text)
    device = TimingDevice(_machine(machine, runnable.target), l2=l2, clock=clock)
    runnable.run(device)
    if not device.predictions:
        raise InputError(f"{path} launches nothing")
    return device.predictions[-1]


def _print(out: Console, found: Prediction) -> None:
    from rich.markup import escape

    from ptxgen.cli.common.terminal import grid, pairs

    tflops = f", {found.tflops:.{0 if found.tflops >= 10 else 2}f} TFLOPS" if found.flop else ""
    head = f"{found.kernel} on {found.machine.title}: {found.cycles:,.0f} cycles, {found.microseconds:.2f} µs at "
    out.print(escape(f"{head}{found.clock:.0f} MHz{tflops}; bound by {found.bound_by}"))
    table = pairs(out)
    parts = ", ".join(f"{name} {value:,.0f}" for name, value in found.parts.items() if value)
    busy = ", ".join(f"{name} {value:.0%}" for name, value in found.utilization.items())
    table.add_row("cycles", escape(parts))
    table.add_row("busy", escape(busy))
    table.add_row("simulated", escape(f"{found.simulated}; L2 {found.l2}"))
    evidence = found.as_dict()["evidence"]
    table.add_row("evidence", ", ".join(f"{count} numbers {kind}" for kind, count in evidence.items()))
    out.print(table)
    roles = grid("", "", "")
    roles.add_row("role", "issuing", "waiting for (cycles)")
    for each in found.roles:
        waits = ", ".join(f"{name} {cycles:,.0f}" for name, cycles in _rings(each.waits)[:_WAITS])
        roles.add_row(escape(each.name), f"{each.issuing:,.0f}", escape(waits or "nothing"))
    out.print(roles)


def _rings(waits: Mapping[str, float]) -> list[tuple[str, float]]:
    """Waits by what is waited for, all stages of a ring together, the longest first."""
    total: dict[str, float] = defaultdict(float)
    for name, cycles in waits.items():
        total[name.partition("[")[0]] += cycles
    return sorted(((name, cycles) for name, cycles in total.items() if cycles >= 1), key=lambda each: -each[1])


def _compare(out: Console, a: Prediction, b: Prediction) -> None:
    """Which of two is faster, and which waits differ most."""
    from rich.markup import escape

    if a.clock == b.clock:
        change, less, what = b.cycles / a.cycles - 1, "fewer", "cycles"
    else:
        change, less, what = b.microseconds / a.microseconds - 1, "less", "time, at another clock,"
    out.print(escape(f"the second takes {abs(change):.1%} {'more' if change > 0 else less} {what} than the first"))
    waits: dict[str, list[float]] = {}
    for position, found in enumerate((a, b)):
        for role in found.roles:
            for name, cycles in _rings(role.waits):
                waits.setdefault(name, [0.0, 0.0])[position] += cycles * len(role.warps)
    largest: list[tuple[str, Any]] = sorted(waits.items(), key=lambda each: -abs(each[1][1] - each[1][0]))[:_WAITS]
    for name, (before, after) in largest:
        out.print(escape(f"  wait for {name}: {before:,.0f} -> {after:,.0f} cycles, all warps together"))
