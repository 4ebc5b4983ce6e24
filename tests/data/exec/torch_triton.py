"""Triton with PyTorch's tensors on "cuda": vector addition, softmax and autograd, as tutorials write them."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    assert x.device == DEVICE
    assert out.is_cuda
    add_kernel[(triton.cdiv(out.numel(), 256),)](x, y, out, out.numel(), B=256)
    return out


@triton.jit
def softmax_kernel(out, x, in_stride, out_stride, rows, n, B: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        i = tl.arange(0, B)
        v = tl.load(x + row * in_stride + i, mask=i < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * out_stride + i, e / tl.sum(e, axis=0), mask=i < n)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return add(x * x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return add(x * grad, x * grad)


def main():
    torch.manual_seed(0)
    x, y = torch.rand(1000, device=DEVICE), torch.rand(1000, device="cuda")
    torch.testing.assert_close(add(x, y), x + y)
    assert add(x, y).device.type == "cuda"
    host = add(x, y).cpu()
    assert host.device.type == "cpu"
    assert abs(host.sum().item() - (x + y).sum().item()) < 1e-2
    s = torch.randn(13, 100, device=DEVICE)
    out = torch.empty_like(s)
    softmax_kernel[(4,)](out, s, s.stride(0), out.stride(0), 13, 100, B=128)
    torch.testing.assert_close(out, torch.softmax(s, axis=1))
    w = torch.randn(64).to(DEVICE).requires_grad_()
    Square.apply(w).sum().backward()
    torch.testing.assert_close(w.grad, 2 * w.detach())
    print(x[:2])
    torch.cuda.synchronize()
    print("PASS")


main()
