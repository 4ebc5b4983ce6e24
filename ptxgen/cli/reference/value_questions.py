"""Questions in English about the bits of a format, read as the words of `ptxgen explain FORMAT`."""

from __future__ import annotations

import re

Words = list[str]
#: Formats by the names that questions have for them.
_FORMATS = {
    "idesc": r"instruction[ -]descriptor|\bidesc\b|instrdescriptor",
    "wgmma": (
        r"\bwgmma\b.*descriptor|descriptor.*\bwgmma\b|gmmadescriptor|"
        r"\bswizzle mode\b.*\b(code|encod\w*|value)\b.*\bwgmma\b"
    ),
    "smem": (
        r"(matrix|shared[ -]memory|smem|tcgen05|umma)[ -]+(matrix |smem )?descriptor|smemdescriptor|descriptor.*tcgen05"
    ),
    "policy": r"cache[ -](policy|hint)",
    "zero-mask": r"zero[ -]column[ -]mask",
}
_FIELDS = (
    r"\b(which|what) (bits?|bytes?)\b|\bbits? (of|in)\b|\b(code|encoding|value) (of|for)\b|\bencod|"
    r"\bwhere is\b.*\bin the\b"
)
#: Types of elements by their names; names of descriptors are the same but for these.
_TYPES = {"fp16": "f16", "half": "f16", "fp32": "f32", "float": "f32", "int8": "s8", "uint8": "u8", "i8": "s8"}
_ELEMENTS = r"\b(bf16|f16|fp16|half|tf32|e4m3|e5m2|e2m3|e3m2|e2m1|s8|u8|int8|uint8)\b"


def value_command(question: str) -> Words | None:
    """The words of `ptxgen explain` that list a format's bits, or make an instruction descriptor; None for others."""
    text = re.sub(r"\s+", " ", question.lower()).rstrip("? ")
    if address := re.search(r"\b(?:tmem|tensor[ -]memory) address\s*(?:of |is |=)?\s*(0x[0-9a-f]+)", text):
        return ["tmem", address[1]]
    format = next((name for name, pattern in _FORMATS.items() if re.search(pattern, text)), None)
    if format is None:
        return None
    if format == "idesc" and (words := _instruction(text)):
        return words
    if format in ("smem", "wgmma") and (words := _matrix(text)):
        return [format, *words]
    return [format, "fields"] if re.search(_FIELDS, text) else None


def _matrix(text: str) -> Words:
    """The fields of a matrix descriptor; empty unless a question has an address and SBO."""
    number = r"\s*(?:=|of|is|at)?\s*(0x[0-9a-f]+|\d+)"
    found = {
        name: match[1]
        for name, word in {"address": r"\b(?:address|at)", "lbo": r"\blbo", "sbo": r"\bsbo"}.items()
        if (match := re.search(word + number, text))
    }
    mode = re.search(r"\b(128b|64b|32b)\b", text)
    if not {"address", "sbo"} <= found.keys():
        return []
    swizzle = mode[1].replace("b", "B") if mode else "none"
    return [*(f"{name}={value}" for name, value in found.items()), f"swizzle={swizzle}"]


def _instruction(text: str) -> Words:
    """The fields of an instruction descriptor; empty unless a question has M, N and a type."""
    shape = re.search(r"\b(\d+)\s?x\s?(\d+)\b", text)
    m, n = re.search(r"\bm\s*=?\s*(\d+)", text), re.search(r"\bn\s*=?\s*(\d+)", text)
    sizes = (m[1], n[1]) if m and n else shape.groups() if shape else ()
    types = [_TYPES.get(each, each) for each in re.findall(_ELEMENTS, text)]
    if not sizes or not types:
        return []
    kind = re.search(r"\bkind::(\w+)", text)
    scale = re.search(r"\b(ue4m3|ue8m0)\b", text)
    scaled = scale[1] if scale else {"mxf8f6f4": "ue8m0", "mxf4": "ue8m0"}.get(kind[1] if kind else "", "")
    total = re.search(r"\b(f32|fp32|f16|fp16|s32)\b(?= (accumul|d\b|result|sums?))|\bd\s*=?\s*(f32|f16|s32)\b", text)
    given = next(filter(None, total.groups()), "") if total else ""
    d_type = _TYPES.get(given, given) or ("s32" if types[0] in ("s8", "u8") else "f32")
    pair = re.search(r"cta_group(::|=| )2|\bpair\b|\b2[ -]?(ctas?|sm)\b", text)
    majors = [
        f"{each}_major=mn"
        for each in "ab"
        if re.search(rf"\b{each}\b (is |of |being )?(mn|{'m' if each == 'a' else 'n'})[ -]major", text)
    ]
    return [
        "idesc", f"m={sizes[0]}", f"n={sizes[1]}", f"a={types[0]}", f"b={types[min(1, len(types) - 1)]}",
        f"sf={scaled}" if scaled else f"d={d_type}", *majors,
        *([f"kind={kind[1]}"] if kind else []), *(["cta_group=2"] if pair else []),
    ]  # fmt: skip
