"""One device of one snapshot."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable
from types import TracebackType
from typing import IO, Any, NamedTuple, Union, get_args

from .. import _vramscope
from ..answer import read, told
from ..errors import ReadError, VramscopeError
from . import peaks
from .comparison import Diff
from .diagnosis import Diagnosis
from .findings import Findings
from .holders import Holders
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

#: A snapshot: a path, its bytes, or a binary file.
Readable = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, IO[bytes]]


class Opened(NamedTuple):
    """How a file was opened."""

    path: str
    events: tuple[int, int] | None
    max_memory: str | None


def open(
    source: Readable,
    *,
    device: int | None = None,
    snapshot: str | None = None,
    events: tuple[int, int] | None = None,
    max_memory: Size | None = None,
) -> Snapshot:
    """Reads a snapshot.

    ``with vramscope.open(path) as s:`` frees the file at the end. Without ``with`` it is freed with
    the last object that refers to it, or by ``close``.

    >>> with vramscope.open("rank0.pickle") as s:
    ...     print(s.peak().peak_bytes)
    5865330696
    >>> with open("rank0.pickle", "rb") as file:
    ...     s = vramscope.open(file)

    Args:
        source: a path, where ``~`` is the home folder; the bytes of a file; or a file that is open
            in binary mode, such as those of ``fsspec``, which is read from where it stands. Beside
            bytes and open files nothing is found: no tensors, no lines of source.
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
    if isinstance(source, (bytes, bytearray, memoryview)):
        size = memoryview(source).nbytes
        file = _vramscope.open_file(io.BytesIO(source), "<bytes>", size, events, limit)
        return Snapshot(file, snapshot, device)
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            what = f"a {type(source).__name__} is no snapshot"
            raise TypeError(f"{what}: expected a path, bytes, or a binary file")
        name = getattr(source, "name", None)
        named = name if isinstance(name, str) else "<file>"
        # To learn the size of an open file may take as long as to read it: of a packed one.
        file = _vramscope.open_file(source, named, 0, events, limit)
        return Snapshot(file, snapshot, device)
    path = path_of(source)
    if os.path.isdir(path):
        hint = "vramscope.open_run(FOLDER) reads the snapshots in it."
        raise ReadError(path, "it is a folder", hint, "unreadable", None)
    file = _vramscope.open(path, events, limit)
    return Snapshot(file, snapshot, device, Opened(path, events, limit))


def path_of(path: str | os.PathLike[str]) -> str:
    """The path as the system takes it."""
    return os.path.expanduser(os.fspath(path))


def _again(opened: Opened, limits: bytes, name: str, device: int) -> Snapshot:
    """The copy of a snapshot in another process."""
    return Snapshot(_vramscope.open(*opened, limits), name, device, opened)


