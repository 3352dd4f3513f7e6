"""The files of a run: a rank each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from .. import _vramscope
from ..errors import ReadError
from .records import Diagnosis, Findings, Summary
from .snapshot import Size, Snapshot


def open_run(
    *paths: str | os.PathLike[str],
    events: tuple[int, int] | None = None,
    max_memory: Size | None = None,
) -> Run:
    """Reads all snapshots in folders, in parallel.

    A file that cannot be read is in the ``errors`` of the run. Other files of a folder are skipped.

    Args:
        paths: folders and files.
        events: as in ``vramscope.open``.
        max_memory: memory that reading may take, for all files together.
    """
    limit = None if max_memory is None else str(max_memory)
    return Run(_vramscope.open_run([os.fspath(path) for path in paths], events, limit))


class Run:
    """The snapshots of a run. It is a sequence of them, in the order of their paths."""

    def __init__(self, run: _vramscope.Run) -> None:
        self._run = run
        #: The snapshots, each with the device that has the most events.
        self.snapshots: tuple[Snapshot, ...] = tuple(
            Snapshot(file, name, first)
            for file in run.files()
            for name, _, first in file.entries()
            if first is not None
        )
        #: Why each other file could not be read.
        self.errors: tuple[ReadError, ...] = tuple(
            error for error in run.errors() if isinstance(error, ReadError)
        )

    def __repr__(self) -> str:
        return f"<vramscope.Run of {len(self)} snapshots, {len(self.errors)} errors>"

    def __len__(self) -> int:
        return len(self.snapshots)

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.snapshots)

    def __getitem__(self, index: int) -> Snapshot:
        return self.snapshots[index]

    @property
    def skipped_files(self) -> int:
        """Files of the folders that are no snapshots."""
        return self._run.skipped_files

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Totals, peaks and warnings of each snapshot."""
        return tuple(map(Summary.of, json.loads(self._run.summary())["files"]))

    @property
    def findings(self) -> Findings:
        """What is wrong in each file, and which ranks stand out."""
        return Findings.of(json.loads(self._run.findings()))

    @property
    def diagnosis(self) -> Diagnosis:
        """The verdict in a few sentences, and the main findings."""
        return Diagnosis.of(json.loads(self._run.diagnosis()))
