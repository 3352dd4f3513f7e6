"""The difference between two snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..answer import Answer
from .findings import Finding
from .names import Band, Category, Exactness, Matched, MixedCategory
from .records import Frame, Json
from .shown import Grid, Part, Shown, change, size


@dataclass(frozen=True)
class Change:
    """A number before and after a change: bytes or a count."""

    before: int
    after: int
    #: ``after`` - ``before``.
    change: int

    @classmethod
    def of(cls, json: Json) -> Change:
        """From the program's JSON."""
        return cls(json["a"], json["b"], json["change"])

    def _cells(self) -> tuple[str, str, str]:
        return size(self.before), size(self.after), change(self.change)


@dataclass(frozen=True)
class Side:
    """A device of a snapshot."""

    path: str
    device: int
    #: The event of the band's peak; -1 is the state before the window.
    event: int

    @classmethod
    def of(cls, json: Json) -> Side:
        """From the program's JSON."""
        return cls(json["path"], json["device"], json["event"])


@dataclass(frozen=True)
class BandChange:
    """A band before and after: at its start, its peak and its end. Bytes."""

    start: Change
    peak: Change
    end: Change
    #: ``estimate`` if either side is an estimate.
    exactness: Exactness

    @classmethod
    def of(cls, json: Json) -> BandChange:
        """From the program's JSON."""
        start, peak, end = (Change.of(json[name]) for name in ("start", "peak", "end"))
        return cls(start, peak, end, json["exactness"])


@dataclass(frozen=True)
class SettingChange:
    """An allocator setting that differs."""

    key: str
    #: The values as JSON text; ``None`` if the key is absent.
    before: str | None
    after: str | None

    @classmethod
    def of(cls, json: Json) -> SettingChange:
        """From the program's JSON."""
        return cls(json["key"], json["a"], json["b"])


@dataclass(frozen=True)
class CategoryChange:
    """A category before and after."""

    category: Category
    #: Live bytes at the peak.
    live: Change
    blocks: Change

    @classmethod
    def of(cls, json: Json) -> CategoryChange:
        """From the program's JSON."""
        return cls(json["category"], Change.of(json), Change.of(json["blocks"]))


@dataclass(frozen=True, repr=False)
class StackChange(Shown):
    """A call stack before and after."""

    #: Live bytes at the peak.
    live: Change
    blocks: Change
    #: ``None`` for ``reserved_bytes``.
    category: MixedCategory | None
    #: How the stacks were matched: ``only_a`` is before the change alone, ``only_b`` after it.
    matched: Matched
    site: str
    #: Innermost frame first.
    frames: tuple[Frame, ...]

    @classmethod
    def of(cls, json: Json) -> StackChange:
        """From the program's JSON."""
        return cls(
            live=Change.of(json),
            blocks=Change.of(json["blocks"]),
            category=json["category"],
            matched=json["matched"],
            site=json["site"],
            frames=tuple(map(Frame.of, json["frames"])),
        )

    def _parts(self) -> Iterable[Part]:
        before, after, by = self.live._cells()
        yield f"{self.site}: {by} ({before} to {after})"


@dataclass(frozen=True)
class ProgramChange:
    """What changed in the program, and whether that did what was predicted."""

    #: The changes, as ``what_if(apply=...)`` takes them.
    recipes: tuple[str, ...]
    #: The allocator settings after the change, if they differ; else empty.
    conf: str
    #: Memory optimizations that are gone.
    undone: tuple[str, ...]
    #: ``None`` without a prediction.
    predicted_active_peak_bytes: int | None
    active_peak_bytes: int
    predicted_reserved_peak_bytes: int | None
    reserved_peak_bytes: int
    #: The measured error of the recipes; ``None`` if one was not measured.
    error_percent: float | None
    #: Why nothing is predicted; ``None`` with a prediction.
    declined: str | None
    #: Why prediction and recording differ by more than the error, in sentences.
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, json: Json) -> ProgramChange:
        """From the program's JSON."""
        return cls(
            recipes=tuple(json["recipes"]),
            conf=json["conf"],
            undone=tuple(json["undone"]),
            predicted_active_peak_bytes=json["predicted_active_peak"],
            active_peak_bytes=json["active_peak"],
            predicted_reserved_peak_bytes=json["predicted_reserved_peak"],
            reserved_peak_bytes=json["reserved_peak"],
            error_percent=json["error_percent"],
            declined=json["declined"],
            reasons=tuple(json["reasons"]),
        )


