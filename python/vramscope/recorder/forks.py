"""Keeps signals from a forked process until it has the handlers of the program."""

from __future__ import annotations

import os
import signal as signals
import threading
from collections.abc import Callable
from typing import Any

from .interrupts import Uninterrupted


class _Forking(threading.local):
    """The signals that a thread took before it forked; ``None`` if nothing is recorded."""

    mask: set[Any] | None = None


_forking = _Forking()


def handle(
    is_recorded: Callable[[], bool],
    pause: Callable[[], None],
    go_on: Callable[[], None],
    end: Callable[[], None],
) -> None:
    """Calls ``end`` in each process that is forked from now on, before its signals arrive.

    ``pause`` is called before a fork, and ``go_on`` after it in the process that has forked.
    """

    def before() -> None:
        # Python drops what arrives in the child before it runs. So a signal waits until the child
        # has the handlers of the program: a process that is terminated at once must end.
        if is_recorded():
            pause()
            _forking.mask = signals.pthread_sigmask(signals.SIG_BLOCK, signals.valid_signals())

    def after() -> None:
        mask, _forking.mask = _forking.mask, None
        if mask is not None:
            signals.pthread_sigmask(signals.SIG_SETMASK, mask)

    def in_parent() -> None:
        go_on()
        after()

    def in_child() -> None:
        try:
            Uninterrupted.end_in_child()
            end()
        finally:
            after()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
