"""Tensormaps for a driver to encode: every type, interleave, swizzle, promotion and fill, tiled and im2col."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.descriptors.tensormap.tables import INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLE_CODES, TYPES

_ADDRESS = 0x7F0012345000
Arguments = dict[str, Any]


def _tiled(dtype: str, **more: Any) -> Arguments:
    packed = "b4" in dtype or "b6" in dtype or "align" in dtype
    box = 128 if packed else 16
    return {
        "kind": "tiled",
        "dtype": dtype,
        "dims": [4096, 512, 64],
        "strides": [1 << 16, 1 << 25],
        "box": [box, 32, 2],
        "element_strides": [1, 1, 1],
        "interleave": "none",
        "swizzle": "none",
        "l2_promotion": "none",
        "oob_fill": "none",
        **more,
    }


def _cases() -> Iterator[Arguments]:
    for dtype in TYPES:
        for swizzle, promotion in product(SWIZZLE_CODES, L2_PROMOTIONS):
            yield _tiled(dtype, swizzle=swizzle, l2_promotion=promotion)
        for fill, extent in product(OOB_FILLS, (8, 64, 256)):
            yield _tiled(dtype, oob_fill=fill, box=[128 if "align" in dtype else 16, extent, 1])
        for interleave, swizzle in product(INTERLEAVES, ("none", "32B")):
            yield _tiled(
                dtype,
                interleave=interleave,
                swizzle=swizzle,
                dims=[4096, 64, 32, 16],
                strides=[1 << 16, 1 << 22, 1 << 27],
                box=[16, 8, 4, 2],
                element_strides=[1, 1, 1, 1],
            )
        for stride in (1, 2, 7, 8):
            yield _tiled(dtype, element_strides=[1, stride, 1])


def build(arguments: Arguments) -> TensorMap:
    """The map of these arguments. Raises DescriptorError where they are illegal."""
    given = {
        name: value for name, value in arguments.items() if name not in ("kind", "dims", "strides", "box", "dtype")
    }
    return TensorMap.tiled(
        arguments["dtype"], _ADDRESS, arguments["dims"], arguments["strides"], arguments["box"], **given
    )


def tensormaps(encode: Callable[[TensorMap], bytes] | None) -> Iterator[dict[str, Any]]:
    """Every legal case with the 128 bytes that `encode` makes of it (this library's, if None), or the refusal."""
    for arguments in _cases():
        try:
            made = build(arguments)
        except DescriptorError:
            continue
        try:
            yield {"tensormap": arguments, "bytes": (encode(made) if encode else made.encode()).hex()}
        except (RuntimeError, ValueError) as refusal:  # the driver's refusal, or a value that its binding lacks
            yield {"tensormap": arguments, "refused": str(refusal)}
