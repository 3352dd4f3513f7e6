"""What reports say, as dataclasses. Names end with their unit: ``_bytes``, ``_us`` (microseconds).

Events count from 0 in the device's trace; -1 is the state before the first. ``docs/numbers.md`` of
the project defines the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    #: ``exact`` or ``estimate``.
    exactness: str

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


@dataclass(frozen=True)
class Device:
    """Key figures of a device."""

    device: int
    #: ``gpu``, or ``host`` for pinned host memory.
    kind: str
    events: int
    #: The number of events by action.
    actions: Mapping[str, int]
    #: Times of the first and the last event since 1970; ``None`` without a clock.
    window_us: tuple[int, int] | None
    segments: int
    #: ``whole``, ``partial`` or ``none``.
    coverage: str
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


@dataclass(frozen=True)
class Summary:
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


@dataclass(frozen=True)
class Row:
    """A part of a peak."""

    #: The call site, category, module or frame.
    name: str
    #: Bytes. For a frame, those of all stacks with this frame.
    live_bytes: int
    #: ``None`` for a frame.
    blocks: int | None
    #: ``mixed`` if the blocks have several; ``None`` for a frame and for segments.
    category: str | None
    #: The call stack, innermost frame first; empty unless the row is a call site's.
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class Peak:
    """What held memory when a band was largest."""

    path: str
    device: int
    #: ``requested_bytes``, ``active_bytes``, ``allocated_bytes`` or ``reserved_bytes``.
    band: str
    #: The first event after which the band is largest.
    event: int
    time_us: int | None
    step: int | None
    phase: str | None
    peak_bytes: int
    #: ``exact`` or ``estimate``.
    exactness: str
    blocks: int
    #: ``site``, ``category``, ``module`` or ``frame``.
    by: str
    #: Most bytes first. They add up to ``peak_bytes``, except by frame.
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, json: Json, by: str, rows: tuple[Row, ...]) -> Peak:
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
            rows=rows,
        )


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
    #: ``simulated`` or ``estimate``.
    basis: str

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
class Fix:
    """A change with which a failed run goes through, replayed over the whole run."""

    #: What to change, in a few words.
    text: str
    #: The change as ``vramscope what-if --apply`` takes it; empty for settings alone.
    recipe: str
    #: The settings in the form of ``PYTORCH_CUDA_ALLOC_CONF``; ``None`` if they stay.
    conf: str | None
    #: ``fits``, ``fits_barely``, ``short`` or ``unknown``.
    outcome: str
    #: What PyTorch must have.
    needs_bytes: int
    #: The missing bytes; ``None`` unless ``outcome`` is ``short``.
    short_by_bytes: int | None
    #: What the peak of active bytes loses.
    saving_bytes: int
    #: ``setting``, ``edit``, ``time``, ``precision`` or ``batch``.
    cost: str
    #: ``run``, ``step`` or ``request``.
    covers: str
    #: The measured error of the peak.
    error_percent: float | None

    @classmethod
    def of(cls, json: Json) -> Fix:
        """From the program's JSON."""
        return cls(
            text=json["text"],
            recipe=json["recipe"],
            conf=json["conf"],
            outcome=json["outcome"],
            needs_bytes=json["needs_bytes"],
            short_by_bytes=json["short_by"],
            saving_bytes=json["saving_bytes"],
            cost=json["cost"],
            covers=json["covers"],
            error_percent=json["error_percent"],
        )


@dataclass(frozen=True)
class Proof:
    """The numbers that prove a finding. ``unit`` is the unit of all values."""

    #: ``columns``, ``parts``, ``curve`` or ``lives``.
    form: str
    title: str
    #: ``bytes`` or ``count``.
    unit: str
    #: The names of the values; of a curve, those of the first and the last.
    labels: tuple[str, ...]
    values: tuple[int, ...]
    #: The reserved bytes of a curve.
    reserved: tuple[int, ...]
    #: The indices of the values that show the finding.
    marked: tuple[int, ...]
    #: The first state of each block's life, and the first state after it.
    spans: tuple[tuple[int, int], ...]
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


@dataclass(frozen=True)
class Finding:
    """A finding."""

    id: str
    kind: str
    #: ``high``, ``medium`` or ``low``.
    severity: str
    path: str
    rank: int | None
    device: int
    title: str
    text: str
    #: What to do.
    action: str
    #: The bytes that the finding is about.
    about_bytes: int
    step: int | None
    phase: str | None
    #: How the numbers were obtained.
    basis: str
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
    fixes: tuple[Fix, ...]
    #: ``None`` where there is nothing to draw, and in a :class:`Diagnosis`.
    proof: Proof | None

    @classmethod
    def of(cls, json: Json) -> Finding:
        """From the program's JSON."""
        proof = json.get("proof")
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
            about_bytes=json["bytes"],
            step=json["step"],
            phase=json["phase"],
            basis=json["basis"],
            events=tuple(json["events"]),
            sites=tuple(json["sites"]),
            called_from=tuple(json["called_from"]),
            blocks=json["blocks"],
            children=tuple(map(FindingChild.of, json["children"])),
            simulated=tuple(map(Simulated.of, json.get("simulated", ()))),
            fixes=tuple(map(Fix.of, json.get("fixes", ()))),
            proof=None if proof is None else Proof.of(proof),
        )


