"""Notes of who holds memory while it grows.

The local variables of a function are gone when the program ends. So the file beside the last
snapshot has what was noted while they were there.
"""

from __future__ import annotations

import _thread
import collections
import sys
import time
from collections.abc import Callable
from typing import Any

from .holders import Note

#: A note is taken when the level has risen by this share since the last one.
RISE = 1 / 32
#: The same, as long as little time was spent: the growth is this many times that of the last note.
EARLY_RISE = 1.5
#: The least bytes of a rise.
LEAST = 1 << 20
#: The share of the time that notes may take, and seconds that they may take in any case: of a
#: program with steps, and of one without, in which loading a model is growth, too.
SHARE, SECONDS, SECONDS_WITHOUT_STEPS = 0.01, 2.0, 0.5
#: Rises before the first note without steps: a small model is loaded with fewer.
RISES = 8
#: What the first note is expected to take.
EXPECTED_SECONDS = 0.1
#: Levels of which the lowest counts: what a step uses only for a moment is no growth.
LEVELS = 3
#: Steps that are left out: the optimizer's states come in the first.
WARM_UP = 1
#: Between two looks without steps: a share of the time so far, within these seconds.
LOOK_SHARE, LEAST_WAIT, MOST_WAIT = 0.02, 0.01, 1.0


#: What PyTorch imports for its first snapshot, in two seconds.
IMPORTED = "torch._inductor.codecache"


class Notes:
    """Takes notes when the memory that stays has grown.

    Args:
        take: Finds who holds memory now; ``None`` if that fails.
    """

    def __init__(self, take: Callable[[], dict[str, Any] | None]) -> None:
        self._take = take
        self._begin = time.monotonic()
        self._spent = 0.0
        self._expected = EXPECTED_SECONDS
        self._levels: collections.deque[int] = collections.deque(maxlen=LEVELS)
        self._steps = 0
        #: The lowest of these levels, and how often it rose without steps.
        self._low = self._rises = 0
        #: The level before it grew, and at the last note.
        self._base = self._noted = 0
        #: The last note.
        self.last: Note | None = None

    def wants(self, levels: dict[int, tuple[int, int]], step: int | None) -> bool:
        """Whether a note should be taken, at these levels and peaks of the devices: after a step,
        or at any time without steps.
        """
        level = sum(level for level, _ in levels.values())
        if step is not None:
            self._steps += 1
            if self._steps <= WARM_UP:
                # Levels from before the first step say nothing of the steps.
                self._levels.clear()
                return False
            if self._steps == WARM_UP + 1:
                self._base = self._noted = level
        self._levels.append(level)
        before, self._low = self._low, min(self._levels)
        if step is None and self._low > before:
            self._rises += 1
        if len(self._levels) < LEVELS or (step is None and self._rises < RISES):
            return False
        return self._may(self._low, step is not None)

    def take(self, now_us: int, step: int | None) -> None:
        """Takes a note."""
        low, begin, imported = self._low, time.monotonic(), IMPORTED in sys.modules
        taken = self._take()
        if imported or taken is None:
            self._expected = time.monotonic() - begin
        else:
            # The last snapshot of the program would have imported it.
            self._expected = taken["seconds"]
        self._spent += self._expected
        self._noted = low
        if taken is not None:
            self.last = Note(taken, now_us, step)

    def _may(self, low: int, has_steps: bool) -> bool:
        if low < self._noted * (1 + RISE) + LEAST:
            return False
        spent = self._spent + self._expected
        share = SHARE * (time.monotonic() - self._begin)
        if spent <= share:
            return True
        floor = SECONDS if has_steps else SECONDS_WITHOUT_STEPS
        grown = (low - self._base) >= EARLY_RISE * (self._noted - self._base)
        return grown and spent <= share + floor


class Watch:
    """A thread that looks again and again, until it is ended.

    It must not do more than look: what PyTorch imports for a snapshot would fail in the thread of
    the program that imports it at the same time.
    """

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        # Held until the thread is to end, and until it has.
        self._ends, self._has_ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._begin = time.monotonic()
        self._is_running = False
        self.start()

    def start(self) -> None:
        """Starts the thread."""
        if not self._is_running:
            self._is_running = True
            self._ends.acquire()
            self._has_ended.acquire()
            # One of `threading` would be in the program's list of threads, which it may join.
            _thread.start_new_thread(self._run, ())

    def end(self) -> None:
        """Ends the thread, and waits for it."""
        if self._is_running:
            self._is_running = False
            self._ends.release()
            with self._has_ended:
                pass

    def _run(self) -> None:
        wait = LEAST_WAIT
        try:
            while not self._ends.acquire(timeout=wait):
                self._look()
                so_far = time.monotonic() - self._begin
                wait = min(max(LOOK_SHARE * so_far, LEAST_WAIT), MOST_WAIT)
            self._ends.release()
        finally:
            self._has_ended.release()
