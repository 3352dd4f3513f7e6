"""Looks at the memory while a program runs: after each step, and between steps without any."""

from __future__ import annotations

import _thread
import logging
import signal as signals
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from . import sidecar
from .backend import Backend
from .growth import Foreteller
from .levels import Levels
from .notes import Notes, Watch

log = logging.getLogger("vramscope")

#: The signal on which the main thread takes a note. The thread that looks only pretends that it has
#: arrived, so no call of the system is interrupted. Without a handler the system ignores it.
NOTE_SIGNAL: signals.Signals | None = (
    getattr(signals, "SIGURG", None) if sys.version_info >= (3, 10) else None
)


class Looks:
    """Foretells when memory is full, and takes notes of who holds it.

    Args:
        backend: The backend.
        say: Gets the words of a forecast.
        take: Takes a note; ``None`` for no notes.
        is_asked: Whether the main thread calls :meth:`take_due` on :data:`NOTE_SIGNAL`.
    """

    def __init__(
        self,
        backend: Backend,
        say: Callable[[str], None],
        take: Callable[[], dict[str, Any] | None] | None,
        is_asked: bool,
    ) -> None:
        self._levels: Levels | None = Levels(backend)
        self._foreteller = Foreteller(backend, say)
        self.notes = Notes(take) if take is not None else None
        #: Whether the thread that looks wants a note.
        self._is_due = False
        self._watch = Watch(self._between) if self.notes is not None and is_asked else None

    def after_step(self, step: int) -> None:
        """Looks after a step, in about 25 microseconds."""
        self.end()
        # A handler of the program may be called here. What it raises is none of these errors, and
        # passes: to hold the signal back would take five times as long.
        try:
            levels = self._levels.read() if self._levels is not None else {}
            self._foreteller.look(levels)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            log.warning("cannot look at the memory after a step: %s", error)
            self._levels = None
            return
        if self.notes is not None and self.notes.wants(levels, step):
            self.notes.take(sidecar.now_us(), step)

    def take_due(self, frame: FrameType | None) -> bool:
        """Takes the note that the thread wants. Returns whether it wants one."""
        if not self._is_due:
            return False
        try:
            if self.notes is not None and not _imports(frame):
                self.notes.take(sidecar.now_us(), None)
        finally:
            # Until now the thread has asked for no other one.
            self._is_due = False
        return True

    def end(self) -> None:
        """Ends the looks between steps."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()

    def pause(self) -> None:
        """Ends the thread before a fork: a lock that it holds would stay held in the child."""
        if self._watch is not None:
            self._watch.end()

    def go_on(self) -> None:
        """Starts the thread again."""
        if self._watch is not None:
            self._watch.start()

    def _between(self) -> None:
        if self._levels is None or self.notes is None or NOTE_SIGNAL is None or self._is_due:
            return
        try:
            self._is_due = self.notes.wants(self._levels.read(), None)
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            log.debug("cannot look at the memory: %s", error)
        if self._is_due:
            _thread.interrupt_main(NOTE_SIGNAL)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported: PyTorch imports some for a snapshot."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
