"""Exceptions of this package."""

from __future__ import annotations

from typing import Literal

#: Why a file could not be read.
ErrorKind = Literal["no_snapshot", "damaged", "unreadable"]


class VramscopeError(Exception):
    """The base of this package's exceptions."""


class ReadError(VramscopeError):
    """A file that could not be read.

    Attributes:
        path: the file.
        reason: what failed, where, and what was expected.
        hint: a remedy, or ``None``.
        kind: ``no_snapshot``, ``damaged`` or ``unreadable``.
        offset: where the error is, in bytes of the unpacked file, or ``None``.
    """

    def __init__(
        self, path: str, reason: str, hint: str | None, kind: ErrorKind, offset: int | None
    ) -> None:
        super().__init__(path, reason, hint, kind, offset)
        self.path = path
        self.reason = reason
        self.hint = hint
        self.kind = kind
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" + (f"\n{self.hint}" if self.hint else "")
