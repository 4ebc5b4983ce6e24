"""The kernels by name: rungs of the ladders in `ladder.toml` files, each the difference to the rung it comes from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from ptxgen.builder import KERNELS_FOLDER, Template
from ptxgen.descriptors.instruction import SCALED_KINDS
from ptxgen.gemm.config import GemmConfig, as_text, values_of
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.plan import Design, GemmPlan
from ptxgen.gemm.scales import ScaledType
from ptxgen.gemm.types import OUTPUTS, PLAIN_INPUTS, QUANTIZED_OUTPUTS, SCALED_INPUTS

_LADDER = "ladder.toml"
#: What an entry of a ladder may have, and of which type.
_RUNG_KEYS: dict[str, type] = {
    **dict.fromkeys(("name", "id", "from", "template", "summary", "article", "ours"), str),
    **dict.fromkeys(("set", "large"), dict),
}
_TEMPLATE_KEYS: dict[str, type] = {"target": str, "design": str, "options": list}
_FILE_KEYS: dict[str, type] = {"rung": list, "templates": dict}
_TOML_WORDS: dict[type, str] = {str: "text", list: "a list", dict: "a table"}
#: A problem is large where M, N and K are all at least this (the MXFP8 article's figure).
LARGE = 8192


@dataclass(frozen=True)
class KernelEntry:
    """A kernel by name. `options` are those that its template takes, `defaults` what differs from the config's own.

    `parent` is the rung that it comes from, `changes` its difference, `article` and `ours` who chose what. `large` has
    what the defaults are instead for problems whose M, N and K are all at least `LARGE`.
    """

    name: str
    rungs: tuple[str, ...]
    summary: str
    target: str
    template: Template
    design: Design
    options: tuple[str, ...]
    defaults: dict[str, Any]
    parent: str
    changes: dict[str, Any]
    article: str = ""
    ours: str = ""
    folder: Path | None = None
    large: dict[str, Any] = field(default_factory=dict)

    @property
    def format(self) -> tuple[ScaledType, ScaledType] | None:
        """A's and B's types with their scales, unless options change them; None without scales."""
        return GemmConfig(**self.defaults).scaled

    def plan_for(self, m: int, n: int, k: int, **choices: Any) -> GemmPlan:
        """The plan for a problem: with the rung's choices for large ones, if it is. Raises PlanError."""
        return self.plan(**{**self.choices_for(m, n, k), **choices})

    def choices_for(self, m: int, n: int, k: int) -> dict[str, Any]:
        """What the rung chooses otherwise for a problem: `large`, if it is."""
        return self.large if min(m, n, k) >= LARGE else {}

    def unnamed(self, **choices: Any) -> GemmPlan:
        """The plan of a config without a name and settings, which its text ends with. Raises PlanError."""
        unknown = [name for name in choices if name not in self.options]
        if unknown:
            words = f"option{'s' * (len(unknown) > 1)} {', '.join(unknown)}"
            raise PlanError(f"{self.name} has no {words}; it takes {', '.join(self.options)}")
        config = GemmConfig(**{**self.defaults, **choices})
        if "kind" in self.options and not config.kind:
            raise PlanError(f"{self.name} multiplies operands with scales: kind must be {', '.join(SCALED_KINDS)}")
        return GemmPlan.of(config, self.template, design=self.design, target=self.target)

    def plan(self, **choices: Any) -> GemmPlan:
        """The plan of a config: the rung's defaults with other choices. Raises PlanError."""
        made = self.unnamed(**choices)
        config = made.config
        chosen = config.chosen()
        # An option that is the config's default is not among those, but may differ from the rung's own.
        more = [each for each in self.settings(config) if each not in chosen]
        name = f"{self.folder}#{self.name}" if self.folder else self.name
        return replace(made, name=name, settings=(*chosen, *more))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The types of A and B that the kernel may have."""
        return SCALED_INPUTS if "kind" in self.options else PLAIN_INPUTS

    @property
    def c_dtypes(self) -> tuple[str, ...]:
        """The types of C that the kernel may have."""
        scaled = (*(name for name in OUTPUTS if name != "s32"), *QUANTIZED_OUTPUTS)
        return scaled if "kind" in self.options else OUTPUTS

    def settings(self, config: GemmConfig) -> list[str]:
        """What differs from the rung's own options, as `--set` takes it: `plan` makes the same config of it."""
        values = [(each.name, getattr(config, each.name), each.default) for each in fields(GemmConfig)]
        return [
            f"{name}={as_text(value)}"
            for name, value, default in values
            if name in self.options and value != self.defaults.get(name, default)
        ]

    def described(self) -> dict[str, dict[str, Any]]:
        """The options: default, choices or range (first, last, step), and help."""
        found: dict[str, dict[str, Any]] = {}
        for each in fields(GemmConfig):
            if each.name not in self.options:
                continue
            made: dict[str, Any] = {"default": self.defaults.get(each.name, each.default)}
            made.update({key: list(values) for key, values in values_of(each, self.target).items()})
            if each.name in ("dtype", "b_dtype", "c_dtype"):
                known = self.dtypes if each.name != "c_dtype" else self.c_dtypes
                made["choices"] = [name for name in made["choices"] if not name or name in known]
            found[each.name] = {**made, "help": each.metadata["help"]}
        return found


