"""Classes of instructions, as kernel authors count them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from ptxgen.sass.listing import Instruction

#: (class, opcodes): the first that matches counts. Accesses are split by their width as well (`LDS.128`), MMAs by their
#: opcode (`HMMA`, `IMMA`, `QGMMA`, `UTCOMMA`).
CLASSES: tuple[tuple[str, str], ...] = (
    ("UTCMMA", r"UTC\w*MMA"),
    ("GMMA", r"[A-Z]GMMA"),
    ("MMA", r"[A-Z]MMA"),
    ("UTCCP", r"UTCCP"),
    ("UTCBAR", r"UTCBAR"),
    ("UTMALDG", r"UTMALDG|UBLKCP"),
    ("UTMASTG", r"UTMASTG|UTMAREDG|UBLKRED"),
    ("UTMA other", r"UTMA\w+|UBLK\w+"),
    ("SYNCS", r"SYNCS"),
    ("LDTM", r"LDTM"),
    ("STTM", r"STTM"),
    ("LDSM", r"LDSM|LDMATRIX"),
    ("STSM", r"STSM"),
    ("LDGSTS", r"LDGSTS"),
    ("LDL", r"LDL"),
    ("STL", r"STL"),
    ("LDS", r"LDS"),
    ("STS", r"STS"),
    ("LDG", r"LDG|LD"),
    ("STG", r"STG|ST"),
    ("ATOM", r"ATOM\w*|RED\w*"),
    ("R2UR", r"R2UR"),
    ("BAR", r"BAR|UCGABAR_\w+|B2R"),
    ("WARPSYNC", r"WARPSYNC\w*"),
    ("fence", r"FENCE|MEMBAR|ERRBAR|CGAERRBAR|CCTL\w*|UTMACCTL|DEPBAR|WARPGROUP|WARPGROUPSET"),
    ("convergence", r"BSSY|BSYNC|BREAK|BMOV"),
    ("branch", r"BRA|BRX|JMP|JMX|CALL|RET|EXIT|BRXU|JMXU"),
    ("MUFU", r"MUFU"),
    ("FP32", r"F(?:ADD|MUL|FMA|MNMX|SETP?|SEL|CHK|SWZADD)\w*"),
    ("FP16", r"H(?:ADD2|MUL2|FMA2|MNMX2|SETP?2|SET2)\w*"),
    ("FP64", r"D(?:ADD|MUL|FMA|SETP|MNMX)"),
    ("conversion", r"[FI]2[FIP]\w*|FRND"),
    ("uniform", r"U[A-Z]\w+|R2UP?|S2UR|LDCU"),
    (
        "INT",
        r"I(?:ADD|MAD|SETP|MNMX|ABS|SCADD|LEA)\w*|LEA|LOP3|SHF|SHL|SHR|PRMT|SGXT|BMSK|FLO|POPC|BREV|SEL|VIADD\w*"
        r"|VIMNMX\w*|VABSDIFF\w*|MOV|CS2R|S2R|P2R|R2P|PLOP3|LDC",
    ),
    ("warp", r"VOTE\w*|SHFL|REDUX|MATCH|ELECT|ACQBULK|NANOSLEEP|USETMAXREG|PREEXIT|YIELD|ENDCOLLECTIVE|CREDUX"),
)
_PATTERNS = tuple((name, re.compile(pattern + r"$")) for name, pattern in CLASSES)
#: Classes of MMAs: tcgen05.mma, wgmma, mma.
MMA_GROUPS = ("UTCMMA", "GMMA", "MMA")
#: Names of classes, without widths.
CLASS_NAMES = frozenset(name for name, _ in CLASSES)
#: Classes whose accesses are distinguished by width.
_BY_WIDTH = frozenset({"LDS", "STS", "LDG", "STG", "LDL", "STL"})
#: What `counts` has besides classes.
_UNCLASSED = ("other", "predicated off")
_WIDTH = re.compile(r"U?[S]?(8|16|32|64|128|256)$")


def class_of(each: Instruction) -> str:
    """The class of an instruction, with its width where that counts: `LDS.128`; "other" where none fits."""
    name = _class(each.opcode)
    if name in MMA_GROUPS:
        return each.opcode
    return f"{name}.{width_of(each)}" if name in _BY_WIDTH else name


def mmas(classes: Mapping[str, int], group: str | None = None) -> int:
    """How many MMAs there are among counted classes; of one group (`UTCMMA`, `GMMA`, `MMA`) alone if it is named."""
    return sum(
        count for name, count in classes.items() if (kind := _class(name)) in MMA_GROUPS and group in (None, kind)
    )


def is_class(name: str) -> bool:
    """Whether `counts` may have a class of this name, with or without its width, or a group of MMAs."""
    base, dot, width = name.partition(".")
    if dot:
        return base in _BY_WIDTH and width.isdecimal()
    return name in CLASS_NAMES or name in _UNCLASSED or _class(name) in MMA_GROUPS


def opcode_class(opcode: str) -> str | None:
    """The class that an opcode counts as; None if it has none of its own."""
    found = _class(opcode)
    return None if found in _UNCLASSED else found


@cache
def _class(opcode: str) -> str:
    return next((name for name, pattern in _PATTERNS if pattern.match(opcode)), "other")


def width_of(each: Instruction) -> int:
    """The bits that a load or store moves for each thread: 32 where no modifier says otherwise."""
    for modifier in each.modifiers:
        if match := _WIDTH.match(modifier):
            return int(match[1])
    return 32


def counts(instructions: Iterable[Instruction]) -> Counter[str]:
    """How many instructions there are of each class, and how many have a predicate that is never true."""
    found: Counter[str] = Counter()
    for each in instructions:
        if each.opcode == "NOP":
            continue
        found[class_of(each)] += 1
        if each.predicate in ("@!PT", "@!UPT"):
            found["predicated off"] += 1
    return found
