"""Foretells when memory is full, from the memory that stays after each step."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

from . import sidecar
from .backend import Backend
from .failure import in_words

#: First steps that are left out: the optimizer's states and caches of libraries come in them.
WARM_UP = 3
#: Steps of the shortest pieces. The memory that stays after a piece is its lowest level.
PIECE = 4
#: Pieces in a row that must rise alike.
PIECES = 8
#: How far the rise of a piece may be from their mean, as a share of it.
SPREAD = 0.5
#: Growth that was seen for some steps is foretold for this many times as many.
HORIZON = 4
#: The least bytes that all pieces rise together. The allocator rounds to 512 bytes.
LEAST = 1 << 20


@dataclasses.dataclass
class Piece:
    """Consecutive steps."""

    #: The lowest level at the end of a step.
    low: int
    #: How far the peak within a step was above its end; ``None`` if no step set a new peak.
    excess: int | None
    #: When the last step ended.
    end: float

    def with_next(self, later: Piece) -> Piece:
        """This piece and the next one as one."""
        known = [one for one in (self.excess, later.excess) if one is not None]
        return Piece(min(self.low, later.low), max(known, default=None), later.end)


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Steady growth."""

    #: Bytes and seconds of a step.
    bytes: float
    seconds: float
    #: Steps in which it was seen.
    seen: int
    #: How far the peak within a step is above its end; ``None`` if that is not known.
    excess: int | None

    def steps_left(self, level: int, limit: int) -> int | None:
        """Steps until memory is full; ``None`` if too little was seen to tell.

        Args:
            level: Bytes after the last step.
            limit: Bytes that can be allocated.
        """
        if self.excess is None:
            return None
        left = max(limit - level - self.excess, 0) / self.bytes
        return int(left) if left <= HORIZON * self.seen else None


class Growth:
    """Levels at the ends of steps, in pieces of 4, 8, 16, ... steps: of each length the last ones.

    Short pieces see fast growth soon, and long ones see slow growth below what steps differ by.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._peak = 0
        #: The steps of the piece that has not ended.
        self._open: list[Piece] = []
        #: Of each length, the last pieces.
        self._pieces: list[collections.deque[Piece]] = []

    def add(self, level: int, peak: int, now: float) -> Forecast | None:
        """Adds a step. Returns growth that is steady up to its end.

        Args:
            level: Bytes that are allocated after it.
            peak: The highest level so far, or since the program has reset it.
            now: When it ended, in seconds.
        """
        excess = peak - level if peak != self._peak else None
        self._peak = peak
        self._steps += 1
        if self._steps <= WARM_UP:
            return None
        self._open.append(Piece(level, excess, now))
        if len(self._open) < PIECE:
            return None
        whole, self._open = functools.reduce(Piece.with_next, self._open), []
        return self._add(whole, (self._steps - WARM_UP) // PIECE)

    def _add(self, piece: Piece, number: int) -> Forecast | None:
        """Adds a piece, by its number from 1. Two pieces are one of the next length."""
        forecast = None
        for scale in itertools.count():
            if scale == len(self._pieces):
                self._pieces.append(collections.deque(maxlen=PIECES))
            pieces = self._pieces[scale]
            pieces.append(piece)
            # Of several, that which was seen for longest.
            forecast = _forecast(list(pieces), PIECE << scale) or forecast
            if number % 2 == 1:
                break
            piece, number = pieces[-2].with_next(piece), number // 2
        return forecast


def _forecast(pieces: list[Piece], length: int) -> Forecast | None:
    """Growth that is steady over these pieces of some steps."""
    if len(pieces) < PIECES:
        return None
    rises = [after.low - before.low for before, after in zip(pieces, pieces[1:])]
    total, mean = sum(rises), sum(rises) / len(rises)
    if total < LEAST or any(abs(rise - mean) > SPREAD * mean for rise in rises):
        return None
    steps = len(rises) * length
    known = [piece.excess for piece in pieces if piece.excess is not None]
    return Forecast(
        bytes=total / steps,
        seconds=(pieces[-1].end - pieces[0].end) / steps,
        seen=steps,
        excess=max(known, default=None),
    )


class Foreteller:
    """Says once that memory will be full.

    Args:
        backend: The backend.
        say: Gets the words.
    """

    def __init__(self, backend: Backend, say: Callable[[str], None]) -> None:
        self._backend = backend
        self._say: Callable[[str], None] | None = say
        self._of_device: collections.defaultdict[int, Growth] = collections.defaultdict(Growth)

    def look(self, levels: dict[int, tuple[int, int]]) -> None:
        """Looks at the levels and peaks of the devices after a step."""
        if self._say is None:
            return
        now = time.monotonic()
        for device, (level, peak) in levels.items():
            forecast = self._of_device[device].add(level, peak, now)
            if forecast is not None:
                self._foretell(device, level, forecast)

    def _foretell(self, device: int, level: int, forecast: Forecast) -> None:
        left = forecast.steps_left(level, _limit(self._backend, device))
        if left is None or self._say is None:
            return
        say, self._say = self._say, None
        of = f" of device {device}" if len(self._of_device) > 1 else ""
        say(
            f"memory{of} grows by {in_words(round(forecast.bytes))} a step: "
            f"full in about {_rounded(left)}, {_duration(left * forecast.seconds)}"
        )


def _limit(backend: Backend, device: int) -> int:
    """Bytes that PyTorch can have on a device now."""
    module: Any = backend.module
    free, total = module.mem_get_info(device)
    own = sidecar.limit(module, device, total, None)
    most = int(free + module.memory_reserved(device))
    return most if own is None else min(most, own)


def _rounded(steps: int) -> str:
    """Steps in two digits: ``190 steps``."""
    unit = 10 ** max(len(str(steps)) - 2, 0)
    steps = max(round(steps / unit) * unit, 1)
    return f"{steps:,} step{'' if steps == 1 else 's'}"


def _duration(seconds: float) -> str:
    """A time in the largest unit of which it has at least two: ``40 minutes``."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(round(seconds), 1)} second{'' if seconds < 1.5 else 's'}"
