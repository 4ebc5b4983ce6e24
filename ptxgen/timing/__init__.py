"""What is known about the machines' speed, and predictions of launches from it.

`machines` has what the planner of `ptxgen.gemm` reads, `multiprocessor` the latencies and rates of one SM. `predict`
(in `simulate`) emulates the CTAs of one SM under the machine schedule (`schedule`, `engines`, `issue`) and gives a
`Prediction`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ptxgen.timing.machines import MACHINES, Figure, Machine

if TYPE_CHECKING:
    from ptxgen.timing.prediction import Prediction, TimingError
    from ptxgen.timing.simulate import predict

__all__ = ["MACHINES", "Figure", "Machine", "Prediction", "TimingError", "predict"]

#: Where each name lives that the planner needs not: predictions import the emulator.
_HOMES = {"predict": "simulate", "Prediction": "prediction", "TimingError": "prediction"}

if not TYPE_CHECKING:  # so that a misspelt name is still an error to a type checker

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'ptxgen.timing' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"ptxgen.timing.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
