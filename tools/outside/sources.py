"""The lists: which repositories, under which license, where their forms stand, and how these are extracted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How forms are written down. "asm": GNU inline assembly in C++ or CUDA. "ptx": PTX text. "checks": FileCheck lines of
#: LLVM's tests. "llvm": LLVM's inline assembly, in Python and in the text of IR. "grammar": the manual's notation.
#: "quoted": opcodes in literals `ptx"..."`, and patterns of PTX lines. "table": TVM's instruction table, whose own
#: printer writes inline assembly. "printer": the strings of a library that has LLVM's printer of NVPTX's instructions,
#: here llvmlite's wheel, unpacked to CLONES/llvmlite with its version in COMMIT.
Syntax = Literal["asm", "ptx", "checks", "llvm", "grammar", "quoted", "table", "printer"]


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one repository whose forms are written in one syntax."""

    repository: str
    #: The commit of the recorded measurement.
    commit: str
    license: str
    syntax: Syntax
    #: Patterns of paths in the repository.
    paths: tuple[str, ...]


CUDA = ("*.cu", "*.cuh", "*.h", "*.hpp", "*.inl", "*.cpp", "*.cc")

TEXTS = ("*.md", "*.txt", "*.jinja", "*.rs", "*.nim", "*.py", "*.cl", "*.metal", "*.ipynb")


def _asm(repository: str, commit: str, license: str, *folders: str) -> Source:
    paths = tuple(f"{folder}*{suffix[1:]}" for folder in folders or ("",) for suffix in CUDA)
    return Source(repository, commit, license, "asm", paths)


def _asm_all(repository: str, commit: str, license: str) -> Source:
    """Inline assembly in any text: also Rust, Nim, Python, OpenCL and notes."""
    return Source(repository, commit, license, "asm", (*CUDA, *TEXTS))


def _llvm(repository: str, commit: str, license: str, *folders: str) -> Source:
    paths = tuple(f"{folder}*.{suffix}" for folder in folders or ("",) for suffix in ("py", "mlir", "ll", "nim"))
    return Source(repository, commit, license, "llvm", paths)


