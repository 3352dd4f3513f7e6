"""Keeps what goes wrong in the recorder from the program."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from .interrupts import Uninterrupted

log = logging.getLogger("vramscope")

Result = TypeVar("Result")


def never_raise(method: Callable[..., Result]) -> Callable[..., Result | None]:
    """Logs an exception of the recorder instead of raising it into the program."""
    task = (method.__doc__ or "").split("\n")[0].rstrip(".").lower()

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Result | None:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            first = next(iter(str(error).strip().splitlines()), "")
            log.warning("cannot %s: %s: %s", task, type(error).__name__, first)
            log.debug("cannot %s", task, exc_info=True)
            return None

    return guarded


def whole(method: Callable[..., Result]) -> Callable[..., Result | None]:
    """:func:`never_raise`, and signals are delivered afterwards.

    A handler of the program may raise. That exception is the program's, and passes.
    """
    guarded = never_raise(method)

    @functools.wraps(method)
    def uninterrupted(self: Any, *args: Any, **kwargs: Any) -> Result | None:
        with Uninterrupted():
            return guarded(self, *args, **kwargs)

    return uninterrupted
