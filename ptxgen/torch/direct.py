"""Calls that nothing of torch has to see, and that need no custom op: those cost microseconds."""

# PyTorch is no dependency of development, so that types of its names are unknown there.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

#: Tensors that no mode or subclass of torch changes.
_PLAIN = (Tensor, torch.nn.Parameter)
#: Functions of torch that a call uses, as names of this module: looking them up in torch takes as long as the call.
_gradients, _autocasts = torch.is_grad_enabled, torch.is_autocast_enabled
_dispatch_modes, _function_mode = torch._C._len_torch_dispatch_stack, torch._C._is_torch_function_mode_enabled
_transforms = torch._C._functorch.peek_interpreter_stack


def is_plain(a: Tensor, b: Tensor) -> bool:
    """Whether the first is on a GPU, and both are tensors of torch's own class."""
    return type(a) in _PLAIN and type(b) in _PLAIN and a.is_cuda


def is_direct(a: Tensor, b: Tensor, c: Tensor | None) -> bool:
    """Whether nothing of torch has to see the call: gradients, autocast, tracing, transforms."""
    if _gradients() and (a.requires_grad or b.requires_grad or (c is not None and c.requires_grad)):
        return False
    return not (
        _autocasts("cuda")
        or forward_ad._current_level >= 0
        or _dispatch_modes()
        or _function_mode()
        or _transforms() is not None
    )
