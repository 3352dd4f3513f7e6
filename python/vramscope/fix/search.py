"""Looks for a change that was run: one lever after the other, then sets of them."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from typing import Any

from ..dry.run import Program
from .edits import CURABLE, edit
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
        """What a replay says that it needs: of a set, the replay of the run before its last."""
        return self.levers[-1].needs_bytes if self.levers else None


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

    def applied(self, levers: list[Lever], onto: Try | None = None) -> Try:
        """Tries these changes together, on top of an earlier try."""
        found = Try(levers, arguments=list(self._sources.arguments))
        files: dict[pathlib.Path, Change] = {}
        if onto is not None:
            found.levers = [*onto.levers, *levers]
            found.edits, found.conf = list(onto.edits), onto.conf
            found.arguments = list(onto.arguments)
            files = {change.path: change for change in onto.changes}
        self.tries.append(found)
        for lever in (part for whole in levers for part in whole.parts()):
            try:
                if lever.conf is not None:
                    found.conf = lever.conf
                    found.edits.append(f"the setting {lever.conf}")
                    continue
                sources = self._sources.with_changes(list(files.values()), found.arguments)
                found.edits.append(edit(lever, sources))
                found.arguments = sources.arguments
                for change in sources.changes():
                    first = files.get(change.path)
                    before = first.before if first else change.before
                    files[change.path] = dataclasses.replace(change, before=before)
            except Declined as reason:
                found.declined = str(reason)
                return found
        found.changes = list(files.values())
        found.diff = self._sources.diff(found.changes, base=_base(self._sources.root))
        if not found.changes and found.conf is None and found.arguments == self._sources.arguments:
            found.declined = "the source has it already"
            return found
        self._runs += 1
        with self._sources.changed(found.changes) as script:
            words = [str(script), *found.arguments]
            changed = dataclasses.replace(self._program, words=words)
            found.ran = dry_run(changed, self._output / f"fix_{self._runs}", found.conf)
        return found

    def first(self, levers: list[Lever], *, sets: bool) -> Try | None:
        """The first change that does what it should, and if asked the first set of them."""
        pending: list[tuple[Lever, Try | None]] = [(lever, None) for lever in levers]
        while pending and self._runs < MOST_RUNS:
            lever, onto = pending.pop(0)
            if lever.needs_bytes is None and lever.cures not in CURABLE:
                continue
            one = self.applied([lever], onto)
            if self.is_fix(one):
                return one
            if sets and one.ran is not None and one.ran.outcome == "runs_out":
                # What its own run shows comes after all single changes.
                # One change in two strengths is one change.
                known = {part.recipe for had in one.levers for part in had.parts()}
                more = [
                    of
                    for of in one.ran.levers()
                    if all(part.recipe not in known for part in of.parts() if part.recipe)
                ]
                pending += [(of, one) for of in more]
        return None

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