@dataclass(frozen=True, repr=False)
class Diff(Answer, Shown):
    """The difference between two snapshots."""

    before: Side
    after: Side
    #: The band at whose peaks categories and call stacks are compared.
    band: Band
    #: Why the memory differs, in sentences; empty if settings and inputs do not explain it.
    causes: tuple[str, ...]
    #: What changed in the program; ``None`` if nothing did, or if the change has no name.
    program: ProgramChange | None
    settings: tuple[SettingChange, ...]
    #: The number of whole training steps.
    steps: Change
    requested: BandChange
    active: BandChange
    #: Its peak is ``torch.cuda.max_memory_allocated()``.
    allocated: BandChange
    reserved: BandChange
    #: The numbers of blocks at the peak and of failed allocations.
    blocks: Change
    ooms: Change
    #: Findings of one side only.
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    #: The largest change first; empty for ``reserved_bytes``.
    categories: tuple[CategoryChange, ...]
    #: The largest change first. They add up to the peaks.
    stacks: tuple[StackChange, ...]
    #: What the program prints: about the program, settings and inputs, bands and counts.
    _program_text: tuple[str, ...]
    _recording: tuple[tuple[str, ...], ...]
    _totals: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, record: Json, words: Json) -> Diff:
        """From the program's JSON, and its words."""
        (json,) = record["pairs"]
        program = json["changes"]
        return cls(
            before=Side.of(json["a"]),
            after=Side.of(json["b"]),
            band=record["band"],
            causes=tuple(json["causes"]),
            program=None if program is None else ProgramChange.of(program),
            settings=tuple(map(SettingChange.of, json["settings"])),
            steps=Change.of(json["steps"]),
            requested=BandChange.of(json["requested_bytes"]),
            active=BandChange.of(json["active_bytes"]),
            allocated=BandChange.of(json["allocated_bytes"]),
            reserved=BandChange.of(json["reserved_bytes"]),
            blocks=Change.of(json["blocks"]),
            ooms=Change.of(json["ooms"]),
            new=tuple(map(Finding.of, json["findings"]["new"])),
            gone=tuple(map(Finding.of, json["findings"]["gone"])),
            categories=tuple(map(CategoryChange.of, json["categories"])),
            stacks=tuple(map(StackChange.of, json["stacks"] or ())),
            _program_text=tuple(words["program"]),
            _recording=tuple(map(tuple, words["recording"])),
            _totals=tuple(map(tuple, words["totals"])),
        )

    def _line(self) -> str:
        bands = {"requested_bytes": self.requested, "active_bytes": self.active}
        bands |= {"allocated_bytes": self.allocated, "reserved_bytes": self.reserved}
        before, after, by = bands[self.band].peak._cells()
        return f"peak of {self.band} {by}, from {before} to {after}"

    def _parts(self) -> Iterable[Part]:
        yield f"{self.before.path} -> {self.after.path}"
        if self._recording:
            yield Grid(("recording", "before", "after"), self._recording, "<<<")
        yield from (f"cause: {cause}" for cause in self.causes)
        yield from self._program_text
        yield Grid(("", "before", "after", "change", ""), self._totals, "<>>>>")
        for word, findings in (("new", self.new), ("gone", self.gone)):
            yield from (f"{word}: {one.kind}: {one.text}" for one in findings)
        categories = [one for one in self.categories if one.live.change]
        if categories:
            rows = [(one.category, *one.live._cells()) for one in categories]
            yield Grid(("category", "before", "after", "change"), rows, "<>>>", "categories")
        stacks = [one for one in self.stacks if one.live.change or one.blocks.change]
        if not stacks:
            yield f"No call stack changed at the peak of {self.band}."
            return
        cells = []
        for one in stacks:
            before, after, by = one.live._cells()
            cells.append((by, before, after, one.category or "", one.site))
        head = ("change", "before", "after", "category", "call site")
        yield Grid(head, cells, ">>><<", "call stacks")
