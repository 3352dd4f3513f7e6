"""What a recorder says on standard error: that memory ran out, and where the snapshot is."""

from __future__ import annotations

import logging
import pathlib
import shlex
import sys
from collections.abc import Sequence

from .ranks import rank_and_world

log = logging.getLogger("vramscope")

#: Folders that one line names.
MAX_TOLD = 3


class Teller:
    """Tells of the first error of a process at once, and at the end how many there were."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew: a forked process has told nothing."""
        #: Whether lines wait for the end of the program, so that they stand below its traceback.
        self.waits = False
        #: Whether nothing is said: another process tells.
        self.is_silent = False
        #: Whether another process tells where snapshots are.
        self.is_below = False
        self._waiting: list[str] = []
        self._errors = 0
        self._told_errors = 0
        #: The folder of the last snapshot, and the folder to be diagnosed.
        self._last: tuple[pathlib.Path, pathlib.Path] | None = None
        #: The folder of the last snapshot that was told.
        self._told: pathlib.Path | None = None

    def wrote(self, dump: pathlib.Path, folder: pathlib.Path) -> None:
        """A snapshot was written into the folder of a dump, below the folder to be diagnosed."""
        self._last = (dump, folder)

    def out_of_memory(self, words: str, is_written: bool) -> None:
        """Memory ran out."""
        self._errors += 1
        self.go_on()
        if self._errors > 1:
            return
        self._told_errors = 1
        self._waiting = [words, *(self._where() if is_written else [])]
        if not self.waits:
            self.go_on()

    def growth(self, words: str, ask: str | None) -> None:
        """Memory will be full. ``ask`` is the command that shows what fills it."""
        self._say([words, *([] if ask is None else [f"what fills it: {ask}"])])

    def go_on(self) -> None:
        """The program goes on, or is terminated: says what has waited."""
        waiting, self._waiting = self._waiting, []
        self._say(waiting)

    def end(self) -> None:
        """The recording has ended. Lines that wait go on waiting."""
        if not self.waits:
            self._count()

    def finish(self) -> None:
        """The program has ended, and its traceback is written."""
        self.go_on()
        self._count()
        if self._last is not None and self._last[0] != self._told and rank_and_world()[0] == 0:
            self._say(self._where())

    def _count(self) -> None:
        if self._errors > self._told_errors:
            self._told_errors = self._errors
            self._say([f"out of memory {self._errors} times in all", *self._where()])

    def _where(self) -> list[str]:
        if self._last is None or self.is_below:
            return []
        self._told, folder = self._last
        return [wrote([self._told], folder)]

    def _say(self, lines: list[str]) -> None:
        if not lines or self.is_silent:
            return
        try:
            rank, world = rank_and_world()
            prefix = "vramscope: " if world == 1 else f"vramscope: rank {rank}: "
            # One call, so that the lines of several ranks do not mix.
            sys.stderr.write("".join(f"{prefix}{line}\n" for line in lines))
            sys.stderr.flush()
        except Exception as error:
            log.debug("cannot write to standard error: %s", error)


def wrote(dumps: Sequence[pathlib.Path], folder: pathlib.Path) -> str:
    """Where snapshots are, and how they are diagnosed, in one line."""
    shown = [f"{dump}/" for dump in dumps[:MAX_TOLD]]
    if len(dumps) > MAX_TOLD:
        shown.append(f"{len(dumps) - MAX_TOLD} more")
    return f"wrote {', '.join(shown)}, run: vramscope diagnose {shlex.quote(str(folder))}"


#: That of this process.
teller = Teller()
