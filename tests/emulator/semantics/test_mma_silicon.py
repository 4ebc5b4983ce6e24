"""mma.sync against words that Blackwell silicon gave to others (tests/data/silicon), bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microtests.harness import matrices
from ptxgen.emulator import Emulator
from tests.support.harness import launch
from tests.support.silicon import rows

SUMS = rows("mma_sync_sums_b200.jsonl.gz")
TYPES = ["f16", "bf16", "tf32", "e4m3", "e5m2"]


def singles(hexadecimal: str) -> NDArray[np.float32]:
    return np.frombuffer(bytes.fromhex(hexadecimal), ">u4").astype(np.uint32).view(np.float32)


def warp_mma(
    instruction: str,
    registers: list[list[NDArray[Any]]],
    target: str,
    selectors: str = "",
    device: Emulator | None = None,
) -> NDArray[np.uint32]:
    """Words of D [register, warp, lane] of one mma per warp.

    `registers` are those of A, B, C and, with `selectors`, one of the factors of each side; each [warp, lane].
    """
    count = registers[0][0].shape[0]
    body, operands, inputs = ".reg .u32 %t, %c; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n", [], []
    body += "mad.lo.u32 %t, %c, 32, %t;\n"
    for some in registers:
        names = [f"%r{len(inputs) + i}" for i in range(len(some))]
        for name, words in zip(names, some, strict=True):
            body += f".reg .b32 {name}; .reg .u64 %a{len(inputs)};\n"
            body += f"mad.wide.u32 %a{len(inputs)}, %t, 4, %in{len(inputs)};\n"
            body += f"ld.global.b32 {name}, [%a{len(inputs)}];\n"
            inputs.append(np.ascontiguousarray(words, np.uint32).reshape(-1))
        operands.append("{" + ", ".join(names) + "}" + (f", {selectors}" if len(operands) >= 3 else ""))
    names = [f"%d{i}" for i in range(len(registers[2]))]
    body += f".reg .b32 {', '.join(names)};\n{instruction} {{{', '.join(names)}}}, {', '.join(operands)};\n"
    for index, name in enumerate(names):
        body += f".reg .u64 %o{index}; mad.wide.u32 %o{index}, %t, 4, %out{index}; st.global.b32 [%o{index}], {name};\n"
    report, found = launch(
        body,
        [np.zeros(32 * count, np.uint32) for _ in names],
        inputs=inputs,
        grid=count,
        device=device or Emulator(target),
        kernel_target=target,
    )
    assert report.status == "ok", report.summary()
    return np.stack(found).reshape(len(names), count, 32)


@pytest.mark.parametrize("d_type", ["f32", "f16"])
@pytest.mark.parametrize("kind", TYPES)
def test_sums(kind: str, d_type: str) -> None:
    """800 recorded dot products of each type, eight in the diagonal of each product."""
    recorded = [row for row in SUMS if row["type"] == kind and d_type in row]
    if kind in ("bf16", "tf32") and d_type == "f16":
        assert not recorded
        return
    assert len(recorded) == 800
    a, b = (np.stack([singles(row[side]) for row in recorded]).reshape(100, 8, -1) for side in "ab")
    c, k = np.array([singles(row["c"])[0] for row in recorded]).reshape(100, 8), a.shape[2]
    words: list[list[list[NDArray[Any]]]] = [[], [], []]
    for left, right, addend in zip(a, b, c, strict=True):
        full, diagonal = np.zeros((16, k), np.float32), np.zeros((16, 8), np.float32)
        full[:8], diagonal[np.arange(8), np.arange(8)] = left, addend
        words[0].append(list(matrices.a_registers(kind, full)))
        words[1].append(list(matrices.b_registers(kind, np.ascontiguousarray(right.T))))
        words[2].append(list(matrices.d_registers(d_type, diagonal)))
    registers = [[np.stack(each) for each in zip(*some, strict=True)] for some in words]
    found = warp_mma(
        f"mma.sync.aligned.m16n8k{k}.row.col.{d_type}.{kind}.{kind}.{d_type}",
        registers,
        "sm_100a",
    )
    rows_of, columns = matrices.d_places(16, 8)
    values = found if d_type == "f32" else np.stack([found & 0xFFFF, found >> 16], 1).reshape(4, 100, 32)
    sums = np.zeros((100, 8), np.uint32)
    for register in range(4):
        for lane in range(32):
            if rows_of[register, lane] == columns[register, lane]:
                sums[:, rows_of[register, lane]] = values[register, :, lane]
    expected = np.array([singles(row[d_type])[0] for row in recorded], np.float32)
    if d_type == "f16":
        expected = expected.astype(np.float16)
    assert (sums.reshape(-1) == expected.view(np.uint32 if d_type == "f32" else np.uint16)).all()


@pytest.mark.parametrize("row", rows("mma_sync_scales_sm120.jsonl"), ids=lambda row: row["name"])
def test_scale_selectors(row: dict[str, Any]) -> None:
    """Which lane's byte scales a row of A or a column of B: a different power of two in each byte of each lane."""
    ones = np.full((1, 32), 0x38383838, np.uint32)
    lane = np.arange(32, dtype=np.uint32)
    codes = np.stack([4 * lane + byte for byte in range(4)], -1).astype(np.uint8).view(np.uint32).reshape(1, 32)
    plain = np.full((1, 32), 0x7F7F7F7F, np.uint32)
    selector = f"{{{row['byte_id']}, {row['thread_id']}}}"
    factors = [[codes], [plain]] if row["side"] == "a" else [[plain], [codes]]
    found = warp_mma(
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
        [[ones] * 4, [ones] * 2, [ones * 0] * 4, *factors],
        "sm_120a",
        selectors=selector,
    )[:, 0]
    rows_of, columns = matrices.d_places(16, 8)
    d = np.zeros((16, 8), np.float32)
    d[rows_of, columns] = found.view(np.float32)
    exponents = np.array([4 * at + byte - 127 for at, byte in row["lanes"]])
    expected = 32 * 2.0 ** (exponents[:, None] if row["side"] == "a" else exponents)
    assert (d == expected).all()
