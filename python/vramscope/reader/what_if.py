"""Predictions of other settings, other devices and changed programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..answer import Answer
from .findings import Lever
from .names import CapacityBasis, Outcome, SimulatedBasis
from .records import Json
from .shown import Grid, Part, Shown, size


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
    #: How that is known.
    capacity_basis: CapacityBasis

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


@dataclass(frozen=True, repr=False)
class Scenario(Shown):
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
    #: ``fits`` with its margin; ``None`` without a limit, and where no program is changed.
    outcome: Outcome | None
    #: What each change found: its assumptions.
    found: tuple[str, ...]
    #: As :attr:`Lever.seconds_percent`.
    seconds_percent: tuple[int, int] | None
    #: The GPU of that estimate.
    seconds_gpu: str | None
    #: Why there is no prediction for this change.
    declined: str | None
    short_by_bytes: int | None
    least_device_memory_bytes: int | None
    basis: SimulatedBasis
    error_percent: float | None
    #: The outcome in words.
    text: str

    @classmethod
    def of(cls, json: Json, text: str) -> Scenario:
        """From the program's JSON."""
        (low, high), seconds = json["reserved_range"], json.get("seconds_percent")
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
            outcome=json["outcome"],
            found=tuple(json["found"]),
            seconds_percent=None if seconds is None else (seconds[0], seconds[1]),
            seconds_gpu=json.get("seconds_gpu"),
            declined=json["declined"],
            short_by_bytes=json["short_by"],
            least_device_memory_bytes=json["least_device_memory"],
            basis=json["basis"],
            error_percent=json["error_percent"],
            text=text,
        )

    def _parts(self) -> Iterable[Part]:
        yield f"{self.change}: {self.text}"
        if self.declined is None:
            reserved, active = size(self.reserved_peak_bytes), size(self.active_peak_bytes)
            yield f"{reserved} reserved, {active} active"
        yield from self.found

    def _cells(self) -> tuple[str, ...]:
        if self.declined is not None:
            return (self.change, "", "", "", "", self.text, "")
        low, high = self.reserved_range_bytes
        of_order = f" ({size(low)} to {size(high)})" if low < high else ""
        error = "" if self.error_percent is None else f" ±{self.error_percent:g} %"
        return (
            self.change,
            f"{size(self.reserved_peak_bytes)}{of_order}",
            size(self.active_peak_bytes),
            f"{self.flushes:,}",
            size(self.least_device_memory_bytes),
            self.text,
            f"{self.basis}{error}",
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


@dataclass(frozen=True, repr=False)
class PlannedSet(Shown):
    """A set of changes that fits, without a needless part."""

    lever: Lever
    #: The largest batch that fits with it, as in :class:`Plan`.
    largest_batch: float | None

    @classmethod
    def of(cls, json: Json) -> PlannedSet:
        """From the program's JSON."""
        return cls(lever=Lever.of(json), largest_batch=json["largest_batch"])

    def _parts(self) -> Iterable[Part]:
        return self.lever._parts()


@dataclass(frozen=True)
class Plan:
    """What to change so that a run goes through on a device."""

    pytorch_memory_bytes: int
    #: Whether it goes through as it is.
    unchanged: Outcome
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
class Serving:
    """The KV cache that an inference engine can have on a GPU."""

    #: Why there is no answer; ``None`` if there is one.
    declined: str | None
    device_memory_bytes: int
    #: What takes the GPU beside the cache: with the cache, these add up to its memory.
    parts: dict[str, int]
    kv_cache_bytes: int
    recorded_kv_cache_bytes: int
    #: The flag of the recording that decided about its cache.
    recorded_flag: str | None
    #: Bytes of the cache for each token.
    bytes_per_token: int | None
    #: The length of each sequence, in tokens.
    length: int | None
    #: The most sequences of this length.
    sequences: int | None
    #: Flags of the engine to paste, the most direct first.
    flags: tuple[str, ...]

    @classmethod
    def of(cls, json: Json) -> Serving:
        """From the program's JSON."""
        return cls(
            declined=json["declined"],
            device_memory_bytes=json["device_memory"],
            parts={part["name"]: part["bytes"] for part in json["parts"]},
            kv_cache_bytes=json["kv_cache"],
            recorded_kv_cache_bytes=json["recorded_kv_cache"],
            recorded_flag=json["recorded_flag"],
            bytes_per_token=json["bytes_per_token"],
            length=json["length"],
            sequences=json["sequences"],
            flags=tuple(flag["text"] for flag in json["flags"]),
        )


@dataclass(frozen=True, repr=False)
class WhatIf(Answer, Shown):
    """What other settings, another device or a changed program would reserve."""

    #: Why there is no prediction; ``None`` if there are predictions.
    declined: str | None
    calibration: Calibration | None
    #: In the order asked.
    scenarios: tuple[Scenario, ...]
    reserved: Reserved | None
    #: The cheapest changes that fit; ``None`` unless they were asked for.
    plan: Plan | None
    #: The KV cache of an inference engine; ``None`` for other runs.
    serving: Serving | None
    #: What follows, in sentences.
    text: tuple[str, ...] = field(compare=False)

    @classmethod
    def of(cls, json: Json, words: Json) -> WhatIf:
        """From the program's JSON, and its words."""
        calibration, reserved, plan = json["calibration"], json["reserved"], json.get("plan")
        serving = json.get("serving")
        return cls(
            declined=json["declined"],
            calibration=None if calibration is None else Calibration.of(calibration),
            scenarios=tuple(map(Scenario.of, json["scenarios"], words["outcomes"])),
            reserved=None if reserved is None else Reserved.of(reserved),
            plan=None if plan is None else Plan.of(plan),
            serving=None if serving is None else Serving.of(serving),
            text=tuple(words["text"]),
        )

    def _parts(self) -> Iterable[Part]:
        yield from self.text
        if self.plan is not None and self.plan.sets:
            levers = [one.lever for one in self.plan.sets]
            sets = [(one.cost, one.text, size(one.needs_bytes)) for one in levers]
            yield Grid(("costs", "change", "needs"), sets, "<<>")
        if self.plan is None and self.scenarios:
            head = (
                "change",
                "reserved peak",
                "active peak",
                "flushes",
                "needs",
                "outcome",
                "basis",
            )
            yield Grid(head, [one._cells() for one in self.scenarios], "<>>>><<", "changes")
            for one in self.scenarios:
                yield from one.found