@cache
def kernels() -> dict[str, KernelEntry]:
    """The packaged kernels by name, in the order of the ladders."""
    found: dict[str, KernelEntry] = {}
    for path in sorted(KERNELS_FOLDER.glob(f"*/{_LADDER}")):
        found.update(read_ladder(path, found))
    return found


def read_ladder(path: Path, known: dict[str, KernelEntry], folder: Path | None = None) -> dict[str, KernelEntry]:
    """The rungs of a file; `known` are those that they may come from, `folder` has their templates.

    Raises PlanError for a file that cannot be read and for an entry that makes no sense.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"cannot read {path}: {error}") from None
    _require_keys(path, "the file", content, "a ladder", _FILE_KEYS)
    templates, found = content.get("templates", {}), dict[str, KernelEntry]()
    for name, said in templates.items():
        _require_keys(path, f"[templates.{name!r}]", said, "a template", _TEMPLATE_KEYS)
    for number, rung in enumerate(content.get("rung", []), 1):
        name = rung.get("name", "") if isinstance(rung, dict) else ""
        _require_keys(path, f"the rung {name or number}", rung, "a rung", _RUNG_KEYS)
        if not name:
            raise PlanError(f"{path}: a rung has no name; a rung takes {', '.join(sorted(_RUNG_KEYS))}")
        if name in found:
            raise PlanError(f"{path}: two rungs have the name {name}")
        found[name] = _entry(path, rung, {**known, **found}, templates, folder)
    return found


def _require_keys(path: Path, what: str, table: Any, kind: str, keys: Mapping[str, type]) -> None:
    """Raises PlanError for what is no table, and for a key that it does not take or of another type."""
    if not isinstance(table, dict):
        raise PlanError(f"{path}: {what} must be a table of {', '.join(sorted(keys))}")
    for key, value in table.items():
        if key not in keys:
            raise PlanError(f"{path}: {what} has {key}; {kind} takes {', '.join(sorted(keys))}")
        if not isinstance(value, keys[key]):
            hint = ": write [[rung]]" if key == "rung" else ""
            raise PlanError(f"{path}: {key} of {what} must be {_TOML_WORDS[keys[key]]}{hint}")


def _entry(
    path: Path, rung: dict[str, Any], known: dict[str, KernelEntry], templates: dict[str, Any], folder: Path | None
) -> KernelEntry:
    parent = known.get(rung.get("from", ""))
    if "from" in rung and parent is None:
        meant = next((name for name, each in known.items() if rung["from"] in each.rungs), None)
        hint = f"; did you mean {meant}?" if meant else ""
        raise PlanError(f"{path}: {rung['name']} comes from {rung['from']!r}, which there is not before it{hint}")
    if "template" in rung:
        said = templates.get(rung["template"], {})
        same = next((each for each in known.values() if each.template.name == rung["template"]), None)
        own = folder is not None and (folder / rung["template"]).is_file()
        template = Template(rung["template"], folder if own else None)
        like = same or parent
        if not said and like is None:
            raise PlanError(f"{path}: [templates.{rung['template']!r}] must give a target and options")
        target = said.get("target") or (like.target if like else "")
        design = said.get("design") or (like.design if like else "serial")
        options = tuple(said.get("options") or (like.options if like else ()))
    elif parent is not None:
        template, target, design, options = parent.template, parent.target, parent.design, parent.options
    else:
        raise PlanError(f"{path}: {rung['name']} must name a template, or the rung that it comes from")
    changes, large = rung.get("set", {}), {**(parent.large if parent else {}), **rung.get("large", {})}
    if wrong := [name for name in (*changes, *large) if name not in options]:
        raise PlanError(f"{path}: {rung['name']} sets {', '.join(wrong)}, which {template.name} has not")
    rungs = (rung["id"],) if rung.get("id") else ()
    defaults = {**(parent.defaults if parent else {}), **changes}
    return KernelEntry(
        rung["name"], rungs, rung.get("summary", ""), target, template, design, options, defaults,
        parent.name if parent else "", changes, rung.get("article", ""), rung.get("ours", ""), folder, large,
    )  # fmt: skip


def find(name: str) -> KernelEntry:
    """The kernel of this name or rung id, or of FOLDER#RUNG. Raises PlanError that lists the names if there is none.

    >>> from ptxgen.gemm import find
    >>> plan = find("blackwell/swizzled").plan(n_tile=64)
    >>> plan.shared.bytes, ".target sm_100a" in plan.text
    (24604, True)
    """
    folder, hash, rung = name.partition("#")
    if hash:
        return find_in(Path(folder), rung)
    for entry in kernels().values():
        if name == entry.name or name in entry.rungs:
            return entry
    raise PlanError(f"there is no kernel {name!r}; there are: {', '.join(kernels())}")


def find_in(folder: Path, rung: str) -> KernelEntry:
    """A rung of the ladder in a folder outside the package, whose templates may import the packaged blocks."""
    path = folder / _LADDER
    if not path.is_file():
        raise PlanError(f"there is no {path}; a folder with kernels has a {_LADDER}")
    found = read_ladder(path, kernels(), folder)
    if rung not in found:
        raise PlanError(f"{path} has no rung {rung!r}; it has: {', '.join(found) or 'none'}")
    return found[rung]
