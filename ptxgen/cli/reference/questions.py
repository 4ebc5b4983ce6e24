"""Questions in English, read as the command that answers them: `ptxgen explain 'which thread holds row 9, ...'`.

A question about an element names a layout and its place, or what lies there; one about SASS names an instruction. Of
the others the concept that is named first answers. The command is printed before the answer, so that a question which
was read wrongly shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

#: How a question begins, and the words that make one elsewhere.
_BEGINS = re.compile(
    r"(which|what|where|how|who|whose|why|when|does|do|is|are|can|may|must|in which|at which|on which|of which)\b", re.I
)
_ASKS = re.compile(r", (which|what|where|who|whose|how (many|much|large|wide))\b", re.I)
_LEAST_WORDS = 4


def is_question(text: str) -> bool:
    """Whether a text is a question or its words, rather than an instruction or a name."""
    words = text.split()
    return len(words) >= _LEAST_WORDS and (
        bool(_BEGINS.match(text.strip()) or _ASKS.search(text)) or text.rstrip().endswith("?")
    )


def instruction_of(question: str) -> str | None:
    """The instruction or SASS opcode that a question about SASS names, or one that names no concept; else None."""
    about_sass = re.search(r"\bsass\b|\bptxas\b", question, re.I)
    if not about_sass and any(strong for _, strong, _, _ in _named(question, _concept)):
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
    """The concepts that a question names, in the order of its words, names of three words and of code first.

    Of a question that names none those whose text has most of its words.
    """
    found = sorted(_named(question, _concept), key=lambda each: (not each[1], each[0] < _LONG, "::" not in each[3]))
    names = dict.fromkeys(name for _, _, name, _ in found)
    meant = [name for each in (_shape_of(question), *_limits_of(question, names)) if (name := _concept(each))]
    return list(dict.fromkeys([*meant, *names])) or _about(question)


def _shape_of(question: str) -> str:
    """`N of wgmma` in "which N does wgmma take"; else empty."""
    found = re.search(
        r"\b([MNK])\b(?=.*?\b(tcgen05\.mma|wgmma|mma)\b)|\b(tcgen05\.mma|wgmma|mma)\b.*?\b([MNK])\b", question
    )
    asks = re.match(r"(which|what|how large|how big)\b", question, re.I)
    return f"{found[1] or found[4]} of {found[2] or found[3]}" if found and asks else ""


def _limits_of(question: str, names: Iterable[str]) -> list[str]:
    """Names of the limits of what a question names, if it asks for a limit."""
    return [f"{each} limits" for each in names] if _LIMIT.search(question) else []


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
#: Words that ask for a limit of something.
_LIMIT = re.compile(
    r"\b(limits?|max(imum)?|min(imum)?|largest|smallest|biggest|widest|longest|most|least|align\w*|multiples?|rank"
    r"|how (many dimensions|large|wide|big|small))\b", re.I
)  # fmt: skip
#: Words of the longest name, of one that is meant wherever it stands, and letters of a word without its ending.
_LONGEST, _LONG, _STEM = 5, 3, 6
#: Letters of words that may be English.
_OPCODE = 5


def _named(question: str, find: Callable[[str], str | None]) -> Iterator[tuple[int, bool, str, str]]:
    """Each concept that is named: its words, whether it is more than a common word, its name, and the phrase."""
    words = [each.strip("?,;.'\"()").removesuffix("'s") for each in question.split()]
    at = 0
    while at < len(words):
        for length in range(min(_LONGEST, len(words) - at), 0, -1):
            phrase = " ".join(words[at : at + length])
            if len(phrase) > 1 and not _is_small(phrase) and (name := find(phrase)):
                yield len(re.split(r"[\s-]+", phrase)), phrase.lower() not in _COMMON, name, phrase
                at += length - 1
                break
        at += 1


def _is_small(phrase: str) -> bool:
    return bool(_BEGINS.fullmatch(phrase)) or phrase.lower() in ("a", "an", "the", "of", "for", "to", "in", "on", "it")
