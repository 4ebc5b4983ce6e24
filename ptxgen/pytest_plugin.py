"""The pytest plugin, which pytest finds by its entry point. It imports the library only when a fixture is requested."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ptxgen.descriptors import Descriptor
    from ptxgen.device import Accept, LaunchReport
    from ptxgen.emulator import Emulator
    from ptxgen.gpu import Gpu
    from ptxgen.project import Project

SCHEDULES = ("eager", "late", "random")
#: Accepted findings of the session's launches, and those that no launch had.
_USED, _UNUSED = pytest.StashKey[set["Accept"]](), pytest.StashKey[dict["Accept", None]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ptxgen", "kernels in the emulator of ptxgen")
    group.addoption(
        "--emulator-schedules",
        metavar="LIST",
        help="schedules of the fixture `emulator`: some of eager,late,random, or all (the ini option "
        "emulator_schedules says which by default, else all)",
    )
    group.addoption(
        "--emulator-seeds",
        type=int,
        metavar="N",
        help="how many seeds of the schedule random (ini option emulator_seeds; else 1)",
    )
    group.addoption(
        "--ptxgen-exec",
        metavar="sm_NNN",
        nargs="?",
        const="",
        help="run this test session, GPU tests among it, on an emulated GPU (ptxgen exec); default: the target of "
        "[tool.ptxgen], else sm_100a. Give it after the files, or with =",
    )
    group.addoption(
        "--update-sass",
        action="store_true",
        default=False,
        help="write the snapshots of the fixture `sass_snapshot` anew",
    )
    group.addoption(
        "--update-descriptors",
        action="store_true",
        default=False,
        help="write the snapshots of the fixture `descriptor_snapshot` anew",
    )
    parser.addini("emulator_schedules", "schedules of the fixture `emulator`", default="")
    parser.addini("emulator_seeds", "seeds of the schedule random", default="")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """With --ptxgen-exec the session runs again below `ptxgen exec`, whose exit code is that of this one."""
    target = config.getoption("--ptxgen-exec")
    if target is None or os.environ.get("PTXGEN_EXEC_SOCKET"):
        return None
    from ptxgen.device.accept import AcceptError
    from ptxgen.driver import BuildError, Options, ProgramError, run
    from ptxgen.emulator.load.accepts import reviewed

    command = [sys.executable, "-m", "pytest", *config.invocation_params.args]
    project = _project(config)
    if target and (problem := _target_problem(target)) is not None:
        raise pytest.UsageError(f"--ptxgen-exec: {problem}")
    try:
        options = Options(target=target or "sm_100a")
        if project is not None:
            options = Options(
                target=target or project.target or "sm_100a",
                schedule=project.schedule or "eager",
                accept=reviewed(project.accept) if project.accept is not None else (),
                fail_on=project.fail_on or "error",
            )
        results = run(command, options)
    except (BuildError, ProgramError, AcceptError) as error:
        raise pytest.UsageError(str(error)) from None
    return results.exit_code


def _target_problem(target: str) -> str | None:
    from ptxgen.instr.model.targets import VERSIONS, TargetError, parse_target, target_problem

    try:
        return target_problem(parse_target(target), VERSIONS[-1])
    except TargetError as error:
        return str(error)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "emulator(**options): options of ptxgen.Emulator for the fixture `emulator`: target=, accept=, ..."
    )
    config.stash[_USED], config.stash[_UNUSED] = set(), {}
    _runs(config)


def _project(config: pytest.Config) -> Project | None:
    """The table [tool.ptxgen] for the root of the session. Raises UsageError."""
    from ptxgen.project import ProjectError, find_project

    try:
        return find_project(config.rootpath)
    except ProjectError as error:
        raise pytest.UsageError(str(error)) from None


def _runs(config: pytest.Config) -> list[tuple[str, int]]:
    """The requested schedules and seeds: of the command line, the ini file, [tool.ptxgen]. Raises UsageError."""
    words = [
        config.getoption("--emulator-schedules"),
        config.getini("emulator_schedules"),
        config.getoption("--emulator-seeds"),
        config.getini("emulator_seeds"),
    ]
    if not any(words) and (project := _project(config)) is not None and project.runs:
        return [*project.runs]
    given = words[0] or words[1] or "all"
    names = SCHEDULES if given == "all" else tuple(each.strip() for each in given.split(","))
    unknown = [each for each in names if each not in SCHEDULES]
    if unknown:
        raise pytest.UsageError(f"no schedule {unknown[0]!r}; schedules are {', '.join(SCHEDULES)} and all")
    option = words[2] is not None
    seeds = words[2] if option else words[3] or 1
    try:
        count = int(seeds)
    except ValueError:
        count = 0
    if count < 1:
        name = "--emulator-seeds" if option else "emulator_seeds"
        raise pytest.UsageError(f"{name} must be a number of 1 or more, not {seeds}")
    return [(name, seed) for name in names for seed in range(count if name == "random" else 1)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # Only those tests have it that use the fixture of this plugin: one of the same name in a conftest needs none.
    if "_emulator_run" in metafunc.fixturenames:
        runs = _runs(metafunc.config)
        names = [f"{name}-{seed}" if name == "random" else name for name, seed in runs]
        metafunc.parametrize("_emulator_run", runs, ids=names, indirect=True)


@pytest.fixture
def _emulator_run(request: pytest.FixtureRequest) -> tuple[str, int]:
    return request.param


@pytest.fixture
def emulator(request: pytest.FixtureRequest, _emulator_run: tuple[str, int]) -> Emulator:
    """An emulator; the test runs once for every schedule and seed (`--emulator-schedules`, `--emulator-seeds`).

    The marker `emulator` gives further options. What launches found is shown with a test that fails.
    """
    from ptxgen.device.accept import AcceptError
    from ptxgen.emulator import Emulator

    schedule, seed = _emulator_run
    marker = request.node.get_closest_marker("emulator")
    options: dict[str, Any] = {"schedule": schedule, "seed": seed}
    if (project := _project(request.config)) is not None:
        options |= {"target": project.target} if project.target is not None else {}
        options |= {"accept": project.accept} if project.accept is not None else {}
    options |= marker.kwargs if marker else {}
    try:
        made = Emulator(**options)
    except AcceptError as error:
        pytest.fail(str(error), pytrace=False)
    _show_findings(made, request.node)
    return made


def _show_findings(device: Emulator, item: pytest.Item) -> None:
    """Add the summary of each launch that found something to what pytest shows of a failed test."""
    launch = device.launch

    def reported(*args: Any, **kwargs: Any) -> Any:
        report = launch(*args, **kwargs)
        item.config.stash[_USED].update(report.used_accepts)
        item.config.stash[_UNUSED].update(dict.fromkeys(report.unused_accepts))
        count = sum(name.startswith("ptxgen.launch.") for name, _ in item.user_properties)
        item.user_properties.append((f"ptxgen.launch.{count + 1}", _property(report, device)))
        if report.findings or not report.ok:
            item.add_report_section("call", f"launch ({device.schedule}, seed {device.seed})", report.summary())
        return report

    device.launch = reported  # type: ignore[method-assign]


def _property(report: LaunchReport, device: Emulator) -> str:
    """A launch as a property of the test in JUnit's XML: JSON in one line."""
    rows = [
        {"code": each.code, "severity": each.severity, "line": each.line, "source": each.source}
        for each in report.all_findings
    ]
    facts = {
        "kernel": report.kernel,
        "device": report.device,
        "schedule": device.schedule,
        "seed": device.seed,
        "status": report.status,
        "checked": report.checked,
        "instructions": report.instructions,
        "seconds": round(report.seconds, 3),
        "findings": rows,
    }
    return json.dumps(facts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which accepted findings no launch of the session has had."""
    used = config.stash.get(_USED, set())
    left = [each for each in config.stash.get(_UNUSED, {}) if each not in used]
    for each in left:
        terminalreporter.write_line(f"ptxgen: accepted, but not found any more: {each}", yellow=True)


@pytest.fixture
def gpu() -> Gpu:
    """The GPU; the test is skipped where there is none, with the reason."""
    from ptxgen.gpu import Gpu, GpuNotFoundError

    try:
        return Gpu()
    except GpuNotFoundError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def descriptor_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`descriptor_snapshot(descriptor, name="")`: the descriptor is that of the snapshot (`--update-descriptors`)."""
    from ptxgen.testing.descriptors import Snapshots

    snapshots = Snapshots(request.path, bool(request.config.getoption("--update-descriptors")))

    def check(descriptor: Descriptor, name: str = "") -> None:
        __tracebackhide__ = True
        snapshots.check("/".join(filter(None, (request.node.name, name))), descriptor)

    return check


@pytest.fixture
def sass_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`sass_snapshot(kernel, name="", tolerances={"loop-stalls": "5%"})`: registers, spills, instructions and the loops
    of a kernel (PTX text, path, Kernel or Cubin) are those of the snapshot (`--update-sass`).

    The test is skipped where there is no ptxas or nvdisasm.
    """
    from ptxgen.testing.sass_snapshots import SassSnapshots
    from ptxgen.toolchain import ToolNotInstalledError

    snapshots = SassSnapshots(request.path, bool(request.config.getoption("--update-sass")))

    def check(given: Any, name: str = "", **options: Any) -> None:
        __tracebackhide__ = True
        try:
            snapshots.check("/".join(filter(None, (request.node.name, name))), given, **options)
        except ToolNotInstalledError as reason:
            pytest.skip(str(reason))

    return check
