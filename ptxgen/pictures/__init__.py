"""Pictures of layouts: `draw("operand", ["mn", "64B"])` gives a Picture, which `svg` and `terminal` show.

`kinds` holds what can be drawn; `shared`, `tensor`, `threads`, `row_addresses`, `software`, `convolution` and
`notation` draw it from the address maps of `ptxgen.layouts`, so that a picture shows what the emulator does. `points`
answers for one element.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.pictures import shared, tensor, threads  # noqa: F401  (they register their kinds)
from ptxgen.pictures.convolution import im2col  # noqa: F401
from ptxgen.pictures.kinds import KINDS, Kind
from ptxgen.pictures.model import Picture, beside
from ptxgen.pictures.notation import cute  # noqa: F401
from ptxgen.pictures.row_addresses import rows  # noqa: F401
from ptxgen.pictures.software import pitch  # noqa: F401
from ptxgen.pictures.svg import svg
from ptxgen.pictures.terminal import text

__all__ = ["KINDS", "Kind", "Picture", "beside", "draw", "svg", "text"]


def draw(kind: str, words: Sequence[str] = ()) -> Picture:
    """The picture of a kind with its parameters as words: "name=value", or a value that can be only one's.

        >>> from ptxgen.pictures import draw
        >>> picture = draw("swizzle", ["64B", "access=matrix"])
        >>> picture.title, len(picture.panels)
        ('Swizzle 64B', 2)

    Raises DescriptorError that names what is wrong.
    """
    if kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, n=2, cutoff=0.5)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise DescriptorError(f"there is no picture {kind[:40]!r} (known: {', '.join(KINDS)}){hint}")
    return KINDS[kind].draw(words)
