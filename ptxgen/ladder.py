"""Ladders of kernels: rungs in `ladder.toml` files, each the difference to the rung it comes from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ptxgen.builder import Template
from ptxgen.files import read_file
from ptxgen.options import PlanError, as_text, values_of

LADDER = "ladder.toml"
#: Keys of a rung in ladder.toml, and their types.
_RUNG_KEYS: dict[str, type] = {
    **dict.fromkeys(("name", "id", "from", "template", "summary", "article", "ours"), str),
    **dict.fromkeys(("set", "large"), dict),
}
_TEMPLATE_KEYS: dict[str, type] = {"target": str, "design": str, "options": list}
_FILE_KEYS: dict[str, type] = {"rung": list, "templates": dict}
_TOML_WORDS: dict[type, str] = {str: "text", list: "a list", dict: "a table"}


@dataclass(frozen=True)
class Rung:
    """A kernel by name. `options` are those that its template takes, `defaults` what differs from the config's own.

    `parent` is the rung that it comes from, `changes` its difference, `article` and `ours` who chose what. `large` has
    what the defaults are instead for large problems, where the kind of kernel has such.
    """

    #: The class of the configs: its fields are the options.
    config_type: ClassVar[type[Any]]

    name: str
    rungs: tuple[str, ...]
    summary: str
    target: str
    template: Template
    design: str
    options: tuple[str, ...]
    defaults: dict[str, Any]
    parent: str
    changes: dict[str, Any]
    article: str = ""
    ours: str = ""
    folder: Path | None = None
    large: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name as the command line takes it: FOLDER#RUNG outside the package."""
        return f"{self.folder}#{self.name}" if self.folder else self.name

    def config(self, **choices: Any) -> Any:
        """The rung's defaults with other choices. Raises PlanError."""
        unknown = [name for name in choices if name not in self.options]
        if unknown:
            words = f"option{'s' * (len(unknown) > 1)} {', '.join(unknown)}"
            raise PlanError(f"{self.name} has no {words}; it takes {', '.join(self.options)}")
        return self.config_type(**{**self.defaults, **choices})

    def settings(self, config: Any) -> list[str]:
        """What differs from the rung's own options, as `--set` takes it: `plan` makes the same config of it."""
        values = [(each.name, getattr(config, each.name), each.default) for each in fields(self.config_type)]
        return [
            f"{name}={as_text(value)}"
            for name, value, default in values
            if name in self.options and value != self.defaults.get(name, default)
        ]

    def signature(self, config: Any) -> tuple[str, ...]:
        """The settings that the text of a kernel ends with: `ptxgen run FILE.ptx` makes the same config of them."""
        chosen = config.chosen()
        # An option that is the config's default is not among those, but may differ from the rung's own.
        return (*chosen, *(each for each in self.settings(config) if each not in chosen))

    def described(self) -> dict[str, dict[str, Any]]:
        """The options: default, choices or range (first, last, step), and help."""
        found: dict[str, dict[str, Any]] = {}
        for each in fields(self.config_type):
            if each.name not in self.options:
                continue
            made: dict[str, Any] = {"default": self.defaults.get(each.name, each.default)}
            made.update({key: list(values) for key, values in values_of(each, self.target).items()})
            found[each.name] = {**made, "help": each.metadata["help"]}
        return found


R = TypeVar("R", bound=Rung)


def read_ladder(path: Path, known: Mapping[str, R], kind: type[R], folder: Path | None = None) -> dict[str, R]:
    """The rungs of a file; `known` are those that they may come from, `folder` has their templates.

    A rung is of the kind of its parent, or of the kernel with the same template; else of `kind`.

    Raises PlanError for a file that cannot be read and for an entry that makes no sense.
    """
    try:
        content = tomllib.loads(read_file(path).decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"cannot read {path}: {error}") from None
    _require_keys(path, "the file", content, "a ladder", _FILE_KEYS)
    templates, found = content.get("templates", {}), dict[str, R]()
    for name, said in templates.items():
        _require_keys(path, f"[templates.{name!r}]", said, "a template", _TEMPLATE_KEYS)
    for number, rung in enumerate(content.get("rung", []), 1):
        name = rung.get("name", "") if isinstance(rung, dict) else ""
        _require_keys(path, f"the rung {name or number}", rung, "a rung", _RUNG_KEYS)
        if not name:
            raise PlanError(f"{path}: a rung has no name; a rung takes {', '.join(sorted(_RUNG_KEYS))}")
        if name in found:
            raise PlanError(f"{path}: two rungs have the name {name}")
        found[name] = _entry(path, rung, {**known, **found}, kind, templates, folder)
    return found


def read_folder(folder: Path, rung: str, known: Mapping[str, R], kind: type[R]) -> R:
    """A rung of the ladder in a folder outside the package, whose templates may import the packaged blocks.

    Raises PlanError.
    """
    path = folder / LADDER
    if not path.is_file():
        raise PlanError(f"there is no {path}; a folder with kernels has a {LADDER}")
    found = read_ladder(path, known, kind, folder)
    if rung not in found:
        raise PlanError(f"{path} has no rung {rung!r}; it has: {', '.join(found) or 'none'}")
    return found[rung]


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
    path: Path,
    rung: dict[str, Any],
    known: Mapping[str, R],
    kind: type[R],
    templates: dict[str, Any],
    folder: Path | None,
) -> R:
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
        made = kind if like is None else type(like)
        if not said and like is None:
            raise PlanError(f"{path}: [templates.{rung['template']!r}] must give a target and options")
        target = said.get("target") or (like.target if like else "")
        design = said.get("design") or (like.design if like else "serial")
        options = tuple(said.get("options") or (like.options if like else ()))
    elif parent is not None:
        template, target, design, options = parent.template, parent.target, parent.design, parent.options
        made = type(parent)
    else:
        raise PlanError(f"{path}: {rung['name']} must name a template, or the rung that it comes from")
    changes, large = rung.get("set", {}), {**(parent.large if parent else {}), **rung.get("large", {})}
    if wrong := [name for name in (*changes, *large) if name not in options]:
        raise PlanError(f"{path}: {rung['name']} sets {', '.join(wrong)}, which {template.name} has not")
    rungs = (rung["id"],) if rung.get("id") else ()
    defaults = {**(parent.defaults if parent else {}), **changes}
    return made(
        rung["name"], rungs, rung.get("summary", ""), target, template, design, options, defaults,
        parent.name if parent else "", changes, rung.get("article", ""), rung.get("ours", ""), folder, large,
    )  # fmt: skip
