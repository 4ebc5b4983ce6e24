"""The Hopper attention benchmark: our kernels beside torch's scaled_dot_product_attention, on one GPU.

    python -m bench.attention measure --out rows.jsonl --seconds 400          # each row: the default kernel and torch
    python -m bench.attention survey --out survey.jsonl --seconds 300         # other options, on a few rows
    python -m bench.attention report rows.jsonl                               # the table of docs/attention.md

How: as bench.hopper measures GEMMs. Each arm's O is compared with attention in fp32 before it is timed; its launches
are a CUDA graph over rotating buffers; all arms of a row take turns, forth and back, after the power is steady.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.gpu.attention import (
    AttentionBuffers,
    AttentionRow,
    AttentionSpec,
    BuiltAttention,
    PtxgenAttention,
    TorchAttention,
    build_attention,
)
from bench.gpu.measure import Bench
from ptxgen.attention import best
from ptxgen.options import PlanError
from tools.measurements import replace_section

PAGE = Path(__file__).parents[1] / "docs" / "attention.md"
#: Queries times batches of a row, and columns of all heads, as in the FlashAttention papers.
_TOKENS, _COLUMNS = 16384, 2048
_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
_SURVEYED = (512, 1024, 4096, 8192)
_BACKENDS = ("CUDNN_ATTENTION", "FLASH_ATTENTION")
_KERNEL = "hopper/attention"


def rows() -> list[AttentionRow]:
    """The rows of the table: 512 to 16384 keys, full and causal, head sizes 64, 128, 256 and 192/128."""
    made = []
    for (size, values), causal, length in itertools.product(
        ((128, 0), (64, 0), (256, 0), (192, 128)), (False, True), _LENGTHS
    ):
        heads = _COLUMNS // (128 if size == 192 else size)
        made.append(AttentionRow(length, heads, _TOKENS // length, size, values, causal=causal))
    made += [replace(row, dtype="f16") for row in made if row.head_size == 128 and row.queries in (4096, 8192)]
    # Grouped heads, and lengths that no tile divides.
    made += [replace(row, kv_heads=row.heads // 4) for row in made if row.head_size == 128 and row.queries == 4096]
    made += [AttentionRow(4000, 16, 4, causal=True), AttentionRow(1111, 16, 15), AttentionRow(333, 16, 49, causal=True)]
    return made


def surveyed(row: AttentionRow) -> list[AttentionSpec]:
    """Kernels that a survey times on a row: tiles, and how warpgroups, tiles and stores are scheduled."""
    made = [AttentionSpec(name) for name in ("hopper/attention-specialized", "hopper/attention-pingpong")]
    tiles = {
        64: ((128, 128), (128, 160), (128, 192), (192, 128), (192, 112)),
        128: ((128, 128), (128, 144), (128, 160), (128, 176), (192, 80)),
        192: ((128, 128), (128, 112), (128, 96)),
        256: ((128, 64), (128, 80)),
    }[row.head_size]
    for (query_tile, key_tile), consumers, overlap in itertools.product(
        tiles, ("cooperative", "pingpong"), ("true", "false")
    ):
        tile = (f"query_tile={query_tile}", f"key_tile={key_tile}", f"consumers={consumers}", f"overlap={overlap}")
        if overlap == "true" or row.head_size != 128 or key_tile == 128:
            made.append(AttentionSpec(_KERNEL, tile))
        if overlap == "true" and row.causal:
            made.append(AttentionSpec(_KERNEL, (*tile, "scheduler=grid")))
    return made


def _chosen(row: AttentionRow) -> AttentionSpec:
    """What `ptxgen.attention.best` takes: its tile, where it differs from the default of hopper/attention."""
    default = AttentionSpec(_KERNEL).plan(row).config
    given = {name: getattr(default, name) for name in ("dtype", "head_size", "value_size", "causal")}
    found = best(row.queries, row.keys or row.queries, **given).config
    tile = {name: getattr(found, name) for name in ("query_tile", "key_tile")}
    return AttentionSpec(
        _KERNEL, tuple(f"{name}={value}" for name, value in tile.items() if value != getattr(default, name))
    )


def _possible(row: AttentionRow, specs: list[AttentionSpec]) -> list[AttentionSpec]:
    """Those that have a plan for the row."""
    made = []
    for spec in specs:
        with suppress(PlanError):
            spec.plan(row)
            made.append(spec)
    return made


def _built(pairs: list[tuple[AttentionSpec, AttentionRow]]) -> list[BuiltAttention]:
    """The cubins of kernels on rows; rows with the same PTX share one."""
    kernel = [(spec, replace(row, queries=0, keys=0, heads=0, kv_heads=0, batches=0)) for spec, row in pairs]
    distinct = list(dict.fromkeys(kernel))
    with ProcessPoolExecutor() as pool:
        made = dict(zip(distinct, pool.map(build_attention, *zip(*distinct, strict=True)), strict=True))
    return [replace(made[each], row=row) for each, (_, row) in zip(kernel, pairs, strict=True)]


def _arms(bench: Bench, built: list[BuiltAttention], buffers: AttentionBuffers, record: dict[str, Any]) -> list[Any]:
    """The arms of a row that are right."""
    found: list[Any] = []
    for each in built:
        if each.error or each.spills:
            record["failed"][each.spec.name] = each.error or f"{each.spills} bytes of spills"
            continue
        arm = PtxgenAttention(bench.driver, each, buffers)
        buffers.poison()
        arm.launch(0, bench.stream)
        bench.synchronize()
        errors = buffers.errors()
        if not buffers.right(errors):
            record["failed"][arm.name] = f"wrong: {errors}"
            continue
        record["flop"] = arm.flop
        found.append(arm)
    for backend in _BACKENDS:
        try:
            arm = TorchAttention(bench.torch, backend, buffers)
        except RuntimeError as error:
            record["failed"][f"torch {backend.lower()}"] = str(error).splitlines()[0][:200]
            continue
        errors = buffers.errors()
        if not buffers.right(errors):
            record["failed"][arm.name] = f"wrong: {errors}"
        found.append(arm)
    return found


def _measure(bench: Bench, row: AttentionRow, built: list[BuiltAttention], quick: bool) -> dict[str, Any]:
    buffers = AttentionBuffers(bench.torch, row)
    record: dict[str, Any] = {"key": row.key, "row": row.record(), "failed": {}, "arms": {}}
    arms = _arms(bench, built, buffers, record)
    timings = bench.abba(arms, buffers.count, repeats=3 if quick else 9, target_us=2000, warm=0.5)
    record["arms"] = {name: timing.record() for name, timing in timings.items()}
    for arm in arms:
        arm.close()
    bench.torch.cuda.empty_cache()
    return record


def _run(out: Path, pairs: list[tuple[AttentionRow, list[AttentionSpec]]], seconds: float, quick: bool) -> None:
    import torch  # pyright: ignore[reportMissingImports]

    start = time.monotonic()
    known = {json.loads(line)["key"] for line in out.read_text().splitlines()} if out.exists() else set()
    pairs = [each for each in pairs if each[0].key not in known]
    built = iter(_built([(spec, row) for row, specs in pairs for spec in specs]))
    print(f"built after {time.monotonic() - start:.0f} s", flush=True)
    bench = Bench(torch)
    with torch.no_grad(), out.open("a") as file:
        bench.warm_up()
        for row, specs in pairs:
            made = [next(built) for _ in specs]
            if time.monotonic() - start > seconds:
                print(f"no time for {row.key}", flush=True)
                continue
            try:
                record = _measure(bench, row, made, quick)
            except Exception:
                traceback.print_exc()
                continue
            record["device"] = torch.cuda.get_device_name()
            record["torch"] = torch.__version__
            file.write(json.dumps(record) + "\n")
            file.flush()
            best = sorted(record["arms"].items(), key=lambda each: each[1]["us"])
            print(row.key, *(f"{name} {each['us']}" for name, each in best[:6]), record["failed"] if not quick else "")


def _columns(record: dict[str, Any]) -> tuple[float, float, float]:
    """Microseconds of ours, TFLOPS, and how many times as long the fastest of torch takes."""
    arms = record["arms"]
    ours = next(each["us"] for name, each in arms.items() if name.startswith(_KERNEL))
    theirs = min(each["us"] for name, each in arms.items() if name.startswith("torch"))
    return ours, record["flop"] / ours / 1e6, theirs / ours


def table(records: list[dict[str, Any]]) -> str:
    """The measured rows: all keys beside causal, and what a table by head size has no place for."""
    by_key = {record["key"]: record for record in records}
    lines = [
        "| head size | keys | all: µs | TFLOPS | torch / ours | causal: µs | TFLOPS | torch / ours |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    others = []
    for row in rows():
        if row.key not in by_key:
            continue
        twin = replace(row, causal=True)
        regular = row.dtype == "bf16" and not row.kv_heads and row.queries in _LENGTHS
        if regular and not row.causal:
            parts = [_columns(by_key[each.key]) for each in (row, twin)]
            cells = " | ".join(f"{us:.1f} | {tflops:.0f} | {ratio:.3f}" for us, tflops, ratio in parts)
            size = f"{row.head_size}" + (f"/{row.value_size}" if row.value_size else "")
            lines.append(f"| {size} | {row.queries} | {cells} |")
        elif not regular:
            others.append(f"{row.key} {_columns(by_key[row.key])[2]:.3f}")
    ratios = [_columns(record)[2] for record in records]
    mean = statistics.geometric_mean(ratios)
    return "\n".join(
        [
            *lines,
            "",
            f"Others, torch / ours: {', '.join(others)}.",
            "",
            f"Geometric mean of all {len(ratios)} rows {mean:.3f}, the worst {min(ratios):.3f}.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "survey"):
        command = commands.add_parser(name)
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--seconds", type=float, default=400)
    commands.add_parser("report").add_argument("rows", type=Path)
    given = parser.parse_args()
    if given.command == "report":
        records = [json.loads(line) for line in given.rows.read_text().splitlines()]
        PAGE.write_text(replace_section(PAGE.read_text(), "attention on an H200", table(records)))
    elif given.command == "measure":
        _run(given.out, [(row, [_chosen(row)]) for row in rows()], given.seconds, quick=False)
    else:
        few = [row for row in rows() if row.queries in _SURVEYED and not row.kv_heads and row.dtype == "bf16"]
        _run(given.out, [(row, _possible(row, surveyed(row))) for row in few], given.seconds, quick=True)


if __name__ == "__main__":
    main()
