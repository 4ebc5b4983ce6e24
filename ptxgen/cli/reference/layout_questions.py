"""Questions in English about an element of a layout, read as the words of `ptxgen layout`."""

from __future__ import annotations

import re

Words = list[str]
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
#: A question for LBO or SBO of a descriptor, which the notes of an answer have.
_OFFSETS = re.compile(r"\b(is the (value of the )?|what |which )[ls]bo\b(?! mean)")
_ADDRESS = re.compile(rf"\b(?:address|offset|byte)\s*(?:of|at)?\s*{_NUMBER}")
_TYPES = {
    "f64": 64, "fp64": 64, "tf32": 32, "bf16": 16, "f16": 16, "fp16": 16, "half": 16, "e4m3": 8, "e5m2": 8, "fp8": 8,
    "s8": 8, "u8": 8, "int8": 8, "i8": 8, "s4": 4, "u4": 4, "int4": 4, "b1": 1,
}  # fmt: skip
#: Types of elements as `layout operand` and `layout tma` call them.
_BOXED = ("f16", "bf16", "e4m3", "e5m2", "s8", "u8", "tf32")
_SWIZZLE = r"\b(128b_atom_32b|128b_atom_64b|128b|64b|32b)\b"
#: A number that stands alone, with the word before it; sizes such as 64x128, `.x4`, `m64n8` and `2-CTA` do not.
_ALONE = re.compile(
    r"(?<![\w.:])(?:([a-z_]+)\s*=?\s*)?(?<![\w.:])(0x[0-9a-f]+|\d+)(?![\w.:]|-\w|\s?(?:ctas?|sm)\b|\s?x\s?\d)"
)
#: Where something begins in tensor memory: `begins at column 128`, `base address 0x200080`.
_BASE = re.compile(
    rf"\b(?:(?:that |which |and |it )*(?:begins?|starts?|lies|allocated)(?: at| from| in)?|base)"
    rf"(?: (?:tmem |tensor[ -]memory )?(?:address|columns?))?\s*(?:=|of|at)?\s*{_NUMBER}"
)
_BASED = ("accumulator", "ld", "a", "metadata", "cp", "scales")
#: Formats of scales by their names in questions, where `layout scales` has another.
_FORMATS = {"mxf8": "mxfp8", "mxf6": "mxfp6"}


def layout_command(question: str) -> Words | None:
    """The words of `ptxgen layout` that answer a question about an element; None where it names no layout or place."""
    text = _plain(question)
    for read in _READERS:
        words = read(text)
        if words is None:
            continue
        begins = _BASE.search(text) if words[0] in _BASED else None
        place = _place(words, _counted(words, text if begins is None else text.replace(begins[0], "")))
        return [*words, *([f"base={begins[1]}"] if begins else []), *place] if place else None
    return None


def unread(question: str, words: Words) -> list[str]:
    """The numbers of a question that its command lacks, with the word before each: `matrix 3`."""
    used = {int(each) for word in words for each in re.findall(r"\d+", re.sub(r"0x[0-9a-f]+", _decimal, word))}
    if words[0] == "scales" and (along := next((word[6:] for word in words if word.startswith("along=")), "")):
        format = next(word[5:] for word in words if word.startswith("type="))
        used |= {*range((int(along) - 1) * _block(format) + 1, int(along) * _block(format) + 1)}  # K of the matrix
    return [
        " ".join(filter(None, found.groups()))
        for found in _ALONE.finditer(_counted(words, _plain(question)))
        if int(found[2], 0) not in used
    ]


def _decimal(found: re.Match[str]) -> str:
    return str(int(found[0], 16))


def _plain(question: str) -> str:
    return re.sub(r"\s+", " ", question.lower()).replace("×", "x").rstrip("? ")


def _counted(words: Words, text: str) -> str:
    """A question whose rows and scales are counted as its layout does.

    ldmatrix and stmatrix count rows through all their matrices, scales are those of blocks of K.
    """
    if words[0] == "fragment" and words[1] in ("of=ldmatrix", "of=stmatrix"):
        matrix, row = re.search(rf"\bmatrix\s*{_NUMBER}", text), re.search(rf"\brow\s*{_NUMBER}", text)
        if matrix and row:
            text = text.replace(matrix[0], "matrix").replace(row[0], f"row {8 * int(matrix[1], 0) + int(row[1], 0)}")
    if words[0] == "scales" and not re.search(rf"\bscales?\s*{_NUMBER}", text):
        size = _block(next((each[5:] for each in words if each.startswith("type=")), "nvfp4"))
        text = re.sub(
            rf"\bk[ -]?block\s*{_NUMBER}|\bblock\s*{_NUMBER}(?: of k)?", lambda it: f"scale {it[1] or it[2]}", text
        )
        text = re.sub(rf"\bk\s*=?\s*{_NUMBER}", lambda it: f"scale {int(it[1], 0) // size}", text)
    return text


def _block(format: str) -> int:
    """Elements of K that share a scale."""
    from ptxgen.pictures.points.tensor import FORMATS

    return FORMATS[format][0]


