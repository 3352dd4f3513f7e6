"""Starts programs dry, as the tests of dry runs do."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

#: A Python whose PyTorch is built for CUDA, with or without the packages of Nvidia.
TORCH = os.environ.get("VRAMSCOPE_TORCH")
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


def dry_answer(*words: str, **environ: str) -> dict[str, Any]:
    """What ``dry-run --format json`` answers."""
    ended = dry_run("--format", "json", *words, **environ)
    assert ended.stdout, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer
