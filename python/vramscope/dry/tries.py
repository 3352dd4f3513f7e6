"""Dry runs of a search, each told in a row of one table."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
from typing import Any

from .. import _vramscope
from .progress import Progress
from .run import NotRun, Outcome, Program, run

#: Columns of a text.
WIDTH = 100
#: The parts of the memory of a device in words: categories, and the last two around them.
PARTS = {
    "parameter": "weights",
    "buffer": "buffers",
    "optimizer_state": "optimizer states",
    "cache": "KV cache",
    "workspace": "workspaces",
    "input": "inputs",
    "gradient": "gradients",
    "activation": "activations",
    "communication": "communication buffers",
    "temporary": "temporary tensors",
    "unknown": "unknown use",
    "idle": "reserved and not in use",
    "outside": "outside of PyTorch",
}


class NotWhole(NotRun):
    """Something else than memory has ended the program before its end: what it was."""


@dataclasses.dataclass(frozen=True)
class Try:
    """A dry run that came to its end, or ran out of memory."""

    fits: bool
    #: What ``diagnose`` says, without the name of the GPU.
    text: str
    memory_bytes: int
    #: The peaks. Of a run that ran out of memory: until then.
    active_bytes: int
    reserved_bytes: int
    #: The memory at the peak by its use: :data:`PARTS`.
    parts: dict[str, int]
    #: Whether the program has begun a process group.
    is_job: bool
    #: What this rank sent to others: see ``Program.received``.
    sent: bytes

    @property
    def left_bytes(self) -> int:
        """The memory that nothing took. Negative: so much is lacking."""
        return self.memory_bytes - self.reserved_bytes - self.parts["outside"]

    @property
    def largest_part(self) -> str:
        """The part of :data:`PARTS` that takes most. PyTorch returns idle memory when it must."""
        return max(self.parts, key=lambda name: self.parts[name] if name != "idle" else 0)

    @property
    def largest_in_words(self) -> str:
        """That part with its bytes."""
        return f"{PARTS[self.largest_part]}, {in_bytes(self.parts[self.largest_part])}"


def attempt(program: Program, output: pathlib.Path) -> Try:
    """Runs a program. What it writes is not shown: it would hide the rows.

    Raises:
        NotWhole: Something else than memory ended it.
        NotRun: The program cannot be run here.
        SystemExit: The user interrupted it.
    """
    with tempfile.TemporaryFile() as written, Progress(program.steps) as progress:
        number = written.fileno()
        outcome = run(program, output, out=number, err=number, tell=progress.tell)
        written.seek(0)
        lines = written.read().decode(errors="replace").strip().splitlines()
    if outcome.ended_by == "interrupt":
        raise SystemExit(outcome.status)
    if outcome.ended_by == "limit":
        raise NotRun(
            f"the time limit of {program.seconds:.0f} s ended the program: --steps N ends it after "
            "N steps of the optimizer"
        )
    found = _diagnosis(outcome)
    dry = found.get("dry")
    if dry is None or dry["outcome"] == "ended" or (outcome.status and dry["outcome"] == "fits"):
        raise NotWhole(_why_not(outcome, lines))
    return Try(
        fits=dry["outcome"] == "fits",
        text=dry["text"].partition(": ")[2],
        memory_bytes=dry["memory_bytes"],
        active_bytes=dry["active_bytes"],
        reserved_bytes=dry["reserved_bytes"],
        parts=_parts(found),
        is_job=outcome.is_job,
        sent=outcome.sent,
    )


def _diagnosis(outcome: Outcome) -> Any:
    """What ``diagnose`` says of what was recorded."""
    if not outcome.snapshots:
        return {}
    paths = [str(path) for path in outcome.snapshots]
    told = subprocess.run(
        [sys.executable, "-m", "vramscope", "diagnose", "--format", "json", *paths],
        capture_output=True,
        check=False,
    )
    return json.loads(told.stdout)


def _why_not(outcome: Outcome, lines: list[str]) -> str:
    if outcome.error is not None:
        return outcome.error
    if not outcome.status:
        return "the program did not use a GPU"
    last = f": {lines[-1]}" if lines else ""
    return f"the program ended with status {outcome.status}{last}"


def _parts(found: Any) -> dict[str, int]:
    dry, peak = found["dry"], found["peak"] or {}
    is_same = all(peak.get(name) == dry[name] for name in ("path", "device"))
    parts = dict(peak["categories"]) if is_same else {}
    parts["idle"] = dry["reserved_bytes"] - dry["active_bytes"]
    beside = pathlib.Path(dry["path"]).with_suffix(".vramscope.json")
    devices = json.loads(beside.read_text(encoding="utf-8"))["devices"]
    parts["outside"] = next(one["other_bytes"] for one in devices if one["device"] == dry["device"])
    return parts


class Table:
    """The rows of a search, each shown once it is known."""

    def __init__(self, title: str, name: str, is_shown: bool) -> None:
        self._is_shown = is_shown
        self.tell(title)
        self._row(name, "peak active", "reserved", "left", "largest part", "outcome")

    def fitting(self, value: int, found: Try, outcome: str) -> None:
        """Shows what a run needed."""
        self._row(
            str(value),
            in_bytes(found.active_bytes),
            in_bytes(found.reserved_bytes),
            in_bytes(found.left_bytes),
            found.largest_in_words,
            outcome,
        )

    def other(self, value: int, text: str) -> None:
        """Shows a value without numbers."""
        self.tell(f"  {value:>5}  {text}", indent=9)

    def tell(self, text: str, indent: int = 0) -> None:
        """Shows a text."""
        if self._is_shown:
            print(textwrap.fill(text, WIDTH, subsequent_indent=" " * indent), flush=True)

    def _row(self, value: str, active: str, reserved: str, left: str, part: str, end: str) -> None:
        if self._is_shown:
            row = f"  {value:>5}  {active:>11}  {reserved:>9}  {left:>10}  {part:<32}  {end}"
            print(row.rstrip(), flush=True)


def in_bytes(count: int) -> str:
    """Bytes in words, also negative ones."""
    return f"{'-' if count < 0 else ''}{_vramscope.bytes_text(abs(count))}"
