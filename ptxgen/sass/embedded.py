"""PTX inside of files with machine code: cubins with line information, fatbins, and object files that have one."""

from __future__ import annotations

import io

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ptxgen.sass.fatbin import FatbinError, entries, is_fatbin

_ELF = b"\x7fELF"
#: Where -lineinfo keeps the PTX of a cubin: its lines, each with a zero byte after it.
_SECTION = ".nv_debug_ptx_txt"
_FATBINS = (".nv_fatbin", "__nv_relfatbin")


class EmbeddedError(ValueError):
    """A file with machine code and no PTX, or a damaged one."""


class SeveralModulesError(EmbeddedError):
    """A file with several PTX modules where a target selects none, or more than one."""


def embedded_ptx(data: bytes, target: str | None = None) -> str:
    """The PTX in a cubin, fatbin or object file; of several the one for `target`. Raises EmbeddedError."""
    if data.startswith(_ELF):
        try:
            elf = ELFFile(io.BytesIO(data))
            found = elf.get_section_by_name(_SECTION)
            if found is not None:
                return found.data().replace(b"\0", b"\n").decode("utf-8", "replace").rstrip("\n") + "\n"
            data = b"".join(each.data() for each in elf.iter_sections() if each.name in _FATBINS)
        except (ELFError, UnicodeDecodeError) as error:
            raise EmbeddedError(f"the ELF file is truncated or damaged ({error})") from None
        if not data:
            raise EmbeddedError("machine code without PTX; compile with -lineinfo, or with -gencode code=compute_..")
    if not is_fatbin(data):
        raise EmbeddedError("neither an ELF file nor a fatbin")
    try:
        modules = [each for each in entries(data) if each.kind == "ptx"]
        if not modules:
            raise EmbeddedError("machine code alone; compile with -gencode code=compute_..")
        chosen = modules
        if target is not None and len(modules) > 1:
            number = "".join(filter(str.isdigit, target))
            chosen = [each for each in modules if str(each.architecture) == number]
        if len(chosen) == 1:
            return chosen[0].image().rstrip(b"\0").decode("utf-8", "replace")
    except FatbinError as error:
        raise EmbeddedError(str(error)) from None
    names = [f"sm_{each.architecture}" for each in modules]
    how = f"of {target} there are {len(chosen)}" if target is not None else "choose one by --target"
    if len(set(names)) < len(names) and len(chosen) != 0:
        how = "cuobjdump --extract-ptx all writes each to a file"
    raise SeveralModulesError(f"{len(modules)} PTX modules ({', '.join(names)}); {how}")
