"""PTX that nvcc makes of CUDA's own headers parses, prints back byte for byte and checks without an error.

The sources are in `tests/data/cuda`; `make corpus` does the same with much larger ones.
"""

from __future__ import annotations

import pytest

from tools.corpus import Source, compile_ptx, find_nvcc, judge, small_sources
from tools.corpus.compile import headers
from tools.corpus.judge import opcode_of
from tools.corpus.sources import ROOT
from tools.corpus.wrappers import Wrapper, wrappers

SOURCES = small_sources(headers()) if find_nvcc() is not None else []
needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="no nvcc 13, which compiles the sources")


@pytest.mark.one_in(4)
@needs_nvcc
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_what_nvcc_makes_is_legal(source: Source) -> None:
    verdict = judge(compile_ptx(source, ROOT / "build" / "corpus"))
    assert verdict.errors == []
    assert verdict.size > 5_000


@needs_nvcc
def test_every_wrapper_is_in_the_corpus() -> None:
    text = next(source for source in SOURCES if source.name == "wrappers.sm_100a").text()
    assert text.count("*out++") > 400


DECLARATION = """\
/*
// red.async.sem.op.type [dest], value; // PTX
ISA 81, SM_90
// .sem       = { .relaxed }
// .op        = { .inc, .and }
template <typename B32, enable_if_t<sizeof(B32) == 4, bool> = true, cuda::ptx::dot_op Op>
__device__ static inline B32 red_async(
  cuda::ptx::sem_relaxed_t,
  cuda::ptx::op_t<Op> op,
  const B32& value,
  cuda::ptx::n32_t<N32> size);
*/
"""


def test_wrappers_are_read_from_their_declarations() -> None:
    first, second = wrappers(DECLARATION)
    assert first == Wrapper(
        "int",
        "red_async",
        " cuda::ptx::sem_relaxed_t, cuda::ptx::op_t<cuda::ptx::dot_op::inc> op, const int& value,"
        " cuda::ptx::n32_t<128> size",
        ("sm_90",),
    )
    assert "dot_op::and_op>" in second.address


@pytest.mark.parametrize("line", ["cvt.rn.f16.f32 a, b;", "@!%p1 cvt.rn.f16.f32 a, b;", "@p cvt;"])
def test_the_opcode_of_a_line(line: str) -> None:
    assert opcode_of(line) == "cvt"
