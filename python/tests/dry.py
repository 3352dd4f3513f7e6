"""How tests start a program as a dry run."""

import json
import os
import pathlib
import subprocess
import tempfile

PROGRAMS = pathlib.Path(__file__).parent / "programs"
PYTHON = os.environ.get("VRAMSCOPE_TORCH")
#: The folder with the core library and the shims for that Python's PyTorch.
OUT = os.environ.get("VRAMSCOPE_DRY_OUT")


def start_dry(python: str, script: pathlib.Path, *args: str, values: str = "small") -> tuple:
    """Runs a program: its completed process, and the facts about its values."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "facts.json")
        done = subprocess.run(
            [python, str(PROGRAMS / "dry_launch.py"), str(script), *args],
            env={**os.environ, "DRY_VALUES": values, "DRY_FACTS": str(file)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return done, json.loads(file.read_text()) if file.exists() else {}
