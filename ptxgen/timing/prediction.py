"""A prediction: cycles of a launch, what bounds it, and where the time of each role goes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ptxgen.device import Kernel
from ptxgen.timing.engines import Share, Span
from ptxgen.timing.machines import Machine
from ptxgen.timing.schedule import MachineSchedule, Segment
from ptxgen.timing.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TimingError(ValueError):
    """A launch whose time cannot be predicted; the message is one sentence."""


@dataclass(frozen=True)
class Role:
    """Warps of a CTA that do the same. `waits`: cycles of one of them by what it waited for, `issuing` the others."""

    name: str
    warps: tuple[int, ...]
    issuing: float
    waits: dict[str, float]


@dataclass(frozen=True)
class Prediction:
    """The predicted cycles of a launch (sm__cycles_elapsed.max), launch overhead included.

    - `clock`: MHz at which `microseconds` and `tflops` count.
    - `utilization`: the part of the cycles in which the SM's tensor core, TMA, share of the L2 and of memory, and
      issue slots were busy.
    - `simulated`: which clusters were emulated, and how many more count as equal to them.
    """

    kernel: str
    machine: Machine
    cycles: float
    clock: float
    flop: float
    bound_by: str
    utilization: dict[str, float]
    roles: list[Role]
    simulated: str
    parts: dict[str, float]
    l2: str
    segments: list[Segment] = field(repr=False)
    spans: list[Span] = field(repr=False)
    warps_per_cta: int = 1
    text: str = field(default="", repr=False)
    line_cycles: dict[int, float] = field(default_factory=dict, repr=False)

    @property
    def microseconds(self) -> float:
        return self.cycles / self.clock

    @property
    def tflops(self) -> float:
        return self.flop / self.microseconds / 1e6

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "kernel": self.kernel,
            "machine": self.machine.name,
            "cycles": round(self.cycles),
            "time_us": round(self.microseconds, 3),
            "clock_mhz": self.clock,
            "tflops": round(self.tflops, 1) if self.flop else None,
            "bound_by": self.bound_by,
            "utilization": {name: round(value, 4) for name, value in self.utilization.items()},
            "parts": {name: round(value) for name, value in self.parts.items()},
            "roles": [
                {
                    "name": each.name,
                    "warps": list(each.warps),
                    "issuing": round(each.issuing),
                    "waits": {name: round(value) for name, value in each.waits.items()},
                }
                for each in self.roles
            ],
            "l2": self.l2,
            "simulated": self.simulated,
            "evidence": evidence(self.machine),
        }


def evidence(machine: Machine) -> dict[str, int]:
    """How many of the machine's numbers are known in which way."""
    from ptxgen.timing.multiprocessor import MULTIPROCESSORS

    figures = [figure for _, figure in MULTIPROCESSORS[machine.name].figures()]
    return dict(Counter(figure.evidence.kind for figure in figures))


