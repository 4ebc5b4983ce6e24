"""Questions in English, read as the command that answers them: `ptxgen explain 'which thread holds row 9, ...'`.

A question about an element names a layout and its place, or what lies there; one about SASS names an instruction. Of
the others the concept that is named first answers. The command is printed before the answer, so that a question which
was read wrongly shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Words = list[str]
#: How a question begins.
_BEGINS = re.compile(
    r"(which|what|where|how|who|whose|why|when|does|do|is|are|can|may|must|in which|at which|on which|of which)\b", re.I
)
_LEAST_WORDS = 4
_NUMBER = r"(0x[0-9a-f]+|\d+)"
#: `row 9, column 4`, `lane 3 and column 5`, `m 37, k 13`, `scale 5 of row 37`.
_ROW = rf"\b(?:rows?|lane|line|m|n|pixel)\s*=?\s*{_NUMBER}"
_COLUMN = rf"\b(?:columns?|col|k|n|bytes?|scales?|chunk)\s*=?\s*{_NUMBER}"
_ROW_COLUMN = re.compile(rf"{_ROW}\s*(?:,\s*and|,|and|of|at|in)?\s*{_COLUMN}")
_COLUMN_ROW = re.compile(rf"{_COLUMN}\s*(?:,\s*and|,|and|of|at|in)\s*{_ROW}")
_PAIR = re.compile(rf"[\[(]\s*{_NUMBER}\s*,\s*{_NUMBER}\s*[\])]|\belement\s+{_NUMBER}\s*,\s*{_NUMBER}")
_REGISTER = re.compile(
    rf"\bthread\s*{_NUMBER}\b.*?\bregister\s*{_NUMBER}|\bregister\s*{_NUMBER}\s*of\s*thread\s*{_NUMBER}"
)
_ADDRESS = re.compile(rf"\b(?:address|offset|byte)\s*(?:of|at)?\s*{_NUMBER}")
_TYPES = {
    "f64": 64, "fp64": 64, "tf32": 32, "bf16": 16, "f16": 16, "fp16": 16, "half": 16, "e4m3": 8, "e5m2": 8, "fp8": 8,
    "s8": 8, "u8": 8, "int8": 8, "i8": 8, "s4": 4, "u4": 4, "int4": 4, "b1": 1,
}  # fmt: skip
#: Types of elements as `layout operand` and `layout tma` call them.
_BOXED = ("f16", "bf16", "e4m3", "e5m2", "s8", "u8", "tf32")
_SWIZZLE = r"\b(128b_atom_32b|128b_atom_64b|128b|64b|32b)\b"


def is_question(text: str) -> bool:
    """Whether a text is a question or its words, rather than an instruction or a name."""
    words = text.split()
    return len(words) >= _LEAST_WORDS and (bool(_BEGINS.match(text.strip())) or text.rstrip().endswith("?"))


def layout_command(question: str) -> Words | None:
    """The words of `ptxgen layout` that answer a question about an element; None where it names no layout or place."""
    text = re.sub(r"\s+", " ", question.lower()).replace("×", "x").rstrip("? ")
    for read in _READERS:
        words = read(text)
        if words is None:
            continue
        place = _place(words[0], text)
        return [*words, *place] if place else None
    return None


def _place(kind: str, text: str) -> Words:
    """`at=`, or what lies at a thread and register, or at an address."""
    if found := _REGISTER.search(text):
        thread, register = (found[1], found[2]) if found[1] else (found[4], found[3])
        return [f"thread={thread}", f"register={register}"]
    if kind == "row-addresses":
        matrix, row = re.search(rf"\bmatrix\s*{_NUMBER}", text), re.search(_ROW, text)
        thread = re.search(rf"\bthread\s*{_NUMBER}", text)
        if matrix and row:
            return [f"at={matrix[1]},{row[1]}"]
        return [f"thread={thread[1]}"] if thread else []
    if found := _ROW_COLUMN.search(text):
        return [f"at={found[1]},{found[2]}"]
    if found := _COLUMN_ROW.search(text):
        return [f"at={found[2]},{found[1]}"]
    if found := _PAIR.search(text):
        return [f"at={found[1] or found[3]},{found[2] or found[4]}"]
    if kind in ("operand", "swizzle", "scales") and (found := _ADDRESS.search(text)):
        return [f"{'global_offset' if kind == 'scales' else 'address'}={found[1]}"]
    if kind == "accumulator" and (found := re.search(_ROW, text)):
        return [f"at={found[1]},0"]
    # The notes of an answer say how many columns or bytes there are, or the offsets of the descriptor.
    asked = {"accumulator": r"\bcolumns\b", "tma": r"\bbytes\b", "operand": r"\bis the (value of the )?[ls]bo\b"}
    return ["at=0,0"] if kind in asked and re.search(asked[kind], text) else []


def _copied(text: str) -> Words | None:
    found = re.search(r"\b(32x128b|64x128b|128x128b|128x256b|4x256b)\b", text)
    if found is None:
        return None
    multicast = re.search(r"warpx2::\d\d_\d\d", text)
    return ["cp", found[1], *([f"multicast={multicast[0]}"] if multicast else [])]


def _moved(text: str) -> Words | None:
    found = re.search(r"\b(16x64b|16x128b|16x256b|32x32b|16x32bx2)(?:\b|\.)", text)
    if found is None:
        return None
    number = re.search(r"[.\s]x(\d+)\b", text)
    packed = re.search(r"\b(un)?pack", text)
    return ["ld", found[1], *([f"num={number[1]}"] if number else []), *(["pack"] if packed else [])]


def _scales(text: str) -> Words | None:
    """Scales of tcgen05.mma, of a CTA or a pair."""
    if not re.search(r"\bsf[ab]?\b|\bscales?\b|\bscale[ -]factors?\b", text) or "mma.sync" in text or "sm_120" in text:
        return None
    format = re.search(r"\b(nvfp4|mxfp4|mxfp6|mxfp8|mxf4nvf4|mxf8f6f4|mxf4)\b", text)
    words = ["scales", *([f"type={format[1]}"] if format else [])]
    if _is_pair(text):
        whose = "b" if re.search(r"\bsfb\b|\bof b\b", text) else "a"
        m = re.search(r"\bm\s*=?\s*(128|256)\b", text)
        words += [f"of={whose}", "cta_group=2", *([f"m={m[1]}"] if m else [])]
    return words


def _metadata(text: str) -> Words | None:
    """The metadata of a sparse A, in registers or in tensor memory."""
    if "metadata" not in text:
        return None
    if "tcgen05" in text or "tmem" in text or "tensor memory" in text:
        kind = re.search(r"\bkind::(\w+)", text)
        return ["metadata", *([f"kind={kind[1]}"] if kind else [])]
    shape = re.search(r"\bm(?:16|64)n\d+k(\d+)\b", text)
    of = "wgmma" if "wgmma" in text or "m64n" in text else "mma"
    selector = re.search(r"\bselector\s*(\d)", text)
    words = ["fragment", f"of={of}-metadata", *_bits(text), *([f"k={shape[1]}"] if shape else [])]
    return [*words, *([f"selector={selector[1]}"] if selector else [])]


def _addresses(text: str) -> Words | None:
    """Which thread of ldmatrix or stmatrix supplies which address."""
    found = re.search(r"\b(ldmatrix|stmatrix)\b", text)
    if found is None or "address" not in text:
        return None
    number = re.search(r"[.\s]x(\d)\b", text)
    return ["row-addresses", f"of={found[1]}", *([f"num={number[1]}"] if number else [])]


def _box(text: str) -> Words | None:
    """A box of TMA, by its extents, innermost first."""
    found = re.search(r"\b(\d+(?:x\d+)+)\b", text)
    if found is None or not re.search(r"\bbox|expect_tx", text):
        return None
    type = next((each for each in _TYPES if each in _BOXED and re.search(rf"\b{each}\b", text)), "")
    mode = re.search(_SWIZZLE, text)
    return ["tma", f"box={found[1]}", *([f"type={type}"] if type else []), _mode(mode[1]) if mode else "none"]


def _matrices(text: str) -> Words | None:
    found = re.search(r"\b(ldmatrix|stmatrix)\b", text)
    if found is None:
        return None
    number = re.search(r"[.\s]x(\d)\b", text)
    trans = [] if "trans" not in text else ["trans"]
    return ["fragment", f"of={found[1]}", *([f"num={number[1]}"] if number else []), *trans]


def _warpgroup(text: str) -> Words | None:
    found = re.search(r"\bm64n(\d+)k(\d+)\b", text)
    if found is None and not re.search(r"\bw?gmma\b", text):
        return None
    if _letter(text) == "a":
        return ["fragment", "of=wgmma-a", *_bits(text)]
    n = found[1] if found else next(iter(re.findall(r"\bn\s*=?\s*(\d+)\b|\b64x(\d+)\b", text)), ("", ""))
    n = n if isinstance(n, str) else n[0] or n[1]
    return ["fragment", "of=wgmma-d", *([f"n={n}"] if n else [])]


def _warp(text: str) -> Words | None:
    """mma.sync: its operand, type and K."""
    found = re.search(r"\bm(16|8)n8k(\d+)\b", text)
    if found is None and "mma.sync" not in text:
        return None
    letter = _letter(text)
    if letter in ("a", "b"):
        return ["fragment", f"of=mma-{letter}", *_bits(text), *([f"k={found[2]}"] if found else [])]
    return ["fragment", "of=mma-d", *(["bits=64"] if "f64" in text else [])]


def _accumulator(text: str) -> Words | None:
    if not re.search(r"\baccumulator|\bd\b", text) or re.search(r"mma\.sync|wgmma", text):
        return None
    shape = re.search(r"\b(32|64|128|256)\s?x\s?(\d+)\b", text) or re.search(
        r"\bm\s*=?\s*(\d+),?\s*n\s*=?\s*(\d+)", text
    )
    alone = re.search(r"\bm\s*=?\s*(32|64|128|256)\b", text)
    if shape is None and alone is None:
        return None
    pair, stationary = ["cta_group=2"] * _is_pair(text), ["ws"] * bool(re.search(r"\.ws\b|weight.stationary", text))
    sizes = [f"m={shape[1] or shape[3]}", f"n={shape[2] or shape[4]}"] if shape else [f"m={alone[1]}"] if alone else []
    return ["accumulator", *sizes, *pair, *stationary]


def _operand(text: str) -> Words | None:
    major = re.search(r"\b(k|mn|m|n)[ -]major\b", text)
    if major is None:
        return None
    mode = re.search(_SWIZZLE, text)
    swizzle = _mode(mode[1]) if mode else "none" if re.search(r"\b(no|without) swizzle|unswizzled", text) else "128B"
    type = next((each for each in _TYPES if re.search(rf"\b{each}\b", text)), "")
    return ["operand", "k" if major[1] == "k" else "mn", swizzle, *([f"type={type}"] if type in _BOXED else [])]


def _swizzle(text: str) -> Words | None:
    mode = re.search(_SWIZZLE, text)
    return ["swizzle", _mode(mode[1])] if mode and "swizzl" in text else None


def _mode(word: str) -> str:
    return "_".join(each if each == "atom" else each.upper() for each in word.split("_"))


def _is_pair(text: str) -> bool:
    return bool(re.search(r"\bpair\b|cta_group(::|=| )2|\b2[ -]?ctas?\b|\b2[ -]?sm\b|\btwo ctas\b", text))


def _letter(text: str) -> str:
    """The operand that a question names: `of A`, `A[9, 12]`, `the B fragment`; the accumulator by default."""
    found = re.search(
        r"\b([abcd])\s?[\[(]|\b(?:of|operand|matrix)\s([abcd])\b|\b([abcd])[ -](?:fragment|operand)", text
    )
    return next(filter(None, found.groups())) if found else "d"


def _bits(text: str) -> Words:
    return next(([f"bits={bits}"] for name, bits in _TYPES.items() if re.search(rf"\b{name}\b", text)), [])


#: What reads a question as a layout, those of names that say most first.
_READERS = (
    _copied, _moved, _metadata, _scales, _addresses, _matrices, _warpgroup, _warp, _accumulator, _operand, _box,
    _swizzle,
)  # fmt: skip


def instruction_of(question: str) -> str | None:
    """The instruction or SASS opcode that a question about SASS names, or one that names no concept; else None."""
    about_sass = re.search(r"\bsass\b|\bptxas\b", question, re.I)
    if not about_sass and any(strong for _, strong, _ in _named(question, _concept)):
        return None
    from ptxgen.cli.reference.find import search
    from ptxgen.instr.model.recognize import candidates
    from ptxgen.sass.index import sources

    for word in (each.strip("?,;.'\"") for each in question.split()):
        if (
            re.fullmatch(r"[A-Z][A-Z0-9.]{2,}", word)
            and word not in ("SASS", "PTX")
            and sources(word.partition(".")[0])
        ):
            return word.partition(".")[0]
        # Words of English that are or begin opcodes (`call`, `add`) are no names of instructions without a modifier.
        if "." not in word and (not about_sass or len(word) <= _OPCODE):
            continue
        if candidates(word):
            return word
        if (found := search(word)) is not None and not found.meant:
            return next((spelled for each in found for spelled in each.spellings), None) if about_sass else word
    return None


def named_concepts(question: str) -> list[str]:
    """The concepts that a question names, in the order of its words, names of three words first.

    Of a question that names none those whose text has most of its words.
    """
    found = sorted(_named(question, _concept), key=lambda each: (not each[1], each[0] < _LONG))
    return list(dict.fromkeys(name for _, _, name in found)) or _about(question)


def _concept(phrase: str) -> str | None:
    from ptxgen import concepts

    found = concepts.find(phrase)
    return None if found is None else found.name


def _about(question: str) -> list[str]:
    """The concepts with at least two of a question's words in their text, that with most first."""
    from ptxgen import concepts

    stems = {each.strip("?,;.'\"()").lower()[:_STEM] for each in question.split() if len(each) >= _STEM}
    shared = {
        each.name: sum(stem in " ".join((each.name, *each.aliases, each.what, each.rule)).lower() for stem in stems)
        for each in concepts.concepts().values()
    }
    best = sorted((name for name in shared if shared[name] > 1), key=lambda name: -shared[name])
    return best[:3]


