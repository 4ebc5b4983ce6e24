"""Public .ptx files: verdicts of check beside those of ptxas, and a lossless round trip of each.

ptxas 13.5 takes no target below sm_75 and no address size of 32 bits. A file for an older target is judged twice: as it
is, when check must object to nothing else that ptxas does not, and with its target raised to sm_75 (and its
version to the first that has that target).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ptxgen
from ptxgen.instr.model.targets import parse_version
from ptxgen.toolchain import find_ptxas, ptxas_version
from tools.outside import clones

#: Repositories whose .ptx files are judged, each with the commit of the recorded measurement.
REPOSITORIES = {
    "vosen/ZLUDA": "8a7931be87d758835776f54ea2e33d30621c74ce",
    "gthparch/gpuocelot": "8286e947496c05a42a59e1129035250ecd7b8806",
    "garrick99/openptxas": "5f707ea24c00e46352a33716db730c4bb1f58c0b",
    "Han-Zhenzhong/ptx-vm": "48fa7d0e11adbce9d890666891a73fbd64dceed8",
    "jialunzhang-psu/ptx-90-parser": "b5d7089bc7970596036bd20d3028d5e0dc8a0a9a",
    "NVIDIA/cuda-samples": "c94ff366aed18c797b8a85dfaac7817b0228b420",
    "Rust-GPU/Rust-CUDA": "ac2674f03208462709f538f07b10e3f8153c93b6",
    "jcuda/jcuda-samples": "3de36547dec6b527d1e49d73b1817efd791b8fb6",
    "packed-and-compressed/ptx-shaders": "d1b8b396ffdea67b0c6d6f34c114ed99330de0bf",
    "xeno-by/libptx": "9e35e4b2805cbf8e23c10b1d161d942e512a2ba1",
    "BabaYara/dePTX": "1c015f558aed7e05851f8301f87eca76b2a60d76",
    "JuliaGPU/CUDA.jl": "fd1008df7adde63bd46e078d075e6180c783f9cc",
    "boopdotpng/cuda-matmuls": "672bc3aa4c41d55af982092cf51ca6bc13819115",
    "gorgonia/gorgonia": "b5cc2f84ba676d7ebeb671708070f4e43af0bc7e",
    "makepath/rtxpy": "58475ad3e89f60ce1760a9b2ae3d03389d98e746",
    "michaelballantyne/nvptx-samples": "26109dc7a487057fe27cdb48803a0f06724e6183",
    "mumax/3": "4ea68c172eb252bdeb7f8c030b9bd2b47016042d",
    "navdeepkk/gpu-gemms": "ca036a3f5c30163006ca9b642db77724051775b1",
    "victoryang00/test_fp8_on_4090": "f383e0f07e04f36bc35dbc6fb49bfc49afe514ee",
    "xlite-dev/LeetCUDA": "cb6a0497e829741fc5e3ad5e43a5beed0d85edcd",
    "abarbu/matrix-cuda-clojure": "d42330bc65a46e0a2883bd02acc2209c7995e246",
    "abhi1212/Darknet_Vbox": "c0c9a0f1b5e7265b7da0fedb667bc811ab37f170",
    "accel-sim/gpgpu-sim_distribution": "9805ad4db401906460a1a43f81887209f1de36f9",
    "adelmuursepp/cutedsl-from-scratch": "a3fddeb4158de57f8f411d31c2b96ae084a178ea",
    "aieonyx/AXON": "4484145f15380eb8038d227b7afb539b6992fadc",
    "ampersand-projects/reffine": "1f8dc9fd6d18bcb48aefda2e2e6ccaa059b578cd",
    "Andrew-cmp/ctlm": "5ced18636f2a61ce5a03b7c5e5c4baea08adf6df",
    "anneouyang/kernel-data-exploration": "eadea5cb1aaa4fd677a00b56d6ae8dd1fb85fe63",
    "AnthonyDest/CNN-GPU-Accelerator": "eebbe35d79f2b2d33ef1b29ddee2790fa4813dcb",
    "Beck-Bjella/Gyges": "344f54f5506111dd6dfcddc269fa8a370b1665ba",
    "bernardobreder/cuda-lang": "556b9af95811b77045bf78bd0cc1343dfe6526f2",
    "bitsbetrippin/bbtmultiminer": "4747551475ef98651802ad7584878438deecfd9a",
    "capybara-club/ptx_runner": "2aafa266a4e2bc13b048177a4900f27f2db72144",
    "charles-r-earp/autograph": "1dff06cdc93e5bbbb4046a1672d9c4689de4f231",
    "chenhb37/ThreePhase": "6ab0542a46ef3a007acc6645f6b62171ca481049",
    "coreylowman/cudarc": "8995648e2ea73689c3ce4351ab6f110302255c5f",
    "csullivan/triton": "1cde399623756ce90ecfcbb8235b4fd6a7c0c06e",
    "daig/cuda": "caa13eb26c634ce9ee0dda9b0f0675d381fc653f",
    "DaronPopov/Pyptx": "f02b0156ad5433da265aa27fa471dfc59c5f84fa",
    "davebayer/cccl": "e5ce79c1e3263dd1e77e929165b938e1e1720bf2",
    "delbek/ptx": "d388297ce6b6e85c61a2118f75e21de754d67cdf",
    "devsw-prayas/Caldera": "bb1fc1899fc4e53ad921e7efd200ed81068fbcef",
    "EtiNL/xor_engine": "e0a550cba47abb965d82760cdee630fccf2fc9ad",
    "fabgas/CudaTut": "06733bd1077d25bfe3c1584115b71b27508df8c9",
    "fajarkraton/fajar-lang": "b082cdb58a11f6739b80f6b3208ce572ee64dbbf",
    "FindHao/nv_bin_explorer": "edaf6d4fa53fe6f88414e214a1a29989c1ab56cb",
    "Fvoiretryzig/wasmPolyBench": "bf28421f9d17348b5a77a69747a95c3a8493531d",
    "geohot/cuda_ioctl_sniffer": "002f25cee33da9003f7bfce3be82340b81f5c480",
    "gmarkall/ptxcompiler-slowdown": "c21600fde5489269ebee71f4b6acedf20fe550ba",
    "GOUTHAM1926/blublas": "de3920d8e3ec5551fcfbf361732ce8148493088a",
    "gvilums/ptoxide": "522cde29551cdb66a8a8456a36da21bae57d72fe",
    "iamyxsh/zk-math-cuda": "b5396a0a1ab3d01db55004762d15983e65048d64",
    "jdtatz/compound-prism-designer": "6ed288c8465bcde308b9328e8d295c0eeef06884",
    "jdtatz/Montey": "f6d9bf5b16c72f930c360fb5bad5bb035790b3dc",
    "jenni-westoby/Julia_GPU_examples": "322419324f8a903a5d650c463608b66a547e523a",
    "jesusluque/cudakernel": "58ebd619c43f9cfb9e6302beefbc2692b02a0106",
    "jhson989/cuda-ptx": "28cbcbcbaf57cff5e429acb664f8ccb0f68c7d82",
    "jsol444455/PAVER_GPGPU-SIM": "ce7a3d61f85929d3dea8a25de6c74fdf0525e16f",
    "Kenun99/Smartian-GPU": "2802ebd6ad4e5750d1ddb4720766c9c9394a6f26",
    "KristofferBernhem/SMlocalizer": "9c36db4f06a8e4e37c93a67f3f0311838c0dc1d4",
    "krovchen/ME759_FinalProject": "c86af5adb677e55a2b6c6884180f2bcf706d9c90",
    "kunzmi/managedCuda": "1886172aad60647c56614fe5971fbb420e7c8415",
    "Leikoe/ptxfun": "afcb777560e35c188d1b2aa8e7a12cdbcb57381a",
    "lizhun1/GPU-sim": "74e87d80952726443b172dc8fcec702a63c23744",
    "lysago/gpgpu-sim_distribution": "9711545f8dd9d5308a2fbdd728ebca828dd088c7",
    "m0at/rvllm": "b320e2f44106b148508eb08f9d48f4c39d0f429c",
    "mainpratyushhoon/GPU-Programming": "83bb580f65cbd3df3c7f5bb18c331d3c383b83c5",
    "Malfurionzz/cuda_code": "96c785bd2f3d1a338781f33164fba78a8514e37d",
    "manwe21/ConvolutionalNeuralNetwork": "60ae94c37db9fea2e8c5e474efc12ba560556c9f",
    "micropuma/byteir": "3ae461e41f76c7a829952580088c97ac9f722bae",
    "mikex86/LibreCuda": "7470f81a5c910c3b2c6e0088fb07d55338b5041d",
    "mitsuba-renderer/drjit-core": "d7f58d89b7e243dddb9bd246d11fe7782d503643",
    "Mxrider420z/tor-v3-vanity": "67479ada6526c6174948b9623dd39e16c78104c6",
    "Nlaysi/RayMarchingWithCuda": "4631033d0d2a4fbf5b076e471d68fcdedf5e784a",
    "oasis-Linmi/tensor_core": "18268f5c3fb6b17a6b58220c6acd19690fd6cfb0",
    "PavleAndric/cuda-userspace-driver": "e5ac4d97325e266b2afa48fc06b0820530984a56",
    "phial3/learning-lm-rs": "513880255296cfe5d1deb4db6c1fb79e1d86a232",
    "piragi/fuzigrad": "bc39ea3ef32c5cb023d74fce9c59d4de46f9634e",
    "radis/radis": "707c88206d1297b6b9d3774ef1b2de12f0db76e1",
    "RaulMoldes/ferrox": "f97906a29b21109ffa0a79462d765ada9dd26d8d",
    "rgl-epfl/cholespy": "0b4130661fbf4638769578565e8106a88b17c817",
    "RIKEN-RCCS/mX_real": "e4c7b7e167644360a6c53039384c61078daed2fa",
    "rutujagurav/mttkrp": "5d692660a0690d5224d7d4e22b08f41361482c84",
    "ShanmeiHE/GAS-ATENUATOR": "c0f06896ed782d6e17d642851c70cbe2f604ac94",
    "sr7cb/IRISX": "e92b0f282e061cd0b9b9af92988170ba49e9fa32",
    "SWASTIC-7/bare_NN": "0c29a400bcaa69ac5ae6b9aec70a65384b5e90e0",
    "Targoyle/mocnpub": "71344979a544ae1826141a94d3004a9b509f4984",
    "xnejed07/CudaFilters": "ed82f38df6df47c57ebd4aa284679651c4243935",
    "yonatanbeyn/Nvidia-GPU-PTX": "c81f247b6870dc849c4220ca787e480ef738a9fa",
    "ZJU-Andre/gramine": "af947fad9a66e06bd5a46aecb3402787e8358f0e",
    "zouyuanqing/phased-array-rs": "4110f9b8f0ec333376dc81bc70646efd81a996e8",
    "zwei9965-gif/EE533-lab9": "738e3e257301f6037c7f0a4b483214ad91bdd44f",
    "garrick247/opencuda": "47185ec204325ba52dd0001073c8a09409124036",
    "Lulzx/cuda-metal": "e88dd103bddaff9a134913dec4bd8439817d160c",
    "ciresnave/baracuda": "419e4f22cabe697421a302e7c0f6f00e0150895d",
    "hemangandhi/ptx-superoptimize": "f46f2be8b7f2fd6928bd26dc5a4984092ee101a1",
    "joshua-crews/gpu_testing": "ab4c660e4dc44230892135ded29c03ce8989daf6",
    "cdsousa/cuda_julia_experiments": "911efaaea55fff9caaa1c5c3633f0021faea8815",
    "facebookexperimental/triton": "db4666f22c1f8b206584c3f06e3b4a0ff035989e",
    "NVIDIA/numba-cuda": "b18b944b2f88a4e840424e49a1b0d29488263b40",
    "KnowingNothing/MatmulTutorial": "70f70fa08b1d5095dfb500c39f56b0465fff05e0",
    "slowlyC/ai-infra-notes": "139893a9f9d3ead453d5d1f75b2f5f843a015c78",
    "nzeejay/NeuralAPI": "1ecf6734256158d43529263e7c5346bee3654e8c",
    "mairooni/TornadoVM": "fb960a6c40085ec51e5da91fba80a5abc06291e2",
    "WithanagePerera/CUDA": "14b35e188c392edcaef8fd6e46ae92af3ef18d55",
    "Narsil/cuda-sys": "8bfd38025f2768626d0f57ec2e44a940661a9448",
    "control-owl/key-hunter": "b1e0df2bbfcdf7be1fdcf1d67fee6c87ec69c0d2",
    "oxrinz/ryulang": "5708c766336da69d8393e10a2fdf0001f35a0c8d",
    "TheRadDani/GPU-programming": "06dab492f1c8c21a5360be87f7f1d8a60abf14b9",
    "Ryanispop/tiny-gpu-plus": "52e3919111dbb86b2cdcc9a47dfd22efe262d4f8",
    "intexcor/pycuda_compiler": "74a06cab91ded7062bcf7877194d904764e6a137",
    "unixpickle/learn-ptx": "be2e59877d6fce9cd43c149ebfd00b6dc52162ac",
    "laanwj/decuda": "c30bd179a8d9b89cc7d07c34bc42bcce734eda1a",
    "lshqqytiger/ZLUDA": "5e717459179dc272b7d7d23391f0fad66c7459cf",
    "vickiegpt/ZLUDA": "b03896b20458ed403f8e44c5ed4820641fb180b4",
    "gmarkall/advent-of-ptx": "a67d12513e49dd4e05474d255be1def5fcbee94f",
    "SuperInstance/grand-pattern-ptx": "f3cbb482e6b5c27dc318cb3ee9a20c00401002bd",
    "SuperInstance/conservation-spectral-ptx": "2e200d44901de589656360c185ba6f0d4a425755",
    "theunnecessarythings/llm-ptx": "6022abad203243b57585a6b1ebf7d6ace9e948f1",
    "Tugbars/Bootstrap-Particle-Filter-in-PTX": "702e7848a728f66039482183e1e959f0807d5891",
    "Nagharjun17/MLIR-to-PTX-CUDA": "ad0e50f13f2dd8bc4bd9b25203a468a49760f191",
    "zenny-chen/CUDA-PTX-Simple-Sample": "f675f191f9645ae6edd2ff7a6fa0091ab3911b93",
    "numba/numba": "5340f052d01403b12480fa19e596200ee0d0e131",
    "bheisler/RustaCUDA": "c74efcb14fa24d53ac5ca1ce57e6f5794b62ce25",
    "cloudcores/CuAssembler": "96a9f72baf00f40b9b299653fcef8d3e2b4a3d49",
    "pocl/pocl": "5066640dcbff6df32241da2416c964ea69659999",
    "7e11/cse375-rust-linalg": "1cc9318992235e3e5f58a40c0b2878ef4e341202",
    "AsterixxxGallier/gpu-graph-playground": "ed6d4d4d3ba63e582b297b42b85a86000e8f690d",
    "Conless/cuda-test": "4c641c415d931fa649c56fe3551e57f06fa3b60c",
    "HilbertYang/TinyGPGPU-Arch": "125ab7fd0096fd46d70431180e91ed8ffd30ed73",
    "MAYA-ZK/kzg_proof_generation": "6b6214f9986f34a12730016118bf605c5b01d0c9",
    "anandnamdev/Parallel-Edge-Detection-using-CUDA-C": "b257cd0741b48f762a45f9af0942b8d69d132fe9",
    "ariasanovsky/cuda-loop": "df98d253280a001f4d3b34c1791010178dc34143",
    "arnaud111/matrix_operations_cuda": "bffaba49534c12fbb4ed37c0a3a3380092c18ee8",
    "arnavgupta-py/new-rusty-machine": "292ffb61ee5f00490b1349f4fa03a9655f0a99d7",
    "arnavgupta-py/rusty-machine": "be8385c60813da1376cd7e9e8608c8f18cea529e",
    "babycommando/rust-cuda-accelerated": "02b24eb8de76e425d95e24b3a457808ceaec4086",
    "cloudsbelow/jcsl": "53d0a8147f0487753846d16009e989eff3f3390d",
    "darshanmakwana412/ppc_p9a": "f1ced671a76b4014a75404b4a643cafe2e86b253",
    "fabgas/GPUCache": "b5cfaa0627ef46f13f69ac4698f49fbe53a940c0",
    "jelite/Trtion_try": "29e1571459daa87b4dfa91a3c5e12199c49c2c96",
    "judaszszymon/licencjat": "1bffb7c48f1f5c1bd4ed22c07f4db40ca81802bb",
    "mgpai22/tuna-gpu": "96c51834919818bbc8ed72e9c334416caa961bd1",
    "michelp/cudafor": "f93e4a5bdfa45d93a400c5a0473389565250f4cc",
    "mnk888/poly_finder": "49137b8069868b10045a61396e20496f1cd1dad1",
    "paradisebee/hello_cuda": "85bb2887a23f798964d2f160dce7409b3410bb2a",
    "r-barnes/cuda_int_overflow": "bd8b0fdc3e4e20a16b34874e3a400a15f4c8cbc5",
    "supertick/cuda-addition": "a4888bde4eb0cbe0cbc626d015c2b8ece7f08430",
    "tutzr/intermediate-test": "ab2c476c3d7e3f0f62905bdcec27cc0b46cb66d0",
    "xiaoyunxxy/sponge_attack": "dd832a18b0d01c6033160675773ac5ad29237cda",
    "yuhanlia1/EE533-lab7-team14": "d207ba6877458b344cddc53929cd018728333a96",
    "yutadd/GoldWireCoin": "089ccd98ba77135105b70e1a7123909c0d589b06",
    "zyoung11/FE": "ef440af8e06fe1a5f1e75af8859213844f6ad62c",
    "celeritas-project/cuda-test-snippets": "304401e39023e0ec1fc47a6a76833c12f9ff3111",
    "Daweek/dscudapkg1.7.5.1": "fea6eb47f54c559708141b21a067afca4abe9aba",
    "gpu-mode/lectures": "7cb40f67ad68f59a7c13e9a8c4d8a816a3c68e7a",
    "mitsuba-renderer/mitsuba3": "b45b0a930275114de0f8c34e8cf52775e176ca9a",
}
#: The oldest target that ptxas 13.5 takes, and the PTX version that introduced it.
OLDEST, ITS_VERSION = 75, "6.3"
#: Seconds for one file.
TIMEOUT = 300

_TARGET = re.compile(r"^([ \t]*\.target[ \t]+)sm_(\d+)([af]?)", re.M)
_VERSION = re.compile(r"^([ \t]*\.version[ \t]+)(\d+\.\d+)", re.M)


@dataclass(slots=True)
class Verdict:
    """What both judges say of one file. `ours` and `ptxas` are objections, empty where the judge accepts."""

    path: str
    target: str = ""
    raised: bool = False
    ours: list[str] = field(default_factory=list)
    ptxas: list[str] = field(default_factory=list)
    crash: str = ""
    lossless: bool = True

    @property
    def agrees(self) -> bool:
        return not self.crash and self.lossless and bool(self.ours) == bool(self.ptxas)


def raised(text: str) -> tuple[str, bool]:
    """The text with its target raised to the oldest that ptxas takes, and whether it was."""
    match = _TARGET.search(text)
    if match is None or int(match[2]) >= OLDEST:
        return text, False
    text = _TARGET.sub(rf"\g<1>sm_{OLDEST}", text, count=1)
    # Options that sm_1x had: its map_f64_to_f32 is refused for later targets.
    text = re.sub(r"^([ \t]*\.target[^\n]*?),\s*map_f64_to_f32", r"\1", text, count=1, flags=re.M)
    version = _VERSION.search(text)
    if version and parse_version(version[2]) < parse_version(ITS_VERSION):
        text = _VERSION.sub(rf"\g<1>{ITS_VERSION}", text, count=1)
    return text, True


def target_of(text: str) -> str:
    """The target of a module, "" if it names none."""
    match = _TARGET.search(text)
    return f"sm_{match[2]}{match[3]}" if match else ""


def judge(path: str, text: str) -> Verdict:
    """Both verdicts on a file."""
    verdict = Verdict(path)
    given, verdict.raised = raised(text)
    verdict.target = target_of(given)
    try:
        for each in {text, given}:
            try:
                verdict.lossless = verdict.lossless and str(ptxgen.parse(each)) == each
            except ptxgen.PtxSyntaxError as error:
                if each == given:
                    verdict.ours.append(f"line {error.line}: syntax: {error}")
        if not verdict.ours:
            ptxgen.check(text)
            verdict.ours = [
                f"line {each.line}: {each.message} [{each.code}]"
                for each in ptxgen.check(given)
                if each.severity == "error"
            ]
    except Exception:
        verdict.crash = traceback.format_exc(limit=-3)
    verdict.ptxas = asked(given, verdict.target)
    return verdict


def asked(text: str, target: str) -> list[str]:
    """What ptxas objects to in a module that may have external names."""
    command = [str(find_ptxas()), "--compile-only", "-O0", "-o", "/dev/null", "/dev/stdin"]
    if target:
        command += ["-arch", target]
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, check=False, timeout=TIMEOUT
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ["no answer in time"]
    if done.returncode == 0:
        return []
    said = (done.stdout + done.stderr).decode(errors="replace")
    return [line for line in said.splitlines() if "error" in line or "fatal" in line] or [f"status {done.returncode}"]


def main(words: Sequence[str] | None = None) -> int:
    """Print a line for each repository and each disagreement; exit with 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("clones", type=Path, help="folder of clones: owner/name, owner+name or name")
    parser.add_argument("--only", nargs="*", help="repositories to take")
    parser.add_argument("--largest", type=int, default=2_000_000, help="bytes of a file, at most (default 2,000,000)")
    arguments = parser.parse_args(words)
    version = ptxas_version(find_ptxas())
    columns = ("files", "raised", "legal", "illegal", "differing")
    print(f"ptxas {version}\n{'repository':<36}{'commit':<14}{''.join(f'{each:>10}' for each in columns)}")
    differing: list[tuple[str, Verdict]] = []
    for repository in arguments.only or REPOSITORIES:
        clone = clones.find(arguments.clones, repository)
        if clone is None:
            print(f"{repository:<36}missing")
            continue
        counts: Counter[str] = Counter()
        for path, content in clone.files(["*.ptx"]):
            if len(content) > arguments.largest:
                counts["too large"] += 1
                continue
            verdict = judge(path, content.decode(errors="replace"))
            counts["files"] += 1
            counts["raised"] += verdict.raised
            counts["illegal" if verdict.ptxas else "legal"] += 1
            if not verdict.agrees:
                counts["differing"] += 1
                differing.append((repository, verdict))
        numbers = "".join(f"{counts[each]:>10}" for each in columns)
        print(f"{repository:<36}{clone.commit()[:12]:<14}{numbers}", flush=True)
    for repository, verdict in differing:
        print(f"\n{repository} {verdict.path} ({verdict.target}{', raised' if verdict.raised else ''})")
        if verdict.crash:
            print(verdict.crash)
        if not verdict.lossless:
            print("    not printed as it was read")
        for name, said in (("ptxgen", verdict.ours), ("ptxas", verdict.ptxas)):
            print(f"    {name}: {'legal' if not said else ''}", *said[:4], sep="\n        " if said else "")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
