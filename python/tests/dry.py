"""Starts programs dry, as the tests of dry runs do."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

#: A Python whose PyTorch is built for CUDA, with or without the packages of Nvidia.
PYTHON = TORCH = os.environ.get("VRAMSCOPE_TORCH")
PROGRAMS = pathlib.Path(__file__).parent / "programs"


def dry_run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs ``vramscope dry-run`` with the Python of the tests' PyTorch."""
    return subprocess.run(
        [sys.executable, "-m", "vramscope", "dry-run", "--python", str(TORCH), *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        check=False,
    )


def start_dry(
    python: str, script: pathlib.Path, *args: str, values: str = "small"
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs a program: what it wrote itself, and the facts about its values."""
    with tempfile.TemporaryDirectory() as folder:
        ended = dry_run("--values", values, "--no-holders", "-o", folder, str(script), *args)
        ended.stdout = f"\n{ended.stdout}".partition("\ndry run of ")[0]
        beside = next(pathlib.Path(folder).rglob("*.vramscope.json"), None)
        facts = {} if beside is None else json.loads(beside.read_text())["dry"]
    return ended, facts


def dry_answer(*words: str, **environ: str) -> dict[str, Any]:
    """What ``dry-run --format json`` answers."""
    ended = dry_run("--format", "json", *words, **environ)
    assert ended.stdout, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer
