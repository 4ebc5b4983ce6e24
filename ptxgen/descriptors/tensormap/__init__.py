"""Tensormaps, the 128 bytes that describe a tensor to the TMA: encoded and decoded without a driver."""

from ptxgen.descriptors.tensormap.formats import Im2colMap, TiledMap
from ptxgen.descriptors.tensormap.replace import FIELDS, replace_field, without_unused_dimensions
from ptxgen.descriptors.tensormap.tables import TYPES
from ptxgen.descriptors.tensormap.transfer import CopyMode, Transfer, transfer
from ptxgen.descriptors.tensormap.value import TensorMap

__all__ = [
    "FIELDS",
    "TYPES",
    "CopyMode",
    "Im2colMap",
    "TensorMap",
    "TiledMap",
    "Transfer",
    "replace_field",
    "transfer",
    "without_unused_dimensions",
]
