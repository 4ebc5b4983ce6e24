"""Products by warpgroups of sm_90a: a fifth warp loads, the first four multiply and store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as hopper_helpers
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.tensor_utils import LayoutEnum

from tools.recorded.references import witnesses as references

from ..launch import Buffer, output
from .compiler import TYPES, Witness

_GROUP = 128
_LOADS = 4  # the warp


@dataclass(frozen=True)
class Product:
    """C = A Bᵀ in fp32: `tile` is a CTA's; with `cluster` CTAs of a row share A and those of a column share B."""

    operands: str
    shape: tuple[int, int, int]
    tile: tuple[int, int]
    cluster: tuple[int, int] = (1, 1)
    majors: str = "kk"
    stages: int = 3

    @property
    def tiler(self) -> tuple[int, int, int]:
        """M, N and K of a stage: 128 bytes of each row."""
        return *self.tile, 128 * 8 // TYPES[self.operands].width


def _multiplied(spec: Product) -> Callable[..., None]:
    m, n, k = spec.shape
    tile_m, tile_n, depth = spec.tiler
    kind = TYPES[spec.operands]

    def multiplication() -> cute.TiledMma:
        majors = [OperandMajorMode.K if each == "k" else OperandMajorMode.MN for each in spec.majors]
        return hopper_helpers.make_trivial_tiled_mma(kind, kind, *majors, cutlass.Float32, (1, 1, 1), (64, tile_n))

    @cute.kernel
    def multiply(
        load_a: cute.CopyAtom,
        a: cute.Tensor,
        load_b: cute.CopyAtom,
        b: cute.Tensor,
        c: cute.Tensor,
        a_layout: cute.ComposedLayout,
        b_layout: cute.ComposedLayout,
        places: cute.Layout,
    ) -> None:
        mma = multiplication()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        thread, _, _ = cute.arch.thread_idx()
        x, y, _ = cute.arch.block_idx()
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        here = places.get_flat_coord(rank)
        memory = cutlass.utils.SmemAllocator()
        barriers = memory.allocate_array(cutlass.Int64, 2 * spec.stages)
        a_space = memory.allocate_tensor(kind, a_layout.outer, 1024, a_layout.inner)
        b_space = memory.allocate_tensor(kind, b_layout.outer, 1024, b_layout.inner)
        sharers = spec.cluster[0] + spec.cluster[1] - 1
        fills, reads = pipeline.PipelineTmaAsync.create(
            num_stages=spec.stages,
            barrier_storage=barriers,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharers * _GROUP // 32),
            tx_count=(tile_m + tile_n) * 128,
            cta_layout_vmnk=cute.make_layout((1, *spec.cluster, 1)),
        ).make_participants()
        a_tiles = cute.local_tile(a, (tile_m, depth), (x, None))
        b_tiles = cute.local_tile(b, (tile_n, depth), (y, None))
        steps = k // depth
        if warp == _LOADS:
            a_to, a_from = cpasync.tma_partition(
                load_a,
                here[1],
                cute.make_layout(spec.cluster[1]),
                cute.group_modes(a_space, 0, 2),
                cute.group_modes(a_tiles, 0, 2),
            )
            b_to, b_from = cpasync.tma_partition(
                load_b,
                here[0],
                cute.make_layout(spec.cluster[0]),
                cute.group_modes(b_space, 0, 2),
                cute.group_modes(b_tiles, 0, 2),
            )
            a_mask = cute.make_layout_image_mask(places, here, mode=1) if spec.cluster[1] > 1 else 0
            b_mask = cute.make_layout_image_mask(places, here, mode=0) if spec.cluster[0] > 1 else 0
            for step in cutlass.range(steps):
                stage = fills.acquire_and_advance()
                cute.copy(
                    load_a, a_from[None, step], a_to[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=a_mask
                )
                cute.copy(
                    load_b, b_from[None, step], b_to[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=b_mask
                )
            fills.tail()
        else:
            mine = mma.get_slice(thread)
            goal = mine.partition_C(cute.local_tile(c, spec.tile, (x, y)))
            left = mma.make_fragment_A(mma.get_slice(0).partition_A(a_space))
            right = mma.make_fragment_B(mma.get_slice(0).partition_B(b_space))
            total = cute.make_rmem_tensor(goal.shape, cutlass.Float32)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            for _ in cutlass.range(steps):
                stage = reads.wait_and_advance()
                warpgroup.fence()
                for part in cutlass.range_constexpr(cute.size(left, mode=[2])):
                    where = None, None, part, stage.index
                    cute.gemm(mma, total, left[where], right[where], total)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                stage.release()
            cute.autovec_copy(total, goal)

    @cute.jit
    def host(a_pointer: cute.Pointer, b_pointer: cute.Pointer, c_pointer: cute.Pointer) -> None:
        def tensor(pointer: cute.Pointer, rows: int, columns: int, major: str) -> cute.Tensor:
            order = (1, 0) if major == "k" else (0, 1)
            return cute.make_tensor(pointer, cute.make_ordered_layout((rows, columns), order=order))

        enums = [LayoutEnum.ROW_MAJOR if each == "k" else LayoutEnum.COL_MAJOR for each in spec.majors]
        a, b = tensor(a_pointer, m, k, spec.majors[0]), tensor(b_pointer, n, k, spec.majors[1])
        a_layout = hopper_helpers.make_smem_layout_a(enums[0], spec.tiler, kind, spec.stages)
        b_layout = hopper_helpers.make_smem_layout_b(enums[1], spec.tiler, kind, spec.stages)

        def copy(sharers: int) -> cpasync.CopyBulkTensorTileG2SOp | cpasync.CopyBulkTensorTileG2SMulticastOp:
            return cpasync.CopyBulkTensorTileG2SMulticastOp() if sharers > 1 else cpasync.CopyBulkTensorTileG2SOp()

        load_a, a_view = cpasync.make_tiled_tma_atom(
            copy(spec.cluster[1]), a, cute.select(a_layout, mode=[0, 1]), (tile_m, depth), num_multicast=spec.cluster[1]
        )
        load_b, b_view = cpasync.make_tiled_tma_atom(
            copy(spec.cluster[0]), b, cute.select(b_layout, mode=[0, 1]), (tile_n, depth), num_multicast=spec.cluster[0]
        )
        multiply(
            load_a,
            a_view,
            load_b,
            b_view,
            tensor(c_pointer, m, n, "k"),
            a_layout,
            b_layout,
            cute.make_layout(spec.cluster),
        ).launch(grid=(m // tile_m, n // tile_n, 1), block=(_GROUP + 32, 1, 1), cluster=(*spec.cluster, 1))

    return host


def _witness(name: str, spec: Product, tolerance: tuple[float, float] = (1e-3, 1e-3)) -> Witness:
    m, n, k = spec.shape
    buffers = {
        "a": Buffer(spec.operands, (m, k) if spec.majors[0] == "k" else (k, m)),
        "b": Buffer(spec.operands, (n, k) if spec.majors[1] == "k" else (k, n)),
        "c": output("fp32", m, n),
    }
    reference = partial(references.product_of_majors, operands=spec.operands, majors=spec.majors)
    return Witness(name, "sm_90a", _multiplied(spec), buffers, reference, tolerance)


WITNESSES = [
    _witness("product_f16", Product("fp16", (128, 256, 256), (64, 128))),
    _witness("product_bf16_mn", Product("bf16", (256, 128, 256), (128, 64), majors="mm")),
    _witness("product_e5m2_96", Product("e5m2", (128, 192, 256), (64, 96)), (1e-2, 5e-2)),
    _witness("product_e4m3_multicast", Product("e4m3", (256, 128, 512), (64, 64), cluster=(2, 2)), (1e-2, 5e-2)),
    _witness("product_f16_multicast_mk", Product("fp16", (256, 256, 192), (128, 128), cluster=(2, 1), majors="mk")),
]
