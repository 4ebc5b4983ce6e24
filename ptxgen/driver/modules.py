"""Modules that programs have loaded: their kernels, and their variables in the shared heap."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ptxgen import syntax
from ptxgen.device import Kernel
from ptxgen.device.kernel import KernelError
from ptxgen.driver import protocol
from ptxgen.driver.kept import Kept
from ptxgen.driver.protocol import RefusedError, Status
from ptxgen.emulator.load.image import Image, Layout
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.load.source_lines import SourceLines
from ptxgen.emulator.memory.bank import Bank
from ptxgen.emulator.memory.shared_memory import RESERVED_BYTES
from ptxgen.instr.model.targets import Target

if TYPE_CHECKING:
    from ptxgen.driver.memory import SharedMemory

#: Registers of a thread where ptxas has not said how many there are.
_REGISTERS = 32
#: Static and dynamic shared memory of a CTA that needs no attribute of the function, in bytes.
_WITHOUT_OPTING_IN = 48 << 10
_PORTABLE_CLUSTER = 8
#: Parsed modules that are kept for programs that load one again.
_PARSED = 64


@lru_cache(maxsize=_PARSED)
def _parsed(text: str) -> tuple[syntax.Module, dict[str, Kernel], Kept | None]:
    module = syntax.parse(text)
    kernels = Kernel.of_module(text, module)
    any_kernel = next(iter(kernels.values()), None)
    return module, kernels, Kept(text, any_kernel.analyzed) if any_kernel is not None else None


@dataclass(eq=False)
class Loaded:
    """One load of a module: its kernels are shared with other loads of the text, its variables are its own."""

    number: int
    kernels: dict[str, Kernel]
    module: syntax.Module
    memory: SharedMemory
    #: The analysis of the text that stays on disk; None without kernels.
    kept: Kept | None
    _image: Image | None = None
    #: Where constant variables lie in the heap, once the program has asked for one: (address, bytes).
    _constants: tuple[int, int] | None = None

    @classmethod
    def of(cls, number: int, text: str, memory: SharedMemory) -> Loaded:
        """A module with this PTX. Raises RefusedError."""
        try:
            module, kernels, kept = _parsed(text)
        except syntax.PtxSyntaxError as error:
            raise RefusedError(Status.INVALID_PTX, f"the PTX of a module cannot be read: {error}") from None
        return cls(number, kernels, module, memory, kept)

    @property
    def layout(self) -> Layout:
        """The addresses of the module's variables within their state spaces."""
        any_kernel = next(iter(self.kernels.values()), None)
        if any_kernel is not None and "layout" not in any_kernel.cache:
            any_kernel.cache["layout"] = Layout(self.module)
        return any_kernel.cache["layout"] if any_kernel is not None else Layout(self.module)  # type: ignore[return-value]

    @property
    def image(self) -> Image:
        """The variables in memory, with what the program has written to constant ones."""
        if self._image is None:
            self._image = Image(self.layout, self.memory)
        if self._constants is not None:
            data = self.memory.view(*self._constants).tobytes()
            self._image.constants = Bank(data, "the constant variables")
        return self._image

    def place(self, line: int) -> str:
        """The author's line of an instruction in a line of the PTX, as far as the module names it."""
        return SourceLines(self.module).of(line) or f"PTX line {line}"

    def variable(self, name: str) -> tuple[int, int]:
        """(address, bytes) of a variable. Raises RefusedError."""
        layout = self.layout
        location = layout.locations.get(name)
        if location is None or location.space not in ("global", "const"):
            raise RefusedError(Status.NOT_FOUND)
        if location.symbol is not None:
            return self.image.addresses[location.symbol], location.size
        if self._constants is None:
            address = self.memory.allocate(layout.constant_bytes)
            self.memory.view(address, layout.constant_bytes)[:] = self.image.constants.data[: layout.constant_bytes]
            self._constants = address, layout.constant_bytes
        return self._constants[0] + location.address, location.size

    def unload(self) -> None:
        """Free the variables."""
        addresses = list(self._image.addresses) if self._image is not None else []
        if self._constants is not None:
            addresses.append(self._constants[0])
        for address in addresses:
            self.memory.free(address)
        self._image = self._constants = None


@dataclass
class Function:
    """A kernel of a loaded module, with the number that the program's driver has for it."""

    number: int
    loaded: Loaded
    kernel: Kernel
    hardware: Target
    parameter_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.parameter_bytes = self.kernel.parameter_bytes
        except KernelError as error:
            raise RefusedError(Status.INVALID_PTX, str(error)) from None

    def answer(self, capability: int) -> bytes:
        """The kernel's record for the program's driver: parameters and attributes."""
        parameters = self.kernel.parameters
        head = protocol.FUNCTION.pack(self.number, len(parameters), self.parameter_bytes, *self._attributes(capability))
        places = [each.offset for each in parameters] + [each.size for each in parameters]
        return head + np.array(places, "<u4").tobytes()

    def _attributes(self, capability: int) -> list[int]:
        """The attributes by number (CU_FUNC_ATTRIBUTE_*)."""
        directives = {
            each.name: [int(word) for word in each.arguments if word.isdigit()]
            for each in self.kernel.entry.directives
            if each.name in ("reqntid", "maxntid", "reqnctapercluster", "maxclusterrank")
        }
        threads = prod(directives.get("reqntid") or directives.get("maxntid") or [1024])
        cluster = directives.get("reqnctapercluster")
        cluster_extent = [*cluster, 1, 1][:3] if cluster else [0, 0, 0]
        values = [0] * protocol.FUNCTION_ATTRIBUTES
        values[0] = min(threads, 1024)
        values[1] = self._static_shared()
        values[2] = self.loaded.layout.constant_bytes
        values[4] = _REGISTERS
        values[5] = values[6] = capability
        values[8], values[9] = max(_WITHOUT_OPTING_IN - values[1], 0), -1
        values[10] = int(cluster is not None)
        values[11:14] = cluster_extent
        values[14] = int(prod(cluster_extent) > _PORTABLE_CLUSTER)
        return values

    def _static_shared(self) -> int:
        """Bytes of shared memory that the kernel declares."""
        program = Program.of(self.kernel, self.hardware)
        return max(program.variables.shared_end - RESERVED_BYTES, 0)

    def arguments(self, parameters: bytes) -> list[bytes]:
        """The parts of a parameter block."""
        return [parameters[each.offset : each.offset + each.size] for each in self.kernel.parameters]
