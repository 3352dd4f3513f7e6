"""One device of one snapshot."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Union

from .. import _vramscope
from .records import Diagnosis, Findings, Frame, Peak, Phases, Row, Summary, WhatIf

#: What ``peak`` takes as ``by``.
PEAK_ROWS = ("site", "category", "module", "frame")

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

    Args:
        path: a file as the program ``vramscope`` takes it.
        device: the ordinal; by default that of the device with the most events.
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

    The numbers are those of the program ``vramscope`` and of the page. Tables have the method
    ``__arrow_c_stream__``: ``polars.DataFrame(s.blocks)``, ``pyarrow.table(s.blocks)``, or a query
    of DuckDB take them without a copy.
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
        return f"<vramscope.Snapshot {self.path!r}, device {self.device}>"

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
        """The verdict in a few sentences, and the main findings."""
        return Diagnosis.of(json.loads(self._file.diagnosis()))

    @property
    def phases(self) -> Phases:
        """The peak of each phase of each step, and which phase limits."""
        return Phases.of(json.loads(self._file.phases(self._entry, self._device)))

    def peak(self, by: str = "site", band: str = "requested_bytes") -> Peak:
        """What held memory when a band was largest.

        Args:
            by: ``site`` (call stacks, named by the innermost frame in your own code),
                ``category``, ``module`` or ``frame``.
            band: a name of ``torch.cuda.memory_stats()``: ``requested_bytes``, ``active_bytes``,
                ``allocated_bytes`` or ``reserved_bytes``.
        """
        if by not in PEAK_ROWS:
            raise ValueError(f"by is {by!r}: expected one of {', '.join(PEAK_ROWS)}")
        report = json.loads(self._file.peak(self._entry, self._device, band))
        if by == "site":
            rows = tuple(map(_site_row, report["stacks"]))
        elif by == "category":
            rows = tuple(map(_category_row, report["categories"]))
        elif by == "module":
            modules = json.loads(self._file.modules(self._entry, self._device, band))
            rows = tuple(map(_module_row, modules))
        else:
            rows = tuple(map(_frame_row, report["frames"]))
        return Peak.of(report, by, rows)

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


def _site_row(row: Mapping[str, Any]) -> Row:
    frames = tuple(map(Frame.of, row["frames"]))
    return Row(row["site"], row["bytes"], row["blocks"], row["category"], frames)


def _category_row(row: Mapping[str, Any]) -> Row:
    return Row(row["category"], row["bytes"], row["blocks"], row["category"])


def _module_row(row: Mapping[str, Any]) -> Row:
    return Row(row["module"], row["bytes"], row["blocks"], row["category"])


def _frame_row(row: Mapping[str, Any]) -> Row:
    return Row(f"{row['file']}:{row['line']} {row['name']}", row["inclusive"], None, None)
