"""Asks recorded processes for a snapshot: ``vramscope record --dump PID``."""

from __future__ import annotations

import contextlib
import os
import signal as signals
import time
from collections.abc import Callable

from . import entry
from .descendants import descendants

#: Seconds that a process has to answer. A snapshot of a long history takes some.
PATIENCE = 120.0
#: Seconds between two looks.
BETWEEN = 0.05


class NotDumped(Exception):
    """A process cannot be asked, or has not answered: why, and what to do."""


class NotRecorded(NotDumped):
    """Neither a process nor one below it is recorded."""


def ask(pid: int, problem: Callable[[NotDumped], None], patience: float = PATIENCE) -> list[str]:
    """Asks a process for a snapshot or, if it is not recorded itself, all recorded ones below it.

    Returns the paths of the snapshots, which are whole. Calls ``problem`` for each process that has
    written none.

    Raises:
        NotDumped: No process can be asked.
    """
    if not os.path.isdir("/proc/self/fd"):
        raise NotDumped("--dump needs Linux, whose /proc shows who handles a signal")
    asked = {pid: _answers(pid)} if _entries(pid) else {}
    if not asked:
        asked = {one: _answers(one) for one in descendants(pid) if _is_recorded(one)}
    if not asked:
        raise NotRecorded(f"process {pid} is not recorded, or has not used a GPU yet")
    until = time.monotonic() + patience
    written = []
    for step in (_send, lambda one: written.append(_wait(one, asked[one], until))):
        for one in list(asked):
            try:
                step(one)
            except NotDumped as error:
                del asked[one]
                problem(error)
    return written


def send_below(pid: int) -> bool:
    """Asks all recorded processes below one, without waiting. Returns whether one is recorded."""
    asked = [one for one in descendants(pid) if _is_recorded(one)]
    for one in asked:
        # It may have ended.
        with contextlib.suppress(NotDumped, ProcessLookupError):
            _send(one)
    return bool(asked)


def _is_recorded(pid: int) -> bool:
    try:
        return bool(_entries(pid))
    except NotDumped:
        # Ended, or of another user.
        return False


def _entries(pid: int) -> dict[str, entry.Lines]:
    """What a recorded process tells; nothing if it is none."""
    try:
        status = _status(pid)
        if status["Tgid"] != str(pid) or status["State"].startswith(("Z", "X")):
            raise FileNotFoundError
        own = status.get("NSpid", str(pid)).split()[-1]
        return {name: lines for name, lines in entry.read(pid) if str(lines[0]["pid"]) == own}
    except (FileNotFoundError, ProcessLookupError):
        raise NotDumped(f"there is no process {pid}") from None
    except PermissionError:
        raise NotDumped(
            f"process {pid} is of another user: only that user and root may ask"
        ) from None


def _status(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def _answers(pid: int) -> dict[str, int]:
    return {name: len(lines) for name, lines in _entries(pid).items()}


def _send(pid: int) -> None:
    """Asks for a snapshot by the signal, which ends a process that does not handle it."""
    entries = _entries(pid)
    numbers = {int(lines[0]["signal"]) for lines in entries.values()}
    handled = int(_status(pid)["SigCgt"], 16)
    for number in numbers:
        if not 0 < number < signals.NSIG or not handled >> (number - 1) & 1:
            raise NotDumped(
                f"process {pid} does not handle signal {number} any more: its program has replaced "
                "the handler"
            )
    for number in numbers:
        os.kill(pid, number)


def _wait(pid: int, before: dict[str, int], until: float) -> str:
    while time.monotonic() < until:
        try:
            entries = _entries(pid)
        except NotDumped:
            entries = {}
        if not entries:
            raise NotDumped(f"process {pid} ended before it wrote a snapshot")
        for name, lines in entries.items():
            if len(lines) > before.get(name, 1):
                snapshot = lines[before.get(name, 1)].get("snapshot")
                # Root may ask a process of anyone, and shows the path.
                if not isinstance(snapshot, str) or not snapshot.isprintable():
                    raise NotDumped(f"process {pid} wrote no snapshot: its standard error says why")
                return snapshot
        time.sleep(BETWEEN)
    raise NotDumped(
        f"process {pid} has not written a snapshot yet: it does when its native code returns"
    )
