"""The state spaces of the emulated GPU: global memory, shared memory and tensor memory (TMEM)."""

from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.emulator.memory.global_memory import GlobalMemory
from ptxgen.emulator.memory.shared_memory import SharedMemory
from ptxgen.emulator.memory.tensor_memory import TensorMemory

__all__ = ["GlobalMemory", "MemoryFault", "SharedMemory", "TensorMemory"]
