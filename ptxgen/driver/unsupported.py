"""Why the emulated driver does not support a call, in words for people who meet its name."""

from __future__ import annotations

import re

#: Reasons by what is in the name of a call; the first that matches holds.
_REASONS = (
    (r"EGL|GL[A-Z]|VDPAU|D3D|Graphics|NvSci", "graphics APIs need a real GPU"),
    (r"External", "memory and semaphores of other APIs (Vulkan, Direct3D, NvSci) need a real GPU"),
    (r"this format", "formats other than of 8, 16 and 32 bits are not emulated"),
    (r"view|sRGB", "views and sRGB are not emulated"),
    (r"Mipmap|mipmap|TexRef|SurfRef|Sparse", "mipmaps, texture references and sparse arrays are not emulated"),
    (r"Array|Texture|Tex[A-Z]|Surf", "this of CUDA arrays, textures and surfaces is not emulated"),
    (r"Peer|Multicast", "there is one emulated GPU"),
    (r"GreenCtx|DevResource|DevSm|ExecutionCtx", "green contexts are not emulated"),
    (r"CoredumpAttribute|Checkpoint", "the emulated GPU has no state that can be saved"),
)


def reason_of(call: str) -> str:
    """Why a call is not supported; empty where there is no more to say."""
    return next((reason for pattern, reason in _REASONS if re.search(pattern, call)), "")
