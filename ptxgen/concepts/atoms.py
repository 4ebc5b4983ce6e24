"""PTX opcodes behind the names of CuTe's copy and MMA atoms, such as SM100_TMEM_LOAD_16dp256b1x.

The names are those of CUTLASS include/cute/arch (copy_sm*.hpp, mma_sm*.hpp).
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TMEM_SHAPES = {
    "16dp64b": "16x64b", "16dp128b": "16x128b", "16dp256b": "16x256b", "16dp32b": "16x32bx2", "32dp32b": "32x32b",
}  # fmt: skip
_COPY_SHAPES = {
    "128dp256bit": "128x256b", "128dp128bit": "128x128b", "4dp256bit": "4x256b", "4x32dp128bit": "32x128b.warpx4",
    "2x64dp128bitlw0213": "64x128b.warpx2::02_13", "2x64dp128bitlw0123": "64x128b.warpx2::01_23",
}  # fmt: skip
_KINDS = {"TF32": "tf32", "F16BF16": "f16", "F8F6F4": "f8f6f4", "S8": "i8"}
#: SM100_MMA_MXF4_SS is of kind mxf4 or mxf4nvf4, by a template argument.
_SCALED = {"MXF8F6F4": "mxf8f6f4"}
_TYPES = {
    "F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16", "TF32": "tf32", "E4M3": "e4m3", "E5M2": "e5m2",
    "S32": "s32", "S8": "s8", "U8": "u8", "S4": "s4", "U4": "u4",
}  # fmt: skip
_ONE_TYPE = "|".join(sorted(_TYPES, key=len, reverse=True))


def _tmem(found: re.Match[str]) -> str:
    verb, shape, count, packed = found.groups()
    pack = "" if not packed else ".pack::16b" if verb == "LOAD" else ".unpack::16b"
    return f"tcgen05.{'ld' if verb == 'LOAD' else 'st'}.sync.aligned.{_TMEM_SHAPES[shape]}.x{count}{pack}.b32"


def _copy(found: re.Match[str]) -> str:
    return f"tcgen05.cp.cta_group::{found[2]}.{_COPY_SHAPES[found[1]]}"


def _tma(found: re.Match[str]) -> str:
    pair, what, dims = found[1], found[2], found[3] or "2D"
    if what.startswith("LOAD"):
        multicast = ".multicast::cluster" if "MULTICAST" in what else ""
        group = ".cta_group::2" if pair else ""
        return (
            f"cp.async.bulk.tensor.{dims.lower()}{group}.shared::cluster.global.tile"
            f".mbarrier::complete_tx::bytes{multicast}"
        )
    if what == "STORE":
        return f"cp.async.bulk.tensor.{dims.lower()}.global.shared::cta.tile.bulk_group"
    return f"cp.reduce.async.bulk.tensor.{dims.lower()}.global.shared::cta.add.tile.bulk_group"


def _matrix(found: re.Match[str]) -> str:
    count, name, way = found.groups()
    registers = int(count) // (2 if found[0].startswith("SM75_U16") or "_U16x" in found[0] else 1)
    opcode = "ldmatrix" if name == "LDSM" else "stmatrix"
    return f"{opcode}.sync.aligned.m8n8.x{registers}{'.trans' if way == 'T' else ''}.shared.b16"


def _umma(found: re.Match[str]) -> str:
    kind, pair, sparse = found[1], found[2], found[3]
    group = 2 if pair else 1
    sp = ".sp" if sparse else ""
    if kind in _SCALED:
        return f"tcgen05.mma{sp}.cta_group::{group}.kind::{_SCALED[kind]}.block_scale"
    return f"tcgen05.mma{sp}.cta_group::{group}.kind::{_KINDS[kind]}"


def _wgmma(found: re.Match[str]) -> str:
    n, k, d, a, b = found.groups()
    types = "".join(f".{_TYPES[each]}" for each in (d, a, b))
    return f"wgmma.mma_async.sync.aligned.m64n{n}k{k}{types}"


def _mma(found: re.Match[str]) -> str:
    m, n, k, d, a, b, c = found.groups()
    types = "".join(f".{_TYPES[each]}" for each in (d, a, b, c))
    return f"mma.sync.aligned.m{m}n{n}k{k}.row.col{types}"


_TYPED = f"({_ONE_TYPE})"
_PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (rf"SM100_TMEM_(LOAD|STORE)_({'|'.join(_TMEM_SHAPES)})(\d+)x(_16b)?", _tmem),
    (rf"SM100_UTCCP_({'|'.join(_COPY_SHAPES)})_([12])cta", _copy),
    (r"SM(?:90|100)_TMA_(2SM_)?(LOAD(?:_MULTICAST)?|STORE|REDUCE_ADD)(?:_([1-5]D))?", _tma),
    (r"SM(?:75|90)_U(?:32|16)x(\d)_(LDSM|STSM)_([NT])", _matrix),
    (
        rf"SM100_MMA_({'|'.join(sorted([*_KINDS, *_SCALED], key=len, reverse=True))})(_2x1SM)?_(?:SS|TS)(_SPARSE)?",
        _umma,
    ),
    (rf"(?:SM90_|MMA_)?64x(\d+)x(\d+)_{_TYPED}{_TYPED}{_TYPED}_(?:SS|RS)(?:_T[NT])?", _wgmma),
    (rf"SM(?:80|89)_(\d+)x(\d+)x(\d+)_{_TYPED}{_TYPED}{_TYPED}{_TYPED}_TN", _mma),
    (r"SM80_CP_ASYNC_CACHEGLOBAL(?:_ZFILL)?", lambda _: "cp.async.cg.shared.global"),
    (r"SM80_CP_ASYNC_CACHEALWAYS(?:_ZFILL)?", lambda _: "cp.async.ca.shared.global"),
    (r"SM90_BULK_COPY_G2S", lambda _: "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"),
    (r"SM90_BULK_COPY_S2G", lambda _: "cp.async.bulk.global.shared::cta.bulk_group"),
)


def opcode_of(name: str) -> str | None:
    """The opcode, perhaps without some modifiers, that an atom of CuTe executes; None for other names."""
    word = name.strip().rpartition("::")[2]
    for pattern, spelled in _PATTERNS:
        if found := re.fullmatch(pattern, word):
            return spelled(found)
    return None
