"""What modifiers mean, in a line each. PTX ISA 9.7, 5.2 (types), 8 (memory consistency model).

A meaning is found under `family.declaration:token`, `family:token`, `token`, or a pattern of tokens.
"""

from __future__ import annotations

import re

from ptxgen.instr.types import TYPES

WORDS: dict[str, str] = {
    # Execution.
    "sync": "waits until all threads that take part are here",
    "aligned": "all threads of the warp execute this same instruction",
    # Memory order and scope.
    "weak": "no synchronisation: data races are undefined",
    "relaxed": "atomic, orders nothing else",
    "acquire": "what follows is ordered after it",
    "release": "what precedes is ordered before it",
    "acq_rel": "acquires and releases",
    "sc": "sequentially consistent",
    "volatile": "neither cached nor merged, as relaxed at system scope",
    "mmio": "reaches memory-mapped devices, exactly once",
    "cta": "among the threads of the CTA",
    "cluster": "among the threads of the cluster",
    "gpu": "among the threads of the GPU",
    "sys": "among all threads of the system, the host's too",
    # State spaces.
    "const": "constant memory",
    "global": "global memory",
    "local": "memory of the thread alone",
    "param": "parameters",
    "param::entry": "parameters of the kernel",
    "param::func": "parameters of a function",
    "shared": "shared memory of the CTA",
    "shared::cta": "shared memory of the executing CTA",
    "shared::cluster": "shared memory of any CTA of the cluster",
    # Rounding and ranges.
    "rn": "round to nearest, ties to even",
    "rna": "round to nearest, ties away from zero",
    "rz": "round towards zero",
    "rm": "round down",
    "rp": "round up",
    "rni": "to the nearest integer, ties to even",
    "rzi": "to the integer towards zero",
    "rmi": "to the integer below",
    "rpi": "to the integer above",
    "rs": "stochastic rounding with given random bits",
    "ftz": "subnormal inputs and results become zero",
    "sat": "clamps to the range: of integers, or 0.0 to 1.0 of floats",
    "satfinite": "clamps to the largest finite value",
    "relu": "negative results and NaN become 0",
    "approx": "fast approximation",
    "full": "approximation over the full range",
    "NaN": "the result is NaN if an input is",
    "abs": "takes absolute values",
    "xorsign": "the result has the exclusive or of the inputs' signs",
    "lo": "the low half of the product",
    "hi": "the high half of the product",
    "wide": "the whole product, twice as wide",
    "integer.mul24:hi": "bits 16 to 47 of the product", "integer.mad24:hi": "bits 16 to 47 of the product",
    "integer.mad24_sat:hi": "bits 16 to 47 of the product",
    "integer.dp2a:lo": "the two low bytes of b", "integer.dp2a:hi": "the two high bytes of b",
    "integer.clmad:lo": "the low half of the product without carries",
    "integer.clmad:hi": "the high half of the product without carries",
    "cc": "writes the carry flag",
    # Comparisons.
    "eq": "equal", "ne": "not equal", "lt": "less", "le": "less or equal", "gt": "greater", "ge": "greater or equal",
    "predicate:lo": "less, unsigned", "predicate:hi": "greater, unsigned",
    "ls": "less or equal, unsigned", "hs": "greater or equal, unsigned",
    "equ": "equal, or NaN", "neu": "not equal, or NaN", "ltu": "less, or NaN", "leu": "less or equal, or NaN",
    "gtu": "greater, or NaN", "geu": "greater or equal, or NaN", "num": "both are numbers", "nan": "one is NaN",
    "and": "logical and", "or": "logical or", "xor": "exclusive or",
    # Caches.
    "ca": "cache at all levels", "cg": "cache in L2 only", "cs": "streamed, evict first", "lu": "last use",
    "cv": "do not cache, fetch again", "wb": "write back", "wt": "write through",
    "nc": "through the non-coherent cache, for data that no one writes meanwhile",
    "L2::cache_hint": "with a cache policy as last operand",
    "tensormap": "a tensormap of 128 bytes",
    # Asynchronous copies and barriers.
    "mbarrier::complete_tx::bytes": "completes on an mbarrier, by the bytes that arrived",
    "mbarrier::arrive::one": "arrives once on the mbarrier",
    "bulk_group": "completes with its bulk group",
    "multicast::cluster": "goes to every CTA of the cluster whose bit is set in the mask",
    "parity": "waits for the phase of this parity",
    "expect_tx": "expects so many bytes first",
    "noComplete": "does not complete the phase",
    "noinc": "does not count as a further arrival",
    "layout::v0": "the layout of mbarriers of all targets",
    "layout::v1": "the second layout of mbarriers",
    "phase_type::primary": "waits for the phase itself",
    "phase_type::conditional": "waits for the phase of conditional arrivals",
    "multicast::cluster::32b": "arrives at every CTA of the cluster whose bit is set in a mask of 32 bits",
    "mbarrier_init": "makes initialised mbarriers visible in the cluster",
    "read": "waits until the sources have been read, not until the results are written",
    "tile": "the box is a tile of the tensor",
    "tile::gather4": "four rows of a two-dimensional tensor, chosen one by one, make the box",
    "tile::scatter4": "the box goes to four rows of a two-dimensional tensor, chosen one by one",
    "im2col": "the box is made of pixels for a convolution",
    "im2col_no_offs": "the box is made of pixels, without offsets",
    "im2col::w": "the box is a row of pixels along W",
    "im2col::w::128": "the box is a row of 128 pixels along W",
    "cp_mask": "a mask says which bytes of every 16 are copied",
    "ignore_oob": "bytes before and after the given range are not copied",
    "noftz": "subnormal values stay as they are",
    "fabric::generic": "of accesses through the fabric, before those of the generic proxy",
    "generic::fabric": "of accesses of the generic proxy, before those through the fabric",
    # Proxies and restricted fences.
    "alias": "between accesses to one memory by several virtual addresses",
    "async": "between the generic proxy and the asynchronous one (TMA, tensor cores)",
    "async::generic": "between the generic proxy and the asynchronous one, one way",
    "tensormap::generic": "between writes of a tensormap and its use by TMA, one way",
    "proxy": "orders accesses of different proxies",
    "sync_restrict::shared::cta": "for what happens in the CTA's own shared memory only",
    "sync_restrict::shared::cluster": "for what happens in the cluster's shared memory only",
    "sync_restrict::read": "for reads only",
    "sync_restrict::reads": "for reads only",
    "sync_restrict::shared::cta::read": "for reads of the CTA's own shared memory only",
    "sync_restrict::shared::cluster::read": "for reads of the cluster's shared memory only",
    "gl": "among the threads of the GPU",
    # Barriers, votes, shuffles.
    "arrive": "does not wait",
    "wait": "waits for the others",
    "red": "with a reduction over all threads",
    "popc": "counts the threads whose predicate is true",
    "all": "whether it holds for all", "any": "whether it holds for any",
    "ballot": "a bit for each lane whose predicate is true",
    "up": "from a lower lane", "bfly": "from the lane at an exclusive or", "idx": "from a lane by number",
    "warp.shfl:down": "from a higher lane", "warp.shfl_without_sync:down": "from a higher lane",
    "uni": "all active threads take the same way",
    "inc": "takes registers", "dec": "gives registers back",
    "miscellaneous:inc": "takes registers from the pool of the CTA",
    "miscellaneous:dec": "gives registers to the pool of the CTA",
    "atomic:inc": "adds 1, from the limit back to 0", "atomic:dec": "subtracts 1, from 0 to the limit",
    # Operations.
    "add": "adds", "min": "takes the smaller", "max": "takes the larger", "exch": "exchanges",
    "cas": "compares and swaps", "not": "inverts",
    "clamp": "counts beyond the width stop at it", "wrap": "counts are taken modulo the width",
    "l": "to the left", "r": "to the right",
    "shiftamt": "gives the shift that brings the bit to the top",
    "shr7": "shifts the result right by 7", "shr15": "shifts the result right by 15", "po": "adds 1",
    "finite": "neither infinite nor NaN", "infinite": "infinite", "normal": "normal, or zero", "number": "not NaN",
    "notanumber": "NaN", "subnormal": "subnormal",
    "oob": "out-of-bounds NaN counts as zero",
    "2pi": "the argument is a multiple of a full turn",
    "f4e": "takes the bytes of four ahead", "b4e": "takes the bytes of four behind", "rc8": "repeats one byte",
    "ecl": "clamps from the left", "ecr": "clamps from the right", "rc16": "repeats one half",
    # Eviction and prefetching.
    "L1::evict_normal": "usual priority in L1", "L1::evict_unchanged": "leaves the priority in L1 as it is",
    "L1::evict_first": "goes first from L1", "L1::evict_last": "goes last from L1",
    "L1::no_allocate": "takes no room in L1",
    "L2::evict_normal": "usual priority in L2", "L2::evict_first": "goes first from L2",
    "L2::evict_last": "goes last from L2",
    "L2::evict_unchanged": "leaves the priority in L2 as it is",
    "unified": "for memory of one address space with the host",
    # tcgen05.
    "cta_group::1": "one CTA works alone",
    "cta_group::2": "the two CTAs of a pair work together",
    "pack::16b": "two 16-bit columns go into one register",
    "unpack::16b": "the halves of a register go into two columns",
    "fence::before_thread_sync": "orders earlier tcgen05 operations before a later synchronisation",
    "fence::after_thread_sync": "orders later tcgen05 operations after an earlier synchronisation",
    "wait::ld": "waits for tcgen05.ld of this thread", "wait::st": "waits for tcgen05.st of this thread",
    "exclusive": "all columns of tensor memory",
    "kind::f16": "A and B of f16 or bf16", "kind::tf32": "A and B of tf32",
    "kind::f8f6f4": "A and B of 8, 6 or 4 bits, each of its own", "kind::i8": "A and B of 8-bit integers",
    "kind::mxf8f6f4": "A and B of 8, 6 or 4 bits, scaled in blocks of 32",
    "kind::mxf4": "A and B of e2m1, scaled in blocks of 32",
    "kind::mxf4nvf4": "A and B of e2m1, scaled in blocks of 16 or 32",
    "block_scale": "with scale factors", "block16": "a scale factor for 16 elements",
    "block32": "a scale factor for 32 elements",
    "scale_vec::1X": "one scale factor a row", "scale_vec::2X": "two scale factors a row",
    "scale_vec::4X": "four scale factors a row",
    "ashift": "the rows of A are taken one further down",
    "sp": "A is sparse, with metadata", "sp::2:4": "two of four elements are kept",
    "b2": "indices of 2 bits", "sparse:b4": "indices of 4 bits",
    "sparse:b8": "elements of 8 bits", "sparse:b16": "elements of 16 bits",
    "sp::ordered_metadata": "A is sparse, with metadata in increasing order",
    "ws": "weight stationary: B stays in its buffer",
    "tcgen05:down": "moves every row down by one",
    "warpx4": "to the lanes of all four warps", "warpx2::02_13": "to the lanes of warps 0 and 2, and 1 and 3",
    "warpx2::01_23": "to the lanes of warps 0 and 1, and 2 and 3",
    "b8x16": "into 16 bytes", "b6x16_p32": "from 16 elements of 6 bits with 32 bits of padding",
    "b4x16_p64": "from 16 elements of 4 bits with 64 bits of padding",
    # Matrix fragments.
    "row": "row-major", "col": "column-major", "trans": "transposed on the way",
    "xor.popc": "counts the bits of the exclusive or", "and.popc": "counts the bits of the and",
    # Formats.
    "bf16": "16-bit floats with the exponents of f32", "bf16x2": "two bf16 values",
    "f16x2": "two f16 values", "f32x2": "two f32 values", "tf32": "f32 cut to 10 bits of fraction",
    "ue8m0": "powers of two: 8 bits of exponent alone", "ue8m0x2": "two powers of two",
    "ue5m3x2": "two floats without sign, 5 bits of exponent and 3 of fraction",
    "s2f6x2": "two fixed-point numbers of 8 bits, 6 of them behind the point",
    "scaled::n1::ue8m0": "divided by one power of two first",
    "scaled::n2::ue8m0": "with a power of two for each value",
    "a": "operand A", "b": "operand B", "c": "operand C", "d": "operand D",
}  # fmt: skip

