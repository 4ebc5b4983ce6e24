"""Where the cycles of recorded launches go: clock64 at each synchronizing line of every warp, on the GPU and predicted.

    ncu --clock-control none --cache-control none --profile-from-start off --csv --page raw --log-file cycles.csv
        --metrics sm__cycles_elapsed.max python -m bench.gpu.microbench.stamps --out stamps.npz --seconds 90
    python -m bench.gpu.microbench.stamps --compare stamps.npz

A stamp keeps the first and the last cycle at which lane 0 of a warp was at a line: before the end, after
barriers and waits. It costs some 50 cycles, most of them the first time. Only launches of the seen part are taken.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bench.gpu.arms import Spec
from bench.gpu.microbench.launches import TIMES, Drawn, Launches
from bench.gpu.microbench.validate import recorded
from ptxgen.device import Kernel
from ptxgen.gemm.types import TYPES
from ptxgen.syntax import Instruction, walk

#: Opcodes that are stamped, and whether before them.
_STAMPED = {
    "cp.async.bulk.wait_group": False,
    "bar.sync": False,
    "barrier.cluster.wait": False,
    "wgmma.wait_group": False,
    "ret": True,
    "exit": True,
}
_WAIT = "mbarrier.try_wait"
#: Bytes of a stamp: the first and the last cycle.
_STAMP = 16


@dataclass(frozen=True)
class Stamped:
    """A kernel with stamps: its text, the lines of the original where they are, and the warps of a CTA."""

    text: str
    lines: tuple[int, ...]
    warps: int


def stamped(kernel: Kernel) -> Stamped:
    """The kernel with one more parameter, the array of stamps."""
    rows = kernel.text.splitlines()
    instructions = sorted(
        (each for each in walk(kernel.module.items) if isinstance(each, Instruction)), key=lambda each: each.line
    )
    warps = -(-int(kernel.text.split(".reqntid ")[1].split(",")[0]) // 32)
    before, after = dict[int, list[int]](), dict[int, list[int]]()
    lines = [instructions[0].line]
    for each in instructions:
        name = next((name for name in _STAMPED if each.opcode == name or each.opcode.startswith(name + ".")), None)
        if name is not None:
            (before if _STAMPED[name] else after).setdefault(each.line, []).append(len(lines))
        elif each.opcode.startswith(_WAIT):
            end = next(at for at in range(each.line, len(rows) + 1) if rows[at - 1].strip() == "}")
            after.setdefault(end, []).append(len(lines))
        else:
            continue
        lines.append(each.line)
    made = list[str]()
    for number, row in enumerate(rows, 1):
        if number == lines[0]:
            made += _entry(warps, len(lines)) + _stamp(0)
        made += [text for at in before.get(number, ()) for text in _stamp(at)]
        made.append(row)
        made += [text for at in after.get(number, ()) for text in _stamp(at)]
    text = "\n".join(made) + "\n"
    head, end, rest = text.partition("\n)\n")
    return Stamped(f"{head},\n    .param .u64 stamps{end}{rest}", tuple(lines), warps)


def _entry(warps: int, points: int) -> list[str]:
    return f"""
