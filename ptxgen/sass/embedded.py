"""PTX inside of files with machine code: cubins with line information, fatbins, and object files that have one."""

from __future__ import annotations

import io

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ptxgen.sass.fatbin import FatbinError, entries, is_fatbin

_ELF = b"\x7fELF"
#: Where -lineinfo keeps the PTX of a cubin: its lines, each with a zero byte behind it.
_SECTION = ".nv_debug_ptx_txt"
_FATBINS = (".nv_fatbin", "__nv_relfatbin")


class EmbeddedError(ValueError):
    """A file with machine code and no PTX, or with several; or a damaged one."""


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
        texts = {f"sm_{each.architecture}": each for each in entries(data) if each.kind == "ptx"}
        if target is not None and len(texts) > 1:
            number = "".join(filter(str.isdigit, target))
            texts = {name: each for name, each in texts.items() if name == f"sm_{number}"}
        if len(texts) != 1:
            said = ", ".join(texts) or "machine code alone; compile with -gencode code=compute_.."
            raise EmbeddedError(f"{len(texts) or 'no'} PTX modules: {said}")
        ((_, entry),) = texts.items()
        return entry.image().rstrip(b"\0").decode("utf-8", "replace")
    except FatbinError as error:
        raise EmbeddedError(str(error)) from None
