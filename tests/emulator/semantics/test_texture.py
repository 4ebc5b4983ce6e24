"""Texture fetches against a reference that goes texel by texel, as the CUDA C++ Programming Guide words it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen import Emulator
from ptxgen.emulator.textures import RECORD_BYTES, Texture
from tests.support.harness import launch, poisoned

LANES = 64
DTYPES = {"u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16, "u32": np.uint32, "s32": np.int32,
          "f16": np.float16, "f32": np.float32}  # fmt: skip
MODES: tuple[Literal["wrap", "clamp", "mirror", "border"], ...] = ("wrap", "clamp", "mirror", "border")


def texels(format: str, shape: tuple[int, ...], seed: int = 1) -> NDArray[Any]:
    random, dtype = np.random.default_rng(seed), np.dtype(DTYPES[format])
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def fetched(
    instruction: str,
    made: Texture,
    data: NDArray[Any],
    coordinates: dict[str, NDArray[Any]],
    **options: Any,
) -> tuple[Any, NDArray[np.uint32]]:
    """Fetch for 64 threads; `made` without its address. Coordinates are words by register; components come by lane."""
    device = Emulator("sm_90a", **options)
    array = device.array(np.ascontiguousarray(data))
    record = device.array(np.frombuffer(replace(made, address=array.address).encode(), np.uint8))
    lines = [".reg .b32 %r<4>, %thread; .reg .b64 %at, %offset; .reg .pred %p;"]
    lines += [f".reg .b32 %{name};" for name in coordinates]
    lines.append("mov.u32 %thread, %tid.x; mul.wide.u32 %offset, %thread, 4;")
    for name in coordinates:
        lines.append(f"add.u64 %at, %in_{name}, %offset; ld.global.b32 %{name}, [%at];")
    lines.append(instruction)
    lines.append("mul.wide.u32 %offset, %thread, 16; add.u64 %at, %out0, %offset;")
    lines.append("st.global.v4.b32 [%at], {%r0, %r1, %r2, %r3};")
    body = "\n".join(lines)
    for index, name in enumerate(coordinates):
        body = re.sub(rf"%in_{name}\b", f"%in{index + 1}", body)
    inputs: list[Any] = [record.address, *[np.ascontiguousarray(each).view(np.uint32) for each in coordinates.values()]]
    report, (out,) = launch(
        body.replace("%texture", "%in0"), [poisoned(4 * LANES)], block=LANES, inputs=inputs, device=device,
        kernel_target="sm_90a",
    )  # fmt: skip
    return report, out.reshape(LANES, 4)


def texel(made: Texture, data: NDArray[Any], index: list[int]) -> list[Any]:
    """A texel by numbers of x, y, z, or the border, as the address modes have it; data is [z, y, x, channel]."""
    place = []
    for axis, number in enumerate(index):
        size, mode = data.shape[2 - axis], made.address_modes[axis]
        if not made.normalized and mode in ("wrap", "mirror"):
            mode = "clamp"
        if mode == "border" and not 0 <= number < size:
            return list(made.border)
        if mode == "wrap":
            number %= size
        elif mode == "mirror":
            number = number % size if number // size % 2 == 0 else size - 1 - number % size
        place.append(min(max(number, 0), size - 1))
    while len(place) < 3:
        place.append(0)
    values = list(data[place[2], place[1], place[0]])
    if made.as_float and data.dtype.kind in "ui":
        values = [max(float(each) / np.iinfo(data.dtype).max, -1.0) for each in values]
    return [*values, *[0, 0, 0, 1][len(values) :]]


def reference(made: Texture, data: NDArray[Any], at: list[float]) -> list[float]:
    """One fetch, in double precision."""
    sizes = [data.shape[2 - axis] for axis in range(len(at))]
    if made.normalized:
        at = [(each - math.floor(each) if made.address_modes[axis] == "wrap" else each) * sizes[axis]
              for axis, each in enumerate(at)]  # fmt: skip
    if made.filter == "point":
        return texel(made, data, [math.floor(each) for each in at])
    total = [0.0] * 4
    for corner in range(2 ** len(at)):
        index, weight = [], 1.0
        for axis, each in enumerate(at):
            first = math.floor(each - 0.5)
            fraction = round((each - 0.5 - first) * 256) / 256
            upper = corner >> axis & 1
            index.append(first + upper)
            weight *= fraction if upper else 1 - fraction
        total = [sum_ + weight * float(value) for sum_, value in zip(total, texel(made, data, index), strict=True)]
    return total


def near(random: np.random.Generator, size: int, scale: float) -> NDArray[np.float32]:
    """Coordinates inside and outside, of which all but a few lie on 1/64, so that no rounding decides."""
    return (random.integers(-size * 64, 2 * size * 64, LANES) / 64 + 1 / 128).astype(np.float32) * np.float32(scale)


@pytest.mark.parametrize("format", list(DTYPES))
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_points(format: Any, channels: int) -> None:
    """Integer coordinates: each texel of linear memory, and 0 outside."""
    data = texels(format, (1, 1, 50, channels))
    made = Texture(0, format, 50, channels=channels, address_modes=("border", "border", "border"))
    type = "f32" if made.is_float else "s32" if format.startswith("s") else "u32"
    x = np.arange(LANES, dtype=np.int32) - 5
    line = f"tex.1d.v4.{type}.s32 {{%r0, %r1, %r2, %r3}}, [%texture, {{%x}}];"
    report, out = fetched(line, made, data, {"x": x})
    assert report.status == "ok", report.summary()
    view = out.view(np.float32 if type == "f32" else np.int32 if type == "s32" else np.uint32)
    for lane in range(LANES):
        inside = 0 <= x[lane] < 50
        expected = [*data[0, 0, x[lane]], *[0, 0, 0, 1][channels:]] if inside else [0] * 4
        assert view[lane].tolist() == np.array(expected, view.dtype).tolist(), (lane, x[lane])


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("filter", ["point", "linear"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_filters_and_address_modes(mode: Any, dimensions: int, filter: Any, normalized: bool) -> None:
    sizes = (16, 8, 4)[:dimensions]
    depth, height, width = (*reversed(sizes),) if dimensions == 3 else (1, *([8] if dimensions == 2 else [1]), 16)
    format: Any = "u8" if normalized and mode == "wrap" else "f32"
    data = texels(format, (depth, height, width, 4))
    made = Texture(
        0, format, 16, 8 if dimensions > 1 else 0, 4 if dimensions > 2 else 0, channels=4, as_float=format == "u8",
        filter=filter, normalized=normalized, address_modes=(mode, mode, mode), border=(0.25, -1.0, 2.0, 8.0),
    )  # fmt: skip
    random = np.random.default_rng(dimensions)
    at = {name: near(random, size, 1 / size if normalized else 1) for name, size in zip("xyz", sizes, strict=False)}
    names = ", ".join(f"%{name}" for name in (*at, *"z"[: dimensions == 3]))
    line = f"tex.{dimensions}d.v4.f32.f32 {{%r0, %r1, %r2, %r3}}, [%texture, {{{names}}}];"
    report, out = fetched(line, made, data, at, schedule="random", seed=3)
    assert report.status == "ok", report.summary()
    found = out.view(np.float32)
    for lane in range(LANES):
        expected = reference(made, data, [float(each[lane]) for each in at.values()])
        # Eight products and sums of fp32 in any order.
        assert np.allclose(found[lane], expected, rtol=0, atol=8 * 2.0**-23 * 16), (lane, found[lane], expected)


def test_layers_and_pitches() -> None:
    """Layers beyond the last are the last; rows have a pitch, planes a gap."""
    data = np.full((3, 6, 10, 1), 99, np.float32)  # planes of 6 rows of 10, of which 5 by 7 are the texture
    data[:, :5, :7] = texels("f32", (3, 5, 7, 1))
    made = Texture(0, "f32", 7, 5, layers=3, pitch=40, slice=240)
    random = np.random.default_rng(4)
    layer = random.integers(0, 5, LANES).astype(np.uint32)
    x, y = (random.integers(0, size, LANES).astype(np.float32) for size in (7, 5))
    line = "tex.a2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%texture, {%l, %x, %y, %y}];"
    report, out = fetched(line, made, data, {"l": layer, "x": x, "y": y})
    assert report.status == "ok", report.summary()
    expected = data[np.minimum(layer, 2), y.astype(int), x.astype(int), 0]
    assert (out.view(np.float32)[:, 0] == expected).all()


def test_levels_offsets_and_residency() -> None:
    data = texels("s32", (1, 8, 16, 2))
    made = Texture(0, "s32", 16, 8, channels=2)
    random = np.random.default_rng(5)
    x, y = (random.integers(0, size, LANES).astype(np.int32) for size in (14, 6))
    line = (
        ".reg .b32 %lod; mov.b32 %lod, 3; tex.level.2d.v4.s32.s32 {%r0, %r1, %r2, _}|%p, [%texture, {%x, %y}], %lod, "
        "{1, 2}; selp.b32 %r3, 7, 8, %p;"
    )
    report, out = fetched(line, made, data, {"x": x, "y": y})
    assert report.status == "ok", report.summary()
    assert (out.view(np.int32)[:, :2] == data[0, y + 2, x + 1]).all()
    assert (out[:, 2] == 0).all()
    assert (out[:, 3] == 7).all()


@pytest.mark.parametrize(("component", "letter"), list(enumerate("rgba")))
def test_gathers(component: int, letter: str) -> None:
    """Counter-clockwise from the lower left: (x0, y1), (x1, y1), (x1, y0), (x0, y0)."""
    data = texels("f32", (1, 8, 16, 4))
    made = Texture(0, "f32", 16, 8, channels=4)
    random = np.random.default_rng(6)
    x, y = (random.integers(1, size, LANES).astype(np.float32) for size in (16, 8))
    line = f"tld4.{letter}.2d.v4.f32.f32 {{%r0, %r1, %r2, %r3}}, [%texture, {{%x, %y}}];"
    report, out = fetched(line, made, data, {"x": x, "y": y})
    assert report.status == "ok", report.summary()
    column, row = x.astype(int), y.astype(int)
    around = [(column - 1, row), (column, row), (column, row - 1), (column - 1, row - 1)]
    expected = np.stack([data[0, j, i, component] for i, j in around], axis=1)
    assert (out.view(np.float32) == expected).all()


@pytest.mark.parametrize("geometry", ["cube", "acube"])
def test_cubes(geometry: str) -> None:
    """The face of the largest component, and there what the Programming Guide says ("Cubemap Textures")."""
    size, cubes = 8, 2
    data = texels("f32", (6 * cubes, size, size, 1))
    made = Texture(0, "f32", size, size, layers=6 * cubes)
    random = np.random.default_rng(8)
    direction = random.uniform(-1, 1, (3, LANES)).astype(np.float32)
    cube = random.integers(0, cubes + 1, LANES).astype(np.uint32) if geometry == "acube" else np.zeros(LANES, np.uint32)
    x, y, z = direction
    line = "tex.cube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%texture, {%x, %y, %z, %z}];"
    if geometry == "acube":
        line = "tex.acube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%texture, {%l, %x, %y, %z}];"
    report, out = fetched(line, made, data, {"l": cube, "x": x, "y": y, "z": z})
    assert report.status == "ok", report.summary()
    for lane in range(LANES):
        i, j, k = map(float, direction[:, lane])
        face, m, s, t = {
            (abs(i), 1): (0, i, -k, -j), (abs(i), -1): (1, -i, k, -j), (abs(j), 1): (2, j, i, k),
            (abs(j), -1): (3, -j, i, -k), (abs(k), 1): (4, k, i, -j), (abs(k), -1): (5, -k, -i, -j),
        }[max(abs(i), abs(j), abs(k)), int(math.copysign(1, max((i, j, k), key=abs)))]  # fmt: skip
        column, row = (int((each / m + 1) / 2 * size) for each in (s, t))
        expected = data[6 * min(int(cube[lane]), cubes - 1) + face, row, column, 0]
        assert out.view(np.float32)[lane, 0] == expected, (lane, direction[:, lane])


def test_queries() -> None:
    made = Texture(0, "u8", 7, 5, layers=3, normalized=True)
    line = (
        "txq.width.b32 %r0, [%texture]; txq.height.b32 %r1, [%texture]; txq.array_size.b32 %r2, [%texture];"
        "txq.normalized_coords.b32 %r3, [%texture];"
    )
    report, out = fetched(line, made, np.zeros(105, np.uint8), {})
    assert report.status == "ok", report.summary()
    assert (out == [7, 5, 3, 1]).all()


@pytest.mark.parametrize("line", ["add.u64 %in0, %in0, 8;", "mov.b64 %in0, 5;", "mov.b64 %in0, %out0;"])
def test_what_is_no_object(line: str) -> None:
    fetch = "tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%texture, {%x}];"
    report, _ = fetched(line + fetch, Texture(0, "f32", 8), np.zeros(8, np.float32), {"x": np.zeros(LANES, np.int32)})
    assert report.status == "fault"
    assert report.findings[0].code == "not-an-object", report.summary()


def test_fewer_dimensions_than_the_fetch() -> None:
    fetch = "tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%texture, {%x, %x}];"
    report, _ = fetched(fetch, Texture(0, "f32", 8), np.zeros(8, np.float32), {"x": np.zeros(LANES, np.int32)})
    assert "the texture has fewer dimensions than the fetch, 2" in report.findings[0].message


def test_a_fetch_of_what_the_kernel_has_written() -> None:
    """The texture cache is not coherent within a kernel, also behind a barrier."""
    line = (
        ".reg .b64 %texels; ld.global.u64 %texels, [%in0+8]; st.global.b32 [%texels], %thread; bar.sync 0;"
        "tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%texture, {%x}];"
    )
    report, _ = fetched(line, Texture(0, "u32", 8), np.zeros(8, np.uint32), {"x": np.zeros(LANES, np.int32)})
    assert "nc-load" in {each.code for each in report.findings}, report.summary()


def test_records() -> None:
    made = Texture(1 << 44, "s16", 7, 5, 3, 2, 2, 64, 640, ("wrap", "border", "mirror"), "linear", True, True,
                   (1.0, 0.5, -2.0, 4.0))  # fmt: skip
    data = made.encode()
    assert len(data) == RECORD_BYTES == 96
    assert Texture.decode(data) == made
    for broken in (bytes(RECORD_BYTES), b"\1" + data[1:], data[:48] + b"\7" + data[49:]):
        with pytest.raises(ValueError, match="no texture or surface object is there"):
            Texture.decode(broken)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"format": "f64"}, "must be u8, u16"),
        ({"channels": 3}, "1, 2 or 4 channels, not 3"),
        ({"width": 0}, "must be at least 1, not 0"),
        ({"filter": "linear"}, "linear filtering takes floats"),
    ],
)
def test_what_is_no_texture(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Texture(**{"address": 0, "format": "u8", "width": 4, **choices})
