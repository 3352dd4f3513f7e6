"""Which thread this is.

``threading.current_thread()`` makes an entry for a thread that Python has not started, such as
those of autograd. A program that joins all threads that it can list would fail at the entry.
"""

from __future__ import annotations

import threading


def is_main() -> bool:
    """Whether this is the main thread, which runs handlers of signals."""
    return threading.get_ident() == threading.main_thread().ident


def is_foreign() -> bool:
    """Whether Python has not started this thread."""
    known = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
    return known is None or isinstance(known, threading._DummyThread)
