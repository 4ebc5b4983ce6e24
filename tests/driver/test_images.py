"""PTX in the images that programs load."""

from __future__ import annotations

import struct

import pytest

from ptxgen.driver.images import Device, ptx_of
from ptxgen.driver.protocol import RefusedError, Status

HOPPER, BLACKWELL = Device.of("sm_90a"), Device.of("sm_100a")


def ptx(target: str) -> bytes:
    return f".version 8.7\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\nret;\n}}\n".encode()


def fatbin(*entries: tuple[int, int, bytes]) -> bytes:
    """A fatbin of uncompressed entries: (1 for PTX or 2 for a cubin, architecture, payload)."""
    parts = b""
    for kind, architecture, payload in entries:
        payload += bytes(-len(payload) % 8)
        head = struct.pack("<HHIQIIIIQQQQ", kind, 0x101, 64, len(payload), 0, 0, 0, architecture, 0, 0, 0, 0)
        parts += head + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(parts)) + parts


def test_text_ends_with_the_first_zero() -> None:
    assert ptx_of(ptx("sm_90a") + b"\0rest", HOPPER) == ptx("sm_90a").decode()


@pytest.mark.parametrize(
    ("device", "target", "runs"),
    [
        (HOPPER, "sm_75", True),
        (HOPPER, "sm_90", True),
        (HOPPER, "sm_100", False),
        (BLACKWELL, "sm_90a", False),
        (BLACKWELL, "sm_100f", True),
        (Device.of("sm_103a"), "sm_100f", True),
        (Device.of("sm_103a"), "sm_100a", False),
        (Device.of("sm_120a"), "sm_100f", False),
    ],
)
def test_targets(device: Device, target: str, runs: bool) -> None:
    if runs:
        assert target in ptx_of(ptx(target), device)
        return
    with pytest.raises(RefusedError, match=f"--target {target}") as refused:
        ptx_of(ptx(target), device)
    assert refused.value.status == Status.NO_BINARY_FOR_GPU


def test_the_newest_ptx_of_a_fatbin() -> None:
    image = fatbin(
        (1, 75, ptx("sm_75")), (1, 90, ptx("sm_90")), (1, 90, ptx("sm_90a")), (1, 100, ptx("sm_100a")), (2, 90, b"x")
    )
    assert ".target sm_90a\n" in ptx_of(image, HOPPER)
    assert ".target sm_100a\n" in ptx_of(image, BLACKWELL)
    assert ".target sm_90\n" in ptx_of(image, Device.of("sm_120a"))


def test_machine_code_alone_is_refused_with_what_to_do() -> None:
    with pytest.raises(RefusedError, match="code=compute_XX"):
        ptx_of(fatbin((2, 90, b"\x7fELF" + bytes(60))), HOPPER)
    with pytest.raises(RefusedError, match="compute_100 alone"):
        ptx_of(fatbin((1, 100, ptx("sm_100a"))), HOPPER)
    with pytest.raises(RefusedError, match="neither PTX"):
        ptx_of(b"\xff\xfe\x00", HOPPER)


def test_archives_are_left_out_of_what_is_linked() -> None:
    images = [b"!<arch>\ncudadevrt.o/ \x7fELF\xff\xfe", ptx("sm_90")]
    parts = b"".join(struct.pack("<Q", len(each)) + each + bytes(-len(each) % 8) for each in images)
    bundle = b"ptxgen-bundle\n\0\0" + struct.pack("<Q", len(parts) + 24) + parts
    assert ptx_of(bundle, Device(90, "a")) == ptx("sm_90").decode()
    with pytest.raises(RefusedError, match="archive of machine code") as refused:
        ptx_of(images[0], Device(90, "a"))
    assert refused.value.status == Status.NO_BINARY_FOR_GPU
