"""Dry runs of a program and of its changed forms, and what each needs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from ..dry.run import NotRun, Program, run
from .lever import Lever, levers

#: The line of a traceback that names its error.
_ERROR = re.compile(r"[\w.]*(Error|Exception|Interrupt)\b.*:")
#: The variable of PyTorch's allocator.
CONF = "PYTORCH_CUDA_ALLOC_CONF"


@dataclasses.dataclass(frozen=True)
class Ran:
    """How a program ran on the device."""

    #: ``fits`` (to its end), ``runs_out``, or ``failed``: for another reason than memory.
    outcome: str
    #: The least memory with which PyTorch runs it, as ``what-if`` says; ``None`` if it failed.
    needs_bytes: int | None
    active_bytes: int | None
    reserved_bytes: int | None
    #: In a line.
    text: str
    seconds: float
    #: The snapshot that this is of; ``None`` without one.
    snapshot: pathlib.Path | None
    #: What ``diagnose`` says of it.
    diagnosis: dict[str, Any]

    def levers(self) -> list[Lever]:
        """What can be changed, best first."""
        return levers(self.diagnosis) if self.diagnosis else []


def dry_run(program: Program, output: pathlib.Path, conf: str | None = None) -> Ran:
    """Runs a program on the device of the dry run, with these settings of the allocator.

    Raises:
        NotRun: The program cannot be run here.
    """
    begin = time.monotonic()
    with _environment(conf), tempfile.TemporaryFile() as written:
        number = written.fileno()
        outcome = run(program, output, out=number, err=number)
        written.seek(0)
        lines = written.read().decode(errors="replace").strip().splitlines()
    seconds = time.monotonic() - begin
    # The last line of a traceback, or what was written last.
    errors = [one for one in lines if _ERROR.match(one)]
    last = (errors or lines or [""])[-1]
    diagnosis = _ask("diagnose", "--all", *map(str, outcome.snapshots)) if outcome.snapshots else {}
    dry = diagnosis.get("dry")
    ended = dry is not None and dry["outcome"] in ("fits", "runs_out")
    if dry is None or not ended or (outcome.status and dry["outcome"] == "fits"):
        text = f"ends with status {outcome.status}: {last}" if last else "uses no GPU"
        return Ran("failed", None, None, None, text, seconds, None, {})
    snapshot = pathlib.Path(dry["path"])
    text = dry["text"].partition(": ")[2]
    return Ran(
        "fits" if dry["outcome"] == "fits" else "runs_out",
        needs(snapshot, diagnosis),
        dry["active_bytes"],
        dry["reserved_bytes"],
        text,
        seconds,
        snapshot,
        diagnosis,
    )


def recorded(path: str) -> Ran:
    """What a recording says, without a run.

    Raises:
        NotRun: It cannot be read.
    """
    diagnosis = _ask("diagnose", "--all", path)
    if not diagnosis.get("headlines"):
        errors = "; ".join(one["message"] for one in diagnosis.get("errors", []))
        raise NotRun(errors or f"no snapshot in {path}")
    first = diagnosis["headlines"][0]
    failed = any(one["kind"] == "oom" for one in diagnosis["findings"])
    snapshot = pathlib.Path(first["path"])
    text = diagnosis["sentence"]
    outcome = "runs_out" if failed else "fits"
    return Ran(outcome, needs(snapshot, diagnosis), None, None, text, 0.0, snapshot, diagnosis)


def needs(snapshot: pathlib.Path, diagnosis: dict[str, Any]) -> int | None:
    """The least memory with which PyTorch runs what was recorded."""
    # Each lever was compared with it.
    for lever in levers(diagnosis):
        if "now_bytes" in lever.record:
            return int(lever.record["now_bytes"])
    for one in _ask("what-if", str(snapshot)).get("scenarios", []):
        if one["change"] == "as recorded" and one["least_device_memory"] is not None:
            return int(one["least_device_memory"])
    return None


def sidecar(snapshot: pathlib.Path) -> dict[str, Any]:
    """What the recorder noted beside a snapshot; empty where it noted nothing."""
    name = snapshot.name.partition(".")[0]
    beside = snapshot.with_name(f"{name}.vramscope.json")
    if not beside.exists():
        return {}
    found = json.loads(beside.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def _ask(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "vramscope", words[0], "--format", "json", *words[1:]]
    told = subprocess.run(command, capture_output=True, check=False)
    if not told.stdout.strip():
        raise NotRun(told.stderr.decode(errors="replace").strip())
    answer = json.loads(told.stdout)
    assert isinstance(answer, dict)
    return answer


@contextlib.contextmanager
def _environment(conf: str | None) -> Iterator[None]:
    before = os.environ.get(CONF)
    if conf is not None:
        os.environ[CONF] = conf
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(CONF, None)
        else:
            os.environ[CONF] = before
