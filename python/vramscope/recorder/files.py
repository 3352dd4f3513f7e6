"""Names and lifetimes of the files that a recorder writes.

A run is a folder with one folder per dump, and in it one file per rank::

    runs/42/step_100/rank3_memory_snapshot.pickle
    runs/42/step_100/rank3_memory_snapshot.vramscope.json
    runs/42/oom_1/rank3_memory_snapshot.pickle
    runs/42/exit/rank3_memory_snapshot.pickle

The program and the page compare the ranks within each folder.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections import deque
from collections.abc import Callable
from typing import IO

#: What the name of a snapshot ends with.
SUFFIX = "_memory_snapshot.pickle"
#: What the name of the file beside it ends with.
SIDECAR_SUFFIX = ".vramscope.json"


def sidecar_of(snapshot: pathlib.Path) -> pathlib.Path:
    """The path of the file beside a snapshot."""
    return snapshot.with_suffix(SIDECAR_SUFFIX)


def write_whole(path: pathlib.Path, write: Callable[[IO[bytes]], object]) -> pathlib.Path:
    """Writes a file that is either whole or absent, and replaces no other.

    Returns the path that was written. If another process has taken the name, as when two processes
    believe that they are one rank, the process's number becomes part of the name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    part = pathlib.Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(part, 0o666 & ~_umask())
        return _claim(part, path)
    finally:
        part.unlink(missing_ok=True)


def _claim(part: pathlib.Path, path: pathlib.Path) -> pathlib.Path:
    own = path.with_name(f"pid{os.getpid()}_{path.name}")
    for candidate in (path, own):
        try:
            # A link fails if the name is taken; a rename would replace the file.
            os.link(part, candidate)
            return candidate
        except FileExistsError:
            continue
        except OSError:
            # No links on this file system. The name's own creation is as exclusive.
            try:
                os.close(os.open(candidate, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.replace(part, candidate)
            return candidate
    os.replace(part, own)
    return own


def _umask() -> int:
    # The mask can only be read by setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class Kept:
    """Keeps the last ``limit`` dumps of a kind, and removes older ones with their folders."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._dumps: deque[pathlib.Path] = deque()

    def add(self, snapshot: pathlib.Path) -> None:
        """A dump was written."""
        self._dumps.append(snapshot)
        while self._limit is not None and len(self._dumps) > self._limit:
            old = self._dumps.popleft()
            for path in (old, sidecar_of(old)):
                path.unlink(missing_ok=True)
            try:
                old.parent.rmdir()
            except OSError:
                # Another rank's files are still in it. The last rank removes the folder.
                pass
