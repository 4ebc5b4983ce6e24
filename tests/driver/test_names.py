"""Names of kernels as people read them."""

from __future__ import annotations

import pytest

from ptxgen.driver.names import readable, short_name

_TYPES = "i" * 200
#: void gemm<int, int, ...>(float*), with 200 arguments.
_LONG = f"_Z4gemmIJ{_TYPES}EEvPf"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("kernel", "kernel"),
        ("_Z4racyPf", "racy"),
        ("_ZZ4racyPfE4tile", "racy::tile"),
        ("_Z4gemmILb1EEvPf", "gemm<true>"),
        ("_ZN1a1bIiEEvPf", "a::b<int>"),
        (
            "__nv_static_41__e7e24b8e_19_simpleAttributes_cu_f352f5dd__Z20kernCacheSegmentTestPiiS_ii",
            "kernCacheSegmentTest",
        ),
        ("__nv_static_kernel", "__nv_static_kernel"),
        (_LONG, "gemm<...>"),
        ("k" * 300, "k" * 300),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


def test_messages() -> None:
    assert readable("launch of _Z4gemmILb1EEvPf: st.shared writes _ZZ4racyPfE4tile") == (
        "launch of gemm<true>: st.shared writes racy::tile"
    )
    assert len(readable(f"launch of {_LONG}")) < 70
