"""What holds memory at a peak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..answer import Answer
from .names import Band, Exactness, MixedCategory, PeakBy, PhaseName
from .records import Frame, Json
from .shown import Grid, Part, Shown, device, event, percent, size


@dataclass(frozen=True, repr=False)
class Row(Shown):
    """A part of a peak."""

    #: The call site, line, module, shape, holder, category, stream or pool.
    name: str
    #: Bytes: of a line those of all that it calls, of a module those of the modules in it, too.
    live_bytes: int
    #: Bytes that no other row has. Those of all rows add up to the peak, except those of lines:
    #: blocks without a call stack have no line.
    own_bytes: int
    #: The number of blocks; of a line the blocks of ``own_bytes``.
    blocks: int
    #: ``None`` if it is not told: for lines, shapes, streams, pools and segments.
    category: MixedCategory | None = None
    #: The call stack, innermost frame first; empty unless rows are call stacks.
    frames: tuple[Frame, ...] = ()
    #: How many modules the module is in, or rows of holders around it.
    depth: int = 0

    def _parts(self) -> Iterable[Part]:
        yield f"{self.name}: {size(self.live_bytes)} in {self.blocks:,} blocks"


@dataclass(frozen=True, repr=False)
class Peak(Answer, Shown):
    """What held memory when a band was largest."""

    path: str
    device: int
    band: Band
    #: The first event after which the band is largest; -1 is the state before the window.
    event: int
    time_us: int | None
    step: int | None
    phase: PhaseName | None
    peak_bytes: int
    exactness: Exactness
    #: The number of blocks; of segments, for ``reserved_bytes``.
    blocks: int
    #: What the rows are.
    by: PeakBy
    #: Most bytes first; modules below the module that they are in.
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, json: Json, by: PeakBy, rows: Iterable[Row]) -> Peak:
        """From the program's JSON, with these rows."""
        return cls(
            path=json["path"],
            device=json["device"],
            band=json["band"],
            event=json["event"],
            time_us=json["time_us"],
            step=json["step"],
            phase=json["phase"],
            peak_bytes=json["total"],
            exactness=json["exactness"],
            blocks=json["blocks"],
            by=by,
            rows=tuple(rows),
        )

    def _parts(self) -> Iterable[Part]:
        phase = "other code" if self.phase == "other" else self.phase
        where = "" if phase is None else f", in {phase}"
        step = "" if self.step is None else f" of step {self.step:,}"
        unit = "segments" if self.band == "reserved_bytes" else "blocks"
        estimate = "" if self.exactness == "exact" else " (estimate)"
        yield f"{self.path}  {device(self.device)}"
        yield (
            f"{self.band} peaks at {size(self.peak_bytes)} ({self.peak_bytes:,} bytes), "
            f"{event(self.event)}{where}{step}, in {self.blocks:,} {unit}{estimate}"
        )
        yield self._grid(unit)

    def _line(self) -> str:
        return f"{self.band} {size(self.peak_bytes)} by {self.by}, {len(self.rows):,} rows"

    def _grid(self, unit: str) -> Grid:
        def shared(row: Row) -> tuple[str, str]:
            return size(row.live_bytes), percent(row.live_bytes, self.peak_bytes)

        what = {"category": "categories"}.get(self.by, f"{self.by}s")
        if self.by in ("line", "module", "holder"):
            rows = [(*shared(r), size(r.own_bytes), _indented(r)) for r in self.rows]
            with_all = "with calls" if self.by == "line" else "bytes"
            return Grid((with_all, "share", "own", self.by), rows, ">>><", what)
        if self.by in ("site", "stack"):
            named = [(*shared(r), f"{r.blocks:,}", r.category or "", r.name) for r in self.rows]
            return Grid(("bytes", "share", unit, "category", "call site"), named, ">>><<", what)
        rows = [(*shared(r), f"{r.blocks:,}", r.name) for r in self.rows]
        return Grid(("bytes", "share", unit, self.by), rows, ">>><", what)


def _indented(row: Row) -> str:
    return "  " * row.depth + (row.name.rsplit(" / ", 1)[-1] if row.depth else row.name)


def stacks(report: Json) -> Iterator[Row]:
    """The call stacks of a peak, named by their innermost frame in the user's code."""
    for row in report["stacks"]:
        frames = tuple(map(Frame.of, row["frames"]))
        yield Row(row["site"], row["bytes"], row["bytes"], row["blocks"], row["category"], frames)


