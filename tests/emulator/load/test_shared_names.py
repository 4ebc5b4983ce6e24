"""Shared memory by name: variables, elements, regions of the plan, and what no name is known of."""

from __future__ import annotations

import pytest

from ptxgen import Kernel
from ptxgen.device import SharedRegion
from ptxgen.emulator.load.shared_names import SharedNames
from ptxgen.emulator.load.variables import Variables
from tests.support.harness import module

ITEMS = """.shared .b64 full[4]; .shared .align 16 .b8 tile[64]; .shared .b32 flag;
.extern .shared .align 128 .b8 smem[];"""
REGIONS = (SharedRegion("empty", 0, 32, 4), SharedRegion("smem_a", 128, 512, 2), SharedRegion("done", 640, 8))


def names(*regions: SharedRegion) -> SharedNames:
    kernel = Kernel.from_ptx(module("ret;", items=ITEMS))
    variables = Variables(kernel.module, [kernel.entry])
    assert variables.shared_end == 1152
    return SharedNames(variables, regions, 2048)


@pytest.mark.parametrize(
    ("offset", "name", "stage"),
    [
        (1024, "full[0]", None), (1040, "full[2]", None), (1044, "full+0x14", None), (1056, "tile", None),
        (1060, "tile+0x4", None), (1120, "flag", None), (1124, "", None), (1152, "empty[0]", 0), (1176, "empty[3]", 3),
        (1184, "smem+0x20", None), (1280, "smem_a stage 0", 0), (1540, "smem_a stage 1", 1), (1792, "done", None),
        (2000, "smem+0x350", None),
    ],
)  # fmt: skip
def test_names(offset: int, name: str, stage: int | None) -> None:
    assert names(*REGIONS).name(offset) == (name, stage)


def test_without_regions_the_extern_variable_names_all() -> None:
    assert names().name(1152) == ("smem", None)
    assert names().name(1176) == ("smem+0x18", None)
