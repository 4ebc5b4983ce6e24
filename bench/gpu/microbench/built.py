"""A GPU with kernels assembled beforehand, by as many processes as there are cores."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ptxgen.device import Kernel
from ptxgen.gpu import Gpu
from ptxgen.toolchain import AssemblerError, Cubin, assemble


class BuiltGpu(Gpu):
    """Kernels of the texts stay assembled and loaded; others are assembled at their first launch."""

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__()
        wanted = list(dict.fromkeys(texts))

        def built(text: str) -> Cubin | None:
            try:
                return assemble(text, self.target)
            except AssemblerError:  # the launch says why
                return None

        with ThreadPoolExecutor() as pool:
            made = zip(wanted, pool.map(built, wanted), strict=True)
            self._cubins = {text: cubin.data for text, cubin in made if cubin is not None}
        self._functions: dict[tuple[str, str], tuple[Any, Any]] = {}

    def _function(self, kernel: Kernel) -> Any:
        if kernel.text not in self._cubins:
            return super()._function(kernel)
        key = kernel.text, kernel.name
        if key not in self._functions:
            module = self._call("cuModuleLoadData", self._cubins[kernel.text])
            self._functions[key] = module, self._call("cuModuleGetFunction", module, kernel.name.encode())
        return self._functions[key][1]
