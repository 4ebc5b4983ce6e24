"""What one copy through a tensormap moves, beside the emulator's engine: bytes, and where each of them lands."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxgen
from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.descriptors.tensormap import Im2colMap, TiledMap, transfer
from ptxgen.descriptors.tensormap.tables import INTERLEAVES, SWIZZLE_CODES, TYPES
from ptxgen.emulator.engines import tensor_copies
from ptxgen.emulator.engines.tensor_copies import Box
from ptxgen.pictures import draw

ADDRESS = 0x7F0000000000
SHARED = 1 << 17


def random_map(rng: random.Random) -> TiledMap | Im2colMap | None:
    """A random map, or None where the draw is illegal."""
    dtype, swizzle = rng.choice([*TYPES]), rng.choice([*SWIZZLE_CODES])
    interleave = rng.choice(["none", "none", *INTERLEAVES])
    rank = rng.randint(1, 5) if interleave == "none" else rng.randint(3, 5)
    dims = [rng.choice([64, 96, 128, 256, 300, 512]) for _ in range(rank)]
    if TYPES[dtype].padded:
        dims[0] = rng.choice([128, 256, 512])
    strides = [rng.choice([4096, 8192, 65536]) for _ in dims[1:]]
    inner = 128 if TYPES[dtype].padded else rng.choice([16, 32, 64, 96, 128]) * 8 // TYPES[dtype].bits
    steps = [rng.choice([1, 1, 2, 3, 5, 8]) for _ in dims]
    given = {"element_strides": steps, "interleave": interleave, "swizzle": swizzle}
    try:
        if rank >= 3 and rng.random() < 0.5:
            lower = [rng.randint(-3, 1) for _ in dims[2:]]
            upper = [rng.randint(-1, 2) for _ in dims[2:]]
            return TensorMap.im2col(dtype, ADDRESS, dims, strides, lower, upper, inner, rng.randint(1, 90), **given)
        box = [inner, *(rng.randint(1, 9 if rank < 4 else 4) for _ in dims[1:])]
        return TensorMap.tiled(dtype, ADDRESS, dims, strides or [0], box, **given)
    except DescriptorError:
        return None


def maps(count: int, seed: int) -> Iterator[TiledMap | Im2colMap]:
    rng = random.Random(seed)
    while count:
        if (found := random_map(rng)) is not None:
            count -= 1
            yield found


def landed(box: Box, start: int) -> NDArray[np.int64]:
    """Where the engine writes each byte of a copy to `start`, in the order of the rows."""
    granules = box.granules(start)

    def put(values: NDArray[np.int64]) -> NDArray[np.uint8]:
        shared = np.zeros(SHARED, np.uint8)
        box.put(shared, granules, values.astype(np.uint8).reshape(-1, box.piece))
        return shared

    index = np.arange(box.bytes)
    written = put(np.ones_like(index)) == 1
    # The number of each byte, eight bits of it at a time.
    numbers = sum(put(index >> shift & 0xFF)[written].astype(np.int64) << shift for shift in (0, 8, 16))
    places = np.empty(box.bytes, np.int64)
    places[numbers] = np.flatnonzero(written)
    return places


def compare(box: Box, mode: str, halo: int, start: int) -> None:
    found = transfer(box.tensormap, mode, halo)  # type: ignore[arg-type]
    assert found.bytes == box.bytes
    assert found.rows == len(box.rows.offsets)
    assert found.row_bytes == box.row_bytes
    assert (found.offsets(start).ravel() == landed(box, start)).all()


@pytest.mark.parametrize("seed", range(3))
def test_copies_move_what_the_engine_moves(seed: int) -> None:
    rng = random.Random(seed)
    for each in maps(50, seed):
        start = 128 * rng.randint(0, 16)
        if isinstance(each, TiledMap):
            compare(tensor_copies.tile(each, [0] * each.rank), "tile", 0, start)
        else:
            first = [0, *(max(0, lower) for lower in each.pixel_box_lower), 0]
            if each.interleave != "none":
                first = [*first[1:-1], 0, 0]
            compare(tensor_copies.pixels(each, first, [0] * (each.rank - 2)), "im2col", 0, start)
            if each.interleave == "none" and each.swizzle in ("32B", "64B", "128B"):
                halo, wide = rng.randint(0, 31), rng.random() < 0.5
                mode = "im2col::w::128" if wide else "im2col::w"
                compare(tensor_copies.wide_pixels(each, first, halo, 0, fixed=wide), mode, halo, start)


def test_rows_of_a_gather() -> None:
    each = TensorMap.tiled("bf16", ADDRESS, (64, 100), (128,), (64, 1), swizzle="128B")
    compare(tensor_copies.four_rows(each, [0, 3, 1, 7, 2]), "tile::gather4", 0, 1024)
    assert transfer(each, "tile::gather4").bytes == 512


@pytest.mark.parametrize("seed", range(2))
def test_pictures_say_what_is_transferred(seed: int) -> None:
    for each in maps(15, 100 + seed):
        moves = transfer(each)
        if moves.rows * moves.row_bytes <= 32768:
            picture = draw("tensormap", [f"map={each.encode().hex()}"])
            assert f"; {moves.bytes} bytes transferred" in picture.subtitle
            assert picture.data["address"] == moves.offsets().tolist()
            assert f"a copy moves {moves.bytes} bytes: announce them with expect_tx" in each.explain()


STRIDED = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
{
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 full;
    .reg .b32 %tile, %full;
    .reg .b64 %map, %state;
    .reg .pred %done;
    mov.b32 %tile, tile;
    mov.b32 %full, full;
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mbarrier.init.shared::cta.b64 [%full], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%full], BYTES;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%tile], [%map, {0, 0}], [%full];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%full], 0;
    @!%done bra wait;
    ret;
}
"""


@pytest.mark.parametrize(("bytes", "status"), [(512, "ok"), (256, "deadlock")])
def test_expect_tx_of_a_strided_map(bytes: int, status: str) -> None:
    device = ptxgen.Emulator("sm_90a")
    array = device.array(np.zeros((512, 512), np.uint16))
    each = TensorMap.tiled("bf16", array, (512, 512), (1024,), (64, 8), element_strides=(2, 2), swizzle="128B")
    assert each.transfer_bytes == 512
    report = device.launch(ptxgen.Kernel.from_ptx(STRIDED.replace("BYTES", str(bytes))), 1, 1, [each])
    assert report.status == status, report.summary()


@pytest.mark.parametrize(
    ("mode", "halo", "message"),
    [
        ("im2col", 0, "requires a map of mode im2col"),
        ("tile::gather4", 0, "box must be one row"),
        ("tile", 3, "halo must be 0"),
    ],
)
def test_modes_that_a_map_has_not(mode: str, halo: int, message: str) -> None:
    each = TensorMap.tiled("bf16", ADDRESS, (64, 100), (128,), (64, 8))
    with pytest.raises(DescriptorError, match=message):
        transfer(each, mode, halo)  # type: ignore[arg-type]
