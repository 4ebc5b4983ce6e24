"""PyTorch's own operators run on the CPU, in place on the memory of the emulated device.

With a build for CUDA, tensors on "cuda" lie in device memory, which this process can read: an operator gets CPU tensors
that alias them. With a build for the CPU alone, `device="cuda"` gives CPU tensors whose memory is device memory, and
torch.cuda is what ptxgen_exec.torch_cuda says.
"""

# PyTorch is optional: without it none of its names is known.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from ptxgen_exec import device_memory, torch_cuda, torch_dlpack, torch_graphs

#: Operators that a build for CUDA runs itself, since they touch no element.
_OWN = {
    "aten::empty.memory_format", "aten::empty_strided", "aten::empty_like", "aten::new_empty",
    "aten::new_empty_strided", "aten::detach", "aten::lift_fresh", "aten::alias", "aten::record_stream",
    "aten::is_pinned", "aten::_pin_memory", "aten::set_", "aten::resize_", "aten::_has_compatible_shallow_copy_type",
}  # fmt: skip


#: PyTorch's own getter of a tensor's device.
_plain_device = vars(torch._C.TensorBase)["device"].__get__


def _is_cuda(device):
    return device is not None and torch.device(device).type == "cuda"


def _empty_in_device_memory(size, stride, dtype):
    """A CPU tensor whose memory is device memory."""
    elements = 1 + sum((size[axis] - 1) * stride[axis] for axis in range(len(size))) if 0 not in size else 0
    count = max(elements, 1)
    width = torch.empty(0, dtype=dtype).element_size()
    storage = torch.frombuffer(device_memory.allocate(count * width), dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=dtype).set_(storage, 0, size, stride)


class Operators(TorchDispatchMode):
    """Runs operators of device tensors on the CPU; `has_cuda` says that PyTorch was built for CUDA."""

    def __init__(self, has_cuda):
        super().__init__()
        self.has_cuda = has_cuda

    def is_on_device(self, tensor):
        if self.has_cuda:
            return tensor.device.type == "cuda"
        if tensor.layout != torch.strided or _plain_device(tensor).type != "cpu":
            return False
        return device_memory.is_device_address(tensor.untyped_storage().data_ptr())

    def on_cpu(self, tensor):
        """The CPU tensor with the memory of a device tensor."""
        if not self.has_cuda:
            return tensor
        storage = tensor.untyped_storage()
        if not storage.nbytes():
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
        memory = torch.frombuffer(device_memory.view(storage.data_ptr(), storage.nbytes()), dtype=torch.uint8)
        made = torch.empty(0, dtype=tensor.dtype)
        return made.set_(memory.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())

    def to_device(self, tensor):
        """A device tensor with the elements of a CPU tensor."""
        if self.has_cuda:
            made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cuda")
        else:
            made = _empty_in_device_memory(tensor.size(), tensor.stride(), tensor.dtype)
        if tensor.numel():
            self.on_cpu(made).copy_(tensor)
        return made

    def stream(self):
        """The handle of the current stream of this thread."""
        streams = torch.cuda if self.has_cuda else torch_cuda
        return streams.current_stream().cuda_stream

    def wait(self):
        """Wait for what the current stream has been given: operators come after it, and run at once."""
        stream = self.stream()
        if not device_memory.is_capturing(stream):
            device_memory.synchronize_stream(stream)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if not self.has_cuda and function._schema.name == "aten::new_empty_strided":
            # Autograd requests a gradient with other strides on the tensor's device in C++, which is the CPU.
            kwargs["device"] = None
        device = kwargs.get("device")
        if self.has_cuda and (function.is_view or function._schema.name in _OWN or function.name() in _OWN):
            return function(*args, **kwargs)
        if not self.has_cuda and kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False  # copies do not overlap anything
        cpu = {}

        def look(value):
            if isinstance(value, torch.Tensor) and id(value) not in cpu and self.is_on_device(value):
                cpu[id(value)] = value, self.on_cpu(value)
            return value

        tree_map(look, (args, kwargs))
        to_device = _is_cuda(device) if device is not None else bool(cpu)
        if not cpu and not to_device:
            return function(*args, **kwargs)
        stream = self.stream()
        captures = device_memory.is_capturing(stream)
        if cpu and not captures:
            device_memory.synchronize_stream(stream)

        def swap(value):
            if isinstance(value, torch.Tensor):
                return cpu[id(value)][1] if id(value) in cpu else value
            return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value

        args, kwargs = tree_map(swap, args), tree_map(swap, kwargs)
        if device is not None:
            kwargs["device"] = torch.device("cpu")
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        given = {id(copy): original for original, copy in cpu.values()}
        storages = {copy.untyped_storage().data_ptr() for _, copy in cpu.values()}

        def give(value):
            if not isinstance(value, torch.Tensor) or _plain_device(value).type != "cpu":
                return value
            if id(value) in given:
                return given[id(value)]
            aliases = value.untyped_storage().data_ptr() in storages
            if not to_device:  # such as .cpu(): memory of the host's own
                return value.clone() if aliases else value
            return value if aliases and not self.has_cuda else self.to_device(value)

        if captures:
            return torch_graphs.captured(
                stream, function, args, kwargs, lambda value: tree_map(give, value), self.on_cpu
            )
        return tree_map(give, function(*args, **kwargs))


