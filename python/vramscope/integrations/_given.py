"""The recorder of a callback: its own, or one that the program has made."""

from __future__ import annotations

import os
from typing import Any

from ..recorder import Recorder, record


class Given:
    """A recorder that a callback starts and stops, unless the program does."""

    def __init__(self, into: str | os.PathLike[str] | Recorder, options: dict[str, Any]) -> None:
        self._is_own = not isinstance(into, Recorder)
        if isinstance(into, Recorder) and options:
            raise TypeError(f"a recorder has its options: {', '.join(options)} came with one")
        self.recorder = into if isinstance(into, Recorder) else record(into, **options)

    def start(self) -> None:
        """Starts it."""
        if self._is_own:
            self.recorder.start()

    def stop(self) -> None:
        """Stops it."""
        if self._is_own:
            self.recorder.stop()
