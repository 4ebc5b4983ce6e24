"""What ends a kernel: traps, and accesses that hardware refuses. The emulator must refuse them too.

From PTX ISA 9.7.19 and the alignment that each instruction requires. Behind each the kernel stores, which must not come
to pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.tma import Load, coordinates, strides_of, tensor_of
from ptxgen.builder import Register
from ptxgen.descriptors import TensorMap
from ptxgen.instr import async_copy, atomic, bulk, matrix, memory, miscellaneous, predicate, tma


def _fault(draft: Draft, code: str) -> tuple[Register, Register]:
    """A warp whose kernel must end with this finding; (its thread, an array that would be written)."""
    draft.launch(block=32)
    draft.fault = code
    return draft.thread, draft.input(np.arange(256, dtype=np.uint32))


@microtest("trap", "brkpt")
def stop(draft: Draft, name: str) -> None:
    """A trap; without a debugger a breakpoint is one."""
    _, out = _fault(draft, "trap")
    draft(getattr(miscellaneous, name)())
    draft.store(out, draft.thread)


@microtest("trap", "brkpt")
def not_reached(draft: Draft, name: str) -> None:
    """Where no thread gets to it nothing happens."""
    draft.launch(block=32)
    tid, late = draft.thread, draft.reg("pred")
    draft(predicate.setp(late, tid, 32, compare="ge", type="u32"), getattr(miscellaneous, name)().when(late))
    draft.store(draft.offset(draft.output(np.arange(32, dtype=np.uint32)), tid, 4), tid)


@microtest(
    *((which, space) for which in ("ld", "st", "ld.v4", "st.v2", "atom", "ld.b64") for space in ("global", "shared"))
)
def misaligned(draft: Draft, which: str, space: Any) -> None:
    """Accesses must be on a multiple of their size."""
    _, out = _fault(draft, "misaligned")
    place = out if space == "global" else draft.shared(256)
    value, wide = draft.reg("b32"), draft.reg("b64")
    if which == "ld":
        draft(memory.ld(value, f"[{place}+2]", space=space, type="b32"))
    elif which == "ld.b64":
        draft(memory.ld(wide, f"[{place}+4]", space=space, type="b64"))
    elif which == "st":
        draft(memory.st(f"[{place}+1]", draft.thread, space=space, type="b32"))
    elif which == "ld.v4":
        words = draft.regs("b32", 4)
        draft(memory.ld(words, f"[{place}+8]", space=space, vec="v4", type="b32"))
        draft(memory.st(f"[{out}]", words, space="global", vec="v4", type="b32"))
    elif which == "st.v2":
        draft(memory.st(f"[{place}+4]", [draft.thread, draft.thread], space=space, vec="v2", type="b32"))
    else:
        draft(atomic.atom(value, f"[{place}+2]", draft.thread, space=space, op="add", type="u32"))
    if which in ("ld", "atom"):
        draft.store(out, value)
    elif which == "ld.b64":
        draft.store(out, wide)


@microtest("global", "shared")
def out_of_bounds(draft: Draft, space: Any) -> None:
    """An address at which nothing is."""
    _, out = _fault(draft, "out-of-bounds")
    value = draft.reg("b32")
    place = draft.scalar("u64", 16) if space == "global" else draft.scalar("u32", 0x3FF00)
    draft.shared(64)
    draft(memory.ld(value, f"[{place}]", space=space, type="b32"))
    draft.store(out, value)


@microtest()
def ldmatrix(draft: Draft) -> None:
    """Rows of matrices are on multiples of 16 bytes."""
    _, out = _fault(draft, "misaligned")
    value = draft.reg("b32")
    draft(matrix.ldmatrix([value], f"[{draft.shared(1024)}+8]", num=1, space="shared"))
    draft.store(out, value)


@microtest()
def cp_async(draft: Draft) -> None:
    """Copies of 16 bytes are between multiples of them."""
    _, out = _fault(draft, "misaligned")
    draft(async_copy.copy(f"[{draft.shared(64)}+8]", f"[{out}]", size=16, cop="cg", dst_space="shared"))
    draft(async_copy.wait_all())
    draft.store(out, draft.thread)


@microtest("source", "destination")
def bulk_load(draft: Draft, which: str) -> None:
    """Addresses are multiples of 16 bytes."""
    kernel = Load(draft, 1024)
    draft.fault = "misaligned"
    data = draft.input(np.zeros(1024, np.uint8))
    source, to = (8 if which == name else 0 for name in ("source", "destination"))
    kernel.run(
        64,
        lambda place, bar: draft(
            bulk.load(
                f"[{place}+{to}]", f"[{data}+{source}]", draft.scalar("u32", 64), f"[{bar}]", dst="shared::cluster"
            )
        ),
        kernel.before,
    )


@microtest("column", "destination")
def tensor_load(draft: Draft, which: str) -> None:
    """The first coordinate is on a multiple of 16 bytes (measured, H200), the destination on one of 128."""
    kernel = Load(draft, 2048)
    draft.fault = "misaligned"
    dims, start = (64, 16), (4 if which == "column" else 0, 0)
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), (32, 8)), tensor_of(dims, 2)
    )
    to = 64 if which == "destination" else 0
    kernel.run(
        512,
        lambda place, bar: draft(
            tma.load(
                f"[{place}+{to}]", f"[{address}]", coordinates(draft, start), f"[{bar}]", dim=2, dst="shared::cluster"
            )
        ),
        kernel.before,
    )


@microtest()
def tensor_store(draft: Draft) -> None:
    """A store takes no negative coordinates (measured, H200)."""
    draft.launch(block=32)
    draft.fault = "out-of-bounds"
    end, dims = draft.label("end"), (64, 16)
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), (32, 8)), tensor_of(dims, 2)
    )
    box = draft.shared(1024, 1024)
    draft.copy_in(box, np.zeros(1024, np.uint8))
    draft.branch(end, draft.is_thread(0), negated=True)
    draft(tma.store(f"[{address}]", coordinates(draft, (0, -1)), f"[{box}]", dim=2), bulk.commit_group())
    draft(bulk.wait_group(0))
    draft.place(end)


@microtest("pixel", "mode", "rank")
def tensor_map(draft: Draft, which: str) -> None:
    """A filter outside of the map's pixel box, a map of another mode, one of another rank (measured, H100)."""
    kernel = Load(draft, 1024)
    draft.fault = f"tensormap-{which}"
    dims = (8, 9, 3)
    if which == "pixel":
        made: Any = lambda array: TensorMap.im2col("bf16", array, dims, strides_of(dims, 2), (0,), (-2,), 8, 8)  # noqa: E731
    else:
        made = lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), (8, 4, 2))  # noqa: E731
    address = draft.tensormap(made, tensor_of(dims, 2))
    offset = draft.reg("b16")
    draft.text(f"    mov.u16 {offset}, 1;")

    def copy(place: Register, bar: Register) -> None:
        if which == "rank":
            draft(
                tma.load(
                    f"[{place}]", f"[{address}]", coordinates(draft, (0, 0)), f"[{bar}]", dim=2, dst="shared::cluster"
                )
            )
        else:
            start = coordinates(draft, (0, -1 if which == "pixel" else 0, 0))
            draft(
                tma.load_im2col(
                    f"[{place}]",
                    f"[{address}]",
                    start,
                    f"[{bar}]",
                    [offset],
                    dim=3,
                    dst="shared::cluster",
                    load_mode="im2col",
                )
            )

    kernel.run(128, copy, kernel.before)
