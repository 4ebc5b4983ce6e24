"""Kernels: an entry of a PTX module and its parameters."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ptxgen.files import looks_like_path, ptx_of_dump, read_file, similar_file
from ptxgen.names import demangled, shown_name

if TYPE_CHECKING:
    from ptxgen.instr.model.analyze import Analysis
    from ptxgen.instr.model.check import Diagnostic
    from ptxgen.syntax import Function, Module

#: Characters of a name in a message, and entries that an error lists.
_SHOWN_NAME, _SHOWN_ENTRIES = 64, 20
#: Kernels that `Kernel.from_ptx` keeps, and the most characters of one.
_KEPT, _KEPT_CHARACTERS = 32, 200_000


class KernelError(ValueError):
    """A PTX text has no such entry, or an entry has a parameter whose layout PTX does not define."""


@dataclass(frozen=True, slots=True)
class SharedRegion:
    """A named part of the dynamic shared memory of a CTA, for messages: `smem_a`, a ring of `stages` equal parts.

    `offset` counts in bytes from the start of the dynamic shared memory, `bytes` is the size of all stages together.
    """

    name: str
    offset: int
    bytes: int
    stages: int = 1


@dataclass(frozen=True)
class ParameterInfo:
    """One parameter of an entry; `size`, `align` and `offset` are in bytes.

    `offset` counts from the start of the parameter block, whose start is aligned for every parameter in it.
    `type` is the PTX type without its dot, `is_array` is true for `.b8 name[128]` and for vectors.
    """

    name: str
    size: int
    align: int
    offset: int
    type: str
    is_array: bool = False

    @property
    def declaration(self) -> str:
        """The parameter in PTX's spelling, for messages: ".b8 map[128]"; a long name is cut in the middle."""
        name = shortened_name(self.name)
        if not self.is_array:
            return f".{self.type} {name}"
        return f".{self.type} {name}[{self.size // type_size(self.type, self.name)}]"


class AnalyzedModule:
    """What is known of a module's text, found when it is first asked for."""

    def __init__(self, module: Module) -> None:
        self.module = module

    @cached_property
    def analysis(self) -> Analysis:
        """What its statements are."""
        from ptxgen.instr.model.analyze import Analysis

        return Analysis(self.module)

    @property
    def is_checked(self) -> bool:
        """Whether its diagnostics are known."""
        return "diagnostics" in vars(self)

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """What `ptxgen.check` says of it, for its own target."""
        from ptxgen.instr.model.check import check

        return check(self.module, analysis=self.analysis)


