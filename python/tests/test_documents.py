"""The blocks of code in ``docs/record.md`` run, or a comment above them says why not.

Needs a PyTorch with the trainers: ``VRAMSCOPE_TORCH`` names its Python.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess

import pytest

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
needs_torch = pytest.mark.skipif(PYTHON is None, reason="VRAMSCOPE_TORCH names no Python")

PACKAGE = pathlib.Path(__file__).parent.parent
PROGRAMS = pathlib.Path(__file__).parent / "programs"
DOCUMENT = PACKAGE.parent / "docs/record.md"
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)```", re.S
)


def blocks(kind: str) -> list[str]:
    found = [block for block in BLOCK.finditer(DOCUMENT.read_text()) if block["kind"] == kind]
    return [block["text"] for block in found if block["reason"] is None]


def test_every_block_is_of_a_kind_that_is_run_or_is_output() -> None:
    kinds = {block["kind"] for block in BLOCK.finditer(DOCUMENT.read_text())}
    assert kinds == {"python", "sh", "text"}
    reasons = [block["reason"] for block in BLOCK.finditer(DOCUMENT.read_text())]
    assert sum(reason is not None for reason in reasons) == 3


def run(command: list[str], folder: pathlib.Path, text: str = "") -> str:
    names = ("RANK", "WORLD_SIZE", "SLURM", "TORCHELASTIC", "LOCAL_RANK")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    process = subprocess.run(
        command,
        env={
            **clean,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(PACKAGE),
            "HF_HUB_OFFLINE": "1",
            "FAKECUDA_SHADOW": "1",
            "OMP_NUM_THREADS": "1",
        },
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def is_of(block: str) -> str:
    if "lightning" in block or "trainer.fit" in block:
        return "lightning"
    return "transformers" if "transformers" in block else "pytorch"


@needs_torch
@pytest.mark.parametrize("kind", ["pytorch", "lightning", "transformers"])
def test_blocks_of_python_run(kind: str, tmp_path: pathlib.Path) -> None:
    of_kind = [block for block in blocks("python") if is_of(block) == kind]
    assert len(of_kind) >= 1
    output = run([PYTHON, str(PROGRAMS / "document.py")], tmp_path, json.dumps(of_kind))
    written = [int(line) for line in output.splitlines() if line.isdecimal()]
    assert len(written) == len(of_kind)
    # All but two write snapshots.
    for block, count in zip(of_kind, written):
        writes = "record_function" not in block
        assert (count > 0) == writes, block


@needs_torch
def test_commands_run(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, module in (
        ("vramscope", "vramscope"),
        ("torchrun", "torch.distributed.run"),
        ("python", None),
    ):
        script = tmp_path / "bin" / name
        arguments = f'-m {module} "$@"' if module else '"$@"'
        script.write_text(f"#!/bin/sh\nexec {PYTHON} {arguments}\n")
        script.chmod(0o755)
    program = "import sys, torch\nprint(len(torch.empty(8, device='cuda')), sys.argv[1:])\n"
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "package").mkdir()
    (tmp_path / "package/train.py").write_text(program)
    for block in blocks("sh"):
        run(["bash", "-e", "-c", block], tmp_path)
    ranks = {
        run: sorted(path.name[:5] for path in (tmp_path / "runs" / run).rglob("*.pickle"))
        for run in ("42", "43", "44", "45", "46")
    }
    two = ["rank0", "rank1"]
    assert ranks == {"42": ["rank0"], "43": two, "44": ["rank0"], "45": two, "46": two}
    assert len(list((tmp_path / "vramscope-runs").iterdir())) == 1
