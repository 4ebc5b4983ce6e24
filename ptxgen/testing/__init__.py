"""Asserts for tests of kernels, and a pytest plugin that is active wherever ptxgen is installed.

The plugin (`ptxgen.pytest_plugin`) has the fixtures `emulator` (each test once for every schedule and seed), `gpu`
(skips where there is none) and `descriptor_snapshot`. `docs/testing.md` has examples.
"""

from __future__ import annotations

from ptxgen.testing.arrays import assert_allclose
from ptxgen.testing.descriptors import assert_same_descriptor
from ptxgen.testing.launches import assert_ok
from ptxgen.testing.sass import assert_same_sass

__all__ = ["assert_allclose", "assert_ok", "assert_same_descriptor", "assert_same_sass"]
