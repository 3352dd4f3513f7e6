"""What was computed, what was made up, and where the program has read what was made up."""

from __future__ import annotations

import collections
import os
import sys
import threading
from typing import Any

import torch

from ..frames import OWN

_SKIPPED = (OWN, os.path.dirname(torch.__file__) + os.sep)


class Tally(threading.local):
    """Numbers of this thread: an addition in two threads at once would lose one."""

    def __init__(self, all_tallies: list[dict[str, int]]) -> None:
        #: 1: an operator that reports its own reads runs; 2: so does one that has a count.
        self.quiet = 0
        self.numbers = {"computed": 0, "made_up": 0}
        all_tallies.append(self.numbers)


class Report:
    """The facts of a run."""

    def __init__(self) -> None:
        self._tallies: list[dict[str, int]] = []
        self._lock = threading.Lock()
        self._reads: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
        self._failed: collections.Counter[tuple[str, str]] = collections.Counter()
        self.tally = Tally(self._tallies)

    def read(self, operator: str, decides: str, dtype: Any) -> None:
        """Note that the program reads a value that was not computed."""
        if not self.tally.quiet:
            with self._lock:
                self._reads[_line(), operator, decides, str(dtype).rpartition(".")[2]] += 1

    def fail(self, operator: str, error: object) -> None:
        """Note an operator that the CPU could not compute."""
        with self._lock:
            self._failed[operator, str(error).strip().partition("\n")[0][:200]] += 1

    def facts(self) -> dict[str, Any]:
        """The facts, as JSON has them."""
        with self._lock:
            reads = self._reads.most_common()
            failed = self._failed.most_common()
        return {
            "computed": sum(numbers["computed"] for numbers in list(self._tallies)),
            "made_up": sum(numbers["made_up"] for numbers in list(self._tallies)),
            "read": [
                {
                    "line": line,
                    "operator": operator,
                    "count": count,
                    "decides": decides,
                    "dtype": dtype,
                }
                for (line, operator, decides, dtype), count in reads
            ],
            "failed": [
                {"operator": operator, "error": error, "count": count}
                for (operator, error), count in failed
            ],
            # An integer on the host may become a size later.
            "exact": not any(
                decides == "size" or "int" in dtype for (_, _, decides, dtype), _ in reads
            ),
        }


def _line() -> str:
    """The program's line that runs; ``backward`` in a thread of autograd."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame = frame.f_back
    if frame is None:
        return "backward"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
