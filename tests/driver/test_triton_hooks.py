"""How Triton's autotuners and benchmarks are cut, with a Triton of a few lines."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import ptxgen.driver

_HOOKS = Path(ptxgen.driver.__file__).with_name("python")


class Compiled:
    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def run(self) -> None:
        if self.size > 2:
            raise MemoryError("out of resources")


class Kernel:
    def __init__(self) -> None:
        self.launched: list[int] = []

    def run(self, *, size: int, warmup: bool) -> Compiled:
        if not warmup:
            self.launched.append(size)
        return Compiled(size)


def measured(call: Any, quantiles: Any) -> list[float]:
    pytest.fail("a configuration was measured")


class Autotuner:
    """The parts of Triton's class that are replaced or called."""

    def __init__(self) -> None:
        self.fn, self.base_fn = Kernel(), types.SimpleNamespace(__name__="matmul")
        self.do_bench = measured

    def _bench(self, *, config: int, **options: Any) -> list[float]:
        try:
            return self.do_bench(lambda: self.fn.run(size=config, **options), quantiles=(0.5, 0.2, 0.8))
        except MemoryError:
            return [float("inf")] * 3

    def run(self, **options: Any) -> int:
        times = {config: self._bench(config=config, **options) for config in (4, 3, 2, 1)}
        best = min(times, key=lambda each: times[each])
        self.fn.run(size=best, **options)
        return best


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the hooks say, in place of the stand-in's library."""
    monkeypatch.syspath_prepend(str(_HOOKS))
    for name in [each for each in sys.modules if each.startswith("ptxgen_exec")]:
        monkeypatch.delitem(sys.modules, name)
    benchmarks = importlib.import_module("ptxgen_exec.benchmarks")
    sentences: list[str] = []
    monkeypatch.setattr(benchmarks, "say", sentences.append)
    return sentences


def test_an_autotuner_takes_the_first_configuration_that_loads(said: list[str]) -> None:
    module = types.SimpleNamespace(Autotuner=type("Autotuner", (Autotuner,), {}))
    for name in ("run", "_bench"):
        setattr(module.Autotuner, name, getattr(Autotuner, name))
    importlib.import_module("ptxgen_exec.triton_autotuner").patch(module)
    tuner = module.Autotuner()
    assert tuner.run(warmup=False) == 2
    assert tuner.fn.launched == [2]
    assert tuner.do_bench is measured
    assert said == ["autotuner of matmul: the first of its configurations that loads (2)"]


def test_reports_of_benchmarks_are_left_out(said: list[str]) -> None:
    pytest.importorskip("torch")

    class Benchmark:
        plot_name = "softmax"

    class Mark:
        benchmarks = Benchmark()

        def run(self, **_: Any) -> None:
            pytest.fail("the benchmark ran")

    def do_bench(fn: Any, warmup: int = 25, quantiles: Any = None, return_mode: str = "mean") -> Any: ...

    module = types.SimpleNamespace(Benchmark=Benchmark, Mark=Mark, do_bench=do_bench)
    importlib.import_module("ptxgen_exec.triton_testing").patch(module)
    assert module.Mark().run(print_data=True) is None
    assert said == ["benchmark softmax: left out"]
    assert module.do_bench.__name__ == "do_bench"
    assert module.do_bench is not do_bench
