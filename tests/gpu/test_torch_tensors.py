"""Torch's CUDA tensors on a GPU: no copy, torch's current stream, CUDA graphs, and `ptxgen.torch.gemm`."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import pytest

from ptxgen.device import Kernel
from ptxgen.gpu import Gpu

pytestmark = pytest.mark.gpu

#: Doubles 1024 numbers.
TWICE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 x)
{
    .reg .b64 %x, %offset;
    .reg .b32 %thread, %cta;
    .reg .f32 %value;
    ld.param.u64 %x, [x];
    mov.u32 %thread, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mad.lo.u32 %thread, %cta, 128, %thread;
    mul.wide.u32 %offset, %thread, 4;
    add.u64 %x, %x, %offset;
    ld.global.f32 %value, [%x];
    add.f32 %value, %value, %value;
    st.global.f32 [%x], %value;
    ret;
}
"""


@pytest.fixture(scope="module")
def torch(gpu: Gpu) -> Any:
    found = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not found.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return found


def test_a_tensor_is_changed_in_place(gpu: Gpu, torch: Any) -> None:
    x = torch.arange(1024, device="cuda", dtype=torch.float32)
    assert gpu.launch(Kernel.from_ptx(TWICE), 8, 128, [x]).ok
    assert torch.equal(x.cpu(), 2 * torch.arange(1024, dtype=torch.float32))
    assert gpu.view(x).numpy()[3] == 6


def test_launches_are_captured_in_a_graph(gpu: Gpu, torch: Any) -> None:
    x, kernel = torch.ones(1024, device="cuda"), Kernel.from_ptx(TWICE)
    gpu.launch(kernel, 8, 128, [x])  # assembles it
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert gpu.launch(kernel, 8, 128, [x]).seconds == 0
        gpu.enqueue(kernel, 8, 128, [x])
    assert x[0] == 2
    graph.replay()
    graph.replay()
    assert x.tolist() == [32.0] * 1024


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float8_e4m3fn", "int8"])
def test_products(torch: Any, dtype: str) -> None:
    gemm, kind = importlib.import_module("ptxgen.torch").gemm, getattr(torch, dtype)
    a, b = (torch.randn(*shape, device="cuda").mul(2).to(kind) for shape in ((300, 72), (72, 136)))
    error = (gemm(a, b).double() - a.double() @ b.double()).abs().max()
    assert error <= 2.0**-8 * (a.double().abs() @ b.double().abs()).max()


@pytest.mark.parametrize("shape", [(300, 136, 72), (16, 4096, 512), (1000, 520, 1032), (1, 512, 512), (7, 999, 512)])
@pytest.mark.parametrize("layout", ["kk", "kn", "mk", "mn"])
def test_every_layout_by_a_prepared_launch(torch: Any, shape: tuple[int, int, int], layout: str) -> None:
    gemm, (m, n, k) = importlib.import_module("ptxgen.torch").gemm, shape
    a, b = (torch.randn(*each, device="cuda").bfloat16() for each in ((m, k), (k, n)))
    a = a.t().contiguous().t() if layout[0] == "m" else a
    b = b.t().contiguous().t() if layout[1] == "k" else b
    first, second = gemm(a, b), gemm(a, b)
    assert torch.equal(first, second)
    assert second.is_contiguous()
    assert (second.double() - a.double() @ b.double()).abs().max() <= 2.0**-8 * (
        a.abs().double() @ b.abs().double()
    ).max()


def test_a_known_call_allocates_c_alone(torch: Any) -> None:
    gemm = importlib.import_module("ptxgen.torch").gemm
    x, weight = (torch.randn(*each, device="cuda").bfloat16() for each in ((4, 33, 64), (96, 64)))
    bias = torch.randn(96, device="cuda").bfloat16()
    for more in ({}, {"bias": bias}):
        kept = [gemm(x, weight.t(), **more) for _ in range(2)]
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        kept.append(gemm(x, weight.t(), **more))
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == before + 1
        assert all(torch.equal(kept[0], each) for each in kept)
        assert tuple(kept[2].shape) == (4, 33, 96)


