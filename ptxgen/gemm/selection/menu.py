"""The kernels that a Hopper problem may run with, and how long each should take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ptxgen.gemm.selection.forecast import CARDS, Floats, Forest, Form, Task, count
from ptxgen.gemm.types import TYPES

FILE = Path(__file__).parents[1] / "tuned" / "forecast.npz"
RUNG = "hopper/overlapped"
#: Options under which the kernels of the menu are as fast as measured, or nearly.
OPTIONS = frozenset(
    ("dtype", "b_dtype", "c_dtype", "a_major", "b_major", "bias", "alpha", "source", "activation", "promote",
     "dependent", "ptx")
)  # fmt: skip
_PRODUCTS = {"bf16": "bf16", "f16": "bf16", "e4m3": "fp8", "e5m2": "fp8"}
#: Kernels of which the trees are asked: those that the rough model has as fastest.
_ASKED = 300
FIELDS = tuple(each.name for each in fields(Form))
_FOREST = ("roots", "feature", "threshold", "children")


def product_of(options: Mapping[str, Any]) -> str | None:
    """What is measured as one: "bf16" (and f16), fp8 "fast" or "promoted"; None where the menu has nothing."""
    kind = _PRODUCTS.get(options.get("dtype", "bf16"))
    if options.get("scales", "none") != "none":
        return None
    if kind != "fp8":
        return kind
    return "promoted" if options.get("promote", True) else "fast"


@dataclass(frozen=True)
class Menu:
    """Kernels of a product: their options as `--set` takes them, as columns, and the trees."""

    options: tuple[str, ...]
    columns: dict[str, Floats]
    forest: Forest

    def times(self, task: Task, card: str) -> Floats:
        """Microseconds of each kernel; infinite for those that the rough model has far behind."""
        counted = count(self.columns, task, CARDS[card])
        found = np.full(len(counted.us), np.inf)
        asked = np.argsort(counted.us)[:_ASKED]
        found[asked] = counted.us[asked] * np.exp(self.forest.predict(counted.features[asked]))
        return found


@cache
def menu_of(product: str) -> Menu:
    """The menu of a product."""
    with np.load(FILE) as read:
        forms = read[f"{product}_forms"]
        forest = Forest(*(read[f"{product}_{name}"] for name in _FOREST), depth=int(read[f"{product}_depth"]))
        options = tuple(bytes(read[f"{product}_options"]).decode().split("\n"))
    return Menu(options, {name: forms[:, at].astype(float) for at, name in enumerate(FIELDS)}, forest)


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
