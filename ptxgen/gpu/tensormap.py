"""The driver's own encoding of tensormaps, to hold the library's against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxgen.descriptors.tensormap import Im2colMap, TensorMap, TiledMap
from ptxgen.descriptors.tensormap.tables import INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLE_CODES, TYPES


def encode_with_driver(cuda: Any, call: Callable[..., Any], made: TensorMap) -> bytes:
    """The 128 bytes that the driver makes of the arguments of a map; `call` is `Gpu._call`, and raises its errors."""
    number = lambda names, name: list(names).index(name)  # noqa: E731
    common = [
        cuda.CUtensorMapDataType(number(TYPES, made.dtype)),
        made.rank,
        made.address,
        [cuda.cuuint64_t(size) for size in made.dims],
        # The driver reads no stride of a tensor of rank 1, but takes no null pointer.
        [cuda.cuuint64_t(stride) for stride in made.strides or (0,)],
    ]
    strides = [cuda.cuuint32_t(stride) for stride in made.element_strides]
    modes = [
        cuda.CUtensorMapInterleave(number(INTERLEAVES, made.interleave)),
        cuda.CUtensorMapSwizzle(number(SWIZZLE_CODES, made.swizzle)),
        cuda.CUtensorMapL2promotion(number(L2_PROMOTIONS, made.l2_promotion)),
        cuda.CUtensorMapFloatOOBfill(number(OOB_FILLS, made.oob_fill)),
    ]
    if isinstance(made, TiledMap):
        box = [cuda.cuuint32_t(extent) for extent in made.box]
        answer = call("cuTensorMapEncodeTiled", *common, box, strides, *modes)
    else:
        assert isinstance(made, Im2colMap)
        corners = [list(made.pixel_box_lower), list(made.pixel_box_upper)]
        column = [made.channels_per_pixel, made.pixels_per_column]
        answer = call("cuTensorMapEncodeIm2col", *common, *corners, *column, strides, *modes)
    return b"".join(int(word).to_bytes(8, "little") for word in answer.opaque)
