"""Does ptxgen take what nvcc makes of CUDA's own headers? Every file must parse, print back and check without an error.

    python -m tools.corpus [name ...] [--jobs J] [--folder build/corpus]

The sources are small files that use the headers widely (`tests/data/cuda`), larger ones that instantiate the
algorithms of CUB and Thrust (`tools/corpus/cuda`), and kernels that take the address of every wrapper of `cuda::ptx`,
made from its headers. Each is compiled for a Hopper and a Blackwell target, some with debug information. PTX is kept
in the folder, by a hash of what it is made from. It needs nvcc 13, and no GPU.
"""

from tools.corpus.compile import NvccError, compile_ptx, find_nvcc
from tools.corpus.judge import Verdict, judge
from tools.corpus.sources import Source, small_sources, sources

__all__ = ["NvccError", "Source", "Verdict", "compile_ptx", "find_nvcc", "judge", "small_sources", "sources"]