#: Words of questions that name a concept only together with others.
_COMMON = frozenset(
    ["wait", "waits", "load", "loads", "store", "stores", "row", "column", "columns", "byte", "bytes", "bank", "thread",
     "threads", "register", "registers", "fill", "move", "moves", "arrive", "leader", "split", "order", "target",
     "lane", "lanes", "warp", "warps", "name", "names", "mean", "means", "return", "call", "copy", "use", "tail",
     "scope", "shift"]
)  # fmt: skip
#: Words of the longest name, of one that is meant wherever it stands, and letters of a word without its ending.
_LONGEST, _LONG, _STEM = 5, 3, 6
#: Letters of words that may be English.
_OPCODE = 5


def _named(question: str, find: Callable[[str], str | None]) -> Iterator[tuple[int, bool, str]]:
    """Each concept that is named: its words, whether it is more than a word that is common in questions, its name."""
    words = [each.strip("?,;.'\"()").removesuffix("'s") for each in question.split()]
    at = 0
    while at < len(words):
        for length in range(min(_LONGEST, len(words) - at), 0, -1):
            phrase = " ".join(words[at : at + length])
            if len(phrase) > 1 and not _is_small(phrase) and (name := find(phrase)):
                yield len(re.split(r"[\s-]+", phrase)), phrase.lower() not in _COMMON, name
                at += length - 1
                break
        at += 1


def _is_small(phrase: str) -> bool:
    return bool(_BEGINS.fullmatch(phrase)) or phrase.lower() in ("a", "an", "the", "of", "for", "to", "in", "on", "it")