def _place(words: Words, text: str) -> Words:
    """`at=`, or what lies at a thread and register, or at an address."""
    kind = words[0]
    if kind == "pitch" or (
        kind == "scales"
        and any(each.startswith("along=") for each in words)
        and not re.search(rf"\brows?\s*{_NUMBER}", text)
    ):
        return ["at=0,0"] if kind == "scales" else ["access=matrix" if "matrix" in text else "access=column"]
    if kind == "operand" and _OFFSETS.search(text):  # whose numbers are sizes
        return ["at=0,0"]
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
    if kind == "fragment" and (found := re.search(rf"\b(row|column)\s*{_NUMBER}", text)):
        is_of_rows = re.search(r"-metadata$|-scale-[ab]$", words[1])  # of B the column n
        return [f"{'row' if is_of_rows else found[1]}={found[2]}"]
    # The notes of an answer say how many columns or bytes there are.
    asked = {"accumulator": r"\bcolumns\b", "tma": r"\bbytes\b"}
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
    format = re.search(r"\b(nvfp4|mxfp4|mxfp6|mxfp8|mxf4nvf4|mxf8f6f4|mxf4|mxf8|mxf6)\b", text)
    named = _FORMATS.get(format[1], format[1]) if format else ""
    words = ["scales", *([f"type={named}"] if named else [])]
    tile = re.search(r"\b(\d+)\s?x\s?(\d+)\b", text)
    if tile and named and re.search(r"\bbytes\b|\bsize\b|\bhow (large|big)\b", text):
        return [*words, f"rows={tile[1]}", f"along={-(-int(tile[2]) // _block(named))}"]
    k = re.search(rf"\bk\s*(?:=|of)?\s*{_NUMBER}", text)
    if k and named and re.search(rf"\bscales?\s*{_NUMBER}", text):  # the matrix's
        words += [f"along={-(-int(k[1], 0) // _block(named))}"]
    if _is_pair(text):
        whose = "b" if re.search(r"\bsfb\b|\bof b\b", text) else "a"
        m = re.search(r"\bm\s*=?\s*(128|256)\b", text)
        words += [f"of={whose}", "cta_group=2", *([f"m={m[1]}"] if m else [])]
    return words


def _scale_registers(text: str) -> Words | None:
    """Scales of mma.sync, which registers hold."""
    if not re.search(r"\bsf[ab]?\b|\bscales?\b|\bscale[ -]factors?\b", text) or not re.search(
        r"mma\.sync|sm_12\d", text
    ):
        return None
    vector = re.search(r"\b([124])x\b", text)
    several = vector[1] if vector else "4" if re.search(r"nvfp4|mxf4nvf4", text) else "2" if "mxf4" in text else "1"
    whose = "b" if re.search(r"\bsfb\b|\bof b\b|\bcolumn\b", text) else "a"
    ids = [
        f"{name}_id={found[1]}"
        for name in ("byte", "thread")
        if (found := re.search(rf"\b{name}[ -_]?id\s*=?\s*(\d)", text))
    ]
    return ["fragment", f"of=mma-scale-{whose}", f"scales={several}", *ids]


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
    found = re.search(r"\bm64n(\d+)(?:k\d+)?\b", text)
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
        r"\bm\s*=?\s*(\d+)(?:,| and|, and)?\s*n\s*=?\s*(\d+)", text
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
    words = ["operand", "k" if major[1] == "k" else "mn", swizzle, *([f"type={type}"] if type in _BOXED else [])]
    return [*words, *_sizes(text)] if _OFFSETS.search(text) or _PAIR.search(text) else words


def _sizes(text: str) -> Words:
    """The rows and K of a tile, in a question whose element is in brackets, or that is about none."""
    both = re.search(r"\b(\d+)\s?x\s?(\d+)\b", text)
    rows = both or re.search(r"\b[mn]\s*(?:=|of)?\s*(\d+)\b", text)
    k = re.search(r"\bk\s*(?:=|of)?\s*(\d+)\b", text)
    return [
        *([f"rows={rows[1]}"] if rows else []),
        *([f"k={both[2]}"] if both else [f"k={k[1]}"] if k else []),
    ]


def _pitch(text: str) -> Words | None:
    """Bank conflicts of rows of so many bytes."""
    found = re.search(
        r"\b(?:rows? of|pitch(?: of)?|stride of)\s*(\d+)\s*bytes?\b|\b(\d+)[ -]byte (?:rows|pitch)\b", text
    )
    if found is None or not re.search(r"conflict|\bbanks?\b|\bwavefronts?\b", text):
        return None
    pitch = int(found[1] or found[2])
    return ["pitch", f"bytes={pitch // 64 * 64 or pitch // 16 * 16}", f"pitch={pitch}"]


def _swizzle(text: str) -> Words | None:
    mode = re.search(_SWIZZLE, text)
    if mode is None or "swizzl" not in text:
        return None
    type = next((each for each in _TYPES if each in _BOXED and re.search(rf"\b{each}\b", text)), "")
    if type and not re.search(rf"\bbytes?\s*{_NUMBER}", text):  # elements, so rows of K
        return ["operand", "k", _mode(mode[1]), f"type={type}"]
    return ["swizzle", _mode(mode[1])]


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
    _pitch, _copied, _moved, _metadata, _scale_registers, _scales, _addresses, _matrices, _warpgroup, _warp,
    _accumulator, _operand, _box, _swizzle,
)  # fmt: skip
