"""Changes of programs that are made in their source and run without a GPU.

Needs the installed package, LibCST, and in ``VRAMSCOPE_TORCH`` a Python whose PyTorch is built for
CUDA.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from dry import TORCH

pytestmark = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")
pytest.importorskip("libcst")

NET = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width=512, depth=8):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
#: Each step keeps its loss, and so its activations.
LEAK = """\
import torch

from net import Net

model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
losses = []
for step in range(12):
    x = torch.randn(8, 512, 512, device="cuda")
    loss = model(x).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss)
{last}
"""


def program(folder: pathlib.Path, last: str = "print(len(losses))") -> pathlib.Path:
    (folder / "net.py").write_text(NET)
    script = folder / "train.py"
    script.write_text(LEAK.format(last=last))
    return script


def fix(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = [sys.executable, "-m", "vramscope", "fix", "--python", str(TORCH), *words]
    return subprocess.run(own, capture_output=True, text=True, cwd=folder, check=False)


def answer(folder: pathlib.Path, *words: str) -> dict[str, Any]:
    ended = fix(folder, "--format", "json", *words)
    assert ended.stdout, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def git(folder: pathlib.Path, *words: str) -> str:
    own = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(own, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_leak_is_cured_and_written(tmp_path: pathlib.Path) -> None:
    script = program(tmp_path)
    before = script.read_text()
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "net.py", "train.py")
    git(tmp_path, "commit", "-qm", "first")
    found = answer(tmp_path, "--memory", "3GiB", "-o", "runs", "train.py")
    assert found["before"]["outcome"] == "runs_out"
    fixed = found["fix"]
    assert fixed["outcome"] == "fits"
    assert "+    losses.append(loss.detach().cpu())" in fixed["diff"].splitlines()
    # Nothing is written without being asked for, and the diff is one of git.
    assert script.read_text() == before
    (tmp_path / "fix.diff").write_text(fixed["diff"])
    git(tmp_path, "apply", "--check", "fix.diff")

    # The recording of the failed run leads to the same change. Now it is written.
    snapshot = found["before"]["snapshot"]
    again = answer(tmp_path, "--write", snapshot)
    assert again["fix"]["diff"] == fixed["diff"]
    assert again["is_written"]
    assert "losses.append(loss.detach().cpu())" in script.read_text()
    git(tmp_path, "apply", "--check", "--reverse", "fix.diff")


def test_a_change_in_a_module_needs_what_was_predicted(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    (tmp_path / "net.py").write_text(NET)
    script.write_text(LEAK.format(last="").replace("(retain_graph=True)", "()"))
    ended = fix(tmp_path, "--steps", "5", "--apply", "checkpoint:all", "train.py")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert "+        return checkpoint(self._forward, x, use_reentrant=False)" in lines
    assert "+++ b/net.py" in lines
    ran = next(line for line in lines if line.startswith("dry run:"))
    assert "runs to its end" in ran
    found = answer(tmp_path, "--steps", "5", "--apply", "checkpoint:all", "train.py")["fix"]
    assert found["needs_bytes"] == pytest.approx(found["predicted_bytes"], rel=0.08)


def test_a_change_that_breaks_the_program_is_no_fix(tmp_path: pathlib.Path) -> None:
    # The kept losses are needed on the device.
    script = program(tmp_path, "torch.stack(losses).mul_(torch.ones(12, device='cuda'))")
    found = answer(tmp_path, "--memory", "3GiB", "--apply", "del:net.py:13", str(script))
    names = [one["change"] for one in found["tries"]]
    assert found["fix"] is None, names
    assert found["tries"][0]["outcome"] == "failed"
    assert "same device" in found["tries"][0]["ran"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["none.py"], "cannot find none.py"),
        (["--apply", "nonsense", "ok.py"], "--apply nonsense: this run has the changes"),
        (["broken.py"], "the program ends with status 1: SyntaxError"),
    ],
)
def test_what_cannot_be_run_is_told(tmp_path: pathlib.Path, words: list[str], told: str) -> None:
    (tmp_path / "ok.py").write_text("import torch\nx = torch.ones(9, device='cuda')\n")
    (tmp_path / "broken.py").write_text("import (\n")
    ended = fix(tmp_path, *words)
    assert ended.returncode == 2
    assert told in ended.stderr


def test_a_plan_goes_on_where_the_changed_program_fails(tmp_path: pathlib.Path) -> None:
    program(tmp_path)
    found = answer(tmp_path, "--plan", "--memory", "1400MiB", "train.py")
    fixed = found["fix"]
    assert fixed is not None, [one["text"] for one in found["tries"]]
    assert "," in fixed["change"]
    assert "losses.append(loss.detach().cpu())" in fixed["diff"]
    singles = [one for one in found["tries"] if "," not in one["change"]]
    assert all(one["outcome"] != "fits" for one in singles)