def test_threads_have_launches_of_their_own(torch: Any) -> None:
    gemm = importlib.import_module("ptxgen.torch").gemm
    x = torch.randn(128, 512, device="cuda").bfloat16()
    weights = [torch.randn(512, 512, device="cuda").bfloat16().t() for _ in range(4)]
    expected, wrong = [gemm(x, each) for each in weights], list[int]()

    def run(number: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            wrong.extend(number for _ in range(200) if not torch.equal(gemm(x, weights[number]), expected[number]))

    torch.cuda.synchronize()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


# torch 2.11 warns of itself when it compiles.
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
def test_a_compiled_layer_and_gradients_take_the_op(torch: Any) -> None:
    gemm = importlib.import_module("ptxgen.torch").gemm
    x, weight = (torch.randint(-4, 5, each, device="cuda").bfloat16() for each in ((64, 128), (256, 128)))
    compiled = torch.compile(lambda x, weight: torch.relu(gemm(x, weight.t())), fullgraph=True)
    assert torch.equal(compiled(x, weight), torch.relu(gemm(x, weight.t())))
    weight.requires_grad_()
    assert gemm(x, weight.t()).requires_grad
    with torch.no_grad():
        assert not gemm(x, weight.t()).requires_grad


def test_products_are_ordered_with_the_stream(torch: Any) -> None:
    gemm = importlib.import_module("ptxgen.torch").gemm
    a, b = (torch.randint(-4, 5, (1024, 1024), device="cuda").bfloat16() for _ in range(2))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = torch.zeros_like(a)
        for _ in range(50):
            late = late * 0 + a
        made = gemm(late, b) + 0
    stream.synchronize()
    assert torch.equal(made, (a.float() @ b.float()).bfloat16())


def test_gradients(torch: Any) -> None:
    gemm = importlib.import_module("ptxgen.torch").gemm
    made = [torch.randint(-4, 5, shape, device="cuda").float() for shape in ((12, 24), (24, 17), (12, 17))]
    ours, theirs = ([each.clone().requires_grad_() for each in made[:2]] for _ in range(2))
    (gemm(ours[0], ours[1]) * made[2]).sum().backward()
    ((theirs[0].double() @ theirs[1].double()) * made[2]).sum().backward()
    assert all(torch.equal(mine.grad, other.grad) for mine, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("heads", "kv_heads", "size", "values"), [(6, 2, 64, 64), (4, 4, 128, 128), (2, 1, 192, 128)])
def test_attention(torch: Any, heads: int, kv_heads: int, size: int, values: int, causal: bool) -> None:
    """Views of a packed projection, on a stream of its own, and in a CUDA graph with other inputs."""
    attention = importlib.import_module("ptxgen.torch").attention
    columns = (heads + kv_heads) * size + kv_heads * values

    def parts(packed: Any) -> list[Any]:
        split = packed.split([heads * size, kv_heads * size, kv_heads * values], -1)
        shapes = ((heads, size), (kv_heads, size), (kv_heads, values))
        return [each.unflatten(-1, shape).transpose(1, 2) for each, shape in zip(split, shapes, strict=True)]

    def exact(q: Any, k: Any, v: Any) -> tuple[Any, Any]:
        k, v = (each.double().repeat_interleave(heads // kv_heads, 1) for each in (k, v))
        scores = q.double() @ k.mT * size**-0.5
        if causal:
            scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -float("inf"))
        return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)

    def require_right(given: list[Any], o: Any, lse: Any) -> None:
        expected, sums = exact(*given)
        # Exponentials and O have 8 bits; |V| is at most about 5.
        assert (o.double() - expected).abs().max() <= 2.0**-5
        torch.testing.assert_close(lse.double(), sums, rtol=0, atol=1e-5)

    torch.manual_seed(5)
    packed = torch.randn(2, 777, columns, dtype=torch.bfloat16, device="cuda")
    given = parts(packed)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        o, lse = attention(*given, causal=causal, return_lse=True)
    stream.synchronize()
    require_right(given, o, lse)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, lse = attention(*given, causal=causal, return_lse=True)
    packed.copy_(torch.randn_like(packed))
    graph.replay()
    torch.cuda.synchronize()
    require_right(given, o, lse)
    compiled = torch.compile(lambda *each: attention(*each, causal=causal), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*given), o)