@dataclass(frozen=True)
class Kernel:
    """One entry of a PTX module, ready to be launched on any device."""

    text: str = field(repr=False)
    module: Module = field(repr=False, compare=False)
    entry: Function = field(repr=False, compare=False)
    name: str

    #: Names of parts of the dynamic shared memory, which no declaration has.
    regions: tuple[SharedRegion, ...] = ()

    @classmethod
    def from_ptx(cls, text: str, entry: str | None = None, *, regions: Sequence[SharedRegion] = ()) -> Kernel:
        """Parse PTX text and pick an entry; `entry` is needed only where there are several.

            >>> import ptxgen
            >>> text = ".version 8.6\\n.target sm_90a\\n.visible .entry k(.param .u64 x) { ret; }\\n"
            >>> ptxgen.Kernel.from_ptx(text).name
            'k'

        It is the entry's name, or a part of it that no other entry's name contains: mangled names are long. The same
        arguments give the same kernel while it is one of the last, so that nothing is parsed, checked and translated
        twice. A dump of `cuobjdump --dump-ptx` is taken for its module. Raises PtxSyntaxError on bad text, KernelError
        when there is no such entry or no single one, or for the name of a file, TypeError for what is not text.
        """
        key = (text, entry, tuple(regions))
        kernel = _RECENT.pop(key, None)
        if kernel is None:
            kernel = cls._parsed(text, entry, regions)
        if len(text) <= _KEPT_CHARACTERS and cls is Kernel:
            _RECENT[key] = kernel
            while len(_RECENT) > _KEPT:
                _RECENT.popitem(last=False)
        return kernel

    @classmethod
    def _parsed(cls, text: str, entry: str | None, regions: Sequence[SharedRegion]) -> Kernel:
        from ptxgen.syntax import PtxSyntaxError, parse

        if isinstance(text, str) and looks_like_path(text):
            raise KernelError(f"{text!r} looks like a path, not like PTX text; Kernel.from_file reads a file")
        try:
            # NVRTC and Warp hand out C strings.
            module = parse(ptx_of_dump(text).rstrip("\0") if isinstance(text, str) else text)
        except PtxSyntaxError:
            raise
        except ValueError as error:
            raise KernelError(str(error)) from None
        entries = list(module.entries)
        names = [each.name for each in entries]
        if isinstance(text, str) and not text.strip("\0 \t\r\n"):
            raise KernelError("the PTX text is empty; a kernel needs an .entry")
        if entry is None:
            if len(entries) != 1:
                found = f"it has {len(names)}: {_names(names)}" if names else "it has none"
                advice = "name one, or a part of its name, with entry= (--entry)" if names else "add an .entry"
                raise KernelError(f"a kernel needs one entry in the PTX text, but {found}; {advice}")
            chosen = entries[0]
        elif entry in names:
            chosen = entries[names.index(entry)]
        else:
            parts = [each for each in entries if entry in each.name or entry in demangled(each.name)]
            if not parts:
                raise KernelError(f"the PTX text has no entry {entry!r}; it has {_names(names)}")
            if len(parts) > 1:
                found = _names([each.name for each in parts])
                raise KernelError(f"{len(parts)} entries of the PTX text have {entry!r} in their names: {found}")
            chosen = parts[0]
        return cls(text, module, chosen, chosen.name, tuple(regions))

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], entry: str | None = None, *, regions: Sequence[SharedRegion] = ()
    ) -> Kernel:
        """As `from_ptx`, of a PTX file. Raises KernelError where that cannot be read or is no text."""
        if isinstance(path, str) and "\n" in path:
            raise KernelError("this looks like PTX text, not like a path; Kernel.from_ptx takes text")
        try:
            data = read_file(path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise KernelError(f"cannot read {path}: {reason}{similar_file(path)}") from None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            kind = "an ELF file (a cubin?)" if data.startswith(b"\x7fELF") else "not text"
            raise KernelError(f"{path} is {kind}; a kernel is made from PTX text") from None
        try:
            text = ptx_of_dump(text)
        except ValueError as error:
            raise KernelError(f"{path}: {error}") from None
        return cls.from_ptx(text, entry, regions=regions)

    @staticmethod
    def of_module(text: str, module: Module) -> dict[str, Kernel]:
        """All entries of a parsed text by name; they share what is known of it."""
        kernels, analyzed = dict[str, Kernel](), AnalyzedModule(module)
        for each in module.entries:
            kernel = kernels[each.name] = Kernel(text, module, each, each.name)
            kernel.__dict__["analyzed"] = analyzed
        return kernels

    def __reduce__(self) -> tuple[Callable[..., Kernel], tuple[str, str]]:
        """Another process gets the text, and makes the rest again."""
        return partial(Kernel.from_ptx, regions=self.regions), (self.text, self.name)

    @cached_property
    def analyzed(self) -> AnalyzedModule:
        """What is known of the module's text: kernels of `of_module` share it."""
        return AnalyzedModule(self.module)

    @property
    def analysis(self) -> Analysis:
        """What the module's statements are: `ptxgen.check` and the emulator share it."""
        return self.analyzed.analysis

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What `ptxgen.check` says of the module, for its own target."""
        return self.analyzed.diagnostics

    @cached_property
    def cache(self) -> dict[object, object]:
        """A cache for devices, by their own keys, shared by launches."""
        return {}

    @cached_property
    def parameters(self) -> list[ParameterInfo]:
        """The entry's parameters in order, laid out by the alignment rules of PTX (those of a C struct).

        Measured (ptxas 13.0 and 13.5): where the driver's block starts at an address aligned to less than a
        parameter, as on sm_80 and sm_90, a cubin has that parameter at another offset, so that its address is
        aligned as declared. PTX does not show this, and `Gpu` passes each parameter separately.
        """
        infos: list[ParameterInfo] = []
        offset = 0
        for parameter in self.entry.parameters:
            type_name = parameter.type.removeprefix(".")
            element = type_size(type_name, parameter.name) * (parameter.vector or 1)
            align = max(parameter.align or 1, element)  # ptxas raises an .align below the element's size
            size = element
            for extent in parameter.array or ():
                if not extent:
                    raise KernelError(f"parameter {parameter.name} of {self.name} is an array without a size")
                size *= extent
            offset = -(-offset // align) * align
            is_array = bool(parameter.array or parameter.vector)
            infos.append(ParameterInfo(parameter.name, size, align, offset, type_name, is_array))
            offset += size
        return infos

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the parameter block: the end of the last parameter."""
        return max((info.offset + info.size for info in self.parameters), default=0)


#: The kernels that `from_ptx` made or returned last, the latest at the end, by its arguments.
_RECENT: OrderedDict[tuple[str, str | None, tuple[SharedRegion, ...]], Kernel] = OrderedDict()


def shortened_name(name: str) -> str:
    """A name for a message: mangled ones are demangled and shortened."""
    return shown_name(name, _SHOWN_NAME)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_ENTRIES} more" if len(names) > _SHOWN_ENTRIES else ""
    return ", ".join(map(shown_name, names[:_SHOWN_ENTRIES])) + more or "none"


def type_size(type_name: str, parameter: str) -> int:
    """Bytes of one element of a parameter's type ("u64" is 8). Raises KernelError where it has no size."""
    match = re.fullmatch(r"(?:[busf](8|16|32|64|128)|bf(16))(x2)?", type_name)
    if match is None:
        raise KernelError(f"parameter {parameter} has type .{type_name}, which has no size in a parameter block")
    bits = int(match[1] or match[2]) * (2 if match[3] else 1)
    return bits // 8
