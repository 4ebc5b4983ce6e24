"""`ptxgen.torch`: products of CPU tensors in the emulator, gradients, and the rules of custom ops."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from ptxgen.gemm import PlanError, find
from ptxgen.gemm.selection.dispatch import Choice


def test_without_torch_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [each for each in sys.modules if each.startswith("ptxgen.torch")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"needs PyTorch, which is not installed: pip install 'ptxgen\[torch\]'"):
        importlib.import_module("ptxgen.torch")


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def gemm(torch: Any) -> Any:
    return importlib.import_module("ptxgen.torch").gemm


@pytest.mark.parametrize(
    ("dtype", "target"),
    [
        ("bfloat16", "sm_100a"),
        ("float16", "sm_90a"),
        ("float32", "sm_100a"),
        ("float8_e4m3fn", "sm_90a"),
        ("int8", "sm_100a"),
    ],
)
def test_products_of_each_type(torch: Any, gemm: Any, dtype: str, target: str) -> None:
    torch.manual_seed(1)
    kind = getattr(torch, dtype)
    a, b = (torch.randn(*shape).mul(2).to(kind) for shape in ((70, 40), (40, 33)))
    with importlib.import_module("ptxgen.torch").emulated(target=target):
        c = gemm(a, b)
    exact = a.double() @ b.double()
    expected = {"float8_e4m3fn": torch.float32, "int8": torch.int32}.get(dtype, kind)
    assert (c.dtype, tuple(c.shape), c.is_contiguous()) == (expected, (70, 33), True)
    # Rounding of C, and of A and B to tf32; integers are exact.
    size = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-9, "float8_e4m3fn": 2.0**-13, "int8": 0}[dtype]
    assert (c.double() - exact).abs().max() <= size * (a.double().abs() @ b.double().abs()).max()


@pytest.mark.parametrize("columns", [48, 17])
def test_transposed_operands_a_bias_and_more_dimensions(torch: Any, gemm: Any, columns: int) -> None:
    torch.manual_seed(2)
    a = torch.randn(40, 20, dtype=torch.bfloat16).t().reshape(2, 10, 40)
    weight, bias = torch.randn(columns, 40, dtype=torch.bfloat16), torch.randn(columns, dtype=torch.bfloat16)
    c = gemm(a, weight.t(), bias=bias, out_dtype=torch.float32)
    exact = a.double() @ weight.double().t() + bias.double()
    assert (c.dtype, tuple(c.shape)) == (torch.float32, (2, 10, columns))
    assert (c.double() - exact).abs().max() < 1e-4


def test_gradients_are_those_of_matmul(torch: Any, gemm: Any) -> None:
    """Products of whole numbers are exact, so that gradients are equal."""
    torch.manual_seed(3)
    made = [torch.randint(-4, 5, shape).float() for shape in ((12, 24), (24, 17), (17,), (12, 17))]
    ours, theirs = ([each.clone().requires_grad_() for each in made[:3]] for _ in range(2))
    (gemm(ours[0], ours[1], bias=ours[2]) * made[3]).sum().backward()
    ((theirs[0] @ theirs[1] + theirs[2]) * made[3]).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_gradients_are_near_those_in_float64(torch: Any, gemm: Any, dtype: str) -> None:
    """Each number is off by the rounding of the result and, of float32, of its operands to tf32 (10 bits each)."""
    torch.manual_seed(4)
    kind = getattr(torch, dtype)
    x, weight, bias, given = (torch.randn(*shape).to(kind) for shape in ((24, 40), (33, 40), (33,), (24, 33)))
    ours = [each.clone().requires_grad_() for each in (x, weight, bias)]
    gemm(ours[0], ours[1].t(), bias=ours[2]).backward(given)
    theirs = [each.double().requires_grad_() for each in (x, weight, bias)]
    (theirs[0] @ theirs[1].t() + theirs[2]).backward(given.double())
    x, weight, given = x.double().abs(), weight.double().abs(), given.double().abs()
    size = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-9}[dtype]
    for mine, exact, terms in zip(ours, theirs, (given @ weight, given.t() @ x, given.sum(0)), strict=True):
        assert mine.grad.dtype == kind
        assert bool(((mine.grad.double() - exact.grad).abs() <= size * terms).all())


def test_float8_has_no_gradient(torch: Any, gemm: Any) -> None:
    a = torch.ones(16, 16, requires_grad=True)
    c = gemm(a.to(torch.float8_e4m3fn), torch.ones(16, 16).to(torch.float8_e4m3fn))
    with pytest.raises(NotImplementedError, match=r"gradients for A and B of .*, not of torch.float8_e4m3fn"):
        c.sum().backward()


@pytest.mark.parametrize(("dtype", "out"), [("bfloat16", "float32"), ("float32", "float32"), ("int8", "int32")])
def test_it_keeps_the_rules_of_custom_ops(torch: Any, gemm: Any, dtype: str, out: str) -> None:
    """Schema, fake tensors, autograd, and tracing with dynamic sizes."""
    kind = getattr(torch, dtype)
    a, b = torch.randn(24, 16).mul(3).to(kind).t(), torch.randn(24, 24).mul(3).to(kind)
    if kind.is_floating_point:
        a.requires_grad_()
        b.requires_grad_()
    found = torch.library.opcheck(torch.ops.ptxgen.gemm, (a, b, None, getattr(torch, out)))
    assert len(found) == 4
    assert set(found.values()) == {"SUCCESS"}


def test_tensors_without_values(torch: Any, gemm: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode  # pyright: ignore[reportMissingImports]

    a, b = torch.randn(2, 16, 16, dtype=torch.bfloat16), torch.randn(16, 24, dtype=torch.bfloat16)
    with FakeTensorMode() as mode:
        made = gemm(mode.from_tensor(a), mode.from_tensor(b))
    assert (tuple(made.shape), made.dtype) == ((2, 16, 24), torch.bfloat16)
    made = gemm(
        torch.empty(16, 16, dtype=torch.int8, device="meta"), torch.empty(16, 24, dtype=torch.int8, device="meta")
    )
    assert (tuple(made.shape), made.dtype, made.device.type) == ((16, 24), torch.int32, "meta")


def test_it_is_compiled_in_one_graph(torch: Any, gemm: Any) -> None:
    def layer(x: Any, weight: Any, bias: Any) -> Any:
        return torch.relu(gemm(x, weight.t(), bias=bias)).sum()

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    given = [torch.randint(-4, 5, shape).bfloat16() for shape in ((8, 16), (24, 16), (24,))]
    ours, theirs = ([each.clone().requires_grad_() for each in given] for _ in range(2))
    got, expected = compiled(*ours), layer(*theirs)
    assert got.item() == expected.item()
    got.backward()
    expected.backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine.grad, other.grad)


def test_autocast_is_that_of_matmul(torch: Any, gemm: Any) -> None:
    x, weight = torch.randint(-4, 5, (8, 16)).float(), torch.randint(-4, 5, (16, 24)).float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made, expected = gemm(x.bfloat16(), weight), x @ weight
        with pytest.raises(ValueError, match=r"not torch\.float64"):
            gemm(x.double(), weight.double())
    assert made.dtype == expected.dtype == torch.bfloat16
    assert torch.equal(made, expected)
    made.sum().backward()
    assert weight.grad.dtype == torch.float32
    assert torch.equal(weight.grad, x.sum(0)[:, None].expand(16, 24))


@pytest.mark.parametrize("view", ["sliced", "strided", "expanded", "offset", "reversed"])
def test_views(torch: Any, gemm: Any, view: str) -> None:
    x = torch.randint(-4, 5, (32, 80)).to(torch.float16)
    a = {
        "sliced": x[3:11, 5:29],
        "strided": x[:8, ::2][:, :24],
        "expanded": x[:1, :24].expand(8, 24),
        "offset": x.flatten()[1:193].view(8, 24),
        "reversed": x[:8, :24].flip(0).t().contiguous().t(),
    }[view]
    b = torch.randint(-4, 5, (24, 17)).to(torch.float16)
    assert torch.equal(gemm(a, b).float(), a.float() @ b.float())


def test_plans_and_kernels_are_made_once(torch: Any, gemm: Any) -> None:
    module = importlib.import_module("ptxgen.torch.prepared")
    a, b = torch.ones(32, 64, dtype=torch.float16), torch.ones(64, 32, dtype=torch.float16)
    gemm(a, b)
    before = module.gemm_for.cache_info()
    gemm(a, b)
    after = module.gemm_for.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)


def test_sums_in_global_memory(torch: Any, gemm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace of a kernel that splits K over CTAs without a cluster is given to it."""
    module = importlib.import_module("ptxgen.torch.prepared")
    plan = find("hopper/overlapped").plan(n_tile=64, cluster_m=1, scheduler="grid", panel=0, stages=2, k_clusters=2)
    monkeypatch.setattr(module, "best", lambda m, n, k, **given: Choice(plan, m, n, k))
    a, b = (torch.randint(-4, 5, shape).to(torch.bfloat16) for shape in ((150, 264), (264, 88)))
    with importlib.import_module("ptxgen.torch").emulated(target="sm_90a"):
        assert module.choice_for(150, 88, 264, "sm_90a", "sm_90a", (("dtype", "bf16"),)).plan is plan
        assert torch.equal(gemm(a, b.t().contiguous().t()).float(), (a.float() @ b.float()).bfloat16().float())
    module.choice_for.cache_clear()
    module.gemm_for.cache_clear()