class Findings(tuple[Finding, ...]):
    """Findings by severity, then bytes. ``blind_spots`` is what could not be looked for."""

    blind_spots: tuple[BlindSpot, ...]

    @classmethod
    def of(cls, json: Json) -> Findings:
        """From the program's JSON."""
        findings = cls(map(Finding.of, json["findings"]))
        findings.blind_spots = tuple(map(BlindSpot.of, json["blind_spots"]))
        return findings


@dataclass(frozen=True)
class Diagnosis:
    """The verdict, and the findings that matter most."""

    verdict: str
    findings: tuple[Finding, ...]
    #: The changes that save most of a run without a finding above low.
    savings: tuple[Fix, ...]
    blind_spots: tuple[BlindSpot, ...]

    @classmethod
    def of(cls, json: Json) -> Diagnosis:
        """From the program's JSON."""
        return cls(
            verdict=json["verdict"],
            findings=tuple(map(Finding.of, json["findings"])),
            savings=tuple(map(Fix.of, json.get("savings", ()))),
            blind_spots=tuple(map(BlindSpot.of, json["blind_spots"])),
        )


@dataclass(frozen=True)
class Phase:
    """A phase of a step."""

    #: ``forward``, ``backward``, ``optimizer``, ``evaluation``, ``generation`` or ``other``.
    phase: str
    #: The first event, and the one after the last.
    begin: int
    end: int
    peak_bytes: int
    peak_event: int
    blocks: int
    #: Negative if memory was given back.
    reserved_growth_bytes: int
    #: Live bytes at the peak by category.
    categories_bytes: Mapping[str, int]
    #: The call site that set the peak.
    site: str | None

    @classmethod
    def of(cls, json: Json) -> Phase:
        """From the program's JSON."""
        return cls(
            phase=json["phase"],
            begin=json["begin"],
            end=json["end"],
            peak_bytes=json["peak_bytes"],
            peak_event=json["peak_event"],
            blocks=json["blocks"],
            reserved_growth_bytes=json["reserved_growth"],
            categories_bytes=json["categories"],
            site=json["site"],
        )


@dataclass(frozen=True)
class Step:
    """A training step."""

    step: int
    #: False for a step that the window's end cuts off.
    whole: bool
    begin: int
    end: int
    phases: tuple[Phase, ...]

    @classmethod
    def of(cls, json: Json) -> Step:
        """From the program's JSON."""
        phases = tuple(map(Phase.of, json["phases"]))
        return cls(json["step"], json["whole"], json["begin"], json["end"], phases)


@dataclass(frozen=True)
class Phases:
    """What each phase of each step needs."""

    #: The evidence for steps; ``None`` if nothing shows steps.
    steps_by: str | None
    steps: tuple[Step, ...]
    #: Before the first step and after the last.
    outside: tuple[Phase, ...]
    #: The phase with the highest peak, and that peak; ``None`` if nothing shows phases.
    limiting_phase: str | None
    limiting_bytes: int | None
    #: What follows, in sentences.
    text: tuple[str, ...]

    @classmethod
    def of(cls, json: Json) -> Phases:
        """From the program's JSON."""
        limiting = json["limiting"] or {}
        return cls(
            steps_by=json["steps_by"],
            steps=tuple(map(Step.of, json["steps"])),
            outside=tuple(map(Phase.of, json["outside"])),
            limiting_phase=limiting.get("phase"),
            limiting_bytes=limiting.get("bytes"),
            text=tuple(json["text"]),
        )


@dataclass(frozen=True)
class Calibration:
    """The model of the allocator compared with the recording."""

    recorded_reserved_peak_bytes: int
    simulated_reserved_peak_bytes: int
    #: Whether reserved bytes are equal after every event.
    equal: bool
    first_difference_event: int | None
    #: What PyTorch can have on the device; ``None`` if nothing shows it.
    capacity_bytes: int | None
    #: How that is known: ``exact``, ``bounded``, ``other_rank``, ``changing`` or ``unknown``.
    capacity_basis: str

    @classmethod
    def of(cls, json: Json) -> Calibration:
        """From the program's JSON."""
        return cls(
            recorded_reserved_peak_bytes=json["recorded_reserved_peak"],
            simulated_reserved_peak_bytes=json["simulated_reserved_peak"],
            equal=json["equal"],
            first_difference_event=json["first_difference_event"],
            capacity_bytes=json["capacity"]["bytes"],
            capacity_basis=json["capacity"]["basis"],
        )


