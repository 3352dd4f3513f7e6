"""Ends the processes of a dry run: none stays."""

from __future__ import annotations

import ctypes
import os
import signal
import time

from ..recorder.descendants import descendants

#: The signal on which a process of the run writes its stacks, whatever it waits in.
SHOW_STACKS = signal.SIGRTMIN + 5 if hasattr(signal, "SIGRTMIN") else signal.SIGTERM
#: ``PR_SET_CHILD_SUBREAPER`` of Linux.
_SUBREAPER = 36


def adopt_orphans() -> None:
    """Lets this process become the parent of all processes of the run whose parents end."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def send(pids: list[int], number: int) -> None:
    """Sends a signal to the processes that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def end_all(patience: float) -> None:
    """Ends all processes below this one: asks first, and does not wait longer than this."""
    if not descendants(os.getpid()):
        return
    send(descendants(os.getpid()), signal.SIGTERM)
    until = time.monotonic() + patience
    while descendants(os.getpid()) and time.monotonic() < until:
        _reap()
        time.sleep(0.05)
    while descendants(os.getpid()):
        send(descendants(os.getpid()), signal.SIGKILL)
        _reap()
        time.sleep(0.01)


def _reap() -> None:
    """Takes the exit statuses of adopted processes."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
