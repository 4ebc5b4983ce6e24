"""Tests of devices: what needs a GPU is marked `gpu` and takes the fixture of that name."""

from pathlib import Path

import pytest

from ptxgen.device import Kernel
from ptxgen.gpu import Gpu, GpuNotFoundError


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: runs kernels on an NVIDIA GPU; skipped where there is none")


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    """A GPU that runs sm_90a kernels; without one the test is skipped."""
    try:
        found = Gpu()
    except GpuNotFoundError as reason:
        pytest.skip(str(reason))
    if found.target != "sm_90a":
        pytest.skip(f"these kernels are for sm_90a, and {found.name} is {found.target}")
    return found


def ptx(name: str) -> str:
    """The text of tests/gpu/ptx/<name>.ptx."""
    return (Path(__file__).parent / "ptx" / f"{name}.ptx").read_text()


@pytest.fixture(scope="session")
def load():
    """The kernel of tests/gpu/ptx/<name>.ptx."""

    def from_file(name: str) -> Kernel:
        return Kernel.from_ptx(ptx(name))

    return from_file
