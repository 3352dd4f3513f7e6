"""Tells on standard error how far a dry run is."""

from __future__ import annotations

import sys
from typing import Any

from .. import _vramscope

#: Seconds between two lines of progress where standard error is no terminal.
BETWEEN_LINES = 30.0


class Progress:
    """Tells of a long run: in place on a terminal, else a line now and then."""

    def __init__(self, wanted: int | None) -> None:
        self._wanted = wanted
        self._is_terminal = sys.stderr.isatty()
        self._told_at = 0.0
        self._is_open = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            sys.stderr.write("\r\x1b[K")

    def tell(self, progress: dict[str, Any] | None, seconds: float) -> None:
        """Tells how far the program is."""
        between = 1.0 if self._is_terminal else BETWEEN_LINES
        if seconds - self._told_at < between:
            return
        self._told_at = seconds
        line = f"dry run: {seconds:.0f} s, {self._words(progress, seconds)}"
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{line[:100]}")
            self._is_open = True
        else:
            print(f"vramscope: {line}", file=sys.stderr)
        sys.stderr.flush()

    def _words(self, progress: dict[str, Any] | None, seconds: float) -> str:
        if progress is None:
            return "no step yet. Ctrl-C ends it with an answer"
        steps = progress["steps"]
        reserved = _vramscope.bytes_text(progress["reserved_bytes"])
        if self._wanted is None:
            return f"step {steps}, {reserved} reserved. Ctrl-C ends it with an answer"
        left = max(self._wanted - steps, 0) * seconds / max(steps, 1)
        return f"step {steps} of {self._wanted}, {reserved} reserved, about {left:.0f} s left"
