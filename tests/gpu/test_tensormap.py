"""Tensormaps of this library against those of this machine's driver."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.gpu import Gpu
from tests.support.paths import DATA

pytestmark = pytest.mark.gpu
RECORDING = DATA / "tensormap" / "h200_driver580.jsonl.gz"
OPTIONS = ("element_strides", "interleave", "swizzle", "l2_promotion", "oob_fill")


def test_the_driver_encodes_the_same_bytes(gpu: Gpu) -> None:
    """The maps of recorded calls, moved to other addresses and element strides; those that we refuse are left out."""
    with gzip.open(RECORDING, "rt") as lines:
        records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    compared = 0
    for number, record in enumerate(records):
        if record["kind"] == "im2col_wide":
            continue
        first = (record["data_type"], record["address"] + 4096 * number, record["dims"], record["strides"] or [0])
        options = {name: record[name] for name in OPTIONS}
        try:
            if record["kind"] == "tiled":
                made: TensorMap = TensorMap.tiled(*first, record["box"], **options, target=gpu.target)
            else:
                made = TensorMap.im2col(
                    *first,
                    record["pixel_box_lower"],
                    record["pixel_box_upper"],
                    record["channels_per_pixel"],
                    record["pixels_per_column"],
                    **options,
                    target=gpu.target,
                )
        except DescriptorError:
            continue
        assert gpu.tensormap(made) == made.encode(), made
        compared += 1
    assert compared > 1500
