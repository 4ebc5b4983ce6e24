"""Taichi: a field that is filled and summed."""

import taichi as ti

ti.init(arch=ti.cuda, offline_cache=False, device_memory_GB=0.1)
field = ti.field(ti.i32, shape=200)


@ti.kernel
def fill():
    for i in field:
        field[i] = 2 * i


@ti.kernel
def total() -> ti.i32:
    found = 0
    for i in field:
        found += field[i]
    return found


fill()
assert ti.cfg.arch == ti.cuda
assert total() == 199 * 200
print("PASS")