def sites(report: Json) -> Iterable[Row]:
    """The call sites of a peak, by category."""
    if report["band"] == "requested_bytes":
        return [_row(site["site"], site, site["category"]) for site in report["sites"]]
    # The program's sites have requested bytes. A stack of several categories has a share of each.
    sums: dict[tuple[str, MixedCategory | None], tuple[int, int]] = {}
    for stack in report["stacks"]:
        for part in stack.get("categories") or [stack]:
            key = (stack["site"], part["category"])
            live, blocks = sums.get(key, (0, 0))
            sums[key] = (live + part["bytes"], blocks + part["blocks"])
    rows = [
        Row(name, live, live, blocks, category) for (name, category), (live, blocks) in sums.items()
    ]
    return sorted(rows, key=lambda row: -row.live_bytes)


def categories(report: Json) -> Iterable[Row]:
    """The categories of a peak."""
    return [_row(row["category"], row, row["category"]) for row in report["categories"]]


def streams(report: Json) -> Iterable[Row]:
    """The streams of a peak."""
    return [
        _row(f"{row['stream']:#x}{'' if row['stream'] else ' (default)'}", row)
        for row in report["streams"]
    ]


def pools(report: Json) -> Iterable[Row]:
    """The memory pools of a peak, by the kind of segment."""

    def name(row: Json) -> str:
        kind, pool = row["segment_type"], row["pool"]
        return f"{kind}" if pool in (None, [0, 0]) else f"{kind} of pool ({pool[0]}, {pool[1]})"

    return [_row(name(row), row) for row in report["pools"]]


def lines(report: Iterable[Json]) -> Iterable[Row]:
    """The own lines of a peak."""
    return [Row(row["label"], row["bytes"], row["own_bytes"], row["own_blocks"]) for row in report]


def modules(report: Json) -> Iterator[Row]:
    """The modules of a peak, depth first."""

    def below(module: Json, depth: int) -> Iterator[Row]:
        children = [child for child in module["children"] if child["blocks"]]
        own = module["bytes"] - sum(child["bytes"] for child in children)
        held = [name for name, count in module["categories"].items() if count]
        category: Any = None if not held else held[0] if len(held) == 1 else "mixed"
        if depth >= 0:
            size = (module["bytes"], own, module["blocks"])
            yield Row(module["path"], *size, category=category, depth=depth)
        elif own:
            rest = module["blocks"] - sum(child["blocks"] for child in children)
            yield Row("in no module", own, own, rest)
        for child in children:
            yield from below(child, depth + 1)

    return below(report["root"], -1)


def shapes(report: Json) -> Iterable[Row]:
    """The shapes of a peak. Blocks that several shapes fit, and blocks without one, are a row."""
    sums: dict[str, tuple[int, int]] = {}
    for row in report["rows"]:
        shapes = row["shapes"]
        one = shapes[0]["text"] if row["is_certain"] and shapes else ""
        name = one or ("several shapes fit" if shapes else "no shape is known")
        live, blocks = sums.get(name, (0, 0))
        sums[name] = (live + row["bytes"], blocks + row["blocks"])
    rows = [Row(name, live, live, blocks) for name, (live, blocks) in sums.items()]
    return sorted(rows, key=lambda row: -row.live_bytes)


def holders(report: Json) -> Iterator[Row]:
    """What holds the memory of a peak: roots, each followed by parts of it."""
    rows = report["rows"]
    for index, row in enumerate(rows):
        own = row["bytes"]
        for inner in rows[index + 1 :]:
            if inner["depth"] <= row["depth"]:
                break
            own -= inner["bytes"] if inner["depth"] == row["depth"] + 1 else 0
        yield Row(
            row["holder"],
            row["bytes"],
            own,
            row["blocks"],
            category=row["category"],
            depth=row["depth"],
        )


def uses(report: Json) -> Iterable[Row]:
    """What becomes of the memory of the peak of a traced step."""
    return [Row(of["text"], of["bytes"], of["bytes"], of["blocks"]) for of in report["groups"]]


def _row(name: str, json: Json, category: MixedCategory | None = None) -> Row:
    return Row(name, json["bytes"], json["bytes"], json["blocks"], category)
