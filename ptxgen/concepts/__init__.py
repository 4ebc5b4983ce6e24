"""Concepts behind the instructions: what one is, why it exists, the rule people break, an example, where to read on.

The files `*.toml` beside this one hold them, a room of related concepts in each: `[name]` begins a concept.

- `aliases`: other names that find it. Names and aliases match in any case, with `-`, `_` or a space between words.
- `what`, `why`, `rule`: the definition in at most five lines, the reason, and the rule that people break.
- `picture` (text as it is), `ptx` (legal instructions), `commands` (of ptxgen; a test runs them): examples.
- `sections`: of the PTX ISA 9.2. `instructions`: beginnings of opcodes. `checks`, `layouts`, `facts`, `see`: by name.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """One concept. `room` is the file that holds it; lists are empty where there is nothing to name."""

    name: str
    room: str
    what: str
    why: str
    rule: str
    aliases: tuple[str, ...] = ()
    picture: str = ""
    ptx: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that explains it."""
        return (
            f"ptxgen explain {self.name}" if re.fullmatch(r"[\w.:-]+", self.name) else f"ptxgen explain '{self.name}'"
        )

    def as_dict(self) -> dict[str, str | tuple[str, ...]]:
        """Plain values, for JSON."""
        return asdict(self)


@cache
def concepts() -> dict[str, Concept]:
    """All concepts by name, room by room. Raises ValueError for a field that no concept has."""
    found: dict[str, Concept] = {}
    known = {each.name for each in fields(Concept)} - {"name", "room"}
    for path in sorted(_FOLDER.glob("*.toml")):
        for name, values in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if unknown := values.keys() - known:
                raise ValueError(f"{path.name}: {name} has no field {', '.join(sorted(unknown))}")
            if name in found:
                raise ValueError(f"{path.name}: {name} is in {found[name].room} already")
            texts = {key: each.strip("\n") for key, each in values.items() if isinstance(each, str)}
            lists = {key: tuple(map(str, each)) for key, each in values.items() if isinstance(each, list)}
            lists["ptx"] = tuple(texts.pop("ptx", "").splitlines())
            found[name] = Concept(**{"name": name, "room": path.stem.replace("_", " "), **texts, **lists})
    return found


def normalized(word: str) -> str:
    """A name as it is compared: lower case, words separated by one space, no period in front."""
    return re.sub(r"[\s_-]+", " ", word.strip().lower()).lstrip(".")


@cache
def _names() -> dict[str, Concept]:
    """Concepts by normalized names and aliases; a name counts before an alias."""
    found: dict[str, Concept] = {}
    for each in concepts().values():
        for alias in each.aliases:
            found[normalized(alias)] = each
    return found | {normalized(name): each for name, each in concepts().items()}


def find(word: str) -> Concept | None:
    """The concept that is called so, in the singular or the plural, or None.

    Spaces, hyphens and name spaces in front do not matter: `ping-pong`, `PingPong`, `cutlass::arch::ClusterBarrier`.
    """
    asked = normalized(word)
    found = next((_names()[each] for each in (asked, asked.removesuffix("s"), f"{asked}s") if each in _names()), None)
    if found is not None or re.search(r"[\s.@{\[,;%]", asked.replace(" ", "")):
        return found
    space, _, own = asked.rpartition("::")
    for each in dict.fromkeys((asked, asked if " " in space else own)):
        joined = each.replace(" ", "")
        for spelling in (joined, joined.removesuffix("s")):
            if len(spelling) > 3 and spelling in _joined():
                return _joined()[spelling]
    return None


@cache
def _joined() -> dict[str, Concept]:
    """Concepts by their names and aliases without spaces."""
    return {name.replace(" ", ""): each for name, each in _names().items()}


def names() -> list[str]:
    """Every name and alias, as `find` compares them."""
    return [*_names()]


def search(word: str = "") -> list[Concept]:
    """The concepts whose name or alias contains a word, then those that speak of it; all of them for none."""
    asked = normalized(word)
    named = [each for each in concepts().values() if any(asked in normalized(n) for n in (each.name, *each.aliases))]
    speaks = re.compile(rf"\b{re.escape(asked)}")
    texts = {each.name: normalized(f"{each.what} {each.why} {each.rule}") for each in concepts().values()}
    return named + [each for each in concepts().values() if each not in named and speaks.search(texts[each.name])]


def sharing_words(phrase: str, most: int = 3) -> list[Concept]:
    """The concepts with a name or alias that has most words of a phrase of several words, singular or plural."""
    asked = _words(phrase)
    if len(asked) < 2:
        return []
    shared = {
        each.name: max(len(asked & _words(name)) / len(asked | _words(name)) for name in (each.name, *each.aliases))
        for each in concepts().values()
    }
    best = sorted((name for name in shared if shared[name] >= 1 / 3), key=lambda name: -shared[name])
    return [concepts()[name] for name in best[:most] if shared[name] > shared[best[0]] * 0.7]


#: Words of a question that name nothing.
_SMALL = frozenset(
    ["a", "an", "and", "at", "be", "by", "can", "do", "does", "for", "i", "in", "is", "it", "may", "must", "of", "on",
     "or", "the", "to", "what", "when", "where", "which", "who", "why", "with"]
)  # fmt: skip


def _words(text: str) -> set[str]:
    return {each.removesuffix("s") for each in normalized(text).rstrip("?").split() if each not in _SMALL}


def about(kind: str, name: str) -> list[Concept]:
    """The concepts that name a check, layout or fact, or an instruction whose opcode begins `name`, or begins with it.

    `kind` is "checks", "layouts", "facts" or "instructions". What is called like the instruction comes first.
    """
    found = [each for each in concepts().values() if any(_meets(kind, one, name) for one in getattr(each, kind))]
    return sorted(found, key=lambda each: not f"{name}.".startswith(f"{each.name}."))


def _meets(kind: str, named: str, name: str) -> bool:
    if kind != "instructions":
        return named == name
    return f"{name}.".startswith(f"{named}.") or named.startswith(name)
