"""Descriptors as values: shared-memory matrix descriptors, instruction descriptors, tensormaps, cache policies,
addresses in tensor memory.

Each class declares its fields once (`bits` holds the base); what the numbers do in an instruction is left to
the emulator and to `ptxgen.layouts`.
"""

from ptxgen.descriptors.cache_policy import CachePolicy
from ptxgen.descriptors.errors import DescriptorError
from ptxgen.descriptors.evidence import Evidence
from ptxgen.descriptors.instruction import BlockScaledInstructionDescriptor, InstructionDescriptor, ZeroColumnMask
from ptxgen.descriptors.smem import SmemDescriptor, WgmmaDescriptor
from ptxgen.descriptors.tensor_address import TensorAddress
from ptxgen.descriptors.tensormap import TensorMap
from ptxgen.descriptors.tile import OperandTile

#: Values that encode to bits and explain them.
Descriptor = (
    SmemDescriptor
    | WgmmaDescriptor
    | InstructionDescriptor
    | BlockScaledInstructionDescriptor
    | ZeroColumnMask
    | CachePolicy
    | TensorAddress
    | TensorMap
)

__all__ = [
    "BlockScaledInstructionDescriptor",
    "CachePolicy",
    "Descriptor",
    "DescriptorError",
    "Evidence",
    "InstructionDescriptor",
    "OperandTile",
    "SmemDescriptor",
    "TensorAddress",
    "TensorMap",
    "WgmmaDescriptor",
    "ZeroColumnMask",
]