def test_nothing_to_multiply(torch: Any, gemm: Any) -> None:
    a, b = torch.ones(3, 0, requires_grad=True), torch.ones(0, 4)
    made = gemm(a, b, bias=torch.full((4,), 2.0))
    assert made.tolist() == [[2.0] * 4] * 3
    made.sum().backward()
    assert a.grad.shape == (3, 0)
    assert gemm(torch.ones(0, 5, 8), torch.ones(8, 4)).shape == (0, 5, 4)
    assert gemm(torch.ones(5, 8), torch.ones(8, 0)).shape == (5, 0)


def test_what_is_refused(torch: Any, gemm: Any) -> None:
    def zeros(*shape: int, dtype: Any = torch.bfloat16) -> Any:
        return torch.zeros(*shape, dtype=dtype)

    with pytest.raises(ValueError, match=r"A of shape \(..., M, K\) and B of \(K, N\), not \(3, 4\) and \(5, 6\)"):
        gemm(zeros(3, 4), zeros(5, 6))
    with pytest.raises(ValueError, match=r"of one type of .*, not torch.bfloat16 and torch.float16"):
        gemm(zeros(3, 4), zeros(4, 6, dtype=torch.float16))
    with pytest.raises(ValueError, match=r"A of shape .*, not \(4,\) and \(4, 6\)"):
        gemm(zeros(4), zeros(4, 6))
    with pytest.raises(ValueError, match=r"A is on cpu, B on meta; gemm takes tensors of one device"):
        gemm(zeros(3, 4), zeros(4, 6).to("meta"))
    with pytest.raises(TypeError, match=r"gemm takes torch tensors, not list and Tensor"):
        gemm([[1.0]], zeros(1, 6))
    with pytest.raises(ValueError, match=r"of one type of .*, not torch.float64"):
        gemm(zeros(3, 4, dtype=torch.float64), zeros(4, 6, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"the bias must have shape \(6,\), not \(5,\)"):
        gemm(zeros(3, 4), zeros(4, 6), bias=zeros(5))
    with pytest.raises(ValueError, match=r"out_dtype is one of .*, not torch.float64"):
        gemm(zeros(3, 4), zeros(4, 6), out_dtype=torch.float64)
    module = importlib.import_module("ptxgen.torch")
    with module.emulated(target="sm_80"), pytest.raises(PlanError, match="no GEMM kernel for sm_80"):
        gemm(zeros(3, 4), zeros(4, 6))


@pytest.fixture(scope="module")
def attention(torch: Any) -> Any:
    return importlib.import_module("ptxgen.torch").attention


def expected_attention(torch: Any, q: Any, k: Any, v: Any, causal: bool, scale: float) -> tuple[Any, Any]:
    """O and log-sum-exp in float64; causal: the last query sees all keys."""
    group = q.shape[1] // k.shape[1]
    k, v = (each.double().repeat_interleave(group, 1) for each in (k, v))
    scores = q.double() @ k.mT * scale
    if causal:
        rows, keys = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows), -float("inf"))
    return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_attention_of_a_packed_projection(torch: Any, attention: Any, target: str) -> None:
    """Q, K and V are views of one tensor, read as they lie; O has the order of Q's dimensions."""
    torch.manual_seed(3)
    packed = torch.randn(2, 70, 3, 2, 64, dtype=torch.bfloat16)
    q, k, v = (packed[:, :, each].transpose(1, 2) for each in range(3))
    with importlib.import_module("ptxgen.torch").emulated(target=target):
        o, lse = attention(q, k, v, causal=True, return_lse=True)
    exact, sums = expected_attention(torch, q, k, v, True, 64**-0.5)
    assert (o.dtype, o.shape, o.transpose(1, 2).is_contiguous()) == (torch.bfloat16, q.shape, True)
    # Exponentials and O have 8 bits; |V| is at most about 4.
    assert (o.double() - exact).abs().max() <= 2.0**-6
    torch.testing.assert_close(lse.double(), sums, rtol=0, atol=1e-5)


