"""Shared memory by name: variables, elements, regions of the plan, and what no name is known of."""

from __future__ import annotations

import pytest

from ptxgen import Emulator, Kernel
from ptxgen.device import SharedRegion
from ptxgen.emulator.load.calls import reachable
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


#: Four kernels, and the bytes of shared memory that ptxas 13.5 gives each (-v, rounded up to 8 there).
SEVERAL = """.version 8.0
.target sm_90
.address_size 64
.weak .shared .align 4 .b8 a[1000];
.visible .shared .align 4 .b8 b[3000];
.shared .align 4 .b8 c[500];
.shared .align 4 .b8 cc[100000];
.extern .shared .align 4 .b8 d[];
.func f() { st.shared.u32 [b+4], 1; ret; }
.visible .entry k1() { st.shared.u32 [a], 1; ret; }
.visible .entry k2() { call f, (); ret; }
.visible .entry k3() { .reg .b64 %x; mov.u64 %x, c; add.u64 %x, %x, 4; ret; }
.visible .entry k4() { .reg .b64 %cc; ret; }
"""


@pytest.mark.parametrize(("entry", "size"), [("k1", 1000), ("k2", 3000), ("k3", 500), ("k4", 0)])
def test_a_kernel_has_the_shared_variables_that_it_uses(entry: str, size: int) -> None:
    kernel = Kernel.from_ptx(SEVERAL, entry)
    assert Variables(kernel.module, reachable(kernel.module, kernel.entry)).shared_end == 1024 + size


def test_kernels_that_together_declare_more_than_there_is() -> None:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    variables = "".join(f".weak .shared .align 4 .b8 s{number}[45000];\n" for number in range(6))
    kernels = "".join(
        f".visible .entry k{number}() {{ st.shared.u32 [s{number}+44996], 1; ret; }}\n" for number in range(6)
    )
    device = Emulator(target="sm_90a")
    for number in range(6):
        kernel = Kernel.from_ptx(head + variables + kernels, f"k{number}")
        assert device.launch(kernel, 1, 1, []).status == "ok"
