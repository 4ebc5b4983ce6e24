"""Products on the tensor core of sm_100a: one warp loads, one multiplies, four store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import cutlass
import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as blackwell_helpers
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.tensor_utils import LayoutEnum

from tools.recorded.references import witnesses as references

from ..launch import Buffer, output
from .compiler import TYPES, Witness

_STORING, _MULTIPLIES, _LOADS = 4, 4, 5  # warps
_THREADS = 6 * 32


@dataclass(frozen=True)
class Product:
    """C = A Bᵀ: `tile` is what one product of a CTA, or of a pair, makes; `majors` tells of A and of B "k" or "m"."""

    operands: str
    result: str
    shape: tuple[int, int, int]
    tile: tuple[int, int]
    pair: bool = False
    cluster: tuple[int, int] = (1, 1)
    majors: str = "kk"
    accumulator: str = "fp32"
    stages: int = 3

    @property
    def depth(self) -> int:
        """K of a stage: 128 bytes of each row."""
        return 128 * 8 // TYPES[self.operands].width

    @property
    def tiler(self) -> tuple[int, int, int]:
        return *self.tile, self.depth

    def mma(self) -> cute.TiledMma:
        """The product of one instruction."""
        majors = [OperandMajorMode.K if each == "k" else OperandMajorMode.MN for each in self.majors]
        group = tcgen05.CtaGroup.TWO if self.pair else tcgen05.CtaGroup.ONE
        kind = TYPES[self.operands]
        return blackwell_helpers.make_trivial_tiled_mma(kind, kind, *majors, TYPES[self.accumulator], group, self.tile)

    def tensor(self, pointer: cute.Pointer, rows: int, columns: int, *, row_major: bool) -> cute.Tensor:
        """A matrix as its pointer has it."""
        return cute.make_tensor(
            pointer, cute.make_ordered_layout((rows, columns), order=(1, 0) if row_major else (0, 1))
        )


def _multiplied(spec: Product) -> Callable[..., None]:
    """The kernel's host function: pointers to A, B and C."""
    m, n, k = spec.shape
    pair = 2 if spec.pair else 1

    @cute.kernel
    def multiply(
        load_a: cute.CopyAtom,
        a: cute.Tensor,
        load_b: cute.CopyAtom,
        b: cute.Tensor,
        store: cute.CopyAtom,
        c: cute.Tensor,
        a_layout: cute.ComposedLayout,
        b_layout: cute.ComposedLayout,
        c_layout: cute.ComposedLayout,
        part: cute.Tile,
        places: cute.Layout,
    ) -> None:
        mma = spec.mma()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        thread, _, _ = cute.arch.thread_idx()
        x, y, _ = cute.arch.block_idx()
        at = places.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        tile = x // pair, y, None
        leads = x % pair == 0

        memory = cutlass.utils.SmemAllocator()
        filled = memory.allocate_array(cutlass.Int64, 2 * spec.stages)
        made = memory.allocate_array(cutlass.Int64, 2)
        freed = memory.allocate_array(cutlass.Int64, 1)
        slot = memory.allocate(cutlass.Int32)
        spaces = [
            memory.allocate_tensor(TYPES[kind], each.outer, 1024, each.inner)
            for kind, each in ((spec.operands, a_layout), (spec.operands, b_layout), (spec.result, c_layout))
        ]
        a_space, b_space, c_space = spaces
        tensor_memory = cutlass.utils.TmemAllocator(
            slot,
            barrier_for_retrieve=pipeline.NamedBarrier(2, 32 * (_STORING + 1)),
            allocator_warp_id=0,
            is_two_cta=spec.pair,
            two_cta_tmem_dealloc_mbar_ptr=freed,
        )
        count = pair * sum(
            cute.size_in_bytes(TYPES[spec.operands], cute.select(each, mode=[0, 1, 2])) for each in (a_layout, b_layout)
        )
        readers = cute.size(places, mode=[1]) + cute.size(places, mode=[2]) - 1
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        fills, reads = pipeline.PipelineTmaUmma.create(
            num_stages=spec.stages,
            producer_group=one,
            tx_count=count,
            barrier_storage=filled,
            cta_layout_vmnk=places,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, readers),
        ).make_participants()
        makes, takes = pipeline.PipelineUmmaAsync.create(
            num_stages=1,
            producer_group=one,
            barrier_storage=made,
            cta_layout_vmnk=places,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, pair * _STORING * 32),
        ).make_participants()

        mine = mma.get_slice(at[0])
        a_tiles = mine.partition_A(cute.local_tile(a, spec.tiler, tile, proj=(1, None, 1)))
        b_tiles = mine.partition_B(cute.local_tile(b, spec.tiler, tile, proj=(None, 1, 1)))
        c_tile = mine.partition_C(cute.local_tile(c, spec.tiler, tile, proj=(1, 1, None)))
        a_to, a_from = cpasync.tma_partition(
            load_a,
            at[2],
            cute.make_layout(cute.size(places, mode=[2])),
            cute.group_modes(a_space, 0, 3),
            cute.group_modes(a_tiles, 0, 3),
        )
        b_to, b_from = cpasync.tma_partition(
            load_b,
            at[1],
            cute.make_layout(cute.size(places, mode=[1])),
            cute.group_modes(b_space, 0, 3),
            cute.group_modes(b_tiles, 0, 3),
        )
        sum_shape = mma.make_fragment_C(mma.partition_shape_C(spec.tile))
        steps = k // spec.depth

        if warp == _LOADS:
            a_mask = cpasync.create_tma_multicast_mask(places, at, mcast_mode=2)
            b_mask = cpasync.create_tma_multicast_mask(places, at, mcast_mode=1)
            for step in cutlass.range(steps):
                stage = fills.acquire_and_advance()
                cute.copy(
                    load_a, a_from[None, step], a_to[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=a_mask
                )
                cute.copy(
                    load_b, b_from[None, step], b_to[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=b_mask
                )
            fills.tail()
        elif warp == _MULTIPLIES:
            tensor_memory.wait_for_alloc()
            total = cute.make_tensor(tensor_memory.retrieve_ptr(TYPES[spec.accumulator]), sum_shape.layout)
            left, right = mma.make_fragment_A(a_space), mma.make_fragment_B(b_space)
            if leads:
                whole = makes.acquire_and_advance()
                mma.set(tcgen05.Field.ACCUMULATE, False)
                for _ in cutlass.range(steps):
                    stage = reads.wait_and_advance()
                    for part_of_k in cutlass.range_constexpr(cute.size(left, mode=[2])):
                        where = None, None, part_of_k, stage.index
                        cute.gemm(mma, total, left[where], right[where], total)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    stage.release()
                whole.commit()
                makes.tail()  # the peer arrives here
        else:
            tensor_memory.allocate(512)
            tensor_memory.wait_for_alloc()
            pointer = tensor_memory.retrieve_ptr(TYPES[spec.accumulator])
            total = cute.make_tensor(pointer, sum_shape.layout)
            meet = pipeline.NamedBarrier(1, 32 * _STORING)
            parts = cute.flat_divide(total[((None, None), 0, 0)], part)
            goals = cute.flat_divide(c_tile[((None, None), 0, 0)], part)
            read = tcgen05.make_tmem_copy(
                blackwell_helpers.get_tmem_load_op(
                    (spec.tile[0] // pair, spec.tile[1], spec.depth),
                    LayoutEnum.ROW_MAJOR,
                    TYPES[spec.result],
                    TYPES[spec.accumulator],
                    part,
                    spec.pair,
                ),
                parts[None, None, 0, 0],
            )
            read_mine = read.get_slice(thread)
            read_from = cute.group_modes(read_mine.partition_S(parts), 3, 5)
            values = cute.make_rmem_tensor(
                read_mine.partition_D(goals)[None, None, None, 0, 0].shape, TYPES[spec.accumulator]
            )
            write = cute.make_tiled_copy_D(
                blackwell_helpers.get_smem_store_op(
                    LayoutEnum.ROW_MAJOR, TYPES[spec.result], TYPES[spec.accumulator], read
                ),
                read,
            )
            write_to = write.get_slice(thread).partition_D(c_space)
            c_from, c_to = cpasync.tma_partition(
                store, 0, cute.make_layout(1), cute.group_modes(c_space, 0, 2), cute.group_modes(goals, 0, 2)
            )
            c_to = cute.group_modes(c_to, 1, cute.rank(c_to))
            stored = pipeline.PipelineTmaStore.create(
                num_stages=2, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * _STORING)
            )
            whole = takes.wait_and_advance()
            for each in cutlass.range(cute.size(read_from, mode=[3])):
                cute.copy(read, read_from[None, None, None, each], values)
                rounded = cute.make_rmem_tensor(values.shape, TYPES[spec.result])
                rounded.store(values.load().to(TYPES[spec.result]))
                cute.copy(write, write.retile(rounded), write_to[None, None, None, each % 2])
                cute.arch.fence_proxy("async.shared", space="cta")
                meet.arrive_and_wait()
                if warp == 0:
                    cute.copy(store, c_from[None, each % 2], c_to[None, each])
                    stored.producer_commit()
                    stored.producer_acquire()
                meet.arrive_and_wait()
            whole.release()
            stored.producer_tail()
            tensor_memory.relinquish_alloc_permit()
            tensor_memory.free(pointer)

    @cute.jit
    def host(a_pointer: cute.Pointer, b_pointer: cute.Pointer, c_pointer: cute.Pointer) -> None:
        mma = spec.mma()
        a = spec.tensor(a_pointer, m, k, row_major=spec.majors[0] == "k")
        b = spec.tensor(b_pointer, n, k, row_major=spec.majors[1] == "k")
        c = spec.tensor(c_pointer, m, n, row_major=True)
        kind = TYPES[spec.operands]
        a_layout = blackwell_helpers.make_smem_layout_a(mma, spec.tiler, kind, spec.stages)
        b_layout = blackwell_helpers.make_smem_layout_b(mma, spec.tiler, kind, spec.stages)
        shape = *spec.cluster, 1
        places = cute.tiled_divide(cute.make_layout(shape), (mma.thr_id,))
        group = tcgen05.CtaGroup.TWO if spec.pair else tcgen05.CtaGroup.ONE
        copy = cpasync.CopyBulkTensorTileG2SMulticastOp(group)
        load_a, a_view = cute.nvgpu.make_tiled_tma_atom_A(
            copy, a, cute.select(a_layout, mode=[0, 1, 2]), spec.tiler, mma, places.shape
        )
        load_b, b_view = cute.nvgpu.make_tiled_tma_atom_B(
            copy, b, cute.select(b_layout, mode=[0, 1, 2]), spec.tiler, mma, places.shape
        )
        mine = spec.tile[0] // pair, spec.tile[1], spec.depth
        part = cutlass.utils.compute_epilogue_tile_shape(mine, spec.pair, LayoutEnum.ROW_MAJOR, TYPES[spec.result])
        c_layout = blackwell_helpers.make_smem_layout_epi(TYPES[spec.result], LayoutEnum.ROW_MAJOR, part, 2)
        store, c_view = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.select(c_layout, mode=[0, 1]), part
        )
        multiply(load_a, a_view, load_b, b_view, store, c_view, a_layout, b_layout, c_layout, part, places).launch(
            grid=(m // mine[0], n // mine[1], 1), block=(_THREADS, 1, 1), cluster=shape
        )

    return host


def _witness(name: str, spec: Product, tolerance: tuple[float, float] = (1e-2, 2e-2)) -> Witness:
    m, n, k = spec.shape
    how: dict[str, Any] = {"init": "randint", "lo": -128, "hi": 128} if spec.operands == "i8" else {}
    buffers = {
        "a": Buffer(spec.operands, (m, k) if spec.majors[0] == "k" else (k, m), **how),
        "b": Buffer(spec.operands, (n, k) if spec.majors[1] == "k" else (k, n), **how),
        "c": output(spec.result, m, n),
    }
    reference = partial(references.product_of_majors, operands=spec.operands, majors=spec.majors)
    return Witness(name, "sm_100a", _multiplied(spec), buffers, reference, tolerance)


WITNESSES = [
    _witness("product_f16", Product("fp16", "fp16", (256, 256, 256), (128, 128))),
    _witness("product_tf32_wide", Product("tf32", "fp32", (128, 512, 128), (128, 256)), (1e-3, 1e-3)),
    _witness("product_bf16_mn", Product("bf16", "fp32", (256, 128, 256), (128, 64), majors="mm"), (1e-3, 1e-3)),
    _witness("product_i8_64", Product("i8", "i32", (128, 256, 512), (64, 128), accumulator="i32"), (0, 0)),
    _witness("product_e4m3_pair", Product("e4m3", "bf16", (512, 256, 512), (256, 128), pair=True, cluster=(2, 1))),
    _witness(
        "product_f16_pair_cluster",
        Product("fp16", "fp32", (512, 256, 256), (256, 64), pair=True, cluster=(4, 2), majors="mk"),
        (1e-3, 1e-3),
    ),
    _witness(
        "product_e5m2_pair_128",
        Product("e5m2", "fp16", (256, 384, 256), (128, 192), pair=True, cluster=(2, 2), majors="km"),
    ),
    _witness(
        "product_bf16_multicast",
        Product("bf16", "bf16", (256, 256, 192), (128, 128), cluster=(2, 2), stages=2),
        (1e-2, 5e-2),
    ),
]
