"""Tensormaps, the 128 bytes that describe a tensor to the TMA: encoded and decoded without a driver."""

from ptxgen.descriptors.tensormap.replace import FIELDS, replace_field
from ptxgen.descriptors.tensormap.value import TYPES, TensorMap

__all__ = ["FIELDS", "TYPES", "TensorMap", "replace_field"]
