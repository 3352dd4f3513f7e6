"""The files of a run: a rank each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any, overload

from .. import _vramscope
from ..answer import read
from ..errors import ReadError
from .diagnosis import Diagnosis
from .findings import Findings
from .records import Summary
from .snapshot import Opened, Size, Snapshot, path_of, write_report


def open_run(
    *paths: str | os.PathLike[str],
    events: tuple[int, int] | None = None,
    max_memory: Size | None = None,
) -> Run:
    """Reads all snapshots in folders, in parallel.

    A file that cannot be read is in the ``errors`` of the run. Other files of a folder are skipped.
    ``with vramscope.open_run(path) as run:`` frees the files at the end.

    >>> run = vramscope.open_run("ranks_fsdp")
    >>> run
    <vramscope.Run of 2 snapshots, 0 errors>
    >>> run[0].path
    'ranks_fsdp/rank2_memory_snapshot.pickle.gz'

    Args:
        paths: folders and files.
        events: as in ``vramscope.open``.
        max_memory: memory that reading may take, for all files together.

    Raises:
        ReadError: no file could be read.
    """
    limit = None if max_memory is None else str(max_memory)
    given = [path_of(path) for path in paths]
    run = Run(_vramscope.open_run(given, events, limit), events, limit)
    if not run._has_files:
        raise _nothing_read(given, run)
    return run


def _again(paths: tuple[str, ...], events: tuple[int, int] | None, max_memory: str | None) -> Run:
    return open_run(*paths, events=events, max_memory=max_memory)


def _nothing_read(paths: list[str], run: Run) -> ReadError:
    """Why a run has no file."""
    if not run.errors:
        found = f"{run.skipped_files:,} other files" if run.skipped_files else "no files"
        hint = "Pass the folder that `vramscope.record` or `_dump_snapshot` wrote to."
        reason = f"there is no snapshot in it: {found}"
        return ReadError(", ".join(paths) or "(no path)", reason, hint, "no_snapshot", None)
    first = run.errors[0]
    if len(run.errors) == 1:
        return first
    reason = f"{first.reason} (and none of {len(run.errors) - 1:,} more files could be read)"
    return ReadError(first.path, reason, first.hint, first.kind, first.offset)


class Run:
    """The snapshots of a run. It is a sequence of them, in the order of their paths."""

    def __init__(
        self,
        run: _vramscope.Run,
        events: tuple[int, int] | None = None,
        max_memory: str | None = None,
    ) -> None:
        self._run = run
        self._options = (events, max_memory)
        files = run.files()
        self._has_files = bool(files)
        #: The snapshots, each with the device that `vramscope.open` takes by default.
        self.snapshots: tuple[Snapshot, ...] = tuple(
            Snapshot(file, name, first, Opened(file.path, events, max_memory))
            for file in files
            for name, _, first in file.entries()
            if first is not None
        )
        #: Why each other file could not be read.
        self.errors: tuple[ReadError, ...] = tuple(
            error for error in run.errors() if isinstance(error, ReadError)
        )

    def __repr__(self) -> str:
        return f"<vramscope.Run of {len(self)} snapshots, {len(self.errors)} errors>"

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process reads the files again."""
        self._run.files()  # Raises if the run is closed.
        return _again, (tuple(self._run.paths), *self._options)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the files, also for the snapshots. A later question raises ``ValueError``."""
        self._run.close()
        for snapshot in self.snapshots:
            snapshot.close()

    def __len__(self) -> int:
        return len(self.snapshots)

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.snapshots)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Snapshot, ...]: ...
    def __getitem__(self, index: int | slice) -> Snapshot | tuple[Snapshot, ...]:
        return self.snapshots[index]

    @property
    def skipped_files(self) -> int:
        """Files of the folders that are no snapshots."""
        return self._run.skipped_files

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Totals, peaks and warnings of each snapshot."""
        return tuple(Summary.each(self._run.summary()))

    @property
    def findings(self) -> Findings:
        """What is wrong in each file, and which ranks stand out."""
        return read(Findings.of, self._run.findings())

    @property
    def diagnosis(self) -> Diagnosis:
        """What is wrong and what to change, of all ranks: ``print(run.diagnosis)``."""
        return read(Diagnosis.of, *self._run.diagnosis())

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        source: bool = False,
        redact: bool = False,
        force: bool = False,
    ) -> tuple[str, ...]:
        """Writes a report about all files, as :meth:`Snapshot.report` does about one."""
        self._run.files()  # Raises if the run is closed.
        return write_report(self._run.paths, path, source=source, redact=redact, force=force)