SOURCES: tuple[Source, ...] = (
    Source("apache/tvm", "5d4dc8721307cf9677becacf0395c19be130e206", "Apache-2.0", "table",
           ("python/tvm/backend/cuda/ptx/*.py",)),
    _asm("apache/tvm", "5d4dc8721307cf9677becacf0395c19be130e206", "Apache-2.0", "src/", "python/tvm/"),
    _asm("NVIDIA/cccl", "571f2fc3bc53cd710e306ad43d58995c1fe4219f", "Apache-2.0 WITH LLVM-exception",
         "libcudacxx/include/", "cub/", "cudax/", "thrust/"),
    _asm("NVIDIA/cutlass", "7107b05535f8977f5ecb9d01ee203205b1fd9bc4", "BSD-3-Clause", "include/"),
    _asm("deepseek-ai/DeepGEMM", "54e22612409371d6364144b69086735beb54e98b", "MIT"),
    _asm("deepseek-ai/DeepEP", "dd758caf451848bd150e1046af3d0a73e5fff38d", "MIT"),
    _asm("deepseek-ai/FlashMLA", "9241ae3ef9bac614dd25e45e507e089f888280e0", "MIT"),
    _asm("HazyResearch/ThunderKittens", "0b55588d2769dde0c7a9a606ffc015b0ca7a9551", "MIT"),
    _asm("flashinfer-ai/flashinfer", "fb28d7242b3506a2348265962041acc1fb56cca4", "Apache-2.0"),
    _asm("NVIDIA/TransformerEngine", "d0067d0da6cb01811b8072a7d304f0e00344ce2b", "Apache-2.0"),
    _asm("Dao-AILab/flash-attention", "0251105a2fb19d2957484b7f023cd8c115286ced", "BSD-3-Clause"),
    _asm("tile-ai/tilelang", "a35008a42531c62b976ae4cec3855d4383db0f3c", "MIT"),
    _asm("mirage-project/mirage", "de8745d965c9c5ad7eb14c87b11d2f6a54eb0244", "Apache-2.0"),
    _asm("pytorch/FBGEMM", "71d6f8b229d964e61cac24df9bbd2ffcc4b4d378", "BSD-3-Clause"),
    _asm("NVIDIA/nccl", "5067397c2676d5aed50042fc39e5c8ee96eb0027", "BSD-3-Clause"),
    _asm("NVIDIA/warp", "9934a4eb2c503399140daab09d256ccc7236d1d8", "Apache-2.0"),
    _asm("tinygrad/tinygrad", "a9069c177a9da9cca18593edf55acd2e6073cca6", "MIT", "extra/"),
    _asm("zhang677/PTXBench", "491860bd3e587eda230ab426b086f31b2da4aa12", "Apache-2.0"),
    _asm("jhson989/cuda-ptx", "fed8f8bc739bca7ba0bd933e01d8f20bc8753d3c", "unstated"),
    _asm("vllm-project/vllm", "", "Apache-2.0", "csrc/"),
    _asm("microsoft/mscclpp", "1f5f065d7b13ab02df32c22568f38785d1eeec01", "MIT"),
    _asm("turboderp-org/exllamav3", "4f8ad0121f483ba66a5336244a4c3b6d7210385e", "MIT"),
    _asm("xlite-dev/LeetCUDA", "cb6a0497e829741fc5e3ad5e43a5beed0d85edcd", "GPL-3.0"),
    _asm("pranjalssh/fast.cu", "38eb642e0c081231d6f695978be63604bd7c689b", "MIT"),
    _asm("thu-ml/SageAttention", "d1a57a546c3d395b1ffcbeecc66d81db76f3b4b5", "Apache-2.0"),
    _asm("mit-han-lab/nunchaku", "4132b3bffdb7d520ecb30ac6983ee482a39f9362", "Apache-2.0"),
    _asm("HazyResearch/Megakernels", "7309cec801537b61fea3b50d7dfe454a6cde578e", "MIT"),
    _asm("NVIDIA/nvshmem", "2d7d25f0816235e3c2b51779571ec032606ea0dd", "NVIDIA SDK"),
    _asm("ByteDance-Seed/Triton-distributed", "1512a81189315eca7ba38f884aaf239469a88ba3", "MIT"),
    _asm("bytedance/flux", "19831ca2d820e3e782ed1d15d8b52d0898b78b26", "Apache-2.0"),
    _asm("uccl-project/uccl", "da914a2054c29725464803e379bb3b98de90dfa1", "Apache-2.0"),
    _asm("NVIDIA/cuda-samples", "c94ff366aed18c797b8a85dfaac7817b0228b420", "BSD-3-Clause"),
    _asm("IST-DASLab/qutlass", "e74319e3405ce6d71965732880f5dc1f52371f64", "Apache-2.0"),
    _asm("NVIDIA/Fuser", "81c4b22fd750d377d69e24928c32233162f6b2bd", "BSD-3-Clause"),
    _asm("deepspeedai/DeepSpeed", "edaa7221267243c7be7fb49c5d5f5c4fb97b4641", "Apache-2.0"),
    _asm("microsoft/BitBLAS", "0c51e34ac52747aa3f41f8157a253c2d489d2b11", "MIT"),
    _asm("facebookresearch/xformers", "ca6d2aa0d43241fc8a8dcd872debc2406160160d", "BSD-3-Clause"),
    _asm("rapidsai/raft", "2141422b1a5e3121611888cb64a0bf8254bc3a67", "Apache-2.0"),
    _asm("Infatoshi/cuda-course", "79681bfd003d403170dd93c0436c6f2a45cb390f", "MIT"),
    _asm("accel-sim/accel-sim-framework", "2260456ea5e6a1420f5734f145a4b7d8ab1d4737", "BSD-2-Clause"),
    _asm("accel-sim/gpgpu-sim_distribution", "667834cfe5214523edd7769aeab77f91b7137686", "BSD-3-Clause"),
    _asm("gpgpu-sim/ispass2009-benchmarks", "1716296b22bc78acdef08fb46a338f36f9dd4b96", "unstated"),
    _asm("NVlabs/tiny-cuda-nn", "6ee3546bda615f51abe684ce9edefeb414689135", "BSD-3-Clause"),
    _asm("NVIDIA/cuCollections", "dc0f9fc20c2a544e53099e640a681b347532391a", "Apache-2.0"),
    _asm("rapidsai/cudf", "6a22d1d2f908ba046c76aa7895fc7b78e53d8023", "Apache-2.0"),
    _asm("arrayfire/arrayfire", "492718b5a256d4a9d5198fdce89d8fd21772bfda", "BSD-3-Clause"),
    _asm("KomputeProject/kompute", "61af4bc2057e850a735b68d2fd46170648e80496", "Apache-2.0"),
    _asm("pytorch/ao", "36027d82d1ad9949597ea16002ff4940374b1b94", "BSD-3-Clause"),
    _asm("rapidsai/cuvs", "ff0c8076bf2f8d354bc21039ebffa14a1c9128a3", "Apache-2.0"),
    _asm("Dao-AILab/quack", "c8ec3170057987da0ec99883736f381ea1937cf3", "Apache-2.0"),
    _asm("NVIDIA/cudnn-frontend", "3929da2ef4c1dba1bb8acb68727b9134f26f40c0", "MIT"),
    _asm("facebookexperimental/triton", "db4666f22c1f8b206584c3f06e3b4a0ff035989e", "MIT"),
    _asm("taichi-dev/taichi", "ba0e81dce559fb63a5958bf82feb1d00c55c02fe", "Apache-2.0"),
    _asm("NVIDIA/numba-cuda", "b18b944b2f88a4e840424e49a1b0d29488263b40", "BSD-2-Clause"),
    _asm("linkedin/Liger-Kernel", "ead96b618e5c67bddc6a6e9bcb99bfe6b5ab661c", "BSD-2-Clause"),
    _asm("supranational/sppark", "17278d74295392f9813f009300b257a688422b7a", "Apache-2.0"),
    _asm("lattice/quda", "9521952ca730316ea1cdd6330408d933ef88e308", "MIT"),
    _asm("NVlabs/CGBN", "6e6fdc1ab3e7c4e7899a83dc52ee1005b7e8c217", "MIT"),
    _asm("gau-nernst/learn-cuda", "1454f8b71499a68eacdbf44c08e36a7003d8ab99", "unstated"),
    _asm("InternLM/lmdeploy", "1263d5cd889b7ad500e85b8eb20401327a4516ab", "Apache-2.0"),
    _asm("InternLM/turbomind", "764528241c385691d9a6831ac3230664ce7bb407", "Apache-2.0"),
    _asm("IST-DASLab/marlin", "2f6d7c10e124b3c5fa29ff8d77d568bd7af3274c", "Apache-2.0"),
    _asm("hashcat/hashcat", "d3983edaf22f5370d1bb136c930460bcad2d9f6e", "MIT"),
    _asm("KnowingNothing/MatmulTutorial", "70f70fa08b1d5095dfb500c39f56b0465fff05e0", "Apache-2.0"),
    _asm("Tencent/hpc-ops", "6e2ecede9d6d47b2e680e839cc7ad7422bc8d88b", "Tencent's, of its own code", "src/"),
    _asm("ciresnave/baracuda", "419e4f22cabe697421a302e7c0f6f00e0150895d", "Apache-2.0 or MIT"),
    _asm("garrick247/opencuda", "47185ec204325ba52dd0001073c8a09409124036", "BUSL-1.1"),
    _asm("Lulzx/cuda-metal", "e88dd103bddaff9a134913dec4bd8439817d160c", "Apache-2.0"),
    _asm("ademeure/QuickRunCUDA", "b00036db23a77465c49dd0511ade65aae9c223f1", "unstated"),
    _asm("slowlyC/ai-infra-notes", "139893a9f9d3ead453d5d1f75b2f5f843a015c78", "unstated"),
    _asm("zjin-lcf/HeCBench", "f27000a5188f8ac79bd43fc95a1b3f890c18823d", "BSD-3-Clause"),
    _asm("NVlabs/xmp", "0052dbb206ef0cb2b47b0fe5d61f54e5cd2fa73c", "BSD-3-Clause"),
    _asm("matter-labs/era-boojum-cuda", "a5cf97fca81bbd2e6ca52513ae3b8806eb120e31", "Apache-2.0 or MIT"),
    _asm("bitsandbytes-foundation/bitsandbytes", "95f9af309d4d5793847169c39288dcd3fcbdf564", "MIT"),
    _asm("NVIDIA/gdrcopy", "fcec3ce0bb40a97a6cc45dd4afeec4bccb509712", "MIT"),
    _asm("ModelTC/lightllm", "fc72ffab9a3455cfb571f22d45ab777cc29de0de", "Apache-2.0"),
    _asm("NVIDIA/nvbench", "66212f1da71cc9afb2894a46fa8f234cbdd6c0d8", "Apache-2.0 WITH LLVM-exception"),
    _asm("kokkos/kokkos", "28848dfa8fc1411873b6a663c4d29ba05712510e", "Apache-2.0 WITH LLVM-exception"),
    _asm("mairooni/TornadoVM", "fb960a6c40085ec51e5da91fba80a5abc06291e2", "Apache-2.0"),
    _asm("control-owl/key-hunter", "b1e0df2bbfcdf7be1fdcf1d67fee6c87ec69c0d2", "unstated"),
    _llvm("jax-ml/jax", "cec06d116c05f0d52adfceee3d3b730fdbcb0ce5", "Apache-2.0"),
    _llvm("Dao-AILab/quack", "c8ec3170057987da0ec99883736f381ea1937cf3", "Apache-2.0"),
    _llvm("Dao-AILab/flash-attention", "0251105a2fb19d2957484b7f023cd8c115286ced", "BSD-3-Clause"),
    _llvm("pytorch/ao", "36027d82d1ad9949597ea16002ff4940374b1b94", "BSD-3-Clause"),
    _llvm("NVIDIA/cutlass", "7107b05535f8977f5ecb9d01ee203205b1fd9bc4", "NVIDIA EULA (CuTe DSL), BSD-3-Clause"),
    _llvm("flashinfer-ai/flashinfer", "fb28d7242b3506a2348265962041acc1fb56cca4", "Apache-2.0"),
    _llvm("NVIDIA/cudnn-frontend", "3929da2ef4c1dba1bb8acb68727b9134f26f40c0", "MIT"),
    _llvm("facebookexperimental/triton", "db4666f22c1f8b206584c3f06e3b4a0ff035989e", "MIT"),
    _llvm("pytorch/helion", "ef091f416a50c443b38e4c8bff2980777f5ff225", "BSD-3-Clause"),
    _llvm("fla-org/flash-linear-attention", "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89", "MIT"),
    _llvm("NVIDIA/numba-cuda", "b18b944b2f88a4e840424e49a1b0d29488263b40", "BSD-2-Clause"),
    _llvm("linkedin/Liger-Kernel", "ead96b618e5c67bddc6a6e9bcb99bfe6b5ab661c", "BSD-2-Clause"),
    _llvm("NVlabs/cuda-oxide", "a105afd522b73a6712a802e30bd900cd04cc8019", "Apache-2.0"),
    _asm_all("sunlex0717/DissectingTensorCores", "1b9b3d7840869bd5c51e6ba773ce4d66893f630f", "unstated"),
    _asm_all("mratsim/constantine", "e6bee85e8c7a89af279460e4ca03283d817d1ce9", "Apache-2.0 or MIT"),
    _llvm("mratsim/constantine", "e6bee85e8c7a89af279460e4ca03283d817d1ce9", "Apache-2.0 or MIT"),
    _asm_all("halide/Halide", "abbf7ff983dc19d9994d32c5a5d11a8cdda88ed8", "Apache-2.0"),
    _llvm("halide/Halide", "abbf7ff983dc19d9994d32c5a5d11a8cdda88ed8", "Apache-2.0"),
    _asm_all("perplexityai/pplx-kernels", "2bd6e30fab358829bd01d1c0907be8088ff9e5e1", "MIT"),
    _asm_all("ai-dynamo/nixl", "8770b655a6b17b5cdf7d2b56b6e0be5392496df5", "Apache-2.0"),
    _asm_all("tpruvot/ccminer", "6ff4e50987e59a70056324a94ed8667cc0bf598d", "GPL-3.0"),
    _asm_all("pocl/pocl", "5066640dcbff6df32241da2416c964ea69659999", "MIT or BSD-2-Clause"),
    _asm_all("AdaptiveCpp/AdaptiveCpp", "49544a4828da7383ae481a3fc5c5e480c8a4f142", "BSD-2-Clause"),
    _asm_all("mit-han-lab/omniserve", "02b2925aa6fa3b92b06316a1524b7f38922cd9c8", "Apache-2.0"),
    _asm_all("alibaba/rtp-llm", "4b8d39cd5cbe4eff0cf0661411e15be21ccc58b9", "Apache-2.0"),
    _asm_all("te42kyfo/gpu-benches", "1c36d509ee717dca9215c27135fa1e611bb03ed1", "GPL-3.0"),
    _asm_all("Bruce-Lee-LY/cuda_hgemm", "0d26c2e4415ab0d0af5a6bfae301275c608d46b4", "MIT"),
    _asm_all("accel-sim/gpu-app-collection", "52c11fbccbe11fefd8bb27c1ec64ecfd1828b088", "unstated"),
    _asm_all("microsoft/TileFusion", "ddc570d96e2fcda2bceb518dab6878d5ee5daba7", "MIT"),
    _asm_all("OpenNMT/CTranslate2", "0d8bcd362ac75ef860ef161d6f0efad0ae439ff0", "MIT"),
    _asm_all("NVIDIA/optix-toolkit", "ea35ce3a61308b1fce9e16b25386056948a99b04", "BSD-3-Clause"),
    _asm_all("sgl-project/sgl-flash-attn", "2580b5a4882562640f3cfbffd2bb8d2de9268f9f", "BSD-3-Clause"),
    _llvm("sgl-project/sgl-flash-attn", "2580b5a4882562640f3cfbffd2bb8d2de9268f9f", "BSD-3-Clause"),
    _asm_all("NVIDIA/apex", "6424da3b4faa6c8f062da4a48c424fff3f02d42d", "BSD-3-Clause"),
    _asm_all("huggingface/candle", "2a13b0f3ff62f7e67013597f2996f764c5735e21", "Apache-2.0 or MIT"),
    _asm_all("kvcache-ai/ktransformers", "95009ea6856c0799e517e93cb12be5e8494bc7ce", "Apache-2.0"),
    _asm_all("vllm-project/flash-attention", "617264c1c7955c9e84817654ebeedff069f3c5f1", "BSD-3-Clause"),
    _llvm("vllm-project/flash-attention", "617264c1c7955c9e84817654ebeedff069f3c5f1", "BSD-3-Clause"),
    _asm_all("NervanaSystems/neon", "8c3fb8a93b4a89303467b25817c60536542d08bd", "Apache-2.0"),
    _asm_all("openai/blocksparse", "89074c5ccf78e3a88b4aa2aefc9e208d4773dcbc", "MIT"),
    _asm_all("KlausT/ccminer", "5f4235d81b3be342a4dfb35f378dfa286cdd49cd", "GPL-3.0"),
    _asm_all("xmrig/xmrig-cuda", "01d534864b5d82c2ab153af4d995414e419ed069", "GPL-3.0"),
    _asm_all("ethereum-mining/ethminer", "8eaf50ab3baad9a1747e04dc295793d46740dcae", "GPL-3.0"),
    _asm_all("filecoin-project/ec-gpu", "16d38ef6715fb1a4968986d3a5635f8bcac6c984", "Apache-2.0 or MIT"),
    _asm_all("NVlabs/instant-ngp", "abe236ee00cf90cfca6e36e65c00435d5b21f50a", "NVIDIA's"),
    _asm_all("mit-han-lab/llm-awq", "d6e797a42b9ef7778de8ee2352116e0f48a78d61", "MIT"),
    _asm_all("casper-hansen/AutoAWQ_kernels", "c7b0e88c327694c715b0a758d9ce8fd414a1fa21", "MIT"),
    _asm_all("HazyResearch/flash-fft-conv", "b8771028717f46d5b22cbb8e12833f35033d621b", "Apache-2.0"),
    _asm_all("intel/intel-xpu-backend-for-triton", "6c1649935d83fcc8dff48f608f6556cb50d6a6fb", "MIT"),
    _llvm("intel/intel-xpu-backend-for-triton", "6c1649935d83fcc8dff48f608f6556cb50d6a6fb", "MIT"),
    _asm_all("iree-org/iree", "b48a5955575cf8924ffc191f3b0804976e5738b9", "Apache-2.0"),
    _asm_all("pytorch-labs/applied-ai", "4f8c39eb70d92e3848c65347ca077c8e723c74fd", "BSD-3-Clause"),
    _asm_all("NVIDIA/nccl-tests", "a0b82b2260cf5152b9f8c061bbf7eaf0ba096432", "BSD-3-Clause"),
    _asm_all("rapidsai/cuml", "342457bcb82bbdd6aadab6dc37fb808a838b1c31", "Apache-2.0"),
    _llvm("NVIDIA/Model-Optimizer", "a2fbac7bad8ab446d3f8783dadb0c3366eb0ad73", "Apache-2.0"),
    _asm_all("brandonmmusic-max/sm120-moe-bench", "a5213ca77d7549a60c399cc12768b6a374351ef0", "Apache-2.0"),
    _asm_all("Nekofish-L/mxfp6_sm120", "23e0a7bcadd7e0e9c1e8e599df8aef04f4396f62", "BSD-3-Clause"),
    _asm_all("leavelet/sparse_mla_sm120", "6999a13fc1a51b0eb4a38360a063944201c14112", "unstated"),
    _asm_all("goldbar123467/nvfp4_dual_gemm", "22a55a66dffd84577be660303e4fb4cfc0c0ff97", "unstated"),
    _asm_all("jIab-b/nvfp4_gemv-kernel", "bcea8caadf50e0ea3746c5ef183fc6580f5dc9de", "unstated"),
    _asm_all("DarrellThomas/blackwell-kernels", "c4e918c6914d81a95fbd3f46b4f7cbaf27b7c271", "unstated"),
    _asm_all("shiinamiyuki/sm120_gemm", "e26c6421052ee066f06363d015fa2c5a01633e59", "unstated"),
    _asm_all("Harry-Chen/fp4_sm120a", "36de459cc90a62b9aed7d0c95347abb520b61cab", "Apache-2.0"),
    _asm_all("NaregAmirianMegan/NVFP4_Kernels", "0a072dcf5db5ab4697b11b7498168bf087b9a899", "unstated"),
    _asm_all("SourceryTools/nvptx-tools", "212da2e781ed0f9423824e85eb04819958513f7a", "GPL-3.0"),
    _asm_all("philipfabianek/cuda-gemm-from-scratch", "a98bcf49bbeb3055f60b8d7c8949806ab48949e5", "MIT"),
    _asm_all("DD-DuDa/nvfp4_attn_kernel", "5e70e900c7ff88546732e9c4e3c12474dbe56f20", "unstated"),
    _llvm("DD-DuDa/nvfp4_attn_kernel", "5e70e900c7ff88546732e9c4e3c12474dbe56f20", "unstated"),
    _asm_all("DD-DuDa/BitDecoding", "e829b5ae057a1a5def6f92d95d04827a77a21296", "MIT"),
    _asm_all("chisuhua/PTX-EMU", "66efe16440e95553f2bdff56e1bf32eff491f605", "unstated"),
    _asm_all("LeiWang1999/tvm_gpu_gemm", "dcad0aeab236d971cf91fe2b11a8dea553d63ef2", "unstated"),
    _asm_all("NVIDIA/numba-cuda-mlir", "10ece76b48edd680c2b9bad05a8081921b46f6fc", "NVIDIA's"),
    _llvm("NVIDIA/numba-cuda-mlir", "10ece76b48edd680c2b9bad05a8081921b46f6fc", "NVIDIA's"),
    _asm_all("PaddlePaddle/FastDeploy", "cc8d1f3c9f31ea4919972f14ee3eaaa9a09966e2", "Apache-2.0"),
    _asm_all("ZSL98/bitwise_spgemm", "2cd5ccab286d3d554516607d0a4d314d5a46d2e0", "unstated"),
    _asm_all("bytedance-iaas/AsymGEMM", "52c4a1a0bb448c1ae6a121eabc1d90aad962d404", "MIT"),
    _asm_all("deepreinforce-ai/CUDA-L2", "dbe017722194bb33bafadfbcbb4a65ab6df95dc3", "MIT"),
    _asm_all("eunomia-bpf/bpftime", "ec26daecc8e787fb80fd95dd596a576404a5e36e", "MIT"),
    _asm_all("lna-lab/DeepGEMM-for-SM120e", "e1d6f63dd31b1473e8c6d2c4abaf431e041676ce", "unstated"),
    _asm_all("lukeb-aidev/cohesix", "9f63dce837152e1192d768217cde0ec17923ae63", "Apache-2.0"),
    _asm_all("mikepapadim/tornadovm-devoxx2026-cuda-demos", "f2eb8863e5d643b373a04d3d8541729f4d4fe040", "unstated"),
    _asm_all("ntua-el20062/grace-hopper-benchmark", "505e82c1cdfd1f09818bb9c69472d5e3af7a516c", "unstated"),
    _asm_all("tutzr/intermediate-test", "ab2c476c3d7e3f0f62905bdcec27cc0b46cb66d0", "unstated"),
    Source("numba/llvmlite", "0.50.0", "BSD-2-Clause, Apache-2.0 WITH LLVM-exception", "printer", ("*.so",)),
    Source("technillogue/ptx-isa-markdown", "64cfba5fca8c54335218a60f43f7909507071c64", "NVIDIA's manual (9.1) as text",
           "grammar", ("cuda_skill/references/ptx-docs/9-instruction-set/*.md",)),
    Source("jool-space/ptx-isa", "4979f99d90e874cd8efd60250562a5ec9b48655a", "NVIDIA's manual (9.4) as text", "grammar",
           ("ptx/9-instruction-set/*.md",)),
    Source("jool-space/PTX.jl", "", "MIT", "ptx", ("test/*.ptx",)),
    Source("jool-space/PTX.jl", "", "MIT", "quoted", ("test/*.jl", "src/*.jl")),
    Source("llvm/llvm-project", "", "Apache-2.0 WITH LLVM-exception", "checks", ("llvm/test/CodeGen/NVPTX/*.ll",)),
    Source("jialunzhang-psu/ptx-90-parser", "b5d7089bc7970596036bd20d3028d5e0dc8a0a9a", "MIT", "grammar",
           ("crates/parser-gen/ptx_syntax/*.txt",)),
    Source("vosen/ZLUDA", "8a7931be87d758835776f54ea2e33d30621c74ce", "Apache-2.0 or MIT", "grammar",
           ("ptx_parser/src/lib.rs",)),
    Source("vosen/ZLUDA", "8a7931be87d758835776f54ea2e33d30621c74ce", "Apache-2.0 or MIT", "ptx", ("ptx/*.ptx",)),
)  # fmt: skip
