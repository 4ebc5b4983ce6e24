"""The PTX in what programs load as a module: text, fatbins, and cubins whose compiler left the text."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxgen.driver.protocol import RefusedError, Status
from ptxgen.sass import fatbin

#: Header of our cubins, before the PTX (native/standin.h).
_MARK = b"//ptxgen-ptx\n"
_ELF = b"\x7fELF"
_ARCHIVE = b"!<arch>\n"
#: Header of several images to be linked (native/link.c): this, the total size, and each image after its size.
_BUNDLE = b"ptxgen-bundle\n\0\0"
_SIZE = struct.Struct("<Q")
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$.]+)")


@dataclass(frozen=True)
class Device:
    """The emulated GPU as images see it: `sm_90a` is 90 and "a"."""

    capability: int
    suffix: str

    @classmethod
    def of(cls, target: str) -> Device:
        found = re.fullmatch(r"sm_(\d+)([af]?)", target)
        assert found is not None
        return cls(int(found[1]), found[2])

    def runs(self, capability: int, suffix: str) -> bool:
        """Whether PTX of a target can be compiled for the device (PTX ISA 11.1.2)."""
        if suffix == "a":
            return capability == self.capability
        if suffix == "f":
            return capability // 10 == self.capability // 10 and capability <= self.capability
        return capability <= self.capability


def entries_of(text: str) -> list[str]:
    """The names of a module's kernels, in order."""
    return _ENTRY.findall(text)


def ptx_of(image: bytes, device: Device, folders: Sequence[Path] = ()) -> str:
    """The PTX of an image; `folders` are where compilers keep what they make. Raises RefusedError."""
    if image.startswith(_BUNDLE):
        return _of_bundle(image, device, folders)
    if image.startswith(_ELF):
        text = _of_cubin(image, folders)
        if text is None:
            raise RefusedError(Status.NO_BINARY_FOR_GPU, _only_code(_kernels_of(image), None))
        return text
    if image.startswith(_ARCHIVE):  # Numba links libcudadevrt.a without nvJitLink
        raise RefusedError(Status.NO_BINARY_FOR_GPU, "an archive of machine code cannot be emulated")
    if fatbin.is_fatbin(image):
        return _of_fatbin(image, device, folders)
    try:
        text = image.split(b"\0", 1)[0].decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(Status.INVALID_IMAGE, "a module is neither PTX, nor a fatbin, nor a cubin") from None
    if ".version" not in text:
        raise RefusedError(Status.INVALID_IMAGE, "a module is neither PTX, nor a fatbin, nor a cubin")
    _require(text, device)
    return text


def _of_bundle(image: bytes, device: Device, folders: Sequence[Path]) -> str:
    """The PTX of all images of a bundle as one module; libraries have machine code alone, and are left out.

    The first image of a program with relocatable device code is what the linker made, which has PTX only by our hooks.
    """
    from ptxgen.driver.link import linked

    texts: list[str] = []
    refused: list[RefusedError] = []
    offset = len(_BUNDLE) + _SIZE.size
    while offset < len(image):
        (size,) = _SIZE.unpack_from(image, offset)
        offset += _SIZE.size
        try:
            texts.append(ptx_of(image[offset : offset + size], device, folders))
        except RefusedError as error:
            if error.status != Status.NO_BINARY_FOR_GPU:
                raise
            refused.append(error)
        offset += (size + 7) & ~7
    if not texts:
        raise refused[0]
    return linked(texts)


def _require(text: str, device: Device) -> None:
    found = _TARGET.search(text)
    if found is not None and not device.runs(int(found[1]), found[2]):
        raise RefusedError(
            Status.NO_BINARY_FOR_GPU,
            f"a module holds PTX for sm_{found[1]}{found[2]}, which sm_{device.capability}{device.suffix} does not "
            f"run; choose --target sm_{found[1]}{found[2]}, or compile it for this one",
        )


def _of_cubin(image: bytes, folders: Sequence[Path]) -> str | None:
    mark = image.rfind(_MARK)
    if mark >= 0:
        return image[mark + len(_MARK) :].split(b"\0", 1)[0].decode("utf-8", errors="replace")
    return _kept(set(_kernels_of(image)), folders)


def _kept(names: set[str], folders: Sequence[Path]) -> str | None:
    """The newest PTX in the folders that has a kernel of one of these names."""
    files = [file for folder in folders for file in folder.glob("*.ptx")]
    for file in sorted(files, key=lambda each: each.stat().st_mtime, reverse=True):
        text = file.read_text(encoding="utf-8", errors="replace").split("\0", 1)[0]
        if names.intersection(entries_of(text)):
            return text
    return None


def _kernels_of(cubin: bytes) -> list[str]:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        sections = [each.name for each in ELFFile(io.BytesIO(cubin)).iter_sections()]
    except (ELFError, ValueError):
        return []
    return [name.removeprefix(".text.") for name in sections if name.startswith(".text.")]


def _of_fatbin(image: bytes, device: Device, folders: Sequence[Path]) -> str:
    try:
        entries = list(fatbin.entries(image))
        texts: list[tuple[int, bool, str]] = []
        for entry in entries:
            if entry.kind != "ptx" or entry.architecture > device.capability:
                continue
            text = entry.image().split(b"\0", 1)[0].decode("utf-8", errors="replace")
            found = _TARGET.search(text)
            if found is None or device.runs(int(found[1]), found[2]):
                texts.append((entry.architecture, bool(found and found[2]), text))
        if texts:
            return max(texts)[2]
        codes = [entry for entry in entries if entry.kind == "elf"]
        for entry in sorted(codes, key=lambda each: each.architecture == device.capability, reverse=True):
            text = _of_cubin(entry.image(), folders)
            if text is not None:
                return text
        names = _kernels_of(codes[0].image()) if codes else []
    except fatbin.FatbinError as error:
        raise RefusedError(Status.INVALID_IMAGE, str(error)) from None
    others = sorted({entry.architecture for entry in entries if entry.kind == "ptx"})
    raise RefusedError(Status.NO_BINARY_FOR_GPU, _only_code(names, others))


def _only_code(names: Sequence[str], others: Sequence[int] | None) -> str:
    """Why a module of machine code cannot run, and what to do."""
    which = f" (kernels {', '.join(names[:3])}{', ...' if len(names) > 3 else ''})" if names else ""
    if others:
        listed = ", ".join(f"compute_{each}" for each in others)
        return f"a module{which} has PTX for {listed} alone, which the target does not run; choose another --target"
    return (
        f"a module{which} holds machine code and no PTX, which cannot be emulated; with nvcc, compile with -arch=sm_XX "
        "or add -gencode arch=compute_XX,code=compute_XX"
    )
