"""What becomes of memory in a traced step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..answer import Answer
from .names import Category, UseGroup
from .records import Json
from .shown import Grid, Part, Shown, device, percent, size


@dataclass(frozen=True, repr=False)
class UseShare(Shown):
    """Blocks with one use."""

    group: UseGroup
    #: The group in words.
    text: str
    live_bytes: int
    blocks: int

    @classmethod
    def of(cls, json: Json) -> UseShare:
        """From the program's JSON."""
        return cls(json["group"], json["text"], json["bytes"], json["blocks"])

    def _parts(self) -> Iterable[Part]:
        yield f"{self.text}: {size(self.live_bytes)} in {self.blocks:,} blocks"


@dataclass(frozen=True, repr=False)
class UseRow(Shown):
    """Blocks of one use, category and call site."""

    group: UseGroup
    category: Category
    site: str
    live_bytes: int
    blocks: int
    #: The fewest operations to a next use; ``None`` without one.
    next_in_operations: int | None
    #: The fewest microseconds to a next use in the step; ``None`` without one.
    next_in_us: int | None
    #: The operation that uses the largest of them for the last time; ``None`` without one.
    last_operation: str | None
    #: Bytes that are allocated long before their first use.
    early_bytes: int

    @classmethod
    def of(cls, json: Json) -> UseRow:
        """From the program's JSON."""
        return cls(
            group=json["group"],
            category=json["category"],
            site=json["site"],
            live_bytes=json["bytes"],
            blocks=json["blocks"],
            next_in_operations=json["next_in_operations"],
            next_in_us=json["next_in_us"],
            last_operation=json["last_operation"],
            early_bytes=json["early_bytes"],
        )

    def _parts(self) -> Iterable[Part]:
        yield f"{size(self.live_bytes)} {self.category} at {self.site}: {self.group}"


@dataclass(frozen=True, repr=False)
class Uses(Answer, Shown):
    """What becomes of the memory that is live at the peak of the traced step."""

    path: str
    rank: int | None
    device: int
    #: Why nothing is known; ``None`` if something is.
    refused: str | None
    #: The step, as the program counts; ``None`` where it counts none.
    step: int | None
    event: int
    peak_bytes: int
    #: The peak of the step if each of its blocks died at its last use.
    floor_bytes: int
    #: Operations of the step that use memory of the device.
    operations: int
    #: Whether each kernel is seen that uses memory, as far as the trace tells.
    exact: bool
    #: Bytes that are allocated long before their first use.
    early_bytes: int
    groups: tuple[UseShare, ...]
    #: By use, category and call site.
    rows: tuple[UseRow, ...]
    #: What follows, in sentences.
    text: tuple[str, ...]

    @classmethod
    def of(cls, json: Json) -> Uses:
        """From the program's JSON."""
        return cls(
            path=json["path"],
            rank=json["rank"],
            device=json["device"],
            refused=json["refused"],
            step=json["step"],
            event=json["event"],
            peak_bytes=json["bytes"],
            floor_bytes=json["floor"],
            operations=json["operations"],
            exact=json["exact"],
            early_bytes=json["early_bytes"],
            groups=tuple(map(UseShare.of, json["groups"])),
            rows=tuple(map(UseRow.of, json["rows"])),
            text=tuple(json["text"]),
        )

    def bytes_of(self, group: UseGroup) -> int:
        """The bytes of a group."""
        return sum(share.live_bytes for share in self.groups if share.group == group)

    def _line(self) -> str:
        return self.text[0] if self.text else ""

    def _parts(self) -> Iterable[Part]:
        yield f"{self.path}  {device(self.device)}"
        yield from self.text
        if self.groups:
            rows = [
                (
                    size(of.live_bytes),
                    percent(of.live_bytes, self.peak_bytes),
                    f"{of.blocks:,}",
                    of.text,
                )
                for of in self.groups
            ]
            yield Grid(("bytes", "share", "blocks", "use"), rows, ">>><", "uses")
