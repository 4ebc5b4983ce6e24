"""Reasons of calls that the emulated driver does not support."""

import pytest

from ptxgen.driver.unsupported import reason_of


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("cuTexObjectCreate with sRGB", "views and sRGB"),
        ("cuArrayCreate of this format", "formats other than of 8, 16 and 32 bits"),
        ("cuTexRefSetAddress_v2", "texture references"),
        ("cuMipmappedArrayCreate", "mipmaps"),
        ("cudaArrayGetSparseProperties", "sparse arrays"),
        ("cudaArrayGetPlane", "CUDA arrays"),
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
