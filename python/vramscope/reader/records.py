"""What reports say, as dataclasses. Names end with their unit: ``_bytes``, ``_us`` (microseconds).

Events count from 0 in the device's trace; -1 is the state before the first. ``NUMBERS.md`` of
the project defines the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..answer import Answer, told
from .names import Coverage, Exactness
from .shown import Grid, Part, Shown, device, event, size

Json = Mapping[str, Any]


@dataclass(frozen=True)
class BandFigures:
    """A band of ``torch.cuda.memory_stats()``: at the start, at its peak, at the end."""

    start_bytes: int
    peak_bytes: int
    #: The first event after which the peak is reached.
    peak_event: int
    peak_us: int | None
    end_bytes: int
    exactness: Exactness

    @classmethod
    def of(cls, json: Json) -> BandFigures:
        """From the program's JSON."""
        return cls(
            json["start"],
            json["peak"],
            json["peak_event"],
            json["peak_us"],
            json["end"],
            json["exactness"],
        )


@dataclass(frozen=True)
class Oom:
    """An allocation that failed."""

    event: int
    requested_bytes: int
    #: Free bytes on the device as the driver reported them; ``None`` if they were not recorded.
    device_free_bytes: int | None

    @classmethod
    def of(cls, json: Json) -> Oom:
        """From the program's JSON."""
        return cls(json["event"], json["requested"], json["device_free"])


@dataclass(frozen=True, repr=False)
class Device(Shown):
    """Key figures of a device."""

    device: int
    #: ``gpu``, or ``host`` for pinned host memory.
    kind: str
    #: ``rocm``, ``xpu``, ``npu`` or ``mtia``, where the file or the file beside it tells; ``None``
    #: for CUDA.
    backend: str | None
    events: int
    #: The number of events by action.
    actions: Mapping[str, int]
    #: Times of the first and the last event since 1970; ``None`` without a clock.
    window_us: tuple[int, int] | None
    segments: int
    #: The part of the run that the trace has.
    coverage: Coverage
    allocations_in_window: int
    preexisting_freed: int
    preexisting_live: int
    end_live_blocks: int
    requested: BandFigures
    active: BandFigures
    #: Its peak is ``torch.cuda.max_memory_allocated()``.
    allocated: BandFigures
    reserved: BandFigures
    ooms: tuple[Oom, ...]

    @classmethod
    def of(cls, json: Json) -> Device:
        """From the program's JSON."""
        window = json["window_us"]
        return cls(
            device=json["device"],
            kind=json["kind"],
            backend=json.get("backend"),
            events=json["events"],
            actions=json["actions"],
            window_us=None if window is None else (window[0], window[1]),
            segments=json["segments"],
            coverage=json["coverage"],
            allocations_in_window=json["allocations_in_window"],
            preexisting_freed=json["preexisting_freed"],
            preexisting_live=json["preexisting_live"],
            end_live_blocks=json["end_live_blocks"],
            requested=BandFigures.of(json["requested_bytes"]),
            active=BandFigures.of(json["active_bytes"]),
            allocated=BandFigures.of(json["allocated_bytes"]),
            reserved=BandFigures.of(json["reserved_bytes"]),
            ooms=tuple(map(Oom.of, json["ooms"])),
        )

    def _parts(self) -> Iterable[Part]:
        yield (
            f"{device(self.device)}: {self.events:,} events, "
            f"{self.allocations_in_window:,} allocations, {self.segments:,} segments, "
            f"{self.end_live_blocks:,} blocks live at the end"
        )
        bands = (
            ("requested_bytes", self.requested),
            ("active_bytes", self.active),
            ("allocated_bytes", self.allocated),
            ("reserved_bytes", self.reserved),
        )
        rows = [
            (
                name,
                size(band.start_bytes),
                size(band.peak_bytes),
                size(band.end_bytes),
                event(band.peak_event) + ("" if band.exactness == "exact" else " (estimate)"),
            )
            for name, band in bands
        ]
        yield Grid(("", "start", "peak", "end", "peak at"), rows, "<>>>>")
        for oom in self.ooms:
            free = oom.device_free_bytes
            on_device = "" if free is None else f", {size(free)} free on the device"
            yield f"out of memory at {event(oom.event)}: {size(oom.requested_bytes)}{on_device}"


@dataclass(frozen=True)
class Warning:
    """A defect of a file that reading worked around."""

    code: str
    message: str
    #: ``None`` if it is about the whole file.
    device: int | None
    #: Where in the pickle it first occurs, in bytes.
    offset: int | None
    count: int

    @classmethod
    def of(cls, json: Json) -> Warning:
        """From the program's JSON."""
        return cls(
            json["code"], json["message"], json["device"], json["byte_offset"], json["count"]
        )


@dataclass(frozen=True, repr=False)
class Summary(Answer, Shown):
    """Key figures of a snapshot."""

    path: str
    #: The rank in the path; ``None`` if there is none.
    rank: int | None
    #: The size of the file.
    file_bytes: int
    warnings: tuple[Warning, ...]
    annotations: int
    frames: int
    stacks: int
    devices: tuple[Device, ...]

    @classmethod
    def of(cls, json: Json) -> Summary:
        """From the program's JSON."""
        return cls(
            path=json["path"],
            rank=json["rank"],
            file_bytes=json["bytes"],
            warnings=tuple(map(Warning.of, json["warnings"])),
            annotations=json["annotations"],
            frames=json["frames"],
            stacks=json["stacks"],
            devices=tuple(map(Device.of, json["devices"])),
        )

    @classmethod
    def each(cls, text: bytes) -> Iterator[Summary]:
        """Of each snapshot in the program's JSON. The record of each is about it alone."""
        record = json.loads(text)
        for one in record["files"]:
            alone = {**record, "files": [one], "skipped_files": 0}
            yield told(cls.of(one), json.dumps(alone, ensure_ascii=False).encode())

    def _line(self) -> str:
        devices = "; ".join(
            f"{device(one.device)} peaks at {size(one.requested.peak_bytes)}"
            for one in self.devices
        )
        return f"{size(self.file_bytes)}; {devices}"

    def _parts(self) -> Iterable[Part]:
        yield (
            f"{self.path}  {size(self.file_bytes)}, {self.stacks:,} stacks, {self.frames:,} "
            f"frames, {self.annotations:,} annotations"
        )
        for one in self.devices:
            yield from one._parts()
        if not self.devices:
            yield "no memory was allocated"
        for warning in self.warnings:
            times = f" ({warning.count:,} times)" if warning.count > 1 else ""
            yield f"warning: {warning.message}{times}"


@dataclass(frozen=True)
class Frame:
    """A frame of a call stack."""

    name: str
    file: str
    #: 0 if unknown.
    line: int

    @classmethod
    def of(cls, json: Json) -> Frame:
        """From the program's JSON."""
        return cls(json["name"], json["file"], json["line"])
