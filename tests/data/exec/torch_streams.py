"""PyTorch's streams, events and graphs, with a kernel of its own PTX; `early` leaves out what orders two streams."""

import ctypes
import sys

import torch

PTX = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 from, .param .u64 to, .param .f32 by) {
    .reg .b64 %a<4>; .reg .b32 %t; .reg .f32 %f<4>;
    ld.param.u64 %a1, [from]; ld.param.u64 %a2, [to]; ld.param.f32 %f1, [by]; mov.u32 %t, %tid.x;
    mad.wide.u32 %a1, %t, 4, %a1; mad.wide.u32 %a2, %t, 4, %a2;
    ld.global.f32 %f2, [%a1]; mul.f32 %f2, %f2, %f1; st.global.f32 [%a2], %f2; ret; }
"""
driver = ctypes.CDLL("libcuda.so.1")
torch.zeros(1, device="cuda")
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuModuleLoadData(ctypes.byref(module), PTX) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"scale") == 0


def scale(source, target, by):
    values = ctypes.c_uint64(source.data_ptr()), ctypes.c_uint64(target.data_ptr()), ctypes.c_float(by)
    arguments = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    assert driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, None) == 0


x = torch.arange(32.0, device="cuda")
y, z = torch.zeros_like(x), torch.zeros_like(x)
one, two = torch.cuda.Stream(), torch.cuda.Stream()
begin, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
torch.cuda.synchronize()
with torch.cuda.stream(one):
    assert torch.cuda.current_stream() == one != two
    begin.record()
    scale(x, y, 2)
    done.record()
with two:
    if "early" not in sys.argv:
        two.wait_event(done)
    scale(y, z, 3)
    total = z.sum()
torch.cuda.current_stream().wait_stream(two)
assert "early" in sys.argv or total.item() == 6 * 496
done.synchronize()
assert done.query()
assert begin.elapsed_time(done) > 0

# Operators are called again by each replay, those in place not by the capture.
graph, count = torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
with torch.cuda.graph(graph):
    assert torch.cuda.is_current_stream_capturing()
    scale(x, y, 2)
    w = y + 1
    scale(w, z, 3)
    count += 1
assert not torch.cuda.is_current_stream_capturing()
assert count.item() == 0
for step in range(3):
    x.copy_(torch.arange(32.0) + step)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(z, 3 * (2 * x + 1)), (step, z)
assert count.item() == 3

# Gradients of other strides than C++ would make them lie on the device, too.
a, b = (torch.randn(2, 3, 4, device="cuda").requires_grad_() for _ in range(2))
(a @ b.transpose(1, 2)).sum().backward()
assert [a.grad.device.type, b.grad.device.type] == ["cuda"] * 2
assert torch.empty(4, pin_memory=True).device.type == "cpu"
print("PASS")
