"""Advice on bank conflicts and uncoalesced access, each against a count by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.emulator import Emulator
from tests.support.harness import codes, launch

#: Lane t accesses `[%g + t * STRIDE]` of global memory or `[%s + t * STRIDE]` of shared memory, 32 times.
BODY = """
    .shared .align 128 .b8 tile[8192];
    .reg .pred %p; .reg .u32 %t, %i, %o, %s, %r<4>; .reg .b64 %g, %q; .reg .b16 %h;
    mov.u32 %t, %laneid;
    mov.u32 %i, 0;
    mul.lo.u32 %o, %t, STRIDE;
    cvt.u64.u32 %g, %o;
    add.u64 %g, %g, %out0;
    mov.u32 %s, tile;
    add.u32 %s, %s, %o;
    mov.u32 %r0, 1;
    mov.u32 %r1, 1;
    mov.u32 %r2, 1;
    mov.u32 %r3, 1;
    mov.b16 %h, 1;
    again:
    ACCESS add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 32;
    @%p bra again;
    ret;
"""
#: name -> (access, stride in bytes, code, what 32 executions take, what would do)
KERNELS: dict[str, tuple[str, int, str, int, int]] = {
    "a column of 32 words": ("st.shared.u32 [%s], %r0;", 128, "bank-conflicts", 32 * 32, 32),
    "every other word": ("st.shared.u32 [%s], %r0;", 8, "bank-conflicts", 32 * 2, 32),
    "quarters of a warp": ("st.shared.v4.u32 [%s], {%r0, %r1, %r2, %r3};", 128, "bank-conflicts", 32 * 32, 32 * 4),
    "rows of matrices": (
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%s], {%r0, %r1, %r2, %r3};", 128, "bank-conflicts", 32 * 32, 32 * 4
    ),
    "loads of words": ("st.shared.u32 [%s], %r0; ld.shared.u32 %r1, [%s];", 256, "bank-conflicts", 32 * 32, 32),
    "rows of a matrix": ("st.global.u32 [%g], %r0;", 64, "uncoalesced-access", 32 * 32, 32 * 4),
    "halves": ("st.global.b16 [%g], %h;", 64, "uncoalesced-access", 32 * 32, 32 * 2),
    "vectors": ("st.global.v4.u32 [%g], {%r0, %r1, %r2, %r3};", 64, "uncoalesced-access", 32 * 32, 32 * 16),
    "generic addresses": ("ld.u32 %r0, [%g];", 128, "uncoalesced-access", 32 * 32, 32 * 4),
    "copies to shared memory": (
        "cp.async.ca.shared.global [%s], [%g], 4; cp.async.wait_all;", 32, "uncoalesced-access", 32 * 32, 32 * 4
    ),
}  # fmt: skip


def run(access: str, stride: int, **options: Any) -> Any:
    body = BODY.replace("ACCESS", access).replace("STRIDE", str(stride))
    return launch(body, [np.zeros(8192, np.uint8)], **options)[0]


@pytest.mark.parametrize(("access", "stride", "code", "takes", "needs"), KERNELS.values(), ids=KERNELS)
def test_advice_and_its_twin(access: str, stride: int, code: str, takes: int, needs: int) -> None:
    report = run(access, stride, advice=2)
    found = [each for each in report.findings if each.code == code]
    assert (report.status, {each.severity for each in found}) == ("ok", {"advice"}), report.summary()
    unit = "wavefronts" if code == "bank-conflicts" else "sectors"
    assert all(f"takes {takes} {unit} of" in each.message for each in found)
    assert all(f"where {needs} would do" in each.message for each in found)
    assert all(each.line is not None for each in found)
    width = 16 if "v4" in access or "matrix" in access else 2 if "b16" in access else 4
    assert codes(run(access, width, advice=2)) == []
    assert codes(run(access, stride)) == []  # only who asks is advised


def test_broadcasts_and_padding_are_free() -> None:
    assert (
        codes(run("st.shared.u32 [tile], 7; ld.shared.u32 %r0, [tile]; ld.global.u32 %r1, [%out0];", 4, advice=2)) == []
    )
    assert codes(run("st.shared.u32 [%s], %r0;", 132, advice=1.01)) == []


def test_misaligned_rows_take_one_sector_more() -> None:
    body = "add.u64 %q, %g, 4; st.global.u32 [%q], %r0;"
    assert codes(run(body, 4, advice=2)) == []
    (found,) = run(body, 4, advice=1.2).findings
    assert found.summary.endswith("takes 160 sectors of global memory where 128 would do (1.25 times)")
    assert found.rule.startswith("The worst of 32 warp-instructions takes 5 where 4 would do")
    assert [(each.role, each.line, each.space) for each in found.accesses] == [("accessor", found.line, "global")]


def test_patterns_that_change_are_counted_anew() -> None:
    """The stride grows from 1 to 32 words; in every other turn half of the lanes stay away."""
    body = """
        mad.lo.u32 %o, %i, 4, 4;
        mul.lo.u32 %o, %o, %t;
        mov.u32 %s, tile;
        add.u32 %s, %s, %o;
        and.b32 %o, %i, %t;
        and.b32 %o, %o, 1;
        setp.eq.u32 %p, %o, 0;
        @%p st.shared.u32 [%s], %r0;
    """
    (found,) = run(body, 4, advice=1.01).findings
    # 32 lanes where the stride is odd; where it is even, the 16 of even numbers, whose words are twice as far apart.
    takes = [1 if stride % 2 else int(np.gcd(2 * stride, 32)) * 16 // 32 for stride in range(1, 33)]
    assert f"takes {sum(takes)} wavefronts of shared memory where 32 would do" in found.message
    assert f"The worst of 32 warp-instructions takes {max(takes)} where 1 would do" in found.rule


def test_what_is_little_is_not_told() -> None:
    """A single store of a warp beside many good ones, and four lanes far apart."""
    rare = "setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [%s], %r0; mul.lo.u32 %o, %t, 4; mov.u32 %r1, tile; "
    many = "add.u32 %r1, %r1, %o; " + "st.shared.u32 [%r1], %r0; " * 80
    assert codes(run(rare + many, 128, advice=2)) == []
    assert codes(run("setp.lt.u32 %p, %t, 4; @%p st.shared.u32 [%s], %r0; mov.u32 %i, 31;", 128, advice=2)) == []


def test_peers_and_errors_get_no_advice() -> None:
    """Accesses to a peer's memory are not its banks' business alone; a kernel with errors has other worries."""
    remote = """
        mov.u32 %o, %cluster_ctarank;
        xor.b32 %o, %o, 1;
        mapa.shared::cluster.u32 %s, %s, %o;
        st.shared::cluster.u32 [%s], 1;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        mov.u32 %i, 31;
    """
    report = run(remote, 128, grid=2, cluster=2, advice=2)
    assert codes(report) == [], report.summary()
    racing = run("st.global.u32 [%g], %clock;", 64, block=64, advice=2)
    assert "uncoalesced-access" not in codes(racing)


def test_no_advice_without_checks() -> None:
    assert codes(run("st.shared.u32 [%s], %r0;", 128, advice=2, checks=False)) == []
    assert Emulator().advice is None