def test_attention_of_grouped_heads_copies_and_a_scale(torch: Any, attention: Any) -> None:
    torch.manual_seed(4)
    q = torch.randn(1, 4, 33, 64, dtype=torch.float16)
    k = torch.randn(1, 2, 64, 50, dtype=torch.float16).mT  # no contiguous columns: a copy
    v = torch.randn(1, 2, 50, 128, dtype=torch.float16)
    with importlib.import_module("ptxgen.torch").emulated(target="sm_90a"):
        o = attention(q, k, v, scale=0.25)
    assert (o.double() - expected_attention(torch, q, k, v, False, 0.25)[0]).abs().max() <= 2.0**-9
    assert o.is_contiguous()


def test_attention_keeps_the_rules_of_custom_ops(torch: Any, attention: Any) -> None:
    q, k, v = torch.randn(3, 1, 1, 16, 64, dtype=torch.bfloat16).unbind()
    found = torch.library.opcheck(torch.ops.ptxgen.attention, (q, k, v, False, 0.0, True))
    assert set(found.values()) == {"SUCCESS"}
    with importlib.import_module("ptxgen.torch").emulated(target="sm_90a"):
        compiled = torch.compile(lambda *given: attention(*given, causal=True) * 2, fullgraph=True, backend="eager")
        assert torch.equal(compiled(q, k, v), attention(q, k, v, causal=True) * 2)
        o = attention(q.requires_grad_(), k, v)
    with pytest.raises(NotImplementedError, match="attention has no gradients: its kernels are forward only"):
        o.sum().backward()


