"""One use of ``vramscope fix``: the program, its changes, and the answer."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shlex
from typing import Any

from .. import _vramscope
from ..dry.run import NotRun, Program
from .lever import Lever
from .rewrite import Declined
from .search import Search, Try, record
from .sources import Sources, write
from .trial import CONF, Ran, dry_run, recorded, sidecar


class Fix:
    """A program, and the change that was looked for."""

    def __init__(self, program: Program, words: list[str], output: pathlib.Path) -> None:
        """Runs the program, or reads what was recorded of it.

        Raises:
            NotRun: Something is missing.
        """
        if not os.path.exists(words[0]):
            raise NotRun(f"cannot find {words[0]}: expected a script or a snapshot")
        if words[0].endswith(".py"):
            self.before = None
        else:
            self.before = recorded(words[0])
            noted = sidecar(self.before.snapshot) if self.before.snapshot else {}
            words = words[1:] or _of_command(noted)
            program = _on_its_device(program, self.before, noted)
        script = pathlib.Path(words[0])
        if not script.is_file():
            raise NotRun(f"cannot find {script}: name the recorded program after the snapshot")
        self.sources = Sources(script, words[1:])
        self._program = dataclasses.replace(program, words=[str(script), *words[1:]])
        self._output = output
        self.found: Try | None = None
        self.search: Search | None = None
        self.is_written = False
        #: Why the change was not written, if it was to be.
        self.not_written: str | None = None

    def run(self, *, apply: str | None, plan: bool, write: bool, force: bool) -> int:
        """Looks for a change, and writes it if asked to. Returns the exit status.

        Raises:
            NotRun: The program cannot be run here.
        """
        if self.before is None:
            self.before = dry_run(self._program, self._output / "before")
        if self.before.outcome == "failed":
            raise NotRun(f"the program {self.before.text}")
        self.search = Search(self._program, self.before, self.sources, self._output)
        levers = self.before.levers()
        if apply is not None:
            # The name of a set has commas, too.
            is_set = any(lever.name == apply for lever in levers)
            names = [apply] if is_set else apply.split(",")
            one = self.search.applied([_named(levers, name) for name in names])
            self.found = one if self.search.is_fix(one) else None
        else:
            self.found = self.search.first(levers, sets=plan)
        if write and self.found is not None and self.found.changes:
            self._write(force)
        return 1 if self.found is None else 2 if self.not_written else 0

    def _write(self, force: bool) -> None:
        assert self.found is not None
        try:
            write(self.found.changes, force=force)
        except Declined as reason:
            # The answer of the runs is not lost.
            self.not_written = str(reason)
            return
        self.is_written = True

    def record(self) -> dict[str, Any]:
        """The answer as JSON."""
        assert self.before is not None and self.search is not None
        before = self.before
        return {
            "schema": "vramscope.fix/1",
            "program": self._program.words,
            "gpu": self._program.gpu,
            "before": {
                "outcome": before.outcome,
                "needs_bytes": before.needs_bytes,
                "active_bytes": before.active_bytes,
                "reserved_bytes": before.reserved_bytes,
                "text": before.text,
                "snapshot": before.snapshot and str(before.snapshot),
            },
            "fix": record(self.found) if self.found is not None else None,
            "tries": [record(one) for one in self.search.tries],
            "is_written": self.is_written,
            "not_written": self.not_written,
        }

    def words(self, given: list[str]) -> str:
        """The answer in text. ``given`` is the command line, for what writes the change."""
        assert self.before is not None and self.search is not None
        lines = [f"before:    {self._ran(self.before)}"]
        for one in self.search.tries:
            if one is self.found:
                continue
            lines.append(f"no:        {one.text}")
            lines.append(f"           {self._why_not(one)}")
        if self.found is None:
            lines += ["", "No change was found that was run and does it."]
            if not self.search.tries:
                lines[-1] = "Nothing to change is known of this run."
            lines += self._snippet()
            return "\n".join(lines) + "\n"
        found = self.found
        assert found.ran is not None
        lines.append(f"fix:       {found.text}")
        lines.append(f"edit:      {'; '.join(found.edits)}")
        if found.predicted_bytes is not None:
            lines.append(f"predicted: needs {_vramscope.bytes_text(found.predicted_bytes)}")
        lines.append(f"dry run:   {self._ran(found.ran)}{_compared(found)}")
        if found.diff:
            lines += ["", found.diff.rstrip("\n")]
        lines += ["", *self._next(found, given)]
        return "\n".join(lines) + "\n"

    def _ran(self, ran: Ran) -> str:
        own = f"needs {_vramscope.bytes_text(ran.needs_bytes)}, " if ran.needs_bytes else ""
        if ran.outcome == "fits" and ran.active_bytes is not None:
            return f"{own}runs to its end, peak {_vramscope.bytes_text(ran.active_bytes)}"
        return f"{own}{ran.text}"

    def _why_not(self, one: Try) -> str:
        if one.declined is not None:
            return f"not edited: {one.declined}"
        assert one.ran is not None
        if one.ran.outcome == "failed":
            return f"the changed program {one.ran.text}"
        return f"dry run: {self._ran(one.ran)}"

    def _snippet(self) -> list[str]:
        """How the best change looks, where its edit is left to the reader."""
        assert self.search is not None
        for one in self.search.tries:
            own = one.levers[0].record["edit"]
            if one.declined is not None and own is not None:
                at = f" at {own['place']}" if own["place"] else ""
                body = [f"    {line}" for line in own["snippet"].splitlines() if line]
                return ["", f"By hand{at}: {own['what']}", *body]
        return []

    def _next(self, found: Try, given: list[str]) -> list[str]:
        lines = []
        if found.conf is not None:
            lines.append(f"help: export {CONF}={found.conf}")
        if found.arguments != self.sources.arguments:
            lines.append(f"help: run it with {' '.join(found.arguments)}")
        if found.changes and self.is_written:
            names = ", ".join(
                str(change.path.relative_to(self.sources.root)) for change in found.changes
            )
            lines.append(f"written: {names}")
        elif self.not_written is not None:
            lines.append(f"not written: {self.not_written}")
        elif found.changes:
            # What a plan added is no change of the first run.
            is_chosen = "--apply" in given or len(found.levers) > 1
            chosen = [] if is_chosen else ["--apply", found.name]
            command = shlex.join(["vramscope", "fix", "--write", *chosen, *given])
            lines.append(f"help: {command}")
        return lines


def _compared(found: Try) -> str:
    """How far the run is from what was predicted."""
    predicted, ran = found.predicted_bytes, found.ran
    if predicted is None or ran is None or not ran.needs_bytes:
        return ""
    percent = round(100 * (ran.needs_bytes - predicted) / predicted)
    return ", as predicted" if percent == 0 else f", {percent:+} % against the prediction"


def _named(levers: list[Lever], name: str) -> Lever:
    """The lever of a name.

    Raises:
        NotRun: There is none.
    """
    found = next((lever for lever in levers if lever.name == name.strip()), None)
    if found is None:
        known = ", ".join(dict.fromkeys(lever.name for lever in levers)) or "none"
        raise NotRun(f"--apply {name}: this run has the changes {known}")
    return found


def _of_command(noted: dict[str, Any]) -> list[str]:
    """The script and its arguments of a recorded command line.

    Raises:
        NotRun: It names none.
    """
    words = noted.get("command") or []
    for at, word in enumerate(words):
        if word.endswith(".py"):
            return list(words[at:])
    raise NotRun("the snapshot names no script: name the program after it")


def _on_its_device(program: Program, before: Ran, noted: dict[str, Any]) -> Program:
    """The program on the device of a recording, where nothing else was asked for."""
    device = next(iter(noted.get("devices") or []), None)
    if device is None:
        return program
    memory = program.memory or device["limit_bytes"] or device["total_bytes"]
    try:
        _vramscope.gpu(device["name"])
    except ValueError:
        return dataclasses.replace(program, memory=memory)
    return dataclasses.replace(program, gpu=device["name"], memory=memory)
