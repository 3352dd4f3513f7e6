"""What holds memory: variables and objects of the recorded program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..answer import Answer
from .names import HolderKind, HolderRowKind, MixedCategory
from .records import Json
from .shown import Grid, Part, Shown, device, percent, size


@dataclass(frozen=True, repr=False)
class Holder(Shown):
    """What holds blocks."""

    kind: HolderKind
    #: Where the references begin: ``local "losses" (list of 12) of train(), train.py:42``.
    text: str
    #: The way from there; empty if that variable itself holds the memory.
    path: str
    #: What dropping references frees: ``dropping "losses" frees 3.18 GiB``; empty if not known.
    drop: str
    #: What else is known; often empty.
    note: str
    held_bytes: int
    blocks: int
    #: ``None`` if it is not known.
    frees_bytes: int | None
    #: Whether the drop may free less: not all references were read.
    is_upper_bound: bool

    @classmethod
    def of(cls, json: Json) -> Holder:
        """From the program's JSON."""
        return cls(
            kind=json["kind"],
            text=json["text"],
            path=json.get("path", ""),
            drop=json.get("drop", ""),
            note=json.get("note", ""),
            held_bytes=json["bytes"],
            blocks=json["blocks"],
            frees_bytes=json["frees_bytes"],
            is_upper_bound=json["is_upper_bound"],
        )

    def _parts(self) -> Iterable[Part]:
        yield f"{size(self.held_bytes)}: {self.text}"
        yield from (text for text in (self.path, self.drop, self.note) if text)


@dataclass(frozen=True)
class HolderRow:
    """Blocks with one holder."""

    #: A variable, a part of it such as ``losses[0..11]``, or why none is named.
    holder: str
    kind: HolderRowKind
    #: The number of rows around it.
    depth: int
    category: MixedCategory
    live_bytes: int
    blocks: int
    #: The bytes of its blocks that are live at the end.
    end_bytes: int
    #: What dropping this reference alone frees; ``None`` if that is not known.
    frees_bytes: int | None

    @classmethod
    def of(cls, json: Json) -> HolderRow:
        """From the program's JSON."""
        return cls(
            holder=json["holder"],
            kind=json["kind"],
            depth=json["depth"],
            category=json["category"],
            live_bytes=json["bytes"],
            blocks=json["blocks"],
            end_bytes=json["end_bytes"],
            frees_bytes=json["frees_bytes"],
        )


@dataclass(frozen=True)
class Drop:
    """What dropping references frees."""

    #: The references: ``local "losses" (list of 12) of train(), train.py:42``, ``losses[0..11]``.
    text: str
    #: The number of references that are dropped.
    references: int
    frees_bytes: int
    blocks: int
    #: The number of drops that it is within.
    depth: int

    @classmethod
    def of(cls, json: Json) -> Drop:
        """From the program's JSON."""
        return cls(json["text"], json["references"], json["bytes"], json["blocks"], json["depth"])


@dataclass(frozen=True, repr=False)
class Holders(Answer, Shown):
    """What holds the memory of a moment, and what drops free."""

    path: str
    device: int
    #: The event of the moment; -1 is the state before the window.
    event: int
    live_bytes: int
    #: The bytes of blocks that a named reference holds.
    held_bytes: int
    #: ``False`` where not all references were read: drops free at most their bytes. ``None`` if no
    #: holders are recorded.
    complete: bool | None
    #: ``False`` where autograd graphs and gradients were not read.
    graph: bool | None
    #: Roots with most bytes first, each followed by parts of it.
    rows: tuple[HolderRow, ...]
    #: A drop is followed by those that are within it.
    drops: tuple[Drop, ...]
    #: What limits the answer, in sentences.
    text: tuple[str, ...]

    @classmethod
    def of(cls, json: Json) -> Holders:
        """From the program's JSON."""
        return cls(
            path=json["path"],
            device=json["device"],
            event=json["event"],
            live_bytes=json["bytes"],
            held_bytes=json["held_bytes"],
            complete=json["complete"],
            graph=json["graph"],
            rows=tuple(map(HolderRow.of, json["rows"])),
            drops=tuple(map(Drop.of, json["drops"])),
            text=tuple(json["text"]),
        )

    def _line(self) -> str:
        return f"{size(self.held_bytes)} of {size(self.live_bytes)} held by named references"

    def _parts(self) -> Iterable[Part]:
        yield f"{self.path}  {device(self.device)}"
        yield self._line()
        yield from self.text
        rows = [
            (
                size(row.live_bytes),
                percent(row.live_bytes, self.live_bytes),
                row.category,
                "" if row.frees_bytes is None else size(row.frees_bytes),
                "  " * row.depth + row.holder,
            )
            for row in self.rows
        ]
        yield Grid(("bytes", "share", "category", "frees", "held by"), rows, ">><><", "holders")
