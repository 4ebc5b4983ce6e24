"""Names of compilers, as messages show them."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from ptxgen import Kernel, check
from ptxgen.device import KernelError
from ptxgen.emulator import Emulator
from ptxgen.names import SHOWN, demangled, readable, shown_name
from tests.support.harness import module

pytest.importorskip("demangle")

CUTLASS = (
    "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEENS1_10collective13CollectiveMma"
    "INS1_34MainloopSm90TmaGmmaWarpSpecializedILi7ENS5_IJNS4_1CILi1EEESB_SB_EEENS1_24KernelTmaWarpSpecializedEEENS5_IJ"
    "NSA_ILi64EEESF_SF_EEENS_6half_tENS5_IJlSB_lEEESH_SI_EENS7_8EpilogueIfEEvvEEEEvNT_6ParamsE"
)
#: What c++filt says of names of nvcc, clang and rustc.
NAMES = {
    "_Z1kPf": "k(float*)",
    "_Z3addPKfS0_Pfi": "add(float const*, float const*, float*, int)",
    "_ZN5flash6kernelILi128ELb1EEEvPfi": "void flash::kernel<128, true>(float*, int)",
    "_ZZ6kernelPfE4tile": "kernel(float*)::tile",
    "_Z2enIL1E1EEvPi": "void en<(E)1>(int*)",
    "_ZN12_GLOBAL__N_14anonIiEEvPT_": "void (anonymous namespace)::anon<int>(int*)",
    "_ZN1SIiEpLEi": "S<int>::operator+=(int)",
    "_Z8variadicIJidcEEvDpT_": "void variadic<int, double, char>(int, double, char)",
    "_ZNK1SIiE2InclIfEET_S3_i": "float S<int>::In::operator()<float>(float, int) const",
}


def test_full_names() -> None:
    for name, wanted in NAMES.items():
        assert demangled(name).replace(" ", "") == wanted.replace(" ", "")
    # binutils numbers lambdas.
    assert demangled("_Z3lamIZ4mainEUlPiE_EvT_S0_") == "void lam<main::'lambda'(int*)>(main::'lambda'(int*), int*)"
    assert demangled("_RNvCs1234_7mycrate3foo") == "mycrate::foo"
    for plain in ("k", "triton_poi_fused_0", "main", "_Z", "__nv_sqrt", "_ZN3foo4barIiEEvT_", "_Research", "%r1", ""):
        assert demangled(plain) == plain


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="needs c++filt")
def test_full_names_are_those_of_binutils() -> None:
    text = subprocess.run(["c++filt"], input="\n".join([*NAMES, CUTLASS]), capture_output=True, text=True, check=True)
    found = text.stdout.splitlines()
    assert [each.replace(" ", "") for each in found] == [demangled(name).replace(" ", "") for name in (*NAMES, CUTLASS)]


def test_long_names_lose_their_arguments() -> None:
    assert len(demangled(CUTLASS)) > 400
    shown = shown_name(CUTLASS)
    assert shown == "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<...>>(...)"
    assert len(shown_name("x" * 1000)) < SHOWN + 10
    assert len(shown_name("_Z" + "x" * 1000)) < SHOWN + 10
    versions = "_ZN3cub17CUB_300001_SM_9006detail4scan20DeviceScanInitKernelINS0_13ScanTileStateIiLb1EEEEEvT_i"
    assert "CUB_300001_SM_900::detail" in shown_name(versions, 200)
    assert "CUB_300001" not in shown_name(versions, 100)


def test_names_in_a_text() -> None:
    text = "race: st.shared (line 3) writes _ZZ6kernelPfE4tile[3] (0x410) of _Z6kernelPf; _Z6kernelPf_param_0[5]."
    assert readable(text) == "race: st.shared (line 3) writes kernel::tile[3] (0x410) of kernel(float*); param_0[5]."
    assert readable("a_Zb and x._Z1kPf stay") == "a_Zb and x._Z1kPf stay"


def test_reports_and_errors() -> None:
    body = """.shared .b32 _ZZ6kernelPfE4tile[64]; .reg .u32 %t; mov.u32 %t, %tid.x;
    st.shared.u32 [_ZZ6kernelPfE4tile], %t; ret;"""
    text = module(body).replace("k(", "_Z6kernelPf(").replace("entry _Z6kernelPf()", "entry _Z6kernelPf()")
    report = Emulator("sm_100a").launch(Kernel.from_ptx(text), 1, 64, [])
    assert report.kernel == "_Z6kernelPf"
    assert report.summary().startswith("kernel(float*) on emulated sm_100a: findings")
    assert "overwrites kernel::tile[0]" in report.findings[0].message
    assert "_ZZ6kernel" not in report.findings[0].message
    assert "_ZZ6kernelPfE4tile" in report.findings[0].summary  # data have the names of the text
    assert Kernel.from_ptx(
        text + text[text.index(".visible") :].replace("6kernelPf(", "5otherPf("), "kernel("
    ).name == ("_Z6kernelPf")
    with pytest.raises(KernelError, match=r"it has kernel\(float\*\)"):
        Kernel.from_ptx(text, "missing")
    with pytest.raises(ValueError, match=r"kernel\(float\*\) takes 0 arguments"):
        Emulator("sm_100a").launch(Kernel.from_ptx(text), 1, 64, [np.int32(1)])
    call = module("call _ZN3foo3barEv; ret;")
    assert any("foo::bar()" in each.message for each in check(call))
