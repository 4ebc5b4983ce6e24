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
    "cc": "writes the carry flag",
    # Comparisons.
    "eq": "equal", "ne": "not equal", "lt": "less", "le": "less or equal", "gt": "greater", "ge": "greater or equal",
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
    # tcgen05.
    "cta_group::1": "one CTA works alone",
    "cta_group::2": "the two CTAs of a pair work together",
    "pack::16b": "two 16-bit columns go into one register",
    "unpack::16b": "the halves of a register go into two columns",
    "before_thread_sync": "orders earlier tcgen05 operations before a later synchronisation",
    "after_thread_sync": "orders later tcgen05 operations after an earlier synchronisation",
}  # fmt: skip

PATTERNS: tuple[tuple[str, str], ...] = (
    (r"x(\d+)", "{0} repetitions"),
    (r"v(\d+)", "a vector of {0} elements"),
    (r"(\d)d", "{0} dimensions"),
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
