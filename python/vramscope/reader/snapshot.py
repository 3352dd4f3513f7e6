"""One device of one snapshot."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Union, get_args

from .. import _vramscope
from ..errors import VramscopeError
from . import peaks
from .comparison import Diff
from .diagnosis import Diagnosis
from .findings import Findings
from .modules import Modules
from .names import BandName, PeakBy
from .peaks import Peak, Row
from .records import Summary
from .shapes import Shapes
from .steps import Steps
from .used import Uses
from .what_if import WhatIf

#: What ``peak`` takes as ``by``.
PEAK_ROWS: tuple[str, ...] = get_args(PeakBy)

#: A size: bytes, or a text such as ``"80GiB"`` or ``"H100"``.
Size = Union[int, str]


def open(
    path: str | os.PathLike[str],
    *,
    device: int | None = None,
    snapshot: str | None = None,
    events: tuple[int, int] | None = None,
    max_memory: Size | None = None,
) -> Snapshot:
    """Reads a snapshot.

    ``with vramscope.open(path) as s:`` frees the file at the end. Without ``with`` it is freed with
    the last object that refers to it, or by ``close``.

    Args:
        path: a file as the program ``vramscope`` takes it.
        device: the ordinal; by default that of a device that ran out of memory, else that of the
            highest peak.
        snapshot: its name, in a page that holds several; by default the first.
        events: reads only these events of each device, and those of blocks that are live in the
            range. The second number is exclusive.
        max_memory: memory that reading may take; by default 80 % of the machine's.

    Raises:
        ReadError: the file could not be read.
        ValueError: it has no such device or snapshot.
    """
    limit = None if max_memory is None else str(max_memory)
    return Snapshot(_vramscope.open(os.fspath(path), events, limit), snapshot, device)


class Snapshot:
    """One device of one snapshot.

    The numbers are those of the program ``vramscope`` and of the page. ``print`` shows answers as
    text, a notebook as tables. Tables have the methods ``to_pandas``, ``to_polars`` and
    ``to_arrow``; ``polars.DataFrame(s.blocks)``, ``pyarrow.table(s.blocks)``, or a query of DuckDB
    take them without a copy.
    """

    def __init__(
        self, file: _vramscope.File, name: str | None = None, device: int | None = None
    ) -> None:
        entries = file.entries()
        names = [entry[0] for entry in entries]
        if name is not None and name not in names:
            raise ValueError(f"{file.path}: no snapshot {name!r} (available: {', '.join(names)})")
        self._file = file
        self._entry = 0 if name is None else names.index(name)
        _, devices, first = entries[self._entry]
        chosen = first if device is None else device
        if chosen is None:
            raise ValueError(f"{file.path}: no memory was allocated on any device")
        if chosen not in devices:
            known = ", ".join(map(str, devices))
            raise ValueError(f"{file.path}: device {chosen} has no data (available: {known})")
        self._name = names[self._entry]
        self._devices = tuple(devices)
        self._device = chosen

    def __repr__(self) -> str:
        closed = ", closed" if self._file.closed else ""
        return f"<vramscope.Snapshot {self.path!r}, device {self.device}{closed}>"

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the file, also for other devices of it. Answers that were made before stay.

        A later question raises ``ValueError``.
        """
        self._file.close()

    @property
    def path(self) -> str:
        """The path as given."""
        return self._file.path

    @property
    def device(self) -> int:
        """The device's ordinal; 128 for pinned host memory."""
        return self._device

    @property
    def devices(self) -> tuple[int, ...]:
        """All devices with data."""
        return self._devices

    def of_device(self, device: int) -> Snapshot:
        """Another device of the same snapshot. The file is not read again."""
        return Snapshot(self._file, self._name, device)

    @property
    def summary(self) -> Summary:
        """Totals, peaks and warnings of all devices."""
        return Summary.of(json.loads(self._file.summary())["files"][self._entry])

    @property
    def findings(self) -> Findings:
        """What is wrong in the file: OOMs, growth, held memory, unneeded reserved memory."""
        return Findings.of(json.loads(self._file.findings()))

    @property
    def diagnosis(self) -> Diagnosis:
        """What is wrong and what to change: ``print(s.diagnosis)``."""
        return Diagnosis.of(json.loads(self._file.diagnosis()))

    @property
    def steps(self) -> Steps:
        """What each step and its phases need, what stays after it, and which phase limits."""
        return Steps.of(json.loads(self._file.steps(self._entry, self._device)))

    @property
    def phases(self) -> Steps:
        """The same as ``steps``: each step has its phases."""
        return self.steps

    @property
    def modules(self) -> Modules:
        """The modules at the peak of requested bytes, as a tree."""
        return Modules.of(json.loads(self._file.modules(self._entry, self._device)))

    @property
    def shapes(self) -> Shapes:
        """The shapes of tensors at the peak of requested bytes."""
        return Shapes.of(json.loads(self._file.shapes(self._entry, self._device)))

    @property
    def uses(self) -> Uses:
        """What becomes of the memory at the peak of the step that the recorder has traced."""
        return Uses.of(json.loads(self._file.uses(self._entry, self._device)))

    def peak(self, by: PeakBy = "site", band: BandName = "requested_bytes") -> Peak:
        """What held memory when a band was largest.

        Args:
            by: ``site`` (the innermost frame in your own code, and the category), ``stack`` (whole
                call stacks), ``line`` (your own lines, with all that they call), ``module``,
                ``shape``, ``use``, ``category``, ``stream`` or ``pool``. ``use`` is of the peak of
                the traced step: see :attr:`uses`.
            band: a name of ``torch.cuda.memory_stats()``: ``requested_bytes``, ``active_bytes``,
                ``allocated_bytes`` or ``reserved_bytes``.

        Raises:
            ValueError: there is no such band, or no such row of the band, or no step was traced.
                Modules, shapes and uses are known for ``requested_bytes``, and segments have a
                ``stack``, ``site`` and ``line`` only.
        """
        if by not in PEAK_ROWS:
            raise ValueError(f"by is {by!r}: expected one of {', '.join(PEAK_ROWS)}")
        device = (self._entry, self._device)
        report = json.loads(self._file.peak(*device, band))
        is_requested = report["band"] == "requested_bytes"
        is_reserved = report["band"] == "reserved_bytes"
        if (by in ("module", "shape", "use") and not is_requested) or (
            by in ("category", "stream", "pool") and is_reserved
        ):
            raise ValueError(f"{report['band']} has no rows by {by}")
        if by == "use":
            used = json.loads(self._file.uses(*device))
            if used["refused"] is not None:
                raise ValueError(f"nothing is known of uses: {used['refused']}")
            # The moment is the peak of the traced step.
            blocks = sum(of["blocks"] for of in used["groups"])
            moment = {
                "event": used["event"],
                "time_us": used["time_us"],
                "step": None,
                "phase": None,
                "total": used["bytes"],
                "blocks": blocks,
            }
            return Peak.of({**report, **moment}, by, peaks.uses(used))
        rows: Iterable[Row]
        if by == "line":
            rows = peaks.lines(json.loads(self._file.lines(*device, band)))
        elif by == "module":
            rows = peaks.modules(json.loads(self._file.modules(*device)))
        elif by == "shape":
            rows = peaks.shapes(json.loads(self._file.shapes(*device)))
        else:
            rows = {
                "site": peaks.sites,
                "stack": peaks.stacks,
                "category": peaks.categories,
                "stream": peaks.streams,
                "pool": peaks.pools,
            }[by](report)
        return Peak.of(report, by, rows)

    def diff(self, other: Snapshot, band: BandName = "requested_bytes") -> Diff:
        """Compares this snapshot, before a change, with another, after it.

        Args:
            other: the snapshot after the change.
            band: categories and call stacks are compared at its peaks.
        """
        own, others = (self._entry, self._device), (other._entry, other._device)
        return Diff.of(json.loads(self._file.diff(own, other._file, others, band)))

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        source: bool = False,
        redact: bool = False,
        force: bool = False,
    ) -> tuple[str, ...]:
        """Writes a report about the whole file: one HTML file that opens without a server.

        Args:
            path: the file to write. A report that is there is replaced.
            source: also write lines of source, and the snapshot as it is.
            redact: replace paths and names by hashes.
            force: also replace a file of another kind.

        Returns:
            What the report holds.

        Raises:
            VramscopeError: the package was built without the page.
            OSError: the file cannot be written.
            ValueError: a file of another kind is there.
        """
        self._file.entries()  # Raises if the file is closed.
        return write_report([self.path], path, source=source, redact=redact, force=force)

    def what_if(
        self,
        *,
        device_memory: Size | None = None,
        pytorch_memory: Size | None = None,
        plan: Size | None = None,
        apply: Iterable[str] = (),
        set: Iterable[str] = (),
        change: Iterable[str] = (),
        **settings: Any,
    ) -> WhatIf:
        """Predicts what other settings, another device or a changed program would reserve.

        Without arguments the usual settings are tried. Settings of the allocator are keywords:
        ``what_if(expandable_segments=True, max_split_size_mb=128)`` changes those of the recording.

        Args:
            device_memory: memory of the device: bytes, ``"80GiB"`` or a name such as ``"H100"``.
            pytorch_memory: what PyTorch can have on the device.
            plan: a device, for which the cheapest changes are searched that fit.
            apply: changes of the program: ``["checkpoint:all", "batch:0.5"]``.
            set: whole configurations, as in ``PYTORCH_CUDA_ALLOC_CONF``.
            change: changes of the recording's settings, in the same form.

        Raises:
            ValueError: a setting or a name is wrong.
        """
        changes = [*change]
        if settings:
            changes.append(",".join(f"{key}:{value}" for key, value in settings.items()))
        question = [f"set:[{text}]" for text in set] + [f"change:[{text}]" for text in changes]
        question += apply
        sizes = [
            ("device_memory", device_memory),
            ("pytorch_memory", pytorch_memory),
            ("plan", plan),
        ]
        question += [f"{name}:{_escaped(str(size))}" for name, size in sizes if size is not None]
        report = self._file.what_if(self._entry, self._device, ",".join(question))
        return WhatIf.of(json.loads(report))

    @property
    def blocks(self) -> _vramscope.Table:
        """All blocks of the window, in the order of their allocation."""
        return self._file.blocks(self._entry, self._device)

    @property
    def events(self) -> _vramscope.Table:
        """The events of the trace, as they were recorded."""
        return self._file.events(self._entry, self._device)

    @property
    def segments(self) -> _vramscope.Table:
        """The segments after the last event."""
        return self._file.segments(self._entry, self._device)

    @property
    def stacks(self) -> _vramscope.Table:
        """The call stacks: a row for each frame, innermost first.

        Blocks and events refer to them by ``stack``.
        """
        return self._file.stacks(self._entry)


def _escaped(text: str) -> str:
    """Special characters of a question in hexadecimal."""
    return re.sub(r"[%,\[\]]", lambda found: f"%{ord(found[0]):02X}", text)


def write_report(
    paths: list[str],
    output: str | os.PathLike[str],
    *,
    source: bool,
    redact: bool,
    force: bool,
) -> tuple[str, ...]:
    """Writes the report of files. See :meth:`Snapshot.report`."""
    if _vramscope.viewer_part("script") is None:
        raise VramscopeError(
            "a report holds the viewer, which this build of vramscope lacks: run "
            "`cargo xtask build` before it is built"
        )
    return tuple(_vramscope.report(paths, os.fspath(output), source, redact, force))
