"""Examples of the codes of `ptxgen check`: for each the shortest text of the tests that fires it alone, reduced.

    python -m tools.code_examples

runs the tests of `check`, records the texts that they give it, drops the declarations that a text does not need, and
writes `ptxgen/instr/model/code_examples.json`, which `ptxgen explain CODE` and the site show with what `check` says.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxgen.instr.model import check as checking
from ptxgen.instr.model.code_examples import PATH
from ptxgen.instr.model.code_rules import RULES

ROOT = Path(__file__).parent.parent
#: The tests that give `check` texts; whose comparisons with ptxas have the same ones.
TESTS = [
    f"tests/instr/test_{name}.py" for name in ("advisories", "characters", "check", "lines", "modules", "non_ascii")
]
WITHOUT = "not agree"
#: ptxgen is imported before its plugin of pytest.
_REWRITE = "ignore::pytest.PytestAssertRewriteWarning"
#: Characters of a text that is recorded.
_MOST = 6000


class Recorder:
    """Stands in for `check`, and keeps for each code the shortest text that fires it alone."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._check = checking.check

    def __call__(self, text: Any, target: str | None = None, **options: Any) -> list[checking.Diagnostic]:
        """What `check` returns."""
        found = self._check(text, target, **options)
        if isinstance(text, str) and target is None and len(text) <= _MOST:
            self.add(text, found)
        return found

    def add(self, text: str, found: list[checking.Diagnostic]) -> None:
        """Record a text, if there is one finding in it."""
        if len(found) == 1 and ((code := found[0].code) not in self.texts or _rank(text) < _rank(self.texts[code])):
            self.texts[code] = text


def _rank(text: str) -> tuple[bool, int, str]:
    """Short texts for present targets come first; the module around a line of the tables does not count."""
    from tests.support.instr_tables import BODY, module  # not before `check` is replaced, which it imports

    size = len(text) - (len(module("")) if BODY in text else 0)
    return not re.search(r"\.target sm_(90|100)", text), size, text


#: What is dropped where nothing uses its names.
_DECLARATION = re.compile(r"\s*(\.(reg|shared|local|global|const|param)\b.*;|\.func helper\(\) \{ ret; \}|here:)\s*$")


def reduced(text: str, code: str) -> str:
    """The text without the declarations whose names it does not use, if the code alone is found without them."""
    lines = text.strip("\n").split("\n")
    for line in [each for each in lines if _DECLARATION.match(each)]:
        rest = [each for each in lines if each is not line]
        names = {each for each in re.findall(r"(?<![.\w%])%?[A-Za-z_]\w*", line) if each != "ret"}
        used = any(re.search(rf"{re.escape(name)}(?![A-Za-z_])", each) for name in names for each in rest)
        if not used and _fires("\n".join(rest), code):
            lines = rest
    entry = [re.sub(r"kernel\(.*\) \{", "kernel() {", each) for each in lines]
    if "pointer]" not in text and "size]" not in text and _fires("\n".join(entry), code):
        lines = entry
    return re.sub(r"\n{2,}", "\n", "\n".join(lines))


def _fires(text: str, code: str) -> bool:
    from ptxgen import PtxSyntaxError

    try:
        return [each.code for each in checking.check(text)] == [code]
    except (PtxSyntaxError, ValueError):
        return False


def made(recorder: Recorder) -> Iterator[tuple[str, str]]:
    """Each code with its example."""
    for code in sorted(RULES):
        if code in recorder.texts:
            yield code, reduced(recorder.texts[code], code)
        else:
            print(f"no test gives check a text that fires {code} alone", file=sys.stderr)


def main() -> int:
    """Run the tests, and write the examples."""
    recorder = Recorder()
    original, checking.check = checking.check, recorder
    try:
        status = pytest.main(
            ["-q", "-W", _REWRITE, "-p", "no:cacheprovider", "-k", WITHOUT, *(str(ROOT / each) for each in TESTS)]
        )
    finally:
        checking.check = original
    found = dict(made(recorder))
    PATH.write_text(json.dumps(found, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    print(f"{PATH.name}: {len(found)} of {len(RULES)} codes")
    return int(status) or len(RULES) - len(found)


if __name__ == "__main__":
    sys.exit(main())
