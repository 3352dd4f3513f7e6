"""Requests that PyTorch refuses early, without calling an observer.

With ``throw_on_cudamalloc_oom:True`` and no limit for the process, PyTorch (2.12 and later) refuses
a request that would exceed the memory of the device before it asks the driver, and before it
returns what it has cached. Its observers are not called, the history has no event ``oom``, and
``num_ooms`` stays. Only ``num_oom_rejections`` of ``memory_stats`` counts the request, and the
error reaches the program. With a limit (``set_per_process_memory_fraction`` or
``per_process_memory_fraction``) the usual error comes first. Seen with PyTorch 2.15.0.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from . import sidecar
from .backend import Backend

#: What a recorder says of such an error.
WORDS = "out of memory: PyTorch refused a request early (throw_on_cudamalloc_oom)"


class Refusals:
    """Counts the requests that were refused early."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._before = self._all()
        #: Those that no snapshot shows.
        self.unseen = 0

    def _all(self) -> int:
        stats = self._backend.module.memory_stats
        devices = sidecar.used_devices(self._backend)
        return sum(int(stats(device).get("num_oom_rejections", 0)) for device in devices)

    def count(self) -> int:
        """Counts those since the last call."""
        now = self._all()
        new, self._before = now - self._before, now
        self.unseen += new
        return new

    def is_new(self, error: BaseException | None) -> bool:
        """Whether an error that ends the program is such a refusal, and not told yet."""
        kinds = getattr(self._backend.torch, "OutOfMemoryError", None)
        if kinds is None or not isinstance(error, kinds) or self.count() == 0:
            return False
        self.unseen -= 1
        return True


def on_uncaught(tell: Callable[[BaseException | None], None]) -> Callable[[], None]:
    """Calls ``tell`` with an error that ends the program or a thread, whose frames still hold what
    they held. Returns what undoes it.
    """
    shown, shown_in_thread = sys.excepthook, threading.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        tell(error)
        shown(kind, error, trace)

    def show_in_thread(arguments: threading.ExceptHookArgs) -> Any:
        tell(arguments.exc_value)
        shown_in_thread(arguments)

    sys.excepthook, threading.excepthook = show, show_in_thread

    def undo() -> None:
        # A hook that was set later stays, and calls this one.
        if sys.excepthook is show:
            sys.excepthook = shown
        if threading.excepthook is show_in_thread:
            threading.excepthook = shown_in_thread

    return undo
