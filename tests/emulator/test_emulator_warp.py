"""Exchanges inside a warp, lane by lane, against the manual's algorithm (9.7.9.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import launch, poisoned


def shuffled(mode: str, values: list[int], offset: list[int], control: int) -> tuple[list[int], list[int]]:
    """What every lane gets, and whether its source is in its segment."""
    found, inside = [], []
    clamp, segment = control & 31, control >> 8 & 31
    for lane in range(32):
        b = offset[lane] & 31
        highest, lowest = (lane & segment) | (clamp & ~segment & 31), lane & segment
        if mode == "up":
            source, valid = lane - b, lane - b >= highest
        elif mode == "down":
            source, valid = lane + b, lane + b <= highest
        elif mode == "bfly":
            source, valid = lane ^ b, lane ^ b <= highest
        else:
            source = lowest | (b & ~segment & 31)
            valid = source <= highest
        found.append(values[source if valid else lane])
        inside.append(int(valid))
    return found, inside


@pytest.mark.parametrize("control", [31, 0, 0x1C03, 0x181F, 0x1007, 0x1F1F, 0x0C10, 0xFFFFE0FF & 0xFFFF])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(mode: str, control: int) -> None:
    rng = np.random.default_rng(control)
    values = rng.integers(0, 2**32, 64, dtype=np.uint32)
    for same in (True, False):
        offsets = np.full(64, rng.integers(0, 32)) if same else rng.integers(0, 64, 64)
        body = f"""
            .reg .b32 %v, %o, %d, %i; .reg .b64 %at; .reg .pred %p;
            mov.u32 %i, %tid.x; mul.wide.u32 %at, %i, 4;
            add.u64 %in0, %in0, %at; add.u64 %in1, %in1, %at; add.u64 %out0, %out0, %at; add.u64 %out1, %out1, %at;
            ld.global.b32 %v, [%in0]; ld.global.b32 %o, [%in1];
            shfl.sync.{mode}.b32 %d|%p, %v, %o, {control}, 0xffffffff;
            selp.u32 %i, 1, 0, %p; st.global.b32 [%out0], %d; st.global.b32 [%out1], %i; ret;"""
        inputs: list[Any] = [values, offsets.astype(np.uint32)]
        report, (found, inside) = launch(body, [poisoned(64), poisoned(64)], inputs=inputs, block=64)
        assert report.status == "ok", report.summary()
        for warp in (slice(0, 32), slice(32, 64)):
            expected = shuffled(mode, values[warp].tolist(), offsets[warp].tolist(), control)
            assert (found[warp].tolist(), inside[warp].tolist()) == expected


MASKS = [(32, "-1", "ok"), (16, "0xffff", "ok"), (16, "-1", "incomplete"), (32, "0xffff", "incomplete")]


@pytest.mark.parametrize(("threads", "mask", "status"), MASKS)
def test_lanes_that_the_mask_does_not_name(threads: int, mask: str, status: str) -> None:
    body = f""".reg .b32 %t, %d; .reg .pred %p; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, {threads};
        @%p shfl.sync.bfly.b32 %d, %t, 1, 31, {mask}; ret;"""
    assert launch(body)[0].status == status