PATTERNS: tuple[tuple[str, str], ...] = (
    (r"x(\d+)", "{0} repetitions"),
    (r"v(\d+)", "a vector of {0} elements"),
    (r"(\d)d", "{0} dimensions"),
    (r"a(\d)d", "an array of {0} dimensions"),
    (r"m(\d+)n(\d+)k(\d+)", "M {0}, N {1}, K {2}"),
    (r"m(\d+)n(\d+)", "matrices of {0} by {1}"),
    (r"(\d+)x(\d+)b", "{0} lanes of {1} bits"),
    (r"16x32bx2", "16 lanes of 32 bits, in two halves"),
    (r"e(\d)m(\d)", "floats with {0} bits of exponent and {1} of fraction"),
    (r"e(\d)m(\d)x(\d)", "{2} floats with {0} bits of exponent and {1} of fraction"),
    (r"collector::(\w+)::fill", "fills the collector buffer {0}"),
    (r"collector::(\w+)::use", "uses the collector buffer {0}, which stays"),
    (r"collector::(\w+)::lastuse", "uses the collector buffer {0} for the last time"),
    (r"collector::(\w+)::discard", "does not use the collector buffer {0}"),
    (r"L2::(\d+)B", "brings {0} bytes into L2"),
    (r"L1::(\d+)B", "brings {0} bytes into L1"),
)


def meaning(key: str, field: str, token: str) -> str:
    """What a modifier of a declaration means; "" where nothing is known."""
    family = key.partition(".")[0]
    for name in (f"{key}:{token}", f"{family}:{token}", f"{field}:{token}", token):
        if name in WORDS:
            return WORDS[name]
    for pattern, words in PATTERNS:
        if found := re.fullmatch(pattern, token):
            return words.format(*found.groups())
    kind = TYPES.get(token)
    if kind is None:
        return ""
    words = {"unsigned": "unsigned integers", "signed": "signed integers", "float": "floating-point numbers",
             "bits": "untyped bits", "predicate": "predicates", "packed": "packed values"}  # fmt: skip
    return f"{kind.bits}-bit {words[kind.kind]}" if kind.kind != "predicate" else "predicates"
