"""NVRTC through cuda.bindings: compiled to a cubin or to PTX, loaded and launched by the driver's interface."""

import sys

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void twice(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= 2;
}
"""


def good(result):
    error, *values = result
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else values


def compiled(kind, capability):
    program = good(nvrtc.nvrtcCreateProgram(SOURCE, b"twice.cu", 0, [], []))
    options = [b"--gpu-architecture=sm_%d" % capability]
    good(nvrtc.nvrtcCompileProgram(program, len(options), options))
    size = good(getattr(nvrtc, f"nvrtcGet{kind}Size")(program))
    image = b" " * size
    good(getattr(nvrtc, f"nvrtcGet{kind}")(program, image))
    return image


def main():
    good(driver.cuInit(0))
    device = good(driver.cuDeviceGet(0))
    context = good(driver.cuDevicePrimaryCtxRetain(device))
    good(driver.cuCtxSetCurrent(context))
    attribute = driver.CUdevice_attribute
    major = good(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    try:
        image = compiled(sys.argv[1].upper(), 10 * major)
    except RuntimeError as error:
        print("no NVRTC:", error)
        return
    module = good(driver.cuModuleLoadData(image))
    kernel = good(driver.cuModuleGetFunction(module, b"twice"))
    host = np.arange(100, dtype=np.float32)
    data = good(driver.cuMemAlloc(host.nbytes))
    good(driver.cuMemcpyHtoD(data, host.ctypes.data, host.nbytes))
    arguments = [np.array([int(data)], np.uint64), np.array([100], np.int32)]
    pointers = np.array([each.ctypes.data for each in arguments], np.uint64)
    good(driver.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, 0, pointers.ctypes.data, 0))
    found = np.empty_like(host)
    good(driver.cuMemcpyDtoH(found.ctypes.data, data, host.nbytes))
    assert (found == 2 * host).all()
    good(driver.cuModuleUnload(module))
    print("PASS")


main()
