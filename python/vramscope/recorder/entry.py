"""How ``vramscope record --dump PID`` finds a recorded process and its answers.

A file without a name, which the process keeps open: ``/proc/PID/fd`` shows it to the same user and
to root. So it needs no folder that both know, and is gone with the process, however that ends. Its
first line has the signal, each further line an answer.
"""

from __future__ import annotations

import json
import os
import pathlib
import stat
import tempfile
from typing import Any

from .guards import never_raise

#: What the name of the file begins with, while it has one.
PREFIX = "vramscope-recording-"
#: The lines of such a file.
Lines = list[dict[str, Any]]
#: The most bytes that are read of such a file.
MAX_BYTES = 1 << 20


class Entry:
    """The file of this process."""

    def __init__(self, file: int, first: dict[str, Any]) -> None:
        self._file = file
        self._first = _line(first)
        os.write(file, self._first)

    @classmethod
    def open(cls, number: int, folder: pathlib.Path) -> Entry | None:
        """A file for a process that answers to a signal; ``None`` where no system shows it."""
        if not os.path.isdir("/proc/self/fd"):
            return None
        file, path = tempfile.mkstemp(prefix=PREFIX)
        os.unlink(path)
        return cls(file, {"pid": os.getpid(), "signal": int(number), "folder": str(folder)})

    @never_raise
    def answer(self, snapshot: pathlib.Path | None) -> None:
        """Answer a request for a snapshot: by its path, or ``None`` if it could not be written."""
        if self._is_ours():
            path = None if snapshot is None else str(snapshot)
            os.write(self._file, _line({"snapshot": path}))

    def close(self) -> None:
        """The process does not answer any more."""
        if self._is_ours():
            os.close(self._file)

    def _is_ours(self) -> bool:
        # The program may have closed all files, and opened another with this number.
        try:
            return os.pread(self._file, len(self._first), 0) == self._first
        except OSError:
            return False


def _line(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts).encode() + b"\n"


def read(pid: int) -> list[tuple[str, Lines]]:
    """The names and lines of such files of a process.

    Raises:
        PermissionError: the files of the process are not ours to see.
        FileNotFoundError: there is no such process.
    """
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if not os.path.basename(os.readlink(path)).startswith(PREFIX):
                continue
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            # Closed meanwhile.
            continue
        with open(file, "rb") as opened:
            is_regular = stat.S_ISREG(os.fstat(file).st_mode)
            found.append((name, _lines(opened.read(MAX_BYTES)) if is_regular else []))
    return [(name, lines) for name, lines in found if lines and {"pid", "signal"} <= set(lines[0])]


def _lines(content: bytes) -> Lines:
    try:
        # The last line may be half written.
        lines = [json.loads(line) for line in content.rpartition(b"\n")[0].splitlines()]
    except ValueError:
        # A file of others with such a name.
        return []
    return [line for line in lines if isinstance(line, dict)]
