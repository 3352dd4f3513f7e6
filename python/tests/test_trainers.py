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


def names(run: pathlib.Path, folder: str) -> dict[str, set[str]]:
    """The names of the tensors after the last step, by kind."""
    beside = json.loads((run / folder / "rank0_memory_snapshot.vramscope.json").read_text())
    found: dict[str, set[str]] = {}
    for tensor in beside["tensors"][-1]["tensors"]:
        found.setdefault(tensor["kind"], set()).add(tensor["name"])
    return found


@pytest.mark.parametrize("program", ["with_transformers.py", "with_lightning.py"])
@pytest.mark.parametrize("arguments", [[], ["--outside"]])
def test_a_trainer_calls_the_callback(
    program: str, arguments: list[str], tmp_path: pathlib.Path
) -> None:
    trained = train(program, tmp_path, *arguments)
    assert trained.returncode == 0, trained.stderr
    # Four batches of eight.
    wanted = ["exit", "step_2", "step_4"]
    assert snapshots(tmp_path) == [f"{folder}/rank0_memory_snapshot.pickle" for folder in wanted]
    beside = json.loads((tmp_path / "exit/rank0_memory_snapshot.vramscope.json").read_text())
    assert [step["step"] for step in beside["steps"]] == [1, 2, 3, 4]
    # The model and the optimizer that the trainer hands to the callback.
    named = names(tmp_path, "step_4")
    assert named["parameter"] == {"layer.weight", "layer.bias"}
    assert "layer.weight.exp_avg" in named["optimizer_state"]


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
    assert names(tmp_path, "step_14")["parameter"] == {"weight", "bias"}


def test_what_accelerate_prepares_is_watched(tmp_path: pathlib.Path) -> None:
    trained = train("with_accelerate.py", tmp_path)
    assert trained.returncode == 0, trained.stderr
    # Eight batches, of which two make a step.
    assert snapshots(tmp_path) == [
        f"{folder}/rank0_memory_snapshot.pickle" for folder in ("exit", "step_2", "step_4")
    ]
    named = names(tmp_path, "step_4")
    assert named["parameter"] == {"0.weight", "0.bias"}
    assert "0.weight.exp_avg" in named["optimizer_state"]