@dataclass(frozen=True)
class Scenario:
    """A prediction."""

    #: What differs from the recording.
    change: str
    #: Changes of the program: ``checkpoint:all``, ``batch:0.5``.
    recipes: tuple[str, ...]
    #: The settings in the form of ``PYTORCH_CUDA_ALLOC_CONF``.
    conf: str
    device_memory_bytes: int | None
    #: What PyTorch can have on the device.
    pytorch_memory_bytes: int | None
    reserved_peak_bytes: int
    #: ``None`` for a changed program, which has other events.
    reserved_peak_event: int | None
    active_peak_bytes: int
    #: Less and plus the measured error.
    active_range_bytes: tuple[int, int]
    #: The lowest and the highest peak over three orders of addresses.
    reserved_range_bytes: tuple[int, int]
    #: Active bytes in the course of a changed run that was asked for: the highest of each of at
    #: most 128 equal parts of its calls.
    curve: tuple[int, ...]
    flushes: int
    #: Events whose request fails.
    ooms: tuple[int, ...]
    #: ``None`` where it is too close to tell or not known.
    fits: bool | None
    #: What each change found: its assumptions.
    found: tuple[str, ...]
    #: Why there is no prediction for this change.
    declined: str | None
    short_by_bytes: int | None
    least_device_memory_bytes: int | None
    #: ``simulated``, ``recipe`` or ``estimate``.
    basis: str
    error_percent: float | None

    @classmethod
    def of(cls, json: Json) -> Scenario:
        """From the program's JSON."""
        low, high = json["reserved_range"]
        return cls(
            change=json["change"],
            recipes=tuple(json["recipes"]),
            conf=json["conf"],
            device_memory_bytes=json["device_memory"],
            pytorch_memory_bytes=json["pytorch_memory"],
            reserved_peak_bytes=json["reserved_peak"],
            reserved_peak_event=json["reserved_peak_event"],
            active_peak_bytes=json["active_peak"],
            active_range_bytes=(json["active_range"][0], json["active_range"][1]),
            reserved_range_bytes=(low, high),
            curve=tuple(json.get("curve", ())),
            flushes=json["flushes"],
            ooms=tuple(json["ooms"]),
            fits=json["fits"],
            found=tuple(json["found"]),
            declined=json["declined"],
            short_by_bytes=json["short_by"],
            least_device_memory_bytes=json["least_device_memory"],
            basis=json["basis"],
            error_percent=json["error_percent"],
        )


@dataclass(frozen=True)
class Reserved:
    """What the recorded peak of reserved memory was used for."""

    in_use_bytes: int
    rounding_bytes: int
    idle_bytes: int
    stuck_bytes: int
    small_bytes: int

    @classmethod
    def of(cls, json: Json) -> Reserved:
        """From the program's JSON."""
        names = ("in_use", "rounding", "idle", "stuck", "small")
        return cls(*(json[name] for name in names))


@dataclass(frozen=True)
class PlannedSet:
    """A set of changes that fits, without a needless part."""

    fix: Fix
    #: The largest batch that fits with it, as in :class:`Plan`.
    largest_batch: float | None

    @classmethod
    def of(cls, json: Json) -> PlannedSet:
        """From the program's JSON."""
        return cls(fix=Fix.of(json), largest_batch=json["largest_batch"])


@dataclass(frozen=True)
class Plan:
    """What to change so that a run goes through on a device."""

    pytorch_memory_bytes: int
    #: Whether it goes through as it is: ``fits``, ``fits_barely``, ``short`` or ``unknown``.
    unchanged: str
    #: What PyTorch must have for that.
    needs_bytes: int
    #: The largest batch that fits as a factor of the recorded one; 4 stands for more.
    largest_batch: float | None
    #: The cheapest set of each cost.
    sets: tuple[PlannedSet, ...]

    @classmethod
    def of(cls, json: Json) -> Plan:
        """From the program's JSON."""
        return cls(
            pytorch_memory_bytes=json["pytorch_memory"],
            unchanged=json["unchanged"],
            needs_bytes=json["needs_bytes"],
            largest_batch=json["largest_batch"],
            sets=tuple(map(PlannedSet.of, json["sets"])),
        )


@dataclass(frozen=True)
class WhatIf:
    """What other settings, another device or a changed program would reserve."""

    #: Why there is no prediction; ``None`` if there are predictions.
    declined: str | None
    calibration: Calibration | None
    #: In the order asked.
    scenarios: tuple[Scenario, ...]
    reserved: Reserved | None
    #: The cheapest changes that fit; ``None`` unless they were asked for.
    plan: Plan | None

    @classmethod
    def of(cls, json: Json) -> WhatIf:
        """From the program's JSON."""
        calibration, reserved, plan = json["calibration"], json["reserved"], json.get("plan")
        return cls(
            declined=json["declined"],
            calibration=None if calibration is None else Calibration.of(calibration),
            scenarios=tuple(map(Scenario.of, json["scenarios"])),
            reserved=None if reserved is None else Reserved.of(reserved),
            plan=None if plan is None else Plan.of(plan),
        )