def test_attention_without_keys_or_queries(torch: Any, attention: Any) -> None:
    q, k = torch.ones(1, 2, 3, 64, dtype=torch.float16), torch.ones(1, 2, 0, 64, dtype=torch.float16)
    o, lse = attention(q, k, k, return_lse=True)
    assert (o.shape, float(o.abs().sum()), lse.tolist()) == (q.shape, 0.0, [[[-float("inf")] * 3] * 2])
    assert attention(k, q, q).shape == (1, 2, 0, 64)


def test_what_attention_refuses(torch: Any, attention: Any) -> None:
    def zeros(*shape: int, dtype: Any = torch.bfloat16) -> Any:
        return torch.zeros(*shape, dtype=dtype)

    q = zeros(1, 4, 16, 64)
    for tensors, words in (
        ((q[0], q, q), r"Q, K and V of \(batch, heads, rows, size\), not \(4, 16, 64\), "),
        ((q, zeros(1, 3, 16, 64), zeros(1, 3, 16, 64)), r"where KV heads divide heads, not \(1, 4, 16, 64\), \(1, 3, "),
        ((q, q, zeros(1, 4, 15, 64)), r"where KV heads divide heads, not"),
        ((q, q.float(), q), r"one type, not torch.bfloat16, torch.float32 and torch.bfloat16"),
        ((q, q.to("meta"), q), r"tensors of one device, not of cpu, meta and cpu"),
        ((zeros(1, 4, 16, 80), zeros(1, 4, 16, 80), q), r"head_size must be 64, 128, 192 or 256, not 80"),
    ):
        with pytest.raises(ValueError, match=words):
            attention(*tensors)
    with pytest.raises(ValueError, match="scale must be a positive number, not -1"):
        attention(q, q, q, scale=-1)
    with pytest.raises(TypeError, match="takes torch tensors, not list, Tensor, Tensor"):
        attention([], q, q)
