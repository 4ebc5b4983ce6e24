"""Reasons of calls that the emulated driver does not support."""

import pytest

from ptxgen.driver.unsupported import reason_of


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("cudaMallocArray", "CUDA arrays, textures"),
        ("cuTexObjectCreate", "CUDA arrays, textures"),
        ("cudaCreateSurfaceObject", "CUDA arrays, textures"),
        ("cuMipmappedArrayCreate", "CUDA arrays, textures"),
        ("cudaMemcpy2DToArray", "CUDA arrays, textures"),
        ("cudaGraphicsGLRegisterBuffer", "graphics APIs"),
        ("cudaEGLStreamConsumerConnect", "graphics APIs"),
        ("cuGraphicsMapResources", "graphics APIs"),
        ("cudaImportExternalMemory", "of other APIs"),
        ("cudaDeviceEnablePeerAccess", "one emulated GPU"),
        ("cuMulticastCreate", "one emulated GPU"),
        ("cuGreenCtxCreate", "green contexts"),
        ("cuLogsRegisterCallback", ""),
    ],
)
def test_reasons(call: str, reason: str) -> None:
    said = reason_of(call)
    assert reason in said
    assert bool(reason) == bool(said)
