"""Looks for a change that was run: one lever after the other, then sets of them."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from ..dry.run import Program
from .edits import edit
from .lever import Lever
from .rewrite import Declined
from .sources import Change, Sources
from .trial import Ran, dry_run

#: Dry runs of changed programs in one search.
MOST_RUNS = 8


@dataclasses.dataclass
class Try:
    """A change, and what came of it."""

    levers: list[Lever]
    #: What was edited, in words.
    edits: list[str] = dataclasses.field(default_factory=list)
    #: Why there is no edit; ``None`` if there is one.
    declined: str | None = None
    changes: list[Change] = dataclasses.field(default_factory=list)
    diff: str = ""
    arguments: list[str] = dataclasses.field(default_factory=list)
    conf: str | None = None
    ran: Ran | None = None

    @property
    def name(self) -> str:
        """``checkpoint:all``, or several with commas: what ``--apply`` takes."""
        return ",".join(lever.name for lever in self.levers)

    @property
    def text(self) -> str:
        """The change in words."""
        return "; ".join(lever.text for lever in self.levers)

    @property
    def predicted_bytes(self) -> int | None:
        """What the replay says that it needs; ``None`` for sets, which were not replayed."""
        return self.levers[0].needs_bytes if len(self.levers) == 1 else None


class Search:
    """Tries changes of one program."""

    def __init__(
        self, program: Program, before: Ran, sources: Sources, output: pathlib.Path
    ) -> None:
        self._program = program
        self._before = before
        self._sources = sources
        self._output = output
        self._runs = 0
        self.tries: list[Try] = []

    def applied(self, levers: list[Lever]) -> Try:
        """Tries these changes together."""
        found = Try(levers, arguments=list(self._sources.arguments))
        self.tries.append(found)
        sources = self._sources
        whole: dict[pathlib.Path, Change] = {}
        for lever in levers:
            try:
                if lever.conf is not None:
                    found.conf = lever.conf
                    found.edits.append(f"the setting {lever.conf}")
                    continue
                sources = sources.with_changes(list(whole.values()))
                found.edits.append(edit(lever, sources))
                for change in sources.changes():
                    first = whole.get(change.path)
                    before = first.before if first else change.before
                    whole[change.path] = dataclasses.replace(change, before=before)
            except Declined as reason:
                found.declined = str(reason)
                return found
        found.changes = list(whole.values())
        found.arguments = sources.arguments
        found.diff = sources.diff(found.changes, base=_base(self._sources.root))
        if not found.changes and found.conf is None and found.arguments == self._sources.arguments:
            found.declined = "the source has it already"
            return found
        self._runs += 1
        with sources.changed(found.changes) as script:
            words = [str(script), *found.arguments]
            changed = dataclasses.replace(self._program, words=words)
            found.ran = dry_run(changed, self._output / f"fix_{self._runs}", found.conf)
        return found

    def first(self, levers: list[Lever], *, sets: bool) -> Try | None:
        """The first change that does what it should, and if asked the first set of them."""
        for lever in levers:
            if self._runs >= MOST_RUNS:
                break
            if self.is_fix(self.applied([lever])):
                return self.tries[-1]
        for chosen in self._sets() if sets else ():
            if self._runs >= MOST_RUNS:
                break
            if self.is_fix(self.applied(chosen)):
                return self.tries[-1]
        return None

    def _sets(self) -> Iterator[list[Lever]]:
        """More and more of those that could be edited: by cost, as they were told."""
        useful = [
            one.levers[0]
            for one in self.tries
            if one.ran is not None and one.ran.outcome != "failed" and self.lowers(one)
        ]
        for end in range(2, len(useful) + 1):
            yield useful[:end]

    def is_fix(self, one: Try) -> bool:
        """Whether the changed program does what the change is for."""
        if one.ran is None or one.ran.outcome != "fits":
            return False
        return self._before.outcome == "runs_out" or self.lowers(one)

    def lowers(self, one: Try) -> bool:
        """Whether it needs less than before."""
        if one.ran is None or one.ran.needs_bytes is None or self._before.needs_bytes is None:
            return False
        return one.ran.needs_bytes < self._before.needs_bytes


def _base(root: pathlib.Path) -> pathlib.Path:
    """The folder that paths of a diff begin at: this one, if the program is below it."""
    here = pathlib.Path.cwd().resolve()
    with contextlib.suppress(ValueError):
        root.relative_to(here)
        return here
    return root


def record(one: Try) -> dict[str, Any]:
    """A try as JSON."""
    ran = one.ran
    return {
        "change": one.name,
        "text": one.text,
        "edits": one.edits,
        "declined": one.declined,
        "predicted_bytes": one.predicted_bytes,
        "outcome": ran and ran.outcome,
        "needs_bytes": ran and ran.needs_bytes,
        "active_bytes": ran and ran.active_bytes,
        "reserved_bytes": ran and ran.reserved_bytes,
        "ran": ran and ran.text,
        "seconds": ran and round(ran.seconds, 1),
        "snapshot": ran and ran.snapshot and str(ran.snapshot),
        "conf": one.conf,
        "arguments": one.arguments,
        "diff": one.diff,
    }
