"""Delivers signals after the snapshot that they would interrupt.

A launcher ends the other ranks as soon as one fails, often while they write the snapshot that says
why. Python runs handlers in the main thread, so nothing interrupts the snapshot of another thread.
"""

from __future__ import annotations

import signal as signals
from types import FrameType, TracebackType
from typing import Any, ClassVar

from . import threads

#: All signals, as numbers: their names cost time.
NUMBERS: tuple[int, ...] = tuple(int(number) for number in signals.valid_signals())


class Uninterrupted:
    """A part of the main thread. Signals that arrive in it are delivered at its end.

    These are signals with handlers in Python, and those of :data:`ENDING`. A part within a part,
    and a part of another thread, do nothing.
    """

    #: Signals that end a process by default, and that launchers and terminals send. SIGQUIT
    #: (Ctrl-\\) still ends a process at once.
    ENDING: ClassVar[tuple[str, ...]] = ("SIGTERM", "SIGHUP")

    #: The outermost part that runs.
    _current: ClassVar[Uninterrupted | None] = None
    #: The part whose signals are delivered now.
    _delivering: ClassVar[Uninterrupted | None] = None

    def __init__(self) -> None:
        self._is_outermost = False
        self._before: dict[int, Any] = {}
        self._arrived: dict[int, FrameType | None] = {}

    @classmethod
    def current(cls) -> Uninterrupted | None:
        """The part in which this call is."""
        return cls._current if threads.is_main() else None

    @classmethod
    def delivering(cls) -> Uninterrupted | None:
        """The part after which a handler is called, if it is called late."""
        return cls._delivering

    def __enter__(self) -> Uninterrupted:
        self._is_outermost = threads.is_main() and Uninterrupted._current is None
        if self._is_outermost:
            Uninterrupted._current = self
            try:
                self._hold()
            except BaseException:
                # A handler that was not yet replaced has raised.
                self._release()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_outermost:
            try:
                self._release()
            finally:
                self._deliver()

    def _hold(self) -> None:
        native = natively_handled()
        ending = {getattr(signals, name, None) for name in self.ENDING} - native
        for number in NUMBERS:
            handler = signals.getsignal(number)
            if callable(handler) or (handler is signals.SIG_DFL and number in ending):
                self._before[number] = handler
                try:
                    signals.signal(number, self._note)
                except (OSError, ValueError):
                    # As in an interpreter within an interpreter. The signal is delivered at once.
                    del self._before[number]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if Uninterrupted._current is self:
            self._arrived.setdefault(number, frame)
        else:
            # Another handler has raised while handlers were given back.
            pass_on(self._before[number], number, frame)

    def _release(self) -> None:
        Uninterrupted._current = None
        for number, handler in self._before.items():
            if signals.getsignal(number) == self._note:
                signals.signal(number, handler)

    def _deliver(self) -> None:
        if not self._arrived:
            return
        number, frame = next(iter(self._arrived.items()))
        del self._arrived[number]
        Uninterrupted._delivering = self
        try:
            pass_on(self._before[number], number, frame)
        finally:
            Uninterrupted._delivering = None
            # A handler may raise. The other signals are delivered all the same.
            self._deliver()

    @classmethod
    def end_in_child(cls) -> None:
        """Gives a forked process the handlers of the program. Its signals are its own."""
        part, cls._delivering = cls._current, None
        if part is not None:
            part._release()


def pass_on(handler: Any, number: int, frame: FrameType | None) -> None:
    """Does what a signal does with this handler."""
    if callable(handler):
        handler(number, frame)
    elif handler is signals.SIG_DFL:
        signals.signal(number, signals.SIG_DFL)
        signals.raise_signal(number)


def natively_handled() -> set[int]:
    """Signals with a handler that Python does not know, because a library has set it.

    Python takes them for unhandled, and could not set such a handler again. Empty where the system
    does not tell.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            masks = [line.split()[1] for line in file if line.startswith("SigCgt:")]
        caught = int(masks[0], 16)
    except (OSError, ValueError, IndexError):
        return set()
    return {
        number
        for number in NUMBERS
        if caught >> (number - 1) & 1 and not callable(signals.getsignal(number))
    }
