"""CUDA source that instantiates every wrapper of `cuda::ptx`, made from the declarations in its headers.

The headers (`cccl/cuda/__ptx/instructions/generated`) describe each overload in a comment: its PTX line, the targets
that have it, the values of its template parameters, its signature. A kernel that takes the address of each makes nvcc
compile them all.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxgen.instr.model.targets import Target, parse_target

#: Types for the template parameters that stand for a width.
_WIDTHS = {"B8": "char", "B16": "short", "B32": "int", "B64": "long long", "B128": "longlong2", "Type": "int"}
#: How the enumerators of `cuda::ptx` spell what PTX spells otherwise.
_SPELLED = {
    "and": "and_op",
    "or": "or_op",
    "xor": "xor_op",
    "shared::cluster": "cluster",
    "shared::cta": "shared",
    "cta_group::1": "cta_group_1",
    "cta_group::2": "cta_group_2",
}


@dataclass(frozen=True)
class Wrapper:
    """One overload: what it returns, its name and parameters, and the targets that have it."""

    result: str
    name: str
    parameters: str
    targets: tuple[str, ...]

    def exists(self, target: Target) -> bool:
        """Whether this target has it."""

        def has(pattern: str) -> bool:
            wanted = parse_target(pattern)
            if wanted.suffix == "f":
                return target.suffix != "" and target.major == wanted.major and target.number >= wanted.number
            return target == wanted if wanted.suffix else target.number >= wanted.number

        return any(map(has, self.targets))

    @property
    def address(self) -> str:
        """The expression that takes its address."""
        return f"(void*)static_cast<{self.result} (*)({self.parameters})>(cuda::ptx::{self.name})"


def wrappers(header: str) -> Iterator[Wrapper]:
    """Every overload that a generated header declares, with each value of its template parameters."""
    for comment in re.findall(r"/\*\n(//.*?)\*/", header, re.DOTALL):
        text = " ".join(line.removeprefix("//").strip() for line in comment.split("\n"))
        needs = re.search(r"PTX ISA \d+((?:, SM_\d+[af]?)*)", text)
        signature = re.search(r"__device__ static inline (.+?) (\w+)\((.*)\);", text)
        if needs is None or signature is None:
            raise ValueError(f"a declaration that cannot be read: {text}")
        values = dict(re.findall(r"\.(\w+)\s*=\s*\{(.*?)\}", text))
        result, name, parameters = signature.groups()
        result = _widths(result)
        targets = tuple(each.lower() for each in re.findall(r"SM_\d+[af]?", needs[1])) or ("sm_20",)
        for spelled in _concrete(parameters, values):
            yield Wrapper(result, name, spelled, targets)


def _concrete(parameters: str, values: dict[str, str]) -> Iterator[str]:
    """Parameter lists in which values stand for the template parameters."""
    # The one size that is a template parameter is that of a tensormap; the other numbers may be 0.
    parameters = _widths(parameters).replace("n32_t<N32> size", "n32_t<128> size").replace("n32_t<N32>", "n32_t<0>")
    open_ones = list(dict.fromkeys(re.findall(r"cuda::ptx::(\w+)_t<[A-Z]\w*>", parameters)))
    choices = [[_enumerator(each, value) for value in values[each].split(",")] for each in open_ones]
    for chosen in itertools.product(*choices):
        made = parameters
        for name, value in zip(open_ones, chosen, strict=True):
            made = re.sub(rf"(cuda::ptx::{name}_t<)[A-Z]\w*>", rf"\1cuda::ptx::dot_{name}::{value}>", made)
        yield made


def _widths(types: str) -> str:
    return re.sub(r"\b(B8|B16|B32|B64|B128|Type)\b", lambda match: _WIDTHS[match[1]], types)


def _enumerator(name: str, value: str) -> str:
    plain = value.strip().removeprefix(".")
    return _SPELLED.get(plain) or plain.removeprefix(f"{name}::")


def headers(include: Path) -> list[Path]:
    """The generated headers among CUDA's headers."""
    return sorted((include / "cccl" / "cuda" / "__ptx" / "instructions" / "generated").glob("*.h"))


def targets(header: Path, among: Iterable[str]) -> list[str]:
    """The targets that have any of a header's wrappers."""
    found = list(wrappers(header.read_text(encoding="utf-8")))
    return [target for target in among if any(each.exists(parse_target(target)) for each in found)]


def source(headers: Iterable[Path], target: str) -> str:
    """CUDA source with the wrappers of headers that a target has, those of pairs of CTAs in a kernel of their own."""
    parsed = parse_target(target)
    found = (each for header in headers for each in wrappers(header.read_text()) if each.exists(parsed))
    addresses = list(dict.fromkeys(each.address for each in found))
    # A kernel must not mix tcgen05 instructions of one and of two CTAs.
    pairs = [each for each in addresses if "cta_group_2" in each]
    rest = [each for each in addresses if each not in pairs]
    kernels = [_kernel(name, chosen) for name, chosen in (("wrappers", rest), ("of_pairs", pairs)) if chosen]
    return "".join(["#include <cstdint>\n#include <cuda/ptx>\n", *kernels])


def _kernel(name: str, addresses: Iterable[str]) -> str:
    """A kernel that takes addresses of functions."""
    body = "".join(f"    *out++ = {address};\n" for address in addresses)
    return f"\n__global__ void {name}(void** out)\n{{\n{body}}}\n"