def made(
    timed: MachineSchedule,
    kernel: Kernel,
    machine: Machine,
    *,
    ctas: int,
    clusters: tuple[int, int, int],
    resident: int,
    walk: Walk | None,
    clock: float,
    flop: float,
    share: Share,
    l2: str,
    active: int,
) -> Prediction:
    """The prediction of what the schedule has counted.

    `clusters`: simulated, of those of this SM, of the grid. `walk`: where some tiles count as equal. `active`: SMs at
    work.
    """
    sm = timed.sm
    simulated, mine, count = clusters
    busy = max([float(timed.now), *(end for _, _, end in timed.ctas)])
    repeats = 0.0
    if walk is not None:
        repeats = walk.left * walk.period
    elif mine > simulated:
        ends = sorted(end for _, _, end in timed.ctas)
        size = resident * max(len(ends) // simulated, 1)
        # CTAs of a round may end far apart: what counts is their mean.
        per_round = (fmean(ends[-size:]) - fmean(ends[:size])) / max(simulated / resident - 1, 1)
        repeats = (mine - simulated) / resident * per_round
    engines = timed.engines[0]
    launch = sm.launch.value + sm.launch_cta.value * active
    if engines.plain:
        launch = sm.launch_plain.value + sm.launch_plain_cta.value * active
    single = ctas == count
    idle = sm.idle_clusters.value
    if engines.tensor.busy and (count <= idle or (single and count < 2 * idle)):
        # The cycles of the SMs at work, as Nsight Compute counts them: those of SMs whose clock stays higher.
        launch += (busy + repeats) * (sm.idle_clock.value - 1)
    total = launch + busy + repeats
    utilization = {
        "tensor": engines.tensor.busy / busy,
        "tma": engines.tma.busy / busy,
        "l2": engines.l2.busy / busy,
        "hbm": engines.memory.busy / busy,
        "issue": timed.issued / busy / 4 / len(timed.engines),
    }
    words = f"{simulated} of {count} clusters" if count > 1 else "the only cluster"
    if walk is not None:
        words = f"{walk.simulated} of the {walk.tiles} tiles of one cluster; the other {walk.left} are extrapolated at "
        words += f"{walk.period:,.0f} cycles each"
    elif repeats:
        words += f"; {mine - simulated} more of the same SM count as equal to the last"
    return Prediction(
        kernel=kernel.name,
        machine=machine,
        cycles=total,
        clock=clock,
        flop=flop,
        bound_by=_bound(utilization, launch, total),
        utilization={name: min(value, 1.0) for name, value in utilization.items()},
        roles=_roles(timed),
        simulated=words,
        parts={"launch": launch, "simulated": busy, "extrapolated": repeats},
        l2=l2,
        segments=timed.segments,
        spans=[each for one in timed.engines for each in one.spans],
        warps_per_cta=timed.warps_per_cta,
        text=kernel.text,
        line_cycles=dict(timed.line_cycles),
    )


def _bound(utilization: dict[str, float], launch: float, total: float) -> str:
    """What bounds: the busiest unit, launch where that is most of the time, latency where no unit is half busy."""
    name = max(utilization, key=lambda each: utilization[each])
    if launch > total / 2:
        return "launch"
    return name if utilization[name] >= 0.5 else "latency"


def grouped(roles: Sequence[Role], names: Mapping[int, str]) -> list[Role]:
    """Roles by the names of their warps; those without one stay as they are."""
    made: dict[str, list[Role]] = {}
    for each in roles:
        for warp in each.warps:
            one = replace(each, warps=(warp,))
            made.setdefault(names.get(warp, each.name), []).append(one)
    return [_together(name, parts) for name, parts in made.items()]


def _together(name: str, parts: Sequence[Role]) -> Role:
    total: dict[str, float] = defaultdict(float)
    for each in parts:
        for what, cycles in each.waits.items():
            total[what] += cycles
    warps = tuple(sorted(warp for each in parts for warp in each.warps))
    waits = {what: cycles / len(parts) for what, cycles in sorted(total.items(), key=lambda each: -each[1])}
    shown = name if name == _name(warps) else f"{name} ({_name(warps)})"
    return Role(shown, warps, sum(each.issuing for each in parts) / len(parts), waits)


def _roles(timed: MachineSchedule) -> list[Role]:
    """Warps of the first CTA, grouped by the lines at which they wait."""
    waits: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    lines: dict[int, set[int]] = defaultdict(set)
    issuing: dict[int, float] = defaultdict(float)
    for each in timed.segments:
        if each.warp >= timed.warps_per_cta:
            continue
        if each.what == "issue":
            issuing[each.warp] += each.end - each.begin
        else:
            waits[each.warp][each.what] += each.end - each.begin
            lines[each.warp].add(each.line)
    groups: dict[frozenset[int], list[int]] = defaultdict(list)
    for warp in range(timed.warps_per_cta):
        groups[frozenset(lines[warp])].append(warp)
    made = []
    for warps in groups.values():
        parts = [Role(_name(warps), (warp,), issuing[warp], waits[warp]) for warp in warps]
        made.append(_together(_name(warps), parts))
    return made


def _name(warps: Sequence[int]) -> str:
    if len(warps) == 1:
        return f"warp {warps[0]}"
    if list(warps) == list(range(warps[0], warps[-1] + 1)):
        return f"warps {warps[0]}-{warps[-1]}"
    return "warps " + ", ".join(map(str, warps))
