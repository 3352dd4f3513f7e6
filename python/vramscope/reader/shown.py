"""How answers print: as text by ``print``, as a table in notebooks, short by ``repr``."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Union

from .. import _vramscope

#: Rows of a table as text.
MAX_ROWS = 20

#: Rows of a table in a notebook.
MAX_HTML_ROWS = 100

#: Columns of text.
WIDTH = 100

#: Characters of ``repr``.
SHORT = 120


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    #: For each column ``<`` or ``>``: where its texts are aligned.
    align: str
    #: What the rows are, for the number of those that are left out.
    what: str = "rows"
    #: Rows that are left out, beside those that are too many.
    omitted: int = 0

    def lines(self) -> Iterator[str]:
        """The table as text, as the program aligns it."""
        rows = [self.head, *self.rows[:MAX_ROWS]]
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            cells = [f"{cell:{to}{width}}" for cell, to, width in zip(row, self.align, widths)]
            yield ("  " + "  ".join(cells)).rstrip()
        yield from (f"  {rest}" for rest in self._rest(MAX_ROWS))

    def html(self) -> Iterator[str]:
        """The table as HTML."""
        yield "<table>"
        for tag, rows in (("th", [self.head]), ("td", self.rows[:MAX_HTML_ROWS])):
            for row in rows:
                yield "<tr>"
                for cell, to in zip(row, self.align):
                    side = "right" if to == ">" else "left"
                    yield f'<{tag} style="text-align:{side};white-space:pre">'
                    yield f"{html.escape(cell)}</{tag}>"
                yield "</tr>"
        yield "</table>"
        yield from (f"<p>{rest}</p>" for rest in self._rest(MAX_HTML_ROWS))

    def _rest(self, shown: int) -> Iterator[str]:
        omitted = max(len(self.rows) - shown, 0) + self.omitted
        if omitted:
            yield f"and {omitted:,} more {self.what}"


#: A part of an answer: a sentence, or a table.
Part = Union[str, Grid]


class Shown:
    """An answer that prints as text."""

    def _parts(self) -> Iterable[Part]:
        """What is shown, in order."""
        raise NotImplementedError

    def _line(self) -> str:
        """What ``repr`` says: the first sentence."""
        return next((part for part in self._parts() if isinstance(part, str)), "")

    def __repr__(self) -> str:
        name = f"vramscope.{type(self).__name__}"
        return f"<{name}: {textwrap.shorten(self._line(), SHORT, placeholder=' …')}>"

    def __str__(self) -> str:
        lines: list[str] = []
        for part in self._parts():
            if isinstance(part, Grid):
                lines += ["", *part.lines(), ""]
            else:
                lines += textwrap.wrap(part, WIDTH, subsequent_indent="  ") or [""]
        text = "\n".join(lines).replace("\n\n\n", "\n\n")
        return text.strip("\n")

    def _repr_html_(self) -> str:
        pieces = ["<div>"]
        for part in self._parts():
            if isinstance(part, Grid):
                pieces += part.html()
            else:
                pieces.append(f"<p>{html.escape(part)}</p>")
        return "".join([*pieces, "</div>"])


def size(count: int | None) -> str:
    """Bytes in words: ``5.46 GiB``; empty if they are not known."""
    return "" if count is None else _vramscope.bytes_text(count)


def change(count: int | None) -> str:
    """A change of bytes: ``+1.20 GiB``; empty if it is not known."""
    return "" if count is None else _vramscope.bytes_text(count, True)


def percent(part: int, whole: int) -> str:
    """A share: ``52.3 %``."""
    return f"{part * 100 / whole:.1f} %" if whole else "-"


def event(index: int | None) -> str:
    """An event: ``#10,905``; empty if it is not known."""
    if index is None:
        return ""
    return "before the window" if index < 0 else f"#{index:,}"


def device(ordinal: int) -> str:
    """A device: ``device 0``, or ``host`` for pinned host memory."""
    return "host" if ordinal == 128 else f"device {ordinal}"
