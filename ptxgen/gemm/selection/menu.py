"""The kernels that a Hopper problem may run with, and how long each should take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ptxgen.gemm.selection.forecast import CARDS, Form, Task, count
from ptxgen.gemm.selection.forest import PACKED, Floats, Forest
from ptxgen.gemm.types import TYPES

FILE = Path(__file__).parents[1] / "tuned" / "forecast.npz"
RUNG = "hopper/overlapped"
#: Options under which the kernels of the menu are as fast as measured, or nearly.
OPTIONS = frozenset(
    ("dtype", "b_dtype", "c_dtype", "a_major", "b_major", "bias", "alpha", "source", "activation", "promote",
     "scales", "dependent", "ptx")
)  # fmt: skip
_PRODUCTS = {"bf16": "bf16", "f16": "bf16", "e4m3": "fp8", "e5m2": "fp8"}
#: Kernels that the first trees score (the fastest by the rough model), those trees, and kernels that all trees score
#: (the fastest by the first trees). Boosting's first trees correct most.
_ASKED, _FIRST_TREES, _NEAR = 300, 150, 64
FIELDS = tuple(each.name for each in fields(Form))


def product_of(options: Mapping[str, Any]) -> str | None:
    """What is measured as one: "bf16" (and f16), fp8 "fast", "promoted" or "scaled"; None for others."""
    kind = _PRODUCTS.get(options.get("dtype", "bf16"))
    if kind != "fp8":
        return kind
    if options.get("scales", "none") != "none":
        return "scaled"
    return "promoted" if options.get("promote", True) else "fast"


def cost_of_scales(columns: Mapping[str, Floats]) -> Floats:
    """The time of kernels with scales over that of the same ones that only promote their sums.

    Round figures of 358 launches for 60 tuning rows (H200, 2026-11-30). Swapped, each column of a tile has a scale of
    its own; otherwise a tile has one scale or two of B, and where these change at a multiple of 32 columns it costs
    nothing.
    """
    n_tile = columns["n_tile"]
    straight = np.select([n_tile % 32 == 0, n_tile % 16 == 0], [0.0, 0.1], 0.28)
    turned = 0.06 + 0.0023 * np.maximum(n_tile - 32, 0)
    return np.exp(np.where(columns["swapped"] > 0, turned, straight))


@dataclass(frozen=True)
class Menu:
    """Kernels of a product: their options as `--set` takes them, as columns, and the trees.

    `cost`: what the times of the trees are multiplied by.
    """

    options: tuple[str, ...]
    columns: dict[str, Floats]
    forest: Forest
    cost: Floats

    def times(self, task: Task, card: str) -> Floats:
        """Microseconds of each kernel; infinite for those that the rough model has far behind."""
        counted = count(self.columns, task, CARDS[card])
        found, rough = np.full(len(counted.us), np.inf), counted.us * self.cost
        asked = np.argsort(rough)[:_ASKED]
        found[asked] = rough[asked] * np.exp(self.forest.predict(counted.features[asked], end=_FIRST_TREES))
        near = np.argsort(found)[:_NEAR]
        found[near] *= np.exp(self.forest.predict(counted.features[near], first=_FIRST_TREES))
        return found


@cache
def menu_of(product: str) -> Menu:
    """The menu of a product; that of "scaled" has the kernels of "promoted"."""
    if product == "scaled":
        promoted = menu_of("promoted")
        return replace(promoted, cost=cost_of_scales(promoted.columns))
    with np.load(FILE) as read:
        forms = read[f"{product}_forms"]
        forest = Forest.unpacked({name: read[f"{product}_{name}"] for name in PACKED})
        options = tuple(bytes(read[f"{product}_options"]).decode().split("\n"))
    columns = {name: forms[:, at].astype(float) for at, name in enumerate(FIELDS)}
    return Menu(options, columns, forest, np.ones(len(options)))


def forecasts(
    m: int, n: int, k: int, card: str, given: Mapping[str, Any], count: int
) -> list[tuple[float, tuple[str, ...], bool]]:
    """The fastest kernels for a problem: microseconds, options, and whether A and B change places."""
    product = product_of(given)
    if product is None or card not in CARDS or not set(given) <= OPTIONS:
        return []
    menu, element = menu_of(product), TYPES[given.get("dtype", "bf16")].bits // 8
    c_element = TYPES[given.get("c_dtype") or ("bf16" if element == 2 else "f32")].bits // 8
    task = Task(
        m, n, k, element,
        element * (m if given.get("a_major") == "mn" else k),
        element * (n if given.get("b_major") == "mn" else k),
        c_element * n, c_element,
    )  # fmt: skip
    times = menu.times(task, card)
    swapped = menu.columns["swapped"] > 0
    return [
        (float(times[at]), tuple(menu.options[at].split()), bool(swapped[at]))
        for at in np.argsort(times)[:count]
        if np.isfinite(times[at])
    ]
