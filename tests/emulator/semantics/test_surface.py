"""Surface loads and stores against arrays: every width, geometry and clamp mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen import Emulator
from ptxgen.device import LaunchReport
from ptxgen.emulator.textures import Texture
from tests.support.harness import launch

LANES = 64
WORDS: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def run(
    lines: str, made: Texture, data: NDArray[Any], coordinates: dict[str, NDArray[Any]], out: NDArray[Any]
) -> tuple[LaunchReport, NDArray[Any], NDArray[Any]]:
    """Run lines for 64 threads with coordinates in registers; what `out` and the surface hold then."""
    device = Emulator("sm_90a", "random", seed=2)
    array = device.array(np.ascontiguousarray(data))
    record = device.array(np.frombuffer(replace(made, address=array.address).encode(), np.uint8))
    body = [".reg .b32 %thread; .reg .b64 %at, %offset; mov.u32 %thread, %tid.x; mul.wide.u32 %offset, %thread, 4;"]
    for index, name in enumerate(coordinates):
        body.append(f".reg .b32 %{name}; add.u64 %at, %in{index + 1}, %offset; ld.global.b32 %{name}, [%at];")
    inputs: list[Any] = [record.address, *[each.astype(np.int32).view(np.uint32) for each in coordinates.values()]]
    report, (made_out,) = launch(
        "\n".join(body) + lines, [out], block=LANES, inputs=inputs, device=device, kernel_target="sm_90a"
    )
    return report, made_out, array.numpy()


def words(bits: int, shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(1, 1 << bits - 1, shape, WORDS[bits])


@pytest.mark.parametrize("clamp", ["clamp", "zero"])
@pytest.mark.parametrize(
    ("bits", "count"), [(8, 1), (8, 2), (8, 4), (16, 1), (16, 4), (32, 1), (32, 2), (32, 4), (64, 2)]
)
def test_loads(bits: int, count: int, clamp: str) -> None:
    """A surface of 5 rows of 8 accesses; coordinates go one access beyond its edges."""
    data = words(bits, (5, 8 * count), bits)
    made = Texture(0, "u8", 8 * count * bits // 8, 5)
    x, y = np.arange(LANES) % 10 - 1, np.arange(LANES) // 10 - 1
    register = {8: "b16"}.get(bits, f"b{bits}")
    vector = f".v{count}" if count > 1 else ""
    names = ", ".join(f"%v{index}" for index in range(count))
    size = count * bits // 8
    lines = (
        f".reg .{register} %v<4>; mul.lo.s32 %x, %x, {size}; mul.wide.u32 %offset, %thread, {size};"
        f"add.u64 %at, %out0, %offset; suld.b.2d{vector}.b{bits}.{clamp} {{{names}}}, [%in0, {{%x, %y}}];"
        f"st.global{vector}.b{bits} [%at], {'{' + names + '}' if count > 1 else '%v0'};"
    )
    report, out, _ = run(lines, made, data, {"x": x, "y": y}, np.full(LANES * count, 77, WORDS[bits]))
    assert report.status == "ok", report.summary()
    inside = (x >= 0) & (x < 8) & (y >= 0) & (y < 5)
    nearest = data.reshape(5, 8, count)[np.clip(y, 0, 4), np.clip(x, 0, 7)]
    expected = nearest if clamp == "clamp" else np.where(inside[:, None], nearest, 0)
    assert (out.reshape(LANES, count) == expected).all()


@pytest.mark.parametrize(("geometry", "sizes"), [("1d", (64,)), ("2d", (16, 4)), ("3d", (8, 4, 2)), ("a1d", (32, 2)),
                                                 ("a2d", (8, 4, 2))])  # fmt: skip
def test_stores(geometry: str, sizes: tuple[int, ...]) -> None:
    """Every element once, and one beyond each end that is dropped; pitches are longer than rows."""
    layers = sizes[-1] if geometry.startswith("a") else 0
    inner = sizes[:-1] if layers else sizes
    width, height, depth = (*inner, 0, 0, 0)[:3]
    rows, planes = max(height, 1), max(depth, layers, 1)
    data = np.full((planes, rows, width + 3), 5, np.uint32)
    made = Texture(0, "u32", width, height, depth, layers, pitch=4 * (width + 3))
    lane = np.random.default_rng(1).permutation(LANES)
    at = np.unravel_index(lane, tuple(reversed(sizes)))[::-1]
    coordinates = {name: each.astype(np.int64) for name, each in zip("xyz", at, strict=False)}
    names = ["%x", "%y", "%z"][: len(sizes)]
    if layers:
        names = [names[-1], *names[:-1]]
    if len(names) == 3:
        names.append(names[-1])
    vector = "{" + ", ".join(names) + "}"
    lines = (
        f"shl.b32 %x, %x, 2; add.u32 %thread, %thread, 100; sust.b.{geometry}.b32.zero [%in0, {vector}], {{%thread}};"
        f"mov.b32 %x, {4 * width}; sust.b.{geometry}.b32.zero [%in0, {vector}], {{%thread}};"
        f"mov.b32 %x, -4; sust.b.{geometry}.b32.zero [%in0, {vector}], {{%thread}};"
    )
    report, _, after = run(lines, made, data, coordinates, np.zeros(4, np.uint32))
    assert report.status == "ok", report.summary()
    expected = data.copy()
    index = [each.astype(int) for each in at]
    plane = index.pop() if len(sizes) == 3 or geometry == "a1d" else np.zeros(LANES, int)
    row = index[1] if len(index) > 1 else np.zeros(LANES, int)
    expected[plane, row, index[0]] = np.arange(LANES) + 100
    assert (after.reshape(expected.shape) == expected).all()


def test_queries() -> None:
    lines = (
        ".reg .b32 %q<2>; suq.width.b32 %q0, [%in0]; suq.height.b32 %q1, [%in0]; mul.wide.u32 %offset, %thread, 8;"
        "add.u64 %at, %out0, %offset; st.global.v2.b32 [%at], {%q0, %q1};"
    )
    report, out, _ = run(lines, Texture(0, "u8", 7, 5), np.zeros(35, np.uint8), {}, np.zeros(2 * LANES, np.uint32))
    assert report.status == "ok", report.summary()
    assert (out.reshape(LANES, 2) == [7, 5]).all()


@pytest.mark.parametrize(
    ("x", "code", "words_"),
    [
        (16, "out-of-bounds", "accesses (16) of a surface of 4 elements of 4 bytes"),
        (-4, "out-of-bounds", "accesses (-4) of a surface of 4 elements"),
        (6, "misaligned", "at the first coordinate 6. It counts bytes, and must be a multiple of the access's 4"),
    ],
)
def test_traps(x: int, code: str, words_: str) -> None:
    lines = ".reg .b32 %v; suld.b.1d.b32.trap {%v}, [%in0, {%x}]; st.global.b32 [%out0], %v;"
    at = np.zeros(LANES, np.int64)
    at[5] = x
    report, _, _ = run(lines, Texture(0, "u32", 4), np.zeros(4, np.uint32), {"x": at}, np.zeros(1, np.uint32))
    assert report.status == "fault"
    assert report.findings[-1].code == code
    assert words_ in report.findings[-1].message
    assert "lane 5" in report.findings[-1].message


def test_a_race_of_two_stores() -> None:
    lines = "sust.b.1d.b32.zero [%in0, {%x}], {%thread};"
    at = np.arange(LANES) % 32 * 4
    report, _, _ = run(lines, Texture(0, "u32", 32), np.zeros(32, np.uint32), {"x": at}, np.zeros(1, np.uint32))
    assert {each.code for each in report.findings} == {"global-race"}, report.summary()
