"""CuTe DSL: examples of CUTLASS with options that a seed draws: cute_programs.py CUTLASS SEED [NAMES]."""

from __future__ import annotations

import random
import runpy
import sys
from pathlib import Path

import torch

examples, seed, wanted = Path(sys.argv[1]) / "examples/python/CuTeDSL", sys.argv[2], sys.argv[3:]
sys.path[:0] = [str(examples), str(examples / "cute")]
blackwell = torch.cuda.get_device_capability()[0] >= 10
draw = random.Random()


def words(**options):
    """The options of a command line: flags are True, lists are joined by commas."""
    given = []
    for name, value in options.items():
        if value is False:
            continue
        given.append("--" + name)
        if value is not True:
            given.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
    return given


def wgmma(**more):
    """A GEMM of Hopper."""
    kind = draw.choice(["Float16", "BFloat16", "Float8E4M3FN", "Float8E5M2"]) if not more else "Float8E4M3FN"
    narrow = kind.startswith("Float8")
    tile = draw.choice([(64, 64), (128, 64), (128, 128), (64, 128), (128, 256)])
    cluster = draw.choice([(1, 1), (2, 1), (1, 2), (2, 2)])
    shape = (tile[0] * cluster[0] * draw.choice([1, 2]), tile[1] * cluster[1], draw.choice([128, 256, 384]), 1)
    options = {"mnkl": shape, "tile_shape_mn": tile, "cluster_shape_mn": cluster}
    if not more:
        options |= {"a_dtype": kind, "b_dtype": kind, "c_dtype": draw.choice(["Float16", "Float32"])}
        options |= {
            "a_major": draw.choice("km") if not narrow else "k",
            "b_major": draw.choice("kn") if not narrow else "k",
        }
        options |= {"c_major": draw.choice("nm")}
    return words(**options, **more)


def persistent_wgmma():
    return [*wgmma(), *words(swizzle_size=draw.choice([1, 2]), raster_order=draw.choice(["along_m", "along_n"]))]


def promoted():
    return wgmma(mma_promotion_interval=draw.choice([4, 8]))


def tcgen05(store=True, pair=None):
    """A GEMM of Blackwell."""
    kind = draw.choice(["TFloat32", "Float16", "BFloat16", "Float8E4M3FN", "Int8"])
    pair = draw.random() < 0.5 if pair is None else pair
    tiler = draw.choice([128, 256] if pair else [64, 128]), draw.choice([64, 128, 256] if pair else [32, 64, 128])
    cluster = draw.choice([(2, 1), (2, 2), (4, 1)] if pair else [(1, 1), (2, 1), (1, 2)])
    rows = tiler[0] * cluster[0] // (2 if pair else 1)
    out = "Int32" if kind == "Int8" else draw.choice(["Float32", "Float16", "BFloat16"])
    majors = {} if kind in ("Float8E4M3FN", "Int8") else {"a_major": draw.choice("km"), "b_major": draw.choice("kn")}
    return words(
        mnkl=(rows * draw.choice([1, 2]), tiler[1] * cluster[1], draw.choice([128, 256]), draw.choice([1, 1, 2])),
        mma_tiler_mn=tiler, cluster_shape_mn=cluster, use_2cta_instrs=pair, ab_dtype=kind, c_dtype=out,
        acc_dtype="Int32" if kind == "Int8" else "Float32", c_major=draw.choice("nm"), **majors,
        **({"use_tma_store": draw.random() < 0.6} if store else {}),
    )  # fmt: skip


def block_scaled(**more):
    kinds = draw.choice(
        [
            ("Float4E2M1FN", "Float8E4M3FN", 16),
            ("Float4E2M1FN", "Float8E8M0FNU", 32),
        ]
    )
    tiler = draw.choice([(128, 64), (128, 128), (128, 256), (256, 128)])
    cluster = (2, 1) if tiler[0] == 256 else draw.choice([(1, 1), (1, 2)])
    types = {"a_dtype": kinds[0], "b_dtype": kinds[0]} if not more else {"ab_dtype": kinds[0]}
    return words(
        mnkl=(256, tiler[1] * cluster[1], 256 if kinds[0] == "Float4E2M1FN" else 128, 1), mma_tiler_mn=tiler, cluster_shape_mn=cluster,
        sf_dtype=kinds[1], sf_vec_size=kinds[2], c_dtype=draw.choice(["Float16", "Float32"]), **types,
    )  # fmt: skip


def mixed():
    kind = draw.choice(["Int8", "Int4"])
    convert = kind == "Int8"
    return words(
        mnkl=(128, 128, 256, 1), mma_tiler_mnk=(128, draw.choice([64, 128]), 64 if convert else 128), a_dtype=kind,
        scale_granularity_m=0 if convert else 1, scale_granularity_k=0 if convert else 128, use_tma_store=draw.random() < 0.5,
        a_major=draw.choice("km") if convert else "m",
    )  # fmt: skip


def attention_hopper():
    length, d = draw.choice([64, 128, 192]), draw.choice([64, 128])
    return words(
        q_shape=(1, length, 2, d), k_shape=(1, draw.choice([128, 192]), draw.choice([1, 2]), d),
        mma_tile_shape_mn=(64, 128), is_causal=draw.random() < 0.4, is_persistent=draw.random() < 0.4,
        in_dtype=draw.choice(["Float16", "Float8E4M3FN"]),
    )  # fmt: skip


