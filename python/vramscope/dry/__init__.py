"""Dry runs: a program with PyTorch and its allocator, without a GPU. See ``docs/predict.md``."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Literal

from ..answer import Answer, told
from ..errors import VramscopeError

__all__ = ["DryRun", "dry_run"]


@dataclasses.dataclass(frozen=True)
class DryRun(Answer):
    """A program that was run without a GPU.

    Its record is ``diagnosis``: empty if the program used no GPU.
    """

    #: The exit status of the program.
    status: int
    #: Whether the program came to its end; ``None`` if something else than memory ended it.
    fits: bool | None
    #: The result in a line.
    text: str
    #: What ``vramscope diagnose --format json`` says of it.
    diagnosis: dict[str, Any]
    #: The snapshot that the line is of; ``None`` if the program used no GPU.
    snapshot: pathlib.Path | None


def dry_run(
    program: str | os.PathLike[str],
    *arguments: str,
    gpu: str = "H100",
    memory: str | int | None = None,
    python: str | None = None,
    output: str | os.PathLike[str] | None = None,
    steps: int | None = None,
    seconds: int | None = None,
    ranks: int | None = None,
    rank: int = 0,
    values: Literal["off", "small", "full"] = "small",
    weights: bool = True,
    stacks: Literal["python", "all"] = "python",
    holders: bool = True,
    use_step: int | None = None,
) -> DryRun:
    """Runs a script of PyTorch without a GPU, in another process.

    PyTorch's own allocator, autograd and optimizers run; kernels do nothing. What the program
    writes to standard output goes to standard error::

        found = vramscope.dry_run("train.py", "--batch-size", "32", gpu="A100", steps=3)
        assert found.fits, found.text

    Args:
        program: The script.
        arguments: Its arguments.
        gpu: The GPU: ``H100``, ``A100``, ``L4``, ...
        memory: The memory of the device, for another size: bytes, or a text such as ``"24GiB"``.
        python: The Python that has PyTorch; ``None`` for this one.
        output: Where recordings go; ``None`` for a folder below ``vramscope-runs``.
        steps: Steps of the optimizer after which the program is ended.
        seconds: Seconds after which it is ended; ``None`` for 1800.
        ranks: The number of ranks of a job, of which one runs alone.
        rank: Which one.
        values: Which tensors get true values: ``"off"``, ``"small"`` or ``"full"``.
        weights: Whether ``from_pretrained`` of transformers reads weights.
        stacks: As for :func:`vramscope.record`.
        holders: As for :func:`vramscope.record`.
        use_step: As for :func:`vramscope.record`.

    Raises:
        VramscopeError: The program cannot be run dry here. The message says what is missing.
    """
    options: dict[str, Any] = {
        "--gpu": gpu,
        "--memory": memory,
        "--python": python or sys.executable,
        "--output": output,
        "--steps": steps,
        "--seconds": seconds,
        "--ranks": ranks,
        "--rank": rank,
        "--values": values,
        "--stacks": stacks,
        "--use-step": use_step,
    }
    words = [
        word
        for name, value in options.items()
        if value is not None
        for word in (name, os.fspath(value) if isinstance(value, os.PathLike) else str(value))
    ]
    words += [] if weights else ["--no-weights"]
    words += [] if holders else ["--no-holders"]
    command = [sys.executable, "-m", "vramscope", "dry-run", "--format", "json", *words]
    ended = subprocess.run(
        [*command, os.fspath(program), *arguments], capture_output=True, check=False
    )
    errors = ended.stderr.decode(errors="replace")
    sys.stderr.write(errors)
    if not ended.stdout.strip():
        own = [line for line in errors.splitlines() if line.startswith("vramscope dry-run: ")]
        text = own[-1].partition(": ")[2] if own else f"exit status {ended.returncode}"
        if ended.returncode in (2, 64, 70):
            raise VramscopeError(text)
        return told(DryRun(ended.returncode, None, text, {}, None), b"{}")
    diagnosis = json.loads(ended.stdout)
    dry = diagnosis["dry"]
    found = DryRun(
        ended.returncode,
        {"fits": True, "runs_out": False}.get(dry["outcome"]),
        dry["text"],
        diagnosis,
        pathlib.Path(dry["path"]),
    )
    return told(found, ended.stdout)
