"""Findings: what is wrong, and what to change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..answer import Answer
from .holders import Holder
from .names import (
    Basis,
    Cost,
    Covers,
    FindingKind,
    LeverBasis,
    Outcome,
    PhaseName,
    ProofForm,
    ProofUnit,
    Severity,
    SimulatedBasis,
)
from .records import Json
from .shown import Grid, Part, Shown, size


@dataclass(frozen=True)
class BlindSpot:
    """What could not be looked for."""

    kind: str
    text: str

    @classmethod
    def of(cls, json: Json) -> BlindSpot:
        """From the program's JSON."""
        return cls(json["kind"], json["text"])


@dataclass(frozen=True)
class FindingPlace:
    """The line that a finding is about."""

    #: The call site: ``gpt.py:44 forward``.
    site: str
    #: How the finding relates to it: ``called from train.py:40 main``. Empty for the line itself.
    note: str
    #: The recorded path of the file.
    file: str
    #: 0 if unknown.
    line: int
    #: The line of source; ``None`` if it is not known.
    source: str | None
    #: What it allocates; empty if nothing more is known.
    what: str

    @classmethod
    def of(cls, json: Json) -> FindingPlace:
        """From the program's JSON."""
        names = ("site", "note", "file", "line", "source", "what")
        return cls(*(json[name] for name in names))


@dataclass(frozen=True)
class FindingChild:
    """The share of one call site in a finding."""

    site: str
    #: The bytes of the finding at this call site.
    about_bytes: int
    blocks: int

    @classmethod
    def of(cls, json: Json) -> FindingChild:
        """From the program's JSON."""
        return cls(json["site"], json["bytes"], json["blocks"])


@dataclass(frozen=True)
class Simulated:
    """A change of a run, and the answer of the allocator's model."""

    #: What differs from the recording: ``as recorded``, ``expandable_segments:True``.
    change: str
    #: The settings in the form of ``PYTORCH_CUDA_ALLOC_CONF``.
    conf: str
    #: For a failed allocation: whether the run goes through this point. Else ``None``.
    fits: bool | None
    #: The missing bytes of a failed allocation.
    short_by_bytes: int | None
    #: When memory runs out, the peak until then.
    reserved_peak_bytes: int
    #: The memory that PyTorch must have for the run; ``None`` if it was not searched.
    least_device_memory_bytes: int | None
    basis: SimulatedBasis

    @classmethod
    def of(cls, json: Json) -> Simulated:
        """From the program's JSON."""
        return cls(
            change=json["change"],
            conf=json["conf"],
            fits=json["fits"],
            short_by_bytes=json["short_by"],
            reserved_peak_bytes=json["reserved_peak"],
            least_device_memory_bytes=json["least_device_memory"],
            basis=json["basis"],
        )


@dataclass(frozen=True)
class LeverPlace:
    """The line that a lever changes."""

    #: In words: ``gpt.py:44``.
    site: str
    #: The recorded path of the file.
    file: str
    line: int

    @classmethod
    def of(cls, json: Json) -> LeverPlace:
        """From the program's JSON."""
        return cls(json["site"], json["file"], json["line"])


@dataclass(frozen=True)
class LeverEdit:
    """A change as an edit of the program."""

    #: The change: ``checkpoint:all``.
    recipe: str
    #: The line of the program; ``None`` if no call stack shows it.
    place: str | None
    #: What stands there.
    what: str
    #: The change in Python.
    snippet: str

    @classmethod
    def of(cls, json: Json) -> LeverEdit:
        """From the program's JSON."""
        return cls(json["recipe"], json["place"], json["what"], json["snippet"])


