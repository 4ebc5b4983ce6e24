"""JAX looks for the files of NVIDIA's driver in /dev before it uses a GPU."""


def patch(module):
    module.has_visible_nvidia_gpu = lambda: True
