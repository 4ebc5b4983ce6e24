"""What recorded kernels compute, in NumPy: functions of a case's inputs, named in its JSON.

`"reference": {"name": "product", "a": "bf16", ...}` is `product(inputs, a="bf16", ...)`. A function gives the expected
outputs by name; what it does not give is not compared. NumPy only, as in `tools.recorded.codecs`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tools.recorded.codecs import Array, Outputs
from tools.recorded.references import compilers, handwritten, witnesses


@functools.cache
def functions() -> Mapping[str, Callable[..., Outputs]]:
    """All references by name; names are unique across the modules."""
    found: dict[str, Callable[..., Outputs]] = {}
    for module in (compilers, handwritten, witnesses):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                assert name not in found, f"two references are named {name}"
                found[name] = function
    return found


def evaluate(reference: Mapping[str, Any], inputs: Mapping[str, Array]) -> Outputs:
    """The outputs that a case's `reference` entry describes, from copies of the inputs."""
    parameters = {key: value for key, value in reference.items() if key != "name"}
    return functions()[reference["name"]]({name: each.copy() for name, each in inputs.items()}, **parameters)
