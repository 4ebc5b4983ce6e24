"""Fatbins: the cubins for several targets that nvcc puts into one file, mostly compressed.

A fatbin is a header of 16 bytes and entries; several may follow each other in the section of an object file. The
fields that are read here were inferred from what fatbinary 13.0 writes with each of its --compress-mode.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_MAGIC = 0xBA55ED50
_PTX, _ELF = 1, 2
#: Flags of compressed entries: speed is LZ4, all other modes zstd.
_LZ4, _ZSTD = 0x2000, 0x8000


class FatbinError(ValueError):
    """A fatbin that is cut short or damaged, or compressed where nothing decompresses it."""


@dataclass(frozen=True)
class Entry:
    """One entry: PTX text or a cubin for sm_`architecture`, as it lies in the file."""

    kind: Literal["ptx", "elf", "other"]
    architecture: int
    flags: int
    payload: bytes
    #: Bytes after decompression.
    size: int

    def image(self) -> bytes:
        """The cubin or text, decompressed. Raises FatbinError."""
        if not self.flags & (_LZ4 | _ZSTD):
            return self.payload
        try:
            import zstandard
            from lz4 import block
        except ImportError:
            raise FatbinError(
                "this fatbin is compressed; reading it needs lz4 and zstandard: pip install 'ptxgen[tools]'"
            ) from None
        try:
            if self.flags & _LZ4:
                made = block.decompress(self.payload, uncompressed_size=self.size)
            else:
                made = zstandard.ZstdDecompressor().decompress(self.payload, max_output_size=self.size)
        except (block.LZ4BlockError, zstandard.ZstdError, MemoryError) as error:
            raise FatbinError(f"the entry for sm_{self.architecture} cannot be decompressed: {error}") from None
        if len(made) != self.size:
            raise FatbinError(f"the entry for sm_{self.architecture} has {len(made)} bytes, not {self.size}")
        return made


def is_fatbin(data: bytes) -> bool:
    """Whether bytes begin as a fatbin does."""
    return len(data) >= 16 and struct.unpack_from("<I", data)[0] == _MAGIC


def entries(data: bytes) -> Iterator[Entry]:
    """All entries of all fatbins that follow each other. Raises FatbinError."""
    offset = 0
    while offset + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, offset)
        if magic != _MAGIC:
            if data[offset : offset + 8].strip(b"\0"):
                return
            offset += 8  # they are aligned
            continue
        position, end = offset + header, offset + header + size
        if end > len(data):
            raise FatbinError(f"the fatbin is truncated: it needs {end} bytes and has {len(data)}")
        while position + 64 <= end:
            kind, _, entry_header, padded, compressed = struct.unpack_from("<HHIQI", data, position)
            (architecture,) = struct.unpack_from("<I", data, position + 28)
            (flags,) = struct.unpack_from("<Q", data, position + 40)
            (unpacked,) = struct.unpack_from("<Q", data, position + 56)
            start = position + entry_header
            if entry_header < 64 or start + padded > end:
                raise FatbinError(f"the fatbin is damaged: an entry at byte {position} exceeds it")
            length = compressed if flags & (_LZ4 | _ZSTD) else padded
            name: Literal["ptx", "elf", "other"] = "ptx" if kind == _PTX else "elf" if kind == _ELF else "other"
            yield Entry(name, architecture, flags, data[start : start + length], unpacked)
            position = start + padded
        offset = end
