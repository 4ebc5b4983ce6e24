"""What every device shares: arrays, kernels, arguments, launch shapes and reports.

`ptxgen.gpu` runs kernels on a GPU, the emulator runs them on the CPU; both offer `Device` and are built on
what is here. Executing anything is left to them.
"""

from __future__ import annotations

from ptxgen.device.accept import Accept, AcceptError, read_accepts
from ptxgen.device.arguments import KernelArgumentError, pack_arguments
from ptxgen.device.arrays import (
    DeviceArray,
    DeviceArrayError,
    DTypeLike,
    Extent,
    array_dtype,
    array_shape,
    host_array,
    torch_tensor,
)
from ptxgen.device.kernel import Kernel, KernelError, ParameterInfo, SharedRegion
from ptxgen.device.launch import Device, Launch, LaunchError, LaunchShape
from ptxgen.device.report import (
    Access,
    Finding,
    LaunchFailedError,
    LaunchReport,
    Repeat,
    Role,
    Severity,
    StaleValue,
    Status,
)

__all__ = [
    "Accept",
    "AcceptError",
    "Access",
    "DTypeLike",
    "Device",
    "DeviceArray",
    "DeviceArrayError",
    "Extent",
    "Finding",
    "Kernel",
    "KernelArgumentError",
    "KernelError",
    "Launch",
    "LaunchError",
    "LaunchFailedError",
    "LaunchReport",
    "LaunchShape",
    "ParameterInfo",
    "Repeat",
    "Role",
    "Severity",
    "SharedRegion",
    "StaleValue",
    "Status",
    "array_dtype",
    "array_shape",
    "host_array",
    "pack_arguments",
    "read_accepts",
    "torch_tensor",
]
