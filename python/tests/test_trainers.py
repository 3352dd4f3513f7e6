"""The callbacks, called by the trainers' own packages.

Needs a PyTorch with the trainers: ``VRAMSCOPE_TORCH`` names its Python. ``cargo xtask test --long``
sets both up.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="VRAMSCOPE_TORCH names no Python")

PACKAGE = pathlib.Path(__file__).parent.parent
PROGRAMS = pathlib.Path(__file__).parent / "programs"


def train(program: str, run: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PYTHON, str(PROGRAMS / program), *arguments],
        env={
            **os.environ,
            "RUN": str(run),
            "PYTHONPATH": str(PACKAGE),
            "HF_HUB_OFFLINE": "1",
            # Small copies to the host come back.
            "FAKECUDA_SHADOW": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def snapshots(run: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(run)) for path in run.rglob("*.pickle"))


@pytest.mark.parametrize("program", ["with_transformers.py", "with_lightning.py"])
def test_a_trainer_calls_the_callback(program: str, tmp_path: pathlib.Path) -> None:
    trained = train(program, tmp_path)
    assert trained.returncode == 0, trained.stderr
    # Four batches of eight.
    wanted = ["exit", "step_2", "step_4"]
    assert snapshots(tmp_path) == [f"{folder}/rank0_memory_snapshot.pickle" for folder in wanted]
    beside = json.loads((tmp_path / "exit/rank0_memory_snapshot.vramscope.json").read_text())
    assert [step["step"] for step in beside["steps"]] == [1, 2, 3, 4]


@pytest.mark.parametrize("program", ["with_transformers.py", "with_lightning.py"])
def test_an_error_in_training_passes_and_is_recorded(program: str, tmp_path: pathlib.Path) -> None:
    failed = train(program, tmp_path, "--fail")
    assert failed.returncode == 1
    assert "the model fails" in failed.stderr
    assert snapshots(tmp_path) == [
        f"{folder}/rank0_memory_snapshot.pickle" for folder in ("exit", "step_2")
    ]


def test_torchtitan_counts_from_the_checkpoint(tmp_path: pathlib.Path) -> None:
    trained = train("with_torchtitan.py", tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert snapshots(tmp_path) == [
        f"{folder}/rank0_memory_snapshot.pickle" for folder in ("exit", "step_12", "step_14")
    ]
