"""What each step and each of its phases need, and what stays after them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import overload

from ..answer import Answer
from .names import PhaseName
from .records import Json
from .shown import Grid, Part, Shown, change, device, event, size

#: The phases that have a column, in the order of a step.
_PHASES: tuple[PhaseName, ...] = (
    "evaluation",
    "generation",
    "forward",
    "backward",
    "optimizer",
    "other",
)


@dataclass(frozen=True, repr=False)
class Phase(Shown):
    """A phase of a step."""

    phase: PhaseName
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

    def _parts(self) -> Iterable[Part]:
        yield f"{self.phase}: {size(self.peak_bytes)} at {event(self.peak_event)}"


@dataclass(frozen=True, repr=False)
class Step(Shown):
    """A training step."""

    step: int
    #: False for a step that the window's end cuts off.
    whole: bool
    #: The first event, and the one after the last.
    begin: int
    end: int
    phases: tuple[Phase, ...]
    #: The most requested bytes after an event of the step, and the first such event.
    peak_bytes: int
    peak_event: int
    #: Requested bytes after the step; ``None`` for a step that the window's end cuts off.
    floor_bytes: int | None
    #: What the floor grew by since the step before; ``None`` for the first.
    change_bytes: int | None

    @classmethod
    def of(cls, json: Json) -> Step:
        """From the program's JSON."""
        return cls(
            step=json["step"],
            whole=json["whole"],
            begin=json["begin"],
            end=json["end"],
            phases=tuple(map(Phase.of, json["phases"])),
            peak_bytes=json["peak_bytes"],
            peak_event=json["peak_event"],
            floor_bytes=json["floor_bytes"],
            change_bytes=json["change"],
        )

    def _parts(self) -> Iterable[Part]:
        after = "" if self.floor_bytes is None else f", {size(self.floor_bytes)} after it"
        yield f"step {self.step}: peak {size(self.peak_bytes)} at {event(self.peak_event)}{after}"

    def peak_of(self, phase: PhaseName) -> int | None:
        """The highest peak of a phase; ``None`` if the step does not have it."""
        return max((of.peak_bytes for of in self.phases if of.phase == phase), default=None)


@dataclass(frozen=True)
class Slope:
    """A steady growth from step to step."""

    bytes_per_step: int
    #: The first and the last step after which it is measured.
    from_step: int
    to_step: int
    #: What PyTorch could have on the device; ``None`` if the file does not show it.
    capacity_bytes: int | None
    #: The further steps after which a step needs more than that.
    steps_left: int | None

    @classmethod
    def of(cls, json: Json) -> Slope:
        """From the program's JSON."""
        names = ("bytes_per_step", "from_step", "to_step", "capacity_bytes", "steps_left")
        return cls(*(json[name] for name in names))


@dataclass(frozen=True, repr=False)
class Steps(Answer, Shown):
    """The steps of a window with their phases."""

    path: str
    rank: int | None
    device: int
    #: The evidence for steps; ``None`` if nothing shows steps.
    steps_by: str | None
    steps: tuple[Step, ...]
    #: Before the first step and after the last.
    outside: tuple[Phase, ...]
    #: The phase with the highest peak, and that peak; ``None`` if nothing shows phases.
    limiting_phase: PhaseName | None
    limiting_bytes: int | None
    #: The growth after the first two steps; ``None`` if it is not steady.
    slope: Slope | None
    #: What stays after steps, then what phases show, in sentences.
    text: tuple[str, ...] = field(compare=False)

    @classmethod
    def of(cls, json: Json) -> Steps:
        """From the program's JSON."""
        limiting, slope = json["limiting"] or {}, json["slope"]
        return cls(
            path=json["path"],
            rank=json["rank"],
            device=json["device"],
            steps_by=json["steps_by"],
            steps=tuple(map(Step.of, json["steps"])),
            outside=tuple(map(Phase.of, json["outside"])),
            limiting_phase=limiting.get("phase"),
            limiting_bytes=limiting.get("bytes"),
            slope=None if slope is None else Slope.of(slope),
            text=(*json["growth_text"], *json["text"]),
        )

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        return self.steps[index]

    def _line(self) -> str:
        if self.steps_by is None:
            return "no steps"
        count = len(self.steps)
        return f"{count:,} step{'' if count == 1 else 's'} by {self.steps_by.replace('_', ' ')}"

    def _parts(self) -> Iterable[Part]:
        yield f"{self.path}  {device(self.device)}, {self._line()}"
        yield from self.text
        if not self.steps:
            return
        phases = [
            phase
            for phase in _PHASES
            if any(step.peak_of(phase) is not None for step in self.steps)
        ]
        rows = [
            (
                f"{step.step:,}{'' if step.whole else ' (cut)'}",
                *(size(step.peak_of(phase)) for phase in phases),
                event(step.peak_event),
                size(step.floor_bytes),
                change(step.change_bytes),
            )
            for step in self.steps
        ]
        head = ("step", *phases, "peak at", "after it", "change")
        yield Grid(head, rows, ">" * len(head), "steps")
