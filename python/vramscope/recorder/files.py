"""Names and lifetimes of the files that a recorder writes.

A run is a folder with one folder per dump, and in it one file per rank::

    runs/42/step_100/rank3_memory_snapshot.pickle
    runs/42/step_100/rank3_memory_snapshot.vramscope.json
    runs/42/oom_1/rank3_memory_snapshot.pickle
    runs/42/exit/rank3_memory_snapshot.pickle
    runs/42/recording_2/exit/rank3_memory_snapshot.pickle

A process that records again into the folder has a folder below it for each further recording.
The program and the page compare the ranks within each folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import pathlib
import re
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO

#: What the name of a snapshot ends with.
SUFFIX = "_memory_snapshot.pickle"
#: What the name of the file beside it ends with.
SIDECAR_SUFFIX = ".vramscope.json"

#: The name of a file that is being written: of what, on which machine, by which process.
PART = re.compile(
    r"\.(?:pid\d+_(?:\d+_)?)?rank\d+_memory_(?:snapshot\.(?:pickle|vramscope\.json)|states\.jsonl)"
    r"\.(?P<machine>[0-9a-f]{8})-(?P<pid>\d+)\.\w{8}\.part"
)
#: Seconds after which an unfinished file of any process is left over: writing changes its time.
LEFT_OVER_AFTER = 24 * 3600
#: How often a folder is made that other ranks remove.
MAX_ATTEMPTS = 5
#: Seconds that the search for left-over files may take.
SEARCH_SECONDS = 1.0


def sidecar_of(snapshot: pathlib.Path) -> pathlib.Path:
    """The path of the file beside a snapshot."""
    return snapshot.with_suffix(SIDECAR_SUFFIX)


def snapshots_below(folder: pathlib.Path) -> list[pathlib.Path]:
    """The snapshots below a folder, the last written last."""
    found = [path for path in folder.rglob("*.pickle") if path.is_file()]
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, str(path)))


def write_snapshot(wanted: pathlib.Path, write: Callable[[IO[bytes]], object]) -> pathlib.Path:
    """Writes a snapshot that is either whole or absent, and replaces no file.

    Returns the path that was written. If the name is taken, by an older dump or by another process
    that believes to be this rank, the process's number becomes part of the name. The file beside
    the snapshot goes by its name, so a name is free only if both are.
    """
    with _Part(wanted, write) as part:
        for name in _names(wanted):
            if not os.path.lexists(sidecar_of(name)) and _claim(part, name):
                return name
    raise AssertionError("names do not end")


def write_new(wanted: pathlib.Path, write: Callable[[IO[bytes]], object]) -> pathlib.Path:
    """Writes a file that replaces no other. Returns the path, which is named as for a snapshot."""
    with _Part(wanted, write) as part:
        return next(name for name in _names(wanted) if _claim(part, name))


def write_beside(snapshot: pathlib.Path, write: Callable[[IO[bytes]], object]) -> None:
    """Writes the file beside a snapshot of :func:`write_snapshot`. It is whole or absent.

    Raises:
        FileExistsError: another program has made this file.
    """
    path = sidecar_of(snapshot)
    with _Part(path, write) as part:
        if not _claim(part, path):
            raise FileExistsError(f"{path} exists")


class Recordings:
    """Counts the recordings of this process by their folder."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next_folder(self, folder: pathlib.Path) -> pathlib.Path:
        """The folder for the dumps of one more recording: each has names of its own."""
        key = os.path.realpath(folder)
        self._counts[key] = number = self._counts.get(key, 0) + 1
        return folder if number == 1 else folder / f"recording_{number}"

    def forget(self) -> None:
        """A forked process has recorded nothing."""
        self._counts.clear()


def _names(wanted: pathlib.Path) -> Iterator[pathlib.Path]:
    yield wanted
    own = f"pid{os.getpid()}"
    yield wanted.with_name(f"{own}_{wanted.name}")
    for number in itertools.count(2):
        yield wanted.with_name(f"{own}_{number}_{wanted.name}")


class _Part:
    """A written file under a temporary name, which is gone at the end."""

    def __init__(self, wanted: pathlib.Path, write: Callable[[IO[bytes]], object]) -> None:
        file, self._path = _new_part(wanted)
        try:
            with file:
                write(file)
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError) and error.filename is None:
                # A write does not say into which file.
                error.filename = os.fspath(wanted)
            raise

    def __enter__(self) -> pathlib.Path:
        return self._path

    def __exit__(self, *error: object) -> None:
        # The next start removes what cannot be removed now. A written file has its name.
        with contextlib.suppress(OSError):
            self._path.unlink()


def _new_part(wanted: pathlib.Path) -> tuple[IO[bytes], pathlib.Path]:
    prefix = f".{wanted.name}.{_machine()}-{os.getpid()}."
    for attempt in itertools.count(1):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        path = wanted.with_name(f"{prefix}{secrets.token_hex(4)}.part")
        try:
            # The system gives it the mode of new files here. A temporary file would be of its owner
            # alone, and the mask of the process, which says the mode, can only be read by setting.
            return open(path, "xb"), path
        except (FileExistsError, FileNotFoundError):
            # Another rank has removed the folder, since it was empty.
            if attempt == MAX_ATTEMPTS:
                raise
    raise AssertionError("attempts do not end")


def _claim(part: pathlib.Path, path: pathlib.Path) -> bool:
    """Gives a written file its name. False if the name is taken."""
    try:
        # A link fails if the name is taken; a rename would replace the file.
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError:
        # No links on this file system. The name's own creation is as exclusive.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        try:
            os.replace(part, path)
        except BaseException:
            path.unlink()
            raise
    return True


def _machine() -> str:
    """A name for the machine, or the container: process numbers count within it."""
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return hashlib.sha256(f"{socket.gethostname()}\0{processes}".encode()).hexdigest()[:8]


def remove_left_over(folder: pathlib.Path) -> list[pathlib.Path]:
    """Removes unfinished files that ended processes have left in the dumps of a run.

    Removes only regular files with the name of such a file (:data:`PART`), of a process of this
    machine that has ended, or a day old. Follows no link. Returns what it removed.
    """
    removed: list[pathlib.Path] = []
    until = time.monotonic() + SEARCH_SECONDS
    machine = _machine()
    for dump in _entries(folder):
        if time.monotonic() > until:
            break
        if not dump.is_dir(follow_symlinks=False):
            continue
        left = [entry for entry in _entries(dump.path) if _is_left_over(entry, machine)]
        for entry in left:
            # Another process may have removed it, or own it.
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
                removed.append(pathlib.Path(entry.path))
        if left:
            # Other files may be in it.
            with contextlib.suppress(OSError):
                os.rmdir(dump.path)
    return removed


def _entries(folder: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    """What is in a folder. Nothing if it cannot be listed: writing into it says why."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_left_over(entry: os.DirEntry[str], machine: str) -> bool:
    named = PART.fullmatch(entry.name)
    if named is None or not entry.is_file(follow_symlinks=False):
        return False
    if named["machine"] == machine and not _is_running(int(named["pid"])):
        return True
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > LEFT_OVER_AFTER
    except OSError:
        # Its process has just removed it.
        return False


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        # Signal 0 is no question there.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # Of another user, or no number of a process.
        return True
    return True


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
            # Another rank's files may still be in it. The last rank removes the folder.
            with contextlib.suppress(OSError):
                old.parent.rmdir()
