"""Fits the trees of the forecast to what bench.gpu.survey measured, and writes ptxgen/gemm/tuned/forecast.npz.

    python -m bench.gpu.fit bench/data/hopper-survey.jsonl.gz      # needs scikit-learn
    python -m bench.gpu.fit bench/data/hopper-survey.jsonl.gz new.jsonl --pack bench/data/hopper-survey.jsonl.gz

Rows whose shapes judge are refused. A kernel weighs the more the nearer it is to the fastest of its row; the menu has
the kernels of the survey that were within 3 % of the fastest of some row.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.gpu.arms import Spec
from bench.gpu.held_out import part_of
from bench.gpu.menu import RUNG, menu
from bench.gpu.suite import Row
from ptxgen.gemm.selection.forecast import CARDS, Form, Task, columns, count
from ptxgen.gemm.selection.forest import Floats, Forest
from ptxgen.gemm.selection.menu import FIELDS, FILE

#: Kernels within this of the fastest of some row are kept.
_NEAR = 1.03
#: Weights by time over that of the row's fastest kernel; slower ones are left out.
_WEIGHTS = ((1.08, 1.0), (1.2, 0.7), (1.45, 0.35), (2.0, 0.12))
_TREES = {
    "max_iter": 1000, "max_depth": 12, "learning_rate": 0.1, "min_samples_leaf": 15, "l2_regularization": 2.0,
    "max_bins": 160, "max_leaf_nodes": 63,
}  # fmt: skip
_ELEMENT = {"bf16": 2, "fast": 1, "promoted": 1}
#: Times of kernels with clusters that were taken while these met with a release, as of today: a part of them for one
#: tile a CTA, microseconds less for others (docs/hopper-tuning.md).
_MET, _MET_US = 0.9654, 0.37
#: What every kernel of a product has.
_OF_PRODUCT = ("dtype=", "c_dtype=", "promote=")


@dataclass(frozen=True)
class Measured:
    """Times of kernels on a row: their names and microseconds."""

    row: Row
    product: str
    card: str
    us: dict[str, float]


def require_tuning(rows: Sequence[Row]) -> None:
    """Raises ValueError for a row whose shape judges."""
    for row in rows:
        if part_of(row.n, row.k) != "tuning":
            raise ValueError(f"{row.n}x{row.k} judges; it must not enter a table")


def _card(found: Mapping[str, Any]) -> str:
    return ("h200" if "H200" in found["device"] else "h100") if "device" in found else ""


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a survey, as it was written or packed: a row is M, N, K and a type, `us` by the names of arms."""
    data = path.read_bytes()
    names = list[str]()
    for line in (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines():
        found = json.loads(line)
        names = found.get("names", names)
        if "row" not in found:
            if "device" in found:
                yield found
            continue
        row, us = found["row"], found["us"]
        if isinstance(row, dict):
            found["row"] = [row[name] for name in ("m", "n", "k", "dtype")]
        found["us"] = us if isinstance(us, dict) else {names[number]: value for number, value in us}
        yield found


def pack(paths: Sequence[Path], out: Path) -> None:
    """Write surveys as one: names once, rows with the numbers of their names."""
    numbers: dict[str, int] = {}
    lines: list[str] = []
    for path in paths:
        for found in records(path):
            if "row" not in found:
                lines.append(json.dumps(found))
                continue
            us = [[numbers.setdefault(name, len(numbers)), value] for name, value in found["us"].items()]
            lines.append(json.dumps({"row": found["row"], "product": found["product"], "us": us}))
    text = "\n".join([json.dumps({"names": list(numbers)}), *lines]) + "\n"
    out.write_bytes(gzip.compress(text.encode(), mtime=0))


def read(paths: Sequence[Path]) -> Iterator[Measured]:
    """The rows of surveys with the kernels that the forecast is for."""
    for path in paths:
        card, met = "", False
        for found in records(path):
            if "device" in found:
                card, met = _card(found), bool(found.get("relaxed"))
            if "row" not in found:
                continue
            m, n, k, dtype = found["row"]
            row, named = Row("drawn", m, n, k, dtype, "tuning"), found["us"]
            us = {
                name: value if met else _today(name, value)
                for name, value in named.items()
                if name.startswith(RUNG) and "stream" not in name
            }
            if len(us) > 4 and row.k * _ELEMENT[found["product"]] % 16 == 0:
                yield Measured(row, found["product"], card, us)


def _today(name: str, us: float) -> float:
    """The microseconds of a kernel whose clusters met with a release."""
    form = _form(name)
    if form.cluster_m * form.cluster_n == 1:
        return us
    return us * _MET if "scheduler=grid" in name.split() else max(us - _MET_US, 0.9 * us)


@dataclass(frozen=True)
class Table:
    """Rows and kernels of a product as the trees take them; `row`: the number of each one's row."""

    features: Floats
    rough: Floats
    us: Floats
    weight: Floats
    names: tuple[str, ...]
    row: NDArray[np.int64]


def table(found: Sequence[Measured]) -> Table:
    """The table of what was measured."""
    require_tuning([each.row for each in found])
    counted = [
        count(
            columns([_form(name) for name in each.us]),
            Task.dense(each.row.m, each.row.n, each.row.k, _ELEMENT[each.product]),
            CARDS[each.card],
        )
        for each in found
    ]
    us = [np.array(list(each.us.values())) for each in found]
    over = np.concatenate([each / each.min() for each in us])
    weight = np.select([over < limit for limit, _ in _WEIGHTS], [value for _, value in _WEIGHTS], 0.0)
    return Table(
        np.concatenate([each.features for each in counted]),
        np.concatenate([each.us for each in counted]),
        np.concatenate(us),
        weight,
        tuple(name for each in found for name in each.us),
        np.concatenate([np.full(len(each), number) for number, each in enumerate(us)]),
    )


@cache
def _form(name: str) -> Form:
    return Form.of(Spec.named(name).plan())


def fitted(made: Table) -> Forest:
    """Trees of a table, as the library reads them."""
    ensemble: Any = importlib.import_module("sklearn.ensemble")
    used = made.weight > 0
    model = ensemble.HistGradientBoostingRegressor(**_TREES)
    model.fit(made.features[used], np.log(made.us / made.rough)[used], sample_weight=made.weight[used])
    return forest_of([each[0].nodes for each in model._predictors], float(model._baseline_prediction.ravel()[0]))


def forest_of(trees: Sequence[Any], baseline: float) -> Forest:
    """Trees of scikit-learn with the two children of a node side by side; the first has the baseline."""
    roots: list[int] = []
    feature, threshold, children = list[int](), list[float](), list[int]()
    depth = 0
    for number, nodes in enumerate(trees):
        roots.append(len(feature))
        waiting = [(0, len(feature))]
        feature, threshold, children = [*feature, -1], [*threshold, 0.0], [*children, 0]
        while waiting:
            source, at = waiting.pop(0)
            node = nodes[source]
            depth = max(depth, int(node["depth"]))
            if node["is_leaf"]:
                threshold[at] = float(node["value"]) + (baseline if number == 0 else 0.0)
                continue
            feature[at], threshold[at], children[at] = (
                int(node["feature_idx"]),
                float(node["num_threshold"]),
                len(feature),
            )
            waiting += [(int(node["left"]), len(feature)), (int(node["right"]), len(feature) + 1)]
            feature, threshold, children = [*feature, -1, -1], [*threshold, 0.0, 0.0], [*children, 0, 0]
    return Forest(
        np.array(roots, np.int32), np.array(feature, np.int8), np.array(threshold), np.array(children, np.int32), depth
    )


def kept(product: str, made: Table) -> list[str]:
    """Names of the menu's kernels that were near the fastest of some row."""
    fastest = np.full(made.row.max() + 1, np.inf)
    np.minimum.at(fastest, made.row, made.us)
    over = made.us / fastest[made.row]
    near = {name for name, value in zip(made.names, over, strict=True) if value < _NEAR}
    return [spec.name for spec in menu(product) if spec.name in near]


def arrays(product: str, names: Sequence[str], forest: Forest) -> Mapping[str, Any]:
    """What the file has of a product."""
    options = [" ".join(word for word in name.split()[1:] if not word.startswith(_OF_PRODUCT)) for name in names]
    forms = [[int(getattr(_form(name), field)) for field in FIELDS] for name in names]
    return {
        f"{product}_options": np.frombuffer("\n".join(options).encode(), np.uint8),
        f"{product}_forms": np.array(forms, np.int32),
        **{f"{product}_{name}": values for name, values in forest.packed().items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("surveys", type=Path, nargs="+")
    parser.add_argument("--pack", type=Path, help="only write the surveys as one file")
    options = parser.parse_args()
    if options.pack is not None:
        pack(options.surveys, options.pack)
        return
    found = list(read(options.surveys))
    made: dict[str, Any] = {}
    for product in _ELEMENT:
        of_product = table([each for each in found if each.product == product])
        names = kept(product, of_product)
        made.update(arrays(product, names, fitted(of_product)))
        print(
            f"{product}: {of_product.row.max() + 1} rows, {len(of_product.us)} times, {len(names)} kernels", flush=True
        )
    np.savez_compressed(FILE, **made)


if __name__ == "__main__":
    main()