@dataclass(frozen=True, repr=False)
class Lever(Shown):
    """Something to change, and what the run needs then."""

    #: Its name among the levers of a device.
    id: str
    #: The change's name, ``setting``, or the kind of the finding that it cures.
    kind: str
    #: What to change, in a few words.
    text: str
    #: The change as ``vramscope what-if --apply`` takes it; empty for settings alone.
    recipe: str
    #: The settings in the form of ``PYTORCH_CUDA_ALLOC_CONF``; ``None`` if they stay.
    conf: str | None
    #: The line to change; ``None`` where it is not known.
    place: LeverPlace | None
    #: What PyTorch must have without the change.
    now_bytes: int
    #: What PyTorch must have with it.
    needs_bytes: int
    #: The difference.
    saving_bytes: int
    cost: Cost
    #: How much longer a step takes, in percent: at least and at most. Estimated from the device's
    #: data sheet, not measured; ``None`` unless ``cost`` is ``time``, and without an estimate.
    seconds_percent: tuple[int, int] | None
    #: The GPU of that estimate.
    seconds_gpu: str | None
    #: ``None`` if no limit is known.
    outcome: Outcome | None
    #: The missing bytes; ``None`` unless ``outcome`` is ``short``.
    short_by_bytes: int | None
    covers: Covers
    #: When memory is full again, in words: ``12 steps``; ``None`` if nothing grows.
    lasts: str | None
    #: How the numbers were obtained.
    basis: LeverBasis
    #: The measured error.
    error_percent: float | None
    #: Between which values ``needs_bytes`` lies, where the file can be read in two ways.
    range_bytes: tuple[int, int] | None
    #: The id of the finding that it cures.
    cures: str | None
    #: ``None`` for settings, and where no edit was written.
    edit: LeverEdit | None

    @classmethod
    def of(cls, json: Json) -> Lever:
        """From the program's JSON."""
        place, edit, within = json["place"], json["edit"], json["range"]
        lasts, seconds = json.get("lasts"), json.get("seconds_percent")
        return cls(
            id=json["id"],
            kind=json["kind"],
            text=json["text"],
            recipe=json["recipe"],
            conf=json["conf"],
            place=None if place is None else LeverPlace.of(place),
            now_bytes=json["now_bytes"],
            needs_bytes=json["needs_bytes"],
            saving_bytes=json["saving_bytes"],
            cost=json["cost"],
            seconds_percent=None if seconds is None else (seconds[0], seconds[1]),
            seconds_gpu=json.get("seconds_gpu"),
            outcome=json["outcome"],
            short_by_bytes=json["short_by"],
            covers=json["covers"],
            lasts=None if lasts is None else f"{lasts['steps']} {lasts['called']}",
            basis=json["basis"],
            error_percent=json["error_percent"],
            range_bytes=None if within is None else (within[0], within[1]),
            cures=json["cures"],
            edit=None if edit is None else LeverEdit.of(edit),
        )

    def _parts(self) -> Iterable[Part]:
        at = "" if self.place is None else f" ({self.place.site})"
        outcome = "" if self.outcome is None else f"{self.outcome}, "
        yield f"{self.text}{at}: {outcome}needs {size(self.needs_bytes)}"


@dataclass(frozen=True, repr=False)
class Look(Shown):
    """A known cause of memory that the file shows, whose cure does not suffice alone."""

    #: The cause and its cure.
    text: str
    #: What the peak of active bytes loses, replayed.
    saving_bytes: int
    #: The line; ``None`` where it is not known.
    site: str | None
    #: The change as ``vramscope what-if --apply`` takes it.
    recipe: str

    @classmethod
    def of(cls, json: Json) -> Look:
        """From the program's JSON."""
        return cls(json["text"], json["bytes"], json["site"], json["recipe"])

    def _parts(self) -> Iterable[Part]:
        site = "" if self.site is None else f"{self.site}: "
        yield f"{site}{self.text}, saves {size(self.saving_bytes)} of the peak"


@dataclass(frozen=True)
class Proof:
    """The numbers that prove a finding. ``unit`` is the unit of all values."""

    form: ProofForm
    title: str
    unit: ProofUnit
    #: The names of the values; of a curve, those of the first and the last.
    labels: tuple[str, ...] = field(repr=False)
    values: tuple[int, ...] = field(repr=False)
    #: The reserved bytes of a curve.
    reserved: tuple[int, ...] = field(repr=False)
    #: The indices of the values that show the finding.
    marked: tuple[int, ...] = field(repr=False)
    #: The first state of each block's life, and the first state after it.
    spans: tuple[tuple[int, int], ...] = field(repr=False)
    #: The name and the value of what the values are compared with.
    line: tuple[str, int] | None
    #: The request that failed.
    request_bytes: int | None
    #: The numbers in words.
    text: str

    @classmethod
    def of(cls, json: Json) -> Proof:
        """From the program's JSON."""
        line = json.get("line")
        return cls(
            form=json["form"],
            title=json["title"],
            unit=json["unit"],
            labels=tuple(json["labels"]),
            values=tuple(json["values"]),
            reserved=tuple(json.get("reserved", ())),
            marked=tuple(json["marked"]),
            spans=tuple((begin, end) for begin, end in json.get("spans", ())),
            line=None if line is None else (line["label"], line["value"]),
            request_bytes=json.get("request"),
            text=json["text"],
        )