def attention_blackwell():
    length, d = draw.choice([128, 256, 300]), draw.choice([64, 128])
    return words(
        q_shape=(1, length, 1, d), k_shape=(1, draw.choice([128, 256, 320]), 1, d), is_causal=draw.random() < 0.4,
        is_persistent=draw.random() < 0.4, lse_calculation=draw.random() < 0.4, in_dtype=draw.choice(["Float16", "Float8E4M3FN"]),
    )  # fmt: skip


def attention_backward():
    return words(
        s_q=draw.choice([128, 200]),
        s_k=128,
        d=draw.choice([64, 128]),
        h_q=1,
        h_k=1,
        element_dtype=draw.choice(["Float16", "BFloat16"]),
    )


def ampere_gemm():
    return words(
        mnkl=(draw.choice([128, 256]), 128, draw.choice([64, 96]), 1), ab_dtype="Float16",
        c_dtype=draw.choice(["Float16", "Float32"]), acc_dtype="Float32", a_major=draw.choice("mk"), b_major=draw.choice("nk"),
        atom_layout_mnk=draw.choice([(2, 2, 1), (2, 1, 1)]), warmup_iterations=0, iterations=1,
    )  # fmt: skip


def sgemm():
    return words(
        mnk=(128, 128, draw.choice([32, 64])),
        a_major=draw.choice("mk"),
        b_major=draw.choice("nk"),
        warmup_iterations=0,
        iterations=1,
    )


def attention_ampere():
    return words(
        batch_size=1, seqlen_q=draw.choice([70, 128]), seqlen_k=draw.choice([100, 192]), num_head=1, head_dim=draw.choice([64, 128]),
        m_block_size=draw.choice([64, 128]), n_block_size=draw.choice([32, 64]), is_causal=draw.random() < 0.5,
        warmup_iterations=0, iterations=1,
    )  # fmt: skip


def rows(*positional, **options):
    return [*map(str, positional), *words(warmup_iterations=0, iterations=0, **options)]


ANY = [
    ("cute/ampere/kernel/dense_gemm/tensorop_gemm.py", ampere_gemm),
    ("cute/ampere/kernel/dense_gemm/sgemm.py", sgemm),
    ("cute/ampere/kernel/attention/flash_attention_v2.py", attention_ampere),
]
HOPPER = [
    *[("cute/hopper/kernel/dense_gemm/dense_gemm.py", wgmma)] * 3,
    *[("cute/hopper/kernel/dense_gemm/dense_gemm_persistent.py", persistent_wgmma)] * 3,
    ("cute/hopper/kernel/dense_gemm/dense_gemm_fp8_2xacc.py", promoted),
    *[("cute/hopper/kernel/attention/fmha.py", attention_hopper)] * 2,
]
KERNELS = "cute/blackwell/kernel/"
BLACKWELL = [
    *[(KERNELS + "dense_gemm/dense_gemm.py", tcgen05)] * 2,
    *[(KERNELS + "dense_gemm/dense_gemm_persistent.py", tcgen05)] * 3,
    (KERNELS + "dense_gemm/dense_gemm_persistent_dynamic.py", tcgen05),
    (KERNELS + "dense_gemm/dense_gemm_software_pipeline.py", tcgen05),
    (
        KERNELS + "blockwise_gemm/blockwise_gemm.py",
        lambda: words(mnkl=(128, 128, 256, 1), c_dtype=draw.choice(["BFloat16", "Float16"])),
    ),
    *[(KERNELS + "blockscaled_gemm/dense_blockscaled_gemm_persistent.py", block_scaled)] * 2,
    *[(KERNELS + "mixed_input_gemm/mixed_input_gemm.py", mixed)] * 3,
    *[(KERNELS + "attention/fmha/fmha.py", attention_blackwell)] * 3,
    *[(KERNELS + "attention/fmha/fmha_bwd.py", attention_backward)] * 2,
    (KERNELS + "attention/mla/mla_decode_fp16.py", lambda: words(seq_len_k=128, num_heads=128, page_size=128)),
    (KERNELS + "attention/mamba2_ssd/mamba2_ssd.py", lambda: words(gbehcdln=(1, 1, 1, 2, 1, 64, 128, 128))),
]

for number, (path, options) in enumerate([*ANY, *(BLACKWELL if blackwell else HOPPER)]):
    draw.seed(f"{seed} {number}")
    torch.manual_seed(number)
    arguments = options()
    name = Path(path).stem
    if wanted and name not in wanted and str(number) not in wanted:
        continue
    sys.argv = [str(examples / path), *arguments]
    folder = str((examples / path).parent)
    sys.path.insert(0, folder)
    try:
        runpy.run_path(str(examples / path), run_name="__main__")
        print(f"right: {number} {name} {' '.join(arguments)}", flush=True)
    except SystemExit as end:
        print(f"{'WRONG' if end.code else 'right'}: {number} {name} {' '.join(arguments)}", flush=True)
    except BaseException as error:
        text = " ".join(str(error).split())[:300]
        print(f"WRONG: {number} {name} {' '.join(arguments)}: {type(error).__name__}: {text}", flush=True)
    sys.path.remove(folder)
