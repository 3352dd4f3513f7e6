"""The answer of ``vramscope diagnose``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..answer import Answer
from .findings import BlindSpot, Finding, Lever
from .names import PhaseName, ProcessEvidence, ProcessWhen, Severity
from .records import Json
from .shown import Shown


@dataclass(frozen=True)
class Headline:
    """The sentence about a device."""

    path: str
    rank: int | None
    device: int
    #: The severity of its worst finding; ``None`` without one above low.
    severity: Severity | None
    #: The id of that finding; ``None`` without one.
    finding: str | None
    text: str

    @classmethod
    def of(cls, json: Json) -> Headline:
        """From the program's JSON."""
        names = ("path", "rank", "device", "severity", "finding", "text")
        return cls(*(json[name] for name in names))


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of a device at one moment."""

    #: The event after which it holds; -1 is the state before the window.
    event: int
    reserved_bytes: int
    #: What PyTorch can have; ``None`` where the file does not tell.
    capacity_bytes: int | None
    #: The request that failed; ``None`` without one.
    request_bytes: int | None
    #: Categories of blocks, what no block holds, and what PyTorch did not reserve.
    parts_bytes: Mapping[str, int]

    @classmethod
    def of(cls, json: Json) -> DeviceMemory:
        """From the program's JSON."""
        names = ("event", "reserved", "capacity", "request", "parts")
        return cls(*(json[name] for name in names))


@dataclass(frozen=True)
class RankGroup:
    """Ranks that hold about as much, with findings of one kind or none."""

    #: ``0-2,4-7``.
    ranks: str
    #: The least and the highest peak of requested bytes.
    peak_bytes: tuple[int, int]
    #: The least and the highest peak of reserved bytes.
    reserved_bytes: tuple[int, int]
    #: The least and the most requested bytes after the last whole step.
    kept_bytes: tuple[int, int]
    severity: Severity | None
    #: The id of their worst finding; ``None`` without one.
    finding: str | None

    @classmethod
    def of(cls, json: Json) -> RankGroup:
        """From the program's JSON."""
        bands = ("peak_bytes", "reserved_bytes", "kept_bytes")
        peak, reserved, kept = ((json[name][0], json[name][1]) for name in bands)
        return cls(json["ranks"], peak, reserved, kept, json["severity"], json["finding"])


@dataclass(frozen=True)
class HighestPeak:
    """The highest peak of requested bytes of all ranks."""

    path: str
    rank: int | None
    device: int
    peak_bytes: int
    #: The first event after which it is reached; -1 is the state before the window.
    event: int
    step: int | None
    phase: PhaseName | None
    categories_bytes: Mapping[str, int]

    @classmethod
    def of(cls, json: Json) -> HighestPeak:
        """From the program's JSON."""
        names = ("path", "rank", "device", "bytes", "event", "step", "phase", "categories")
        return cls(*(json[name] for name in names))


@dataclass(frozen=True)
class Moment:
    """One dump of a process."""

    path: str
    #: The time of its last event since 1970; ``None`` without a clock.
    time_us: int | None
    #: Requested bytes at the moment that is compared.
    live_bytes: int

    @classmethod
    def of(cls, json: Json) -> Moment:
        """From the program's JSON."""
        return cls(json["path"], json["time_us"], json["bytes"])


@dataclass(frozen=True)
class Process:
    """Several dumps of one process."""

    #: The story in two sentences.
    text: str
    rank: int | None
    device: int
    #: What shows that it is one process.
    evidence: ProcessEvidence
    #: When its memory is compared.
    when: ProcessWhen
    #: The dumps in the order of time.
    moments: tuple[Moment, ...]
    #: From the first dump to the last; negative if memory fell.
    growth_bytes: int
    categories_bytes: Mapping[str, int]
    #: The call sites that grew most, with their growth in bytes.
    sites_bytes: Mapping[str, int]

    @classmethod
    def of(cls, json: Json) -> Process:
        """From the program's JSON."""
        return cls(
            text=json["text"],
            rank=json["rank"],
            device=json["device"],
            evidence=json["evidence"],
            when=json["when"],
            moments=tuple(map(Moment.of, json["moments"])),
            growth_bytes=json["growth_bytes"],
            categories_bytes=json["categories"],
            sites_bytes={site["site"]: site["bytes"] for site in json["sites"]},
        )


@dataclass(frozen=True, repr=False)
class Diagnosis(Answer, Shown):
    """What is wrong, and what to change, as ``vramscope diagnose`` says it.

    ``print`` shows its text, a notebook its card.
    """

    #: The first words of the answer.
    sentence: str
    #: A sentence for each device, the worst first.
    headlines: tuple[Headline, ...]
    #: The findings that matter most, at most five.
    findings: tuple[Finding, ...]
    #: The ranks in groups of like ones; empty for a single device.
    ranks: tuple[RankGroup, ...]
    #: The memory of the first device; ``None`` if nothing was reserved.
    memory: DeviceMemory | None
    #: ``None`` if no memory was allocated.
    peak: HighestPeak | None
    #: What can be changed, best first. Those of a failed run are the fixes of its finding.
    levers: tuple[Lever, ...]
    #: Processes of which several dumps were read.
    processes: tuple[Process, ...]
    blind_spots: tuple[BlindSpot, ...]
    #: The answer as the program prints it.
    text: str = field(compare=False)
    #: The answer as ``vramscope diagnose --format markdown`` prints it.
    markdown: str = field(compare=False)
    #: The answer as a card in HTML.
    html: str = field(compare=False)

    @classmethod
    def of(cls, json: Json, shown: Json) -> Diagnosis:
        """From the program's JSON, and what a reader sees of it."""
        memory, peak = json["memory"], json["peak"]
        return cls(
            sentence=json["sentence"],
            headlines=tuple(map(Headline.of, json["headlines"])),
            findings=tuple(map(Finding.of, json["findings"])),
            ranks=tuple(map(RankGroup.of, json.get("ranks", ()))),
            memory=None if memory is None else DeviceMemory.of(memory),
            peak=None if peak is None else HighestPeak.of(peak),
            levers=tuple(map(Lever.of, json["levers"])),
            processes=tuple(map(Process.of, json.get("processes", ()))),
            blind_spots=tuple(map(BlindSpot.of, json["blind_spots"])),
            text=shown["text"],
            markdown=shown["markdown"],
            html=shown["html"],
        )

    def _parts(self) -> tuple[str, ...]:
        return tuple(headline.text for headline in self.headlines)

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def _repr_html_(self) -> str:
        return self.html
