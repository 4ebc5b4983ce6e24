"""ZLUDA's tests: `test_ptx!(name, [inputs], [outputs]);` as arrays."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tools.outside.clones import Clone

REPOSITORY = "vosen/ZLUDA"
FOLDER = "ptx/src/test/spirv_run/"
#: Threads of a test of whole warps.
WARPS = 64
#: Tests whose arrays hold one warp's elements, though their harness starts two: the second accesses what lies behind.
ONE_WARP = frozenset({"ldmatrix", "ldmatrix_trans", "mma_m16n8k16_f32_bf16_bf16_f32_2x"})
#: Errors that a kernel deserves: it reads by ldmatrix what other lanes stored, without bar.warp.sync.
DESERVED = {"ldmatrix": frozenset({"shared-race"})}
#: Tests of instructions that sm_75 no longer has.
REMOVED = frozenset({"vote_ballot_nosync"})
#: Tests that ptxas refuses too: predicates as parameters, and vectors of eight bytes.
ILLEGAL = frozenset({"multiple_return", "vector8_extract", "implicit_param", "noreturn"})

_TEST = re.compile(r"^test_ptx(_warp|_with_32)?!\(\s*(\w+)\s*,\s*(.*?)\s*\);", re.S | re.M)
_TYPES = {
    **{
        f"{kind}{width}": np.dtype(f"{'int' if kind == 'i' else 'uint'}{width}")
        for kind in "iu"
        for width in (8, 16, 32, 64)
    },
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
}
_SPECIAL = {
    "std::f32::consts::PI": (np.pi, "f32"),
    **{f"{type_}::NAN": (np.nan, type_) for type_ in ("f32", "f64", "f16")},
    **{f"{type_}::INFINITY": (np.inf, type_) for type_ in ("f32", "f64", "f16")},
    **{f"{type_}::NEG_INFINITY": (-np.inf, type_) for type_ in ("f32", "f64", "f16")},
}


@dataclass(frozen=True, slots=True)
class Test:
    """One test: a kernel, the bytes it reads, and those it must write."""

    name: str
    input: npt.NDArray[np.generic] | None
    output: npt.NDArray[np.generic]
    threads: int = 1


def tests(clone: Clone) -> Iterator[tuple[Test, str]]:
    """The tests whose values can be read, each with the text of its kernel."""
    texts = {
        path.rsplit("/", 1)[1]: content.decode()
        for path, content in clone.files([f"{FOLDER}*.ptx"])
        if "/32/" not in path
    }
    for _, content in clone.files([f"{FOLDER}mod.rs"]):
        for test in parse(content.decode()):
            if f"{test.name}.ptx" in texts:
                yield test, texts[f"{test.name}.ptx"]


def parse(source: str) -> Iterator[Test]:
    """The tests of a Rust source."""
    source = re.sub(r"^\s*//.*$|(?<=\s)//[^\n]*$", "", source, flags=re.M)
    for match in _TEST.finditer(source):
        if match[2] in REMOVED | ILLEGAL:
            continue
        arrays = [values(each) for each in _arrays(match[3])]
        if any(each is None for each in arrays):
            continue
        if match[1] == "_warp" and len(arrays) == 1 and arrays[0] is not None:
            yield Test(match[2], None, arrays[0], WARPS // 2 if match[2] in ONE_WARP else WARPS)
        elif len(arrays) == 2 and arrays[1] is not None:
            yield Test(match[2], arrays[0], arrays[1])


def _arrays(text: str) -> list[str]:
    return re.findall(r"\[([^\[\]]*)\]", text)


def values(text: str) -> npt.NDArray[np.generic] | None:
    """A Rust array as NumPy has it; None if an element is more than a number."""
    found: list[float] = []
    type_ = ""
    for element in filter(None, map(str.strip, text.split(","))):
        value = _value(element)
        if value is None:
            return None
        found.append(value[0])
        type_ = type_ or value[1]
    if not found:
        return None
    type_ = type_ or ("f64" if any(isinstance(each, float) for each in found) else "i32")
    dtype = _TYPES[type_]
    if dtype.kind in "iu":
        return np.array([int(each) % 2 ** (8 * dtype.itemsize) for each in found], f"u{dtype.itemsize}").view(dtype)
    return np.array(found, dtype)


def _value(element: str) -> tuple[float, str] | None:
    """One element with its type, "" if it is not said."""
    plain = element.replace("half::", "")
    if plain in _SPECIAL:
        return _SPECIAL[plain]
    limit = re.fullmatch(r"([iu]\d+)::(MIN|MAX|max_value\(\)|min_value\(\))", plain)
    if limit:
        info = np.iinfo(_TYPES[limit[1]])
        return int(info.max if "max" in limit[2].lower() else info.min), limit[1]
    made = re.fullmatch(r"(f\d+)::from_f(?:32|64)\((.*)\)", plain)
    if made:
        inner = _value(made[2])
        return None if inner is None else (float(inner[0]), made[1])
    bits = re.fullmatch(r"f(\d+)::from_bits\((\w+)\)", plain)
    if bits:
        return float(np.array([int(bits[2], 0)], f"uint{bits[1]}").view(f"float{bits[1]}")[0]), f"f{bits[1]}"
    number = re.fullmatch(r"(-?)(0[xb][\dA-Fa-f_]+?|[\d_.]+(?:e-?\d+)?)((?:[iu](?:8|16|32|64))|f(?:16|32|64))?", plain)
    if number is None:
        return None
    digits = number[2].replace("_", "")
    try:
        value = ast.literal_eval(digits if digits.startswith(("0x", "0b")) else digits.lstrip("0") or "0")
    except (SyntaxError, ValueError):
        return None
    return (-value if number[1] else value), number[3] or ""


def same(found: npt.NDArray[np.generic], wanted: npt.NDArray[np.generic]) -> bool:
    """Equal as ZLUDA compares: integers exactly, floats up to the rounding of approximate instructions."""
    if found.dtype.kind == "f":
        return bool(np.allclose(found, wanted, rtol=1e-6, atol=1e-6, equal_nan=True))
    return bool(np.array_equal(found, wanted))
