"""Answers, and the records of which they are made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

A = TypeVar("A", bound="Answer")


class Answer:
    """An answer that knows its record: what the program prints with ``--format json``."""

    #: The record as JSON. No field, so that ``dataclasses.asdict`` does not repeat the answer.
    _record: bytes

    def to_dict(self) -> dict[str, Any]:
        """The answer as the program prints it with ``--format json``, each time a new dict.

        Its keys are those of ``vramscope schema``; attributes of this object have their units in
        their names instead.

        >>> s = vramscope.open("rank0.pickle")
        >>> s.steps.to_dict()["schema"]
        'vramscope.steps/1'
        """
        record: dict[str, Any] = json.loads(self._record)
        return record

    def to_json(self, *, indent: int | None = None) -> str:
        """:meth:`to_dict` as text.

        Args:
            indent: spaces for each level; by default all is in one line.
        """
        if indent is None:
            return self._record.decode()
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


def told(answer: A, record: bytes) -> A:
    """The answer, with its record."""
    # Answers are frozen.
    object.__setattr__(answer, "_record", record)
    return answer


def read(of: Callable[..., A], record: bytes, *view: bytes) -> A:
    """The answer that ``of`` makes of a record, and of what is said beside it."""
    return told(of(*map(json.loads, (record, *view))), record)
