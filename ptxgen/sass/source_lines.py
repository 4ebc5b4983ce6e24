"""Which source line of one side of a comparison is which of the other, where files are renamed and lines have moved.

Aligned instructions vote: most of them say which file became which, and by how many lines its text has moved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

#: A pair of source lines, `/src/pipe.cu:60` each; empty where an instruction has none.
Votes = Iterable[tuple[str, str]]


def short(source: str) -> str:
    """`/home/me/pipe.cu:60` as `pipe.cu:60`."""
    return source.replace("\\", "/").rsplit("/", 1)[-1]


class Correspondence:
    """Lines of A and their partners in B, from the source lines of aligned instructions."""

    def __init__(self, votes: Votes) -> None:
        moves: defaultdict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
        for one, other in votes:
            if one and other:
                (file, line), (its_file, its_line) = _split(one), _split(other)
                moves[file][short(its_file), its_line - line] += 1
        self._moves = {file: counts.most_common(1)[0][0] for file, counts in moves.items()}

    def partner(self, line: str) -> str:
        """The line of B that a line of A most probably is, in short form."""
        file, number = _split(line)
        its_file, moved = self._moves.get(file, (short(file), 0))
        return f"{its_file}:{number + moved}"

    def rows(
        self, a: dict[str, tuple[int, int]], b: dict[str, tuple[int, int]], votes: Votes
    ) -> list[tuple[str, str, tuple[int, int], tuple[int, int]]]:
        """Both sides' figures by line as rows (line of A, of B, figures of A, of B), "" and zeros where one has none.

        `votes` are those of the instructions that the figures count: lines go together by most of them, then where the
        text has moved to.
        """
        counts = Counter((one, other) for one, other in votes if one in a and other in b)
        wanted = [pair for pair, _ in counts.most_common()]
        by_name = {short(each): each for each in reversed(b)}
        wanted += [(each, by_name[self.partner(each)]) for each in a if self.partner(each) in by_name]
        found: dict[str, str] = {}
        taken: set[str] = set()
        for one, other in wanted:
            if one not in found and other not in taken:
                found[one] = other
                taken.add(other)
        rows = [(one, found.get(one, ""), a[one], b.get(found.get(one, ""), (0, 0))) for one in a]
        return rows + [("", other, (0, 0), b[other]) for other in b if other not in taken]


def _split(source: str) -> tuple[str, int]:
    """The file and the line of a source line."""
    file, _, line = source.rpartition(":")
    return file, int(line) if line.isdecimal() else 0
