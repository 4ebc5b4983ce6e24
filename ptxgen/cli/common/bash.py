"""Completion in bash, which splits what a person types at `=`, `:` and `@`, and replaces what follows them alone."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence

#: Of COMP_WORDBREAKS, what words of this command may hold unquoted.
_BREAKS = frozenset("=:@")


def joined(words: Sequence[str]) -> tuple[list[str], str]:
    """The words of COMP_WORDS up to the cursor as they were typed, and the part of the last that bash keeps."""
    made: list[str] = []
    kept = ""
    for word in words:
        is_break = bool(word) and _BREAKS.issuperset(word)
        if made and word and (is_break or made[-1][-1:] in _BREAKS):
            made[-1] += word
            kept = made[-1] if is_break else made[-1].removesuffix(word)
        else:
            made.append(word)
            kept = ""
    return [*filter(None, made[:-1]), *made[-1:]], kept


def behind(kept: str, completion: str) -> str:
    """The part of a completion that takes the place of what bash replaces."""
    if kept.startswith("-"):  # --set=stages=4: typer completes the value alone
        kept = kept.partition("=")[2]
    return completion.removeprefix(kept)


def complete(main: Callable[[], None]) -> None:
    """Run `main`, which completes the words of the environment, and print the completions as bash takes them."""
    words, kept = joined(os.environ["COMP_WORDS"].split("\n")[: int(os.environ["COMP_CWORD"]) + 1])
    os.environ.update(COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1))
    found = io.StringIO()
    try:
        with contextlib.redirect_stdout(found):
            main()
    finally:
        sys.stdout.writelines(f"{behind(kept, each)}\n" for each in found.getvalue().splitlines())
