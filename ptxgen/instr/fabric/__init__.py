"""The fabric: asynchronous accesses to the memory of other devices. PTX ISA 9.3 and later, 9.7.10.5 (9.4: 9.7.11.5).

`operations` on bytes and elements, and those on boxes of a `tensor`.
"""

from ptxgen.instr.fabric.operations import (
    createpolicy_range,
    submit,
    submit_commit_group,
    try_atom,
    try_get,
    try_pullred,
    try_put,
    try_red,
    wait,
    wait_group,
)
from ptxgen.instr.fabric.tensor import try_get_tensor, try_put_tensor, try_red_tensor

__all__ = [
    "createpolicy_range",
    "submit",
    "submit_commit_group",
    "try_atom",
    "try_get",
    "try_get_tensor",
    "try_pullred",
    "try_put",
    "try_put_tensor",
    "try_red",
    "try_red_tensor",
    "wait",
    "wait_group",
]
