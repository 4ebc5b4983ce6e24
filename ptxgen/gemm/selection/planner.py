"""Which configuration of a rung a problem should run with, by the model of `ptxgen.gemm.prediction.estimate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ptxgen.gemm.concepts.accumulator import MMA_COLUMNS
from ptxgen.gemm.concepts.epilogue import chunk_columns
from ptxgen.gemm.config import GemmConfig
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.ladder import KernelEntry, find
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.prediction.estimate import Estimate
from ptxgen.gemm.prediction.traffic import cluster_tiles
from ptxgen.gemm.types import TYPES
from ptxgen.timing import Machine

#: The rung of each target whose options span the space.
RUNGS = {"sm_100a": "blackwell/panels", "sm_90a": "hopper/overlapped"}
#: The rung of each block-scaled format.
FORMATS = {"mxfp8": "mxfp8-o11", "mxfp4": "mxfp4", "nvfp4": "nvfp4"}
#: Options that are tried in all their values; `stages` as many as fit, `panel` and `order` as take the least time.
AXES = ("m_tile", "n_tile", "cta_group", "cluster_m", "cluster_n", "consumers")
PANELS = (1, 2, 4, 8, 16)
#: Gains below this are not worth a sentence.
WORTH = 0.02
#: From this part of the L2's bandwidth on the choice is said to rest on that figure.
L2_HEAVY = 0.85
#: Microseconds below which effects outside the model may dominate (a launch takes 2 to 7).
SHORT = 10
LARGEST = 1 << 18
#: Changes of a configuration are tried where its bound is so much below the best time.
_PROMISING = 1.04
#: Stages that are worth a plan: consumers on Hopper hold two.
_LEAST_STAGES = {"sm_100a": 1, "sm_90a": 2}
#: The tile of a rung whose own leaves promoted sums no registers.
_NARROW = {"n_tile": 128}


@dataclass(frozen=True)
class Planning:
    """What the planner found: `ranked` with the choice first, and `shipped`, the rung with its own tile and cluster.

    One configuration for each tile and cluster: its best scheduler, order and number of stages.
    """

    rung: str
    ranked: Sequence[Estimate]
    shipped: Estimate

    @property
    def chosen(self) -> Estimate:
        return self.ranked[0]

    @property
    def gain(self) -> float:
        """How much faster the choice is predicted to be than what is shipped: 0.07 is 7 %."""
        return self.shipped.cycles / self.chosen.cycles - 1

    @property
    def safer(self) -> Estimate | None:
        """The best configuration with far fewer bytes from the L2, where the choice is near the L2's bandwidth."""
        best = self.chosen
        if best.l2_cycles < L2_HEAVY * max(best.tensor_cycles, best.hbm_cycles):
            return None
        fewer = [each for each in self.ranked if each.l2_bytes < 0.9 * best.l2_bytes]
        return min(fewer, key=lambda each: each.cycles, default=None)

    def explain(self) -> list[str]:
        """The choice in sentences."""
        best, shipped = self.chosen, self.shipped
        said = [_waves(best), _bound(best)]
        if _shape(best) == _shape(shipped):
            said.append(f"{self.rung} ships this tile and cluster.")
        else:
            words = f"about {self.gain:.0%} faster" if self.gain >= WORTH else f"tied within {WORTH:.0%}"
            said.append(f"{self.rung} ships {_waves(shipped)}")
            times = f"{_shown(shipped.microseconds)} -> {_shown(best.microseconds)} µs"
            said.append(f"Predicted for {best.tile} instead of {shipped.tile}: {words} ({times}).")
        if self.safer is not None:
            figure = best.machine.l2_bandwidth
            need, safe = best.l2_bytes / best.microseconds / 1e6, shipped.cycles / self.safer.cycles - 1
            said.append(
                f"It takes {need:.0f} TB/s from the L2, which has {figure.value / 1e12:g} ({figure.evidence}); with "
                f"less, take {self.safer.tile}, about {safe:.0%} faster than what is shipped."
            )
        tie = best.machine.tie.value
        least = min(each.cycles for each in self.ranked)
        tied = [each.tile for each in self.ranked[1:] if each.cycles <= least * (1 + tie)]
        if tied and tie:
            said.append(
                f"Tied within {tie:.0%}, with as many or more bytes from the L2: {', '.join(dict.fromkeys(tied))}."
            )
        split = best.cycles / best.even_cycles - 1
        if split >= WORTH and best.machine.target == "sm_100a":
            said.append(f"A split of K (stream-K), which no rung has, could be at most {split:.0%} faster than that.")
        if best.microseconds < SHORT and not best.machine.launch.value:
            said.append(f"Launch and epilogue are not in these times; below {SHORT} µs they may decide.")
        return said


