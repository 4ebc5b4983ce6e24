"""Lines of PTX with their numbers and neighbors, as text."""

from __future__ import annotations

from collections.abc import Iterable


def excerpt(
    text: str,
    lines: Iterable[int],
    *,
    around: int = 0,
    caret: int | None = None,
    end: int | None = None,
    width: int = 100,
) -> list[str]:
    """The numbered lines of `text` with `around` neighbors, `.loc` left out; the lines themselves get a mark.

    `caret` is a column (from 1, a tab as one) to point at below each of the lines, up to the column before `end` if
    that is given. Long lines are cut to `width` characters, so that the caret stays visible.
    """
    source = text.splitlines()
    marked = {line for line in lines if 1 <= line <= len(source)}
    # The place of every shown line among all that are not left out.
    places: list[int] = []
    for line in source:
        places.append((places[-1] if places else 0) + (not line.lstrip().startswith(".loc ")))
    wanted = sorted(
        n for n, (place, line) in enumerate(zip(places, source, strict=True), 1)
        if n in marked
        or (any(abs(place - places[each - 1]) <= around for each in marked) and not line.lstrip().startswith(".loc "))
    )  # fmt: skip
    digits = len(str(wanted[-1])) if wanted else 1
    shown: list[str] = []
    previous = None
    for number in wanted:
        if previous is not None and places[number - 1] > places[previous - 1] + 1:
            shown.append(f"  {'⋮':>{digits}}")
        previous = number
        mark = ">" if number in marked else " "
        head = f"{mark} {number:>{digits}} │ "
        room = max(width - len(head), 20)
        raw = source[number - 1]
        at = len(raw[: caret - 1].expandtabs(4)) if caret is not None and number in marked else None
        line = raw.expandtabs(4).rstrip()
        begin = 0 if at is None or at < room - 4 else at - room // 2
        cut = line[begin : begin + room]
        if begin:
            cut = "…" + cut[1:]
        if begin + room < len(line):
            cut = cut[: room - 1] + "…"
        shown.append(head + cut)
        if at is not None:
            last = len(raw[: end - 1].expandtabs(4)) if end is not None else at + 1
            marks = "^" + "~" * (min(last - begin, len(cut)) - (at - begin) - 1)
            shown.append(f"  {'':>{digits}} │ {' ' * (at - begin)}{marks}")
    return shown