def _name_devices(operators):
    """With a build for the CPU: tensors in device memory say that they are on "cuda"."""
    tensor, cuda = torch.Tensor, torch.device("cuda", 0)
    plain_is_cuda = vars(torch._C.TensorBase)["is_cuda"].__get__
    plain_get_device, plain_numpy, plain_to = tensor.get_device, tensor.numpy, vars(torch._C.TensorBase)["to"]

    def is_ours(value):
        return type(value) in (tensor, torch.nn.Parameter) and operators.is_on_device(value)

    class ToHost(torch.autograd.Function):
        """A copy for the host, whose gradient lies on the device again."""

        @staticmethod
        def forward(ctx, value):
            return _copy_to_host(value)

        @staticmethod
        def backward(ctx, *gradients):
            return gradients[0].to(cuda)

    def to_host(value, memory_format=torch.preserve_format):
        if not is_ours(value):
            return value
        operators.wait()
        return ToHost.apply(value) if value.requires_grad else _copy_to_host(value)

    def to_numpy(value, *, force=False):
        if not is_ours(value):
            return plain_numpy(value, force=force)
        if not force:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it first")
        return plain_numpy(to_host(value.detach()))

    def to(self, *args, **kwargs):
        """`Tensor.to`; PyTorch itself looks for the index of "cuda", and takes device memory for the host's."""
        if args and isinstance(args[0], torch.Tensor):
            args = args[0].device, args[0].dtype, *args[1:]
        asked = kwargs.pop("device", None)
        if args and isinstance(args[0], (str, torch.device)):
            asked, args = args[0], args[1:]
        if asked is None:
            return plain_to(self, *args, **kwargs)
        if _is_cuda(asked):
            return plain_to(self, cuda, *args, **kwargs)
        return plain_to(to_host(self), asked, *args, **kwargs)

    def made_on_host(function):
        """A function that makes a tensor of values, for one on the device."""

        def make(*args, device=None, **kwargs):
            if not _is_cuda(device if device is not None else torch.get_default_device()):
                return function(*args, device=device, **kwargs)
            value = function(*args, device="cpu", **kwargs)
            requires_grad = value.requires_grad and value.is_leaf
            return value.detach().to(cuda).requires_grad_() if requires_grad else value.to(cuda)

        return make

    replaced = {
        "to": to,
        "device": property(lambda self: cuda if is_ours(self) else _plain_device(self)),
        "is_cuda": property(lambda self: is_ours(self) or plain_is_cuda(self)),
        "get_device": lambda self: 0 if is_ours(self) else plain_get_device(self),
        "cuda": lambda self, *_, **__: self if is_ours(self) else self.to(cuda),
        "cpu": to_host,
        "pin_memory": lambda self, *_, **__: self,
        "numpy": to_numpy,
    }
    for name, value in replaced.items():
        setattr(tensor, name, value)
    torch.tensor = made_on_host(torch.tensor)
    torch_dlpack.patch(torch, is_ours, lambda size, dtype: _empty_in_device_memory(size, _strides(size), dtype))


def _strides(size):
    """The strides of a tensor without gaps, in elements."""
    made = [1] * len(size)
    for axis in range(len(size) - 2, -1, -1):
        made[axis] = made[axis + 1] * size[axis + 1]
    return made


def _copy_to_host(value):
    made = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype)
    made.copy_(value)
    return made


def _show_on_cpu(operators):
    """Printing turns modes off."""
    import torch._tensor_str as printing

    plain = printing._str

    def show(self, *, tensor_contents=None):
        if type(self) in (torch.Tensor, torch.nn.Parameter) and operators.is_on_device(self):
            text = plain(operators.on_cpu(self.detach()), tensor_contents=tensor_contents)
            return text[:-1] + ", device='cuda:0')"
        return plain(self, tensor_contents=tensor_contents)

    printing._str = show


def patch(module):
    has_cuda = module.version.cuda is not None
    operators = Operators(has_cuda)
    if has_cuda:
        _show_on_cpu(operators)
    else:
        torch_cuda.patch(module)
        torch_graphs.patch(module.cuda)
        _name_devices(operators)
    operators.__enter__()