def _shape(each: Estimate) -> tuple[object, ...]:
    config = each.config
    return config.m_tile, config.n_tile, config.cta_group, each.plan.scheduler.cluster


def _shown(number: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def _waves(each: Estimate) -> str:
    last = each.tiles - (each.whole_waves - 1) * each.slots
    outside = 1 - each.tile_efficiency
    edges = f", and {outside:.0%} of their area lies outside C" if outside >= 0.005 else ""
    return (
        f"{_name(each)}: {each.tiles} tile{'s' * (each.tiles > 1)} on {each.slots} {each.group} make {each.waves:.2f} "
        f"waves, so {each.whole_waves} at {each.wave_efficiency:.1%}; the last has {last} of {each.slots}{edges}."
    )


def _bound(each: Estimate) -> str:
    parts = {"tensor cores": each.tensor_cycles, "L2": each.l2_cycles, "HBM": each.hbm_cycles}
    shown = ", ".join(f"{name} {_shown(cycles / each.clock)} µs" for name, cycles in parts.items())
    return f"The largest of {shown} bounds it, at {each.clock:g} MHz."


def _name(each: Estimate) -> str:
    cluster = "×".join(map(str, each.plan.scheduler.cluster))
    return f"{each.tile} (cta_group {each.config.cta_group}, cluster {cluster})"


def plan_gemm(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    count: int = 8,
    clock: float | None = None,
    fixed: Mapping[str, Any] = {},
    kernel: str | None = None,
) -> Planning:
    """The best `count` configurations of a problem. `fixed` options keep their values; `clock` in MHz, by default the
    machine's for a problem of so many FLOP per byte.

    Those of a `kernel` by name or id, by default of the rung in `RUNGS`. Raises PlanError for sizes out of range,
    options that the rung has not, a rung of another target, sizes that its types do not take, and where nothing fits.
    """
    for name, value in (("M", m), ("N", n), ("K", k)):
        if not 1 <= value <= LARGEST:
            raise PlanError(f"{name} must be 1 to {LARGEST}, not {value}")
    if count < 1:
        raise PlanError(f"the planner lists 1 configuration or more, not {count}")
    if clock is not None and not 100 <= clock <= 10000:
        raise PlanError(f"the clock must be 100 to 10000 MHz, not {clock:g}")
    entry = find(kernel or RUNGS[machine.target])
    if entry.target != machine.target:
        raise PlanError(f"{entry.name} is for {entry.target}; {machine.title} runs {machine.target}")
    if "n_tile" not in entry.options:
        raise PlanError(f"{entry.name} has no tiles to choose from: the planner takes kernels with the option n_tile")
    if set(fixed) - set(entry.options):
        entry.plan(**fixed)  # raises: names what it has
    GemmConfig(**{**entry.defaults, **fixed}).require(entry.target)

    def estimate(plan: GemmPlan) -> Estimate:
        return Estimate.of(plan, machine, m, n, k, clock)

    candidates = [
        _hinted(entry, each, fixed)
        for plan in _candidates(entry, machine, m, n, fixed)
        for each in _sharing(entry, estimate(plan), fixed)
    ]
    if not candidates:
        raise PlanError(f"no configuration of {entry.name} fits: {_refusal(entry, fixed)}")
    candidates[0].plan.padded_problem(m, n, k)  # raises for sizes that the types do not take
    found: dict[tuple[object, ...], Estimate] = {}
    for each in candidates:
        known = found.get(_shape(each))
        if known is None or _rank(each) < _rank(known):
            found[_shape(each)] = each
    ranked: list[Estimate] = []
    tie = 1 + machine.tie.value
    for each in sorted(found.values(), key=lambda each: each.least_cycles):
        if len(ranked) >= count and each.least_cycles > max(ranked[count - 1].cycles, ranked[0].cycles * tie):
            break
        made = _ordered(each, fixed)
        if not ranked or each.least_cycles * _PROMISING < ranked[0].cycles:
            made = _refined(entry, made, fixed)
        ranked.append(made)
        ranked.sort(key=lambda other: other.cycles)
    tied = ranked[0].cycles * tie
    ranked.sort(key=lambda other: (max(other.cycles, tied), other.l2_bytes, *_rank(other)))
    own = {name: value for name, value in fixed.items() if name not in AXES}
    most, rung = _most_stages(entry.described()), {**entry.choices_for(m, n, k), **own}
    shipped = _fitted(entry, rung, most) or _fitted(entry, {**own, **_NARROW}, most)
    if shipped is None:
        raise PlanError(f"{entry.name} does not fit: {_refusal(entry, own)}")
    listed = [replace(each, plan=entry.plan(**_options(entry, each))) for each in ranked[:count]]
    return Planning(entry.name, listed, estimate(entry.plan(**_options(entry, estimate(shipped)))))


def _options(entry: KernelEntry, each: Estimate) -> dict[str, Any]:
    return {name: getattr(each.config, name) for name in entry.options}


def _rank(each: Estimate) -> tuple[float, float, bool]:
    """What decides between configurations that move the same bytes: time, shared memory filled, a persistent grid."""
    return each.least_cycles, each.plan.a.bytes + each.plan.b.bytes, not each.plan.scheduler.persistent


def _candidates(entry: KernelEntry, machine: Machine, m: int, n: int, fixed: Mapping[str, Any]) -> Iterator[GemmPlan]:
    """Every configuration that can be planned, each with as many stages as fit.

    N tiles that are not multiples of 16 are tried only where they fill waves better and a chunk of C has more than 8
    columns. On Hopper, a tile that exceeds M or N is skipped if a smaller one covers it.
    """
    described = entry.described()
    most = _most_stages(described)
    chunk = fixed.get("chunk", described.get("chunk", {}).get("default", 8))
    values: dict[str, Sequence[Any]] = {}
    for name in AXES:
        if name in fixed:
            values[name] = (fixed[name],)
        elif name in described:
            option = described[name]
            first, last, step = option.get("range", (0, 0, 1))
            values[name] = option.get("choices") or range(first, last + 1, step)
    if machine.target == "sm_90a":
        for name, extent, step in (("m_tile", m, 64), ("n_tile", n, 16)):
            if name not in fixed and name in values:
                values[name] = [each for each in values[name] if each - step < extent] or values[name]
    if "scheduler" in described:
        default = described["scheduler"]["default"]
        values["scheduler"] = (fixed["scheduler"],) if "scheduler" in fixed else tuple(dict.fromkeys((default, "grid")))
    config = GemmConfig(**{**entry.defaults, **fixed})
    if "warpgroups" in set(described) - set(fixed) and TYPES[config.dtype].kind == "f8f6f4" and config.promote:
        # Two blocks of 64 rows share the registers for the sums of a K block.
        values["warpgroups"] = (0, 2)
    pinned = {"cluster_m", "cluster_n"} & set(fixed)
    for chosen in product(*values.values()):
        choices = {**fixed, **dict(zip(values, chosen, strict=True))}
        if "warpgroups" in values and choices["warpgroups"] and choices["m_tile"] != 256:
            continue
        if choices.get("consumers") == "pingpong" and choices["m_tile"] < 128 and "consumers" not in fixed:
            continue  # 64 rows a warpgroup: 0.7 of cuBLAS at 4096³ on an H200 (docs/hopper-tuning.md)
        ctas = choices.get("cluster_m", 1) * choices.get("cluster_n", 1)
        if ctas > machine.cluster.value and not pinned:
            continue
        if choices["n_tile"] % 16 and "n_tile" not in fixed:
            narrow = chunk_columns(choices["n_tile"], chunk) == 8
            if narrow or not _fills_waves(choices, m, n, int(machine.sms.value) // ctas):
                continue
        if choices["n_tile"] > MMA_COLUMNS and chunk_columns(choices["n_tile"], chunk) <= 16:
            # 17 or more chunks, each after a move of all registers: two of half the columns take less.
            choices = {"chunk": choices["n_tile"] // 2, "chunk_buffers": 1, **choices}
        plan = _fitted(entry, choices, most)
        if plan is not None:
            yield plan


def _fills_waves(choices: Mapping[str, Any], m: int, n: int, slots: int) -> bool:
    """Whether all waves together have fewer columns than with an N tile of 8 less, and than with one of 8 more."""
    rows, columns = (choices.get(f"cluster_{name}", 1) for name in "mn")
    along_m, tile = -(-m // (choices["m_tile"] * rows)), choices["n_tile"]
    narrower, own, wider = (
        -(-along_m * -(-n // (each * columns)) // slots) * each for each in (tile - 8, tile, tile + 8)
    )
    return own < min(narrower, wider)


def _most_stages(described: Mapping[str, Mapping[str, Any]]) -> int:
    return described["stages"]["range"][1] if "stages" in described else 1


def _fitted(entry: KernelEntry, choices: Mapping[str, Any], most: int) -> GemmPlan | None:
    """The plan with as many stages as fit, at most `most`.

    And with direct stores where the rung's epilogue has no such form.
    """
    for more in ({}, {"epilogue": "direct"}):
        if more and "epilogue" in choices:
            continue
        chosen = {**choices, **more}
        try:
            if "stages" in chosen or "stages" not in entry.options:
                return entry.unnamed(**chosen)
            least = entry.unnamed(**chosen, stages=_LEAST_STAGES[entry.target])
        except PlanError:
            continue
        more_stages = (least.shared.limit - least.shared.bytes) // (least.a.bytes + least.b.bytes)
        for stages in range(min(most, least.config.stages + more_stages), least.config.stages, -1):
            try:
                return entry.unnamed(**chosen, stages=stages)
            except PlanError:
                continue
        return least
    return None


def _refusal(entry: KernelEntry, choices: Mapping[str, Any]) -> str:
    try:
        stages = {"stages": _LEAST_STAGES[entry.target]} if "stages" in entry.options else {}
        entry.plan(**{**stages, **choices})
    except PlanError as error:
        return str(error)
    return "shared memory holds no stage of any tile"


def _ordered(each: Estimate, fixed: Mapping[str, Any]) -> Estimate:
    """With the order of tiles that takes the least time, or as little with the fewest bytes from memory.

    The rung's own where that is as good. But along M, which no CTA divides for, where every order is that; and in one
    wave if B is the larger, so that CTAs with the same rows of it are neighbors (128×4096×14336 on an H200: 33 µs, 46
    with panels of 8).
    """
    if "panel" in fixed or "order" in fixed:
        return each

    def ordered(order: Mapping[str, Any]) -> Estimate:
        scheduler = replace(each.plan.scheduler, **order)
        return replace(each, plan=replace(each.plan, config=replace(each.config, **order), scheduler=scheduler))

    if 1 in cluster_tiles(each.plan.scheduler, each.m, each.n):
        return ordered({"panel": 0})
    if each.slots >= each.tiles:
        along_m = ordered({"panel": 0})
        return along_m if each.n > each.m or along_m.cycles < each.cycles else each
    best = each
    for order in [*({"panel": panel} for panel in PANELS), {"panel": 0, "order": "hilbert"}]:
        other = ordered(order)
        if (other.cycles, other.hbm_bytes) < (best.cycles, best.hbm_bytes):
            best = other
    return best


def _hinted(entry: KernelEntry, each: Estimate, fixed: Mapping[str, Any]) -> Estimate:
    """With hints for the L2 where memory bounds and the grid reads a row of the larger operand at most twice.

    Unless they are fixed, or nobody has measured what they gain on the machine.
    """
    if each.machine.hints.value == 1 or {"a_hint", "b_hint"} & set(fixed) or "a_hint" not in entry.options:
        return each
    along_m, along_n = cluster_tiles(each.plan.scheduler, each.m, each.n)
    if each.least_hbm_cycles < each.tensor_cycles or (along_m if each.n > each.m else along_n) > 2:
        return each
    a, b = ("evict_last", "evict_first") if each.n > each.m else ("evict_first", "evict_last")
    return replace(each, plan=replace(each.plan, config=replace(each.config, a_hint=a, b_hint=b)))


def _sharing(entry: KernelEntry, each: Estimate, fixed: Mapping[str, Any]) -> Iterator[Estimate]:
    """It, and the same with fewer stages so that two or three CTAs share an SM, where registers allow it."""
    yield each
    if each.plan.scheduler.persistent or each.whole_waves < 2 or each.plan.roles.registers or "stages" in fixed:
        return
    if each.plan.accumulator.columns or each.plan.scheduler.cluster_ctas > 1:
        return
    for ctas in (2, 3):
        if each.config.stages // ctas > 2:
            plan = entry.unnamed(**{**_options(entry, each), "stages": each.config.stages // ctas})
            yield replace(each, plan=plan)


def _refined(entry: KernelEntry, each: Estimate, fixed: Mapping[str, Any]) -> Estimate:
    """With fewer stages, if that is faster; and with K split where there are fewer tiles than SMs, if that is."""
    best = _trimmed(entry, each, fixed)
    if not each.splits:
        return best
    most = _most_stages(entry.described())
    changes: list[dict[str, Any]] = [{"scheduler": "stream"}]
    if "split_k" in entry.options:
        changes += [{"scheduler": "grid", "consumers": "cooperative", "split_k": ctas} for ctas in (2, 4)]
    for change in changes:
        if any(fixed.get(name, value) != value for name, value in change.items()):
            continue
        scheduler = replace(each.plan.scheduler, kind=change["scheduler"], split_k=change.get("split_k", 1))
        quick = replace(each.plan, config=replace(each.config, **change), scheduler=scheduler)  # not checked
        if replace(each, plan=quick).least_cycles >= best.cycles:
            continue
        options = {**_options(entry, each), **change}
        if "stages" not in fixed:
            del options["stages"]
        plan = _fitted(entry, options, most)
        if plan is not None:
            other = _trimmed(entry, _hinted(entry, replace(each, plan=plan), fixed), fixed)
            best = min(best, other, key=lambda made: made.cycles)
    return best


def _trimmed(entry: KernelEntry, each: Estimate, fixed: Mapping[str, Any]) -> Estimate:
    """With as many stages as leave an L1 cache, where its CTAs take all shared memory and that costs bandwidth."""
    beyond = each.shared_bytes - each.machine.most_shared.value
    if beyond <= 0 or each.machine.full_shared.value == 1 or "stages" in fixed:
        return each
    plan = each.plan
    stages = each.config.stages - -(-int(beyond) // (each.resident * (plan.a.bytes + plan.b.bytes)))
    if stages < 2:
        return each
    other = replace(each, plan=entry.unnamed(**{**_options(entry, each), "stages": stages}))
    return min(each, other, key=lambda made: made.cycles)