class Snapshot:
    """One device of one snapshot.

    The numbers are those of the program ``vramscope`` and of the page. ``print`` shows answers as
    text, a notebook as tables. Tables have the methods ``to_pandas``, ``to_polars`` and
    ``to_arrow``; ``polars.DataFrame(s.blocks)``, ``pyarrow.table(s.blocks)``, or a query of DuckDB
    take them without a copy.

    >>> s = vramscope.open("rank0.pickle")
    >>> s
    <vramscope.Snapshot 'rank0.pickle', device 0>
    >>> s.blocks[0]["category"]
    'parameter'
    >>> s.blocks[:5]
    <vramscope.Table of 5 rows: address, reuse, requested_bytes, ...>

    It can be pickled, if it has a path: a copy in another process reads the file again.
    """

    def __init__(
        self,
        file: _vramscope.File,
        name: str | None = None,
        device: int | None = None,
        opened: Opened | None = None,
    ) -> None:
        entries = file.entries()
        names = [entry[0] for entry in entries]
        if name is not None and name not in names:
            raise ValueError(f"{file.path}: no snapshot {name!r} (available: {', '.join(names)})")
        self._file = file
        #: ``None`` for bytes and open files.
        self._opened = opened
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

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process reads the file again."""
        self._file.entries()  # Raises if the file is closed.
        opened = self._opened_for("copied to another process")
        return _again, (opened, self._file.limits(), self._name, self._device)

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
        return Snapshot(self._file, self._name, device, self._opened)

    def _opened_for(self, done: str) -> Opened:
        """How the file was opened.

        Raises:
            TypeError: it has no path, so this cannot be done.
        """
        if self._opened is None:
            raise TypeError(
                f"a snapshot that was read from {self.path} cannot be {done}: it has no path to "
                "read it from again"
            )
        return self._opened

    @property
    def summary(self) -> Summary:
        """Totals, peaks and warnings of all devices."""
        return [*Summary.each(self._file.summary())][self._entry]

    @property
    def findings(self) -> Findings:
        """What is wrong in the file: OOMs, growth, held memory, unneeded reserved memory."""
        return read(Findings.of, self._file.findings())

    @property
    def diagnosis(self) -> Diagnosis:
        """What is wrong and what to change: ``print(s.diagnosis)``."""
        return read(Diagnosis.of, *self._file.diagnosis())

    @property
    def steps(self) -> Steps:
        """What each step and its phases need, what stays after it, and which phase limits."""
        return read(Steps.of, self._file.steps(self._entry, self._device))

    @property
    def phases(self) -> Steps:
        """The same as ``steps``: each step has its phases."""
        return self.steps

    @property
    def modules(self) -> Modules:
        """The modules at the peak of requested bytes, as a tree."""
        return read(Modules.of, self._file.modules(self._entry, self._device))

    @property
    def shapes(self) -> Shapes:
        """The shapes of tensors at the peak of requested bytes."""
        return read(Shapes.of, self._file.shapes(self._entry, self._device))

    @property
    def holders(self) -> Holders:
        """What holds the memory at the end, and what drops free."""
        return read(Holders.of, self._file.holders(self._entry, self._device, True))

    @property
    def uses(self) -> Uses:
        """What becomes of the memory at the peak of the step that the recorder has traced."""
        return read(Uses.of, self._file.uses(self._entry, self._device))

    def peak(self, by: PeakBy = "site", band: BandName = "requested_bytes") -> Peak:
        """What held memory when a band was largest.

        >>> s = vramscope.open("rank0.pickle")
        >>> for row in s.peak(by="category").rows[:2]:
        ...     print(row.name, row.live_bytes)
        activation 3034468356
        temporary 1219686404

        Args:
            by: ``site`` (the innermost frame in your own code, and the category), ``stack`` (whole
                call stacks), ``line`` (your own lines, with all that they call), ``module``,
                ``shape``, ``holder`` (variables and objects that hold it at the end), ``use``,
                ``category``, ``stream`` or ``pool``. ``use`` is of the peak of the traced step:
                see :attr:`uses`.
            band: a name of ``torch.cuda.memory_stats()``: ``requested_bytes``, ``active_bytes``,
                ``allocated_bytes`` or ``reserved_bytes``.

        Raises:
            ValueError: there is no such band, or no such row of the band, or no step was traced.
                Modules, shapes, holders and uses are known for ``requested_bytes``, and segments
                have a ``stack``, ``site`` and ``line`` only.
        """
        if by not in PEAK_ROWS:
            raise ValueError(f"by is {by!r}: expected one of {', '.join(PEAK_ROWS)}")
        device = (self._entry, self._device)
        record = self._file.peak(*device, band)
        report = json.loads(record)
        is_requested = report["band"] == "requested_bytes"
        is_reserved = report["band"] == "reserved_bytes"
        if (by in ("module", "shape", "holder", "use") and not is_requested) or (
            by in ("category", "stream", "pool") and is_reserved
        ):
            raise ValueError(f"{report['band']} has no rows by {by}")
        if by == "use":
            record = self._file.uses(*device)
            used = json.loads(record)
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
            return told(Peak.of({**report, **moment}, by, peaks.uses(used)), record)
        rows: Iterable[Row]
        if by == "line":
            rows = peaks.lines(json.loads(self._file.lines(*device, band)))
        elif by == "module":
            record = self._file.modules(*device)
            rows = peaks.modules(json.loads(record))
        elif by == "shape":
            record = self._file.shapes(*device)
            rows = peaks.shapes(json.loads(record))
        elif by == "holder":
            record = self._file.holders(*device, False)
            rows = peaks.holders(json.loads(record))
        else:
            rows = {
                "site": peaks.sites,
                "stack": peaks.stacks,
                "category": peaks.categories,
                "stream": peaks.streams,
                "pool": peaks.pools,
            }[by](report)
        return told(Peak.of(report, by, rows), record)

    def diff(self, other: Snapshot, band: BandName = "requested_bytes") -> Diff:
        """Compares this snapshot, before a change, with another, after it.

        Args:
            other: the snapshot after the change.
            band: categories and call stacks are compared at its peaks.
        """
        own, others = (self._entry, self._device), (other._entry, other._device)
        return read(Diff.of, *self._file.diff(own, other._file, others, band))

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
        paths = [self._opened_for("written as a report").path]
        return write_report(paths, path, source=source, redact=redact, force=force)

    def what_if(
        self,
        *,
        device_memory: Size | None = None,
        pytorch_memory: Size | None = None,
        plan: Size | None = None,
        length: int | None = None,
        cache_tokens: int | None = None,
        apply: Iterable[str] = (),
        set: Iterable[str] = (),
        change: Iterable[str] = (),
        **settings: Any,
    ) -> WhatIf:
        """Predicts what other settings, another device or a changed program would reserve.

        Without arguments the usual settings are tried. Settings of the allocator are keywords:
        ``what_if(expandable_segments=True, max_split_size_mb=128)`` changes those of the recording.

        >>> s = vramscope.open("rank0.pickle")
        >>> half = s.what_if(apply=["batch:0.5"], device_memory="24GiB").scenarios[0]
        >>> half.fits
        True

        Args:
            device_memory: memory of the device: bytes, ``"80GiB"`` or a name such as ``"H100"``.
            pytorch_memory: what PyTorch can have on the device.
            plan: a device, for which the cheapest changes are searched that fit.
            length: of the sequences for which the KV cache of an inference engine is sized.
            cache_tokens: what the recorded KV cache holds, as the engine logs it.
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
            ("length", length),
            ("cache_tokens", cache_tokens),
        ]
        question += [f"{name}:{_escaped(str(size))}" for name, size in sizes if size is not None]
        return read(WhatIf.of, *self._file.what_if(self._entry, self._device, ",".join(question)))

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
