"""Recorded kernels of `tests/data` on a Hopper GPU: the references that the emulator is held to hold for silicon."""

import pytest

from ptxgen.gpu import Gpu
from tools.recorded import case as cases

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", [name for name in cases.names() if cases.load(name).target == "sm_90a"])
def test_the_gpu_gives_what_the_reference_says(gpu: Gpu, name: str):
    outcome = cases.load(name).run(gpu)
    assert outcome.right, [outcome.report.summary(), *outcome.wrong.values()]
