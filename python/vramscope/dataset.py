"""Datasets: the ranks of a job as Parquet tables (docs/fleets.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from . import _vramscope


@dataclass(frozen=True)
class Export:
    """What ``vramscope.export_parquet`` did."""

    #: Files that were converted. Files that could not be read count, too.
    converted: int
    #: Files that the dataset had already.
    present: int
    #: Files of folders that are no snapshots.
    skipped: int
    #: Parts that were written: a file for each table.
    parts: int
    #: Size of the converted files in bytes.
    bytes_read: int
    #: Size of the parts in bytes.
    bytes_written: int
    #: Files that could not be read, now or before, and why. They have rows in ``ranks``.
    failed: tuple[tuple[str, str], ...]


def export_parquet(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset: str | os.PathLike[str],
    run: str | None = None,
) -> Export:
    """Adds snapshots to a dataset, as ``vramscope export --as parquet`` does.

    Files that the dataset has already are skipped, so an interrupted export continues. Several
    processes may write to one dataset at a time.

    Args:
        paths: files and folders.
        dataset: the dataset's folder. It need not exist.
        run: the name of the run; by default that of the folder that holds the iterations.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    given = [os.fspath(path) for path in paths]
    numbers, failed = _vramscope.export_parquet(given, os.fspath(dataset), run)
    converted, present, skipped, parts, bytes_read, bytes_written = numbers
    return Export(
        converted=converted,
        present=present,
        skipped=skipped,
        parts=parts,
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        failed=tuple((os.fspath(path), why) for path, why in failed),
    )