@dataclass(frozen=True, repr=False)
class Finding(Shown):
    """A finding."""

    id: str
    kind: FindingKind
    severity: Severity
    path: str
    rank: int | None
    device: int
    #: The finding in a few words.
    title: str
    #: Subject, numbers and cause.
    text: str
    #: What to do.
    action: str
    #: The line that it is about; ``None`` without a call stack.
    place: FindingPlace | None
    #: Why, in one line without the figures of the title; empty where the title says it.
    why: str
    #: The bytes that the finding is about.
    about_bytes: int
    #: What the peak loses without it; ``None`` where that is not measured.
    saving_bytes: int | None
    step: int | None
    phase: PhaseName | None
    basis: Basis
    #: Evidence.
    events: tuple[int, ...]
    #: Call sites, most bytes first.
    sites: tuple[str, ...]
    called_from: tuple[str, ...]
    blocks: int
    #: The shares of the call sites, if there are several.
    children: tuple[FindingChild, ...]
    #: Answers of the allocator's model: first about the run as recorded, then about changes.
    simulated: tuple[Simulated, ...]
    #: Changes with which a failed run goes through: what fits first, then by cost.
    fixes: tuple[Lever, ...]
    #: Known causes of memory whose cures do not suffice alone: those with most bytes first.
    look: tuple[Look, ...]
    #: What holds its blocks at the end, most bytes first, if the file beside the snapshot tells it.
    holders: tuple[Holder, ...]
    #: ``None`` where there is nothing to draw, and in a :class:`Diagnosis`.
    proof: Proof | None

    @classmethod
    def of(cls, json: Json) -> Finding:
        """From the program's JSON."""
        proof, place = json.get("proof"), json.get("place")
        return cls(
            id=json["id"],
            kind=json["kind"],
            severity=json["severity"],
            path=json["path"],
            rank=json["rank"],
            device=json["device"],
            title=json["title"],
            text=json["text"],
            action=json["action"],
            place=None if place is None else FindingPlace.of(place),
            why=json.get("why", ""),
            about_bytes=json["bytes"],
            saving_bytes=json.get("saving_bytes"),
            step=json["step"],
            phase=json["phase"],
            basis=json["basis"],
            events=tuple(json["events"]),
            sites=tuple(json["sites"]),
            called_from=tuple(json["called_from"]),
            blocks=json["blocks"],
            children=tuple(map(FindingChild.of, json["children"])),
            simulated=tuple(map(Simulated.of, json.get("simulated", ()))),
            fixes=tuple(map(Lever.of, json.get("fixes", ()))),
            look=tuple(map(Look.of, json.get("look", ()))),
            holders=tuple(map(Holder.of, json.get("holders", ()))),
            proof=None if proof is None else Proof.of(proof),
        )

    def _parts(self) -> Iterable[Part]:
        yield f"{self.severity} {self.kind}: {self.title}"
        if self.place is not None:
            note = f", {self.place.note}" if self.place.note else ""
            yield f"{self.place.site}{note}"
        yield self.text
        for holder in self.holders:
            yield f"held by {holder.text}" if holder.kind == "reference" else holder.text
        if self.action:
            yield self.action


class Findings(Answer, Shown, tuple[Finding, ...]):
    """Findings by severity, then bytes. ``blind_spots`` is what could not be looked for."""

    blind_spots: tuple[BlindSpot, ...]

    @classmethod
    def of(cls, json: Json) -> Findings:
        """From the program's JSON."""
        findings = cls(map(Finding.of, json["findings"]))
        findings.blind_spots = tuple(map(BlindSpot.of, json["blind_spots"]))
        return findings

    def _parts(self) -> Iterable[Part]:
        yield f"{len(self)} finding{'' if len(self) == 1 else 's'}"
        if self:
            rows = [
                (
                    size(one.about_bytes),
                    one.severity,
                    one.kind,
                    "" if one.place is None else one.place.site,
                    one.title,
                )
                for one in self
            ]
            yield Grid(("bytes", "severity", "kind", "line", "finding"), rows, "><<<<", "findings")
        for spot in self.blind_spots:
            yield f"Not looked for: {spot.text}"