.reg .b64 %rd_stamps, %rd_stamp_clock;
.reg .b32 %r_stamp, %r_stamp_of;
.reg .pred %p_stamps;
mov.u32 %r_stamp, %nctaid.y; mov.u32 %r_stamp_of, %ctaid.z; mul.lo.u32 %r_stamp, %r_stamp, %r_stamp_of;
mov.u32 %r_stamp_of, %ctaid.y; add.u32 %r_stamp, %r_stamp, %r_stamp_of;
mov.u32 %r_stamp_of, %nctaid.x; mul.lo.u32 %r_stamp, %r_stamp, %r_stamp_of;
mov.u32 %r_stamp_of, %ctaid.x; add.u32 %r_stamp, %r_stamp, %r_stamp_of;
mul.lo.u32 %r_stamp, %r_stamp, {warps};
mov.u32 %r_stamp_of, %tid.x; shr.u32 %r_stamp_of, %r_stamp_of, 5; add.u32 %r_stamp, %r_stamp, %r_stamp_of;
ld.param.u64 %rd_stamps, [stamps];
mad.wide.u32 %rd_stamps, %r_stamp, {_STAMP * (points + 1)}, %rd_stamps;
mov.u32 %r_stamp_of, %tid.x; and.b32 %r_stamp_of, %r_stamp_of, 31; setp.eq.u32 %p_stamps, %r_stamp_of, 0;
mov.u32 %r_stamp, %smid;
@%p_stamps st.global.u32 [%rd_stamps+{_STAMP * points}], %r_stamp;
""".strip().splitlines()


def _stamp(at: int) -> list[str]:
    return [
        "mov.u64 %rd_stamp_clock, %clock64;",
        f"@%p_stamps red.global.min.u64 [%rd_stamps+{_STAMP * at}], %rd_stamp_clock;",
        f"@%p_stamps red.global.max.u64 [%rd_stamps+{_STAMP * at + 8}], %rd_stamp_clock;",
    ]


def measure(gpu: Any, seconds: float, out: Path) -> None:
    """Launch the seen launches with stamps, the smallest first; the last of each one's launches counts."""
    launches, found = Launches(gpu), dict[str, Any]()
    began, labels = time.monotonic(), list[dict[str, Any]]()
    for row in sorted(recorded("seen"), key=lambda each: each["cycles"]):
        if time.monotonic() - began > seconds:
            break
        drawn = Drawn(row["spec"], row["m"], row["n"], row["k"])
        try:
            stamps = _launched(launches, drawn)
        except Exception as error:
            print(drawn, error, flush=True)
            del launches.names[len(launches.names) // TIMES * TIMES :]
            continue
        found[str(len(labels))] = stamps
        labels.append({**row})
    np.savez_compressed(out, labels=np.frombuffer(json.dumps(labels).encode(), np.uint8), **found)


def _launched(launches: Launches, drawn: Drawn) -> Any:
    gpu = launches.gpu
    plan = Spec.named(drawn.spec).plan()
    problem = plan.problem(drawn.m, drawn.n, drawn.k)
    a, b = (launches.random(name, problem.dtype(name), problem.extents(name)) for name in ("a", "b"))
    c = gpu.empty(problem.extents("c"), TYPES[plan.c_dtype].numpy)
    order = None if problem.tile_order is None else gpu.array(problem.tile_order)
    words = problem.workspace_words
    workspace = gpu.array(np.zeros(words, np.uint32)) if words else None
    arguments = problem.arguments(a, b, c, order=order, workspace=workspace)
    made = stamped(Kernel.from_ptx(plan.text))
    kernel = Kernel.from_ptx(made.text)
    shape = (prod(np.atleast_1d(problem.grid)), made.warps, len(made.lines) + 1, 2)
    launched = {"spec": drawn.spec, "m": drawn.m, "n": drawn.n, "k": drawn.k}
    stamps = np.empty(0, np.uint64)
    for _ in range(TIMES):
        clean = np.empty(shape, np.uint64)
        clean[..., 0], clean[..., 1] = np.iinfo(np.uint64).max, 0
        array = gpu.array(clean)
        gpu.call("cuProfilerStart")
        report = gpu.launch(kernel, problem.grid, problem.block, [*arguments, array], shared_bytes=plan.shared.bytes)
        gpu.call("cuProfilerStop")
        launches.names.append({**launched, "ok": report.ok})
        stamps = array.numpy()
    sms = (stamps[:, :, -1, 0] & 0xFFFFFFFF).astype(np.int64)
    least = stamps[:, :, 0, 0].min()
    cycles = np.where(stamps[:, :, :-1, 1:] > 0, stamps[:, :, :-1] - least, np.iinfo(np.uint64).max).astype(np.int64)
    return np.concatenate([cycles, np.stack([sms, sms], -1)[:, :, None]], axis=2).astype(np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=90)
    options = parser.parse_args()
    from ptxgen.gpu import Gpu

    measure(Gpu(), options.seconds, options.out)


if __name__ == "__main__":
    main()
