"""The fixture ``vramscope_peak``, in tests that run with the installed package.

With ``VRAMSCOPE_TORCH``, the Python of a PyTorch with CUDA or over the stand-in libraries, the
tests record real programs.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import vramscope
from vramscope.pytest_plugin import size_in_bytes

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
needs_torch = pytest.mark.skipif(PYTHON is None, reason="VRAMSCOPE_TORCH names no Python")
#: Where the package is installed, with the module of the reader.
PACKAGES = pathlib.Path(vramscope.__file__).parents[1]

PROGRAM = """
import pytest, torch

def step():
    kept = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    return torch.empty(32 << 20, dtype=torch.uint8, device="cuda")

def test_step(vramscope_peak):
    with vramscope_peak(limit={limit!r}) as measured:
        step()
    print("peak", measured.peak_bytes)
"""


def run(
    folder: pathlib.Path, program: str, python: str = sys.executable, **environ: str
) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(program)
    path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [python, "-m", "pytest", "-rsP", "-p", "no:cacheprovider", "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(5, 5), ("7", 7), ("7B", 7), ("512MiB", 512 << 20), ("1.5 GiB", 3 << 29), ("2TiB", 2 << 40)],
)
def test_a_limit_is_a_number_or_a_text(limit: object, expected: int) -> None:
    assert size_in_bytes(limit) == expected


@pytest.mark.parametrize("limit", ["", "2GB", "-1MiB", "many", "1e3", "GiB"])
def test_what_is_no_size_is_refused(limit: str) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        size_in_bytes(limit)


def test_without_pytorch_a_test_is_skipped(tmp_path: pathlib.Path) -> None:
    # A module that cannot be imported: some Pythons have a PyTorch.
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    program = PROGRAM.replace("import pytest, torch", "import pytest").format(limit="1MiB")
    process = run(tmp_path, program)
    assert (process.returncode, "1 skipped" in process.stdout) == (0, True), process.stdout
    assert "vramscope_peak needs PyTorch" in process.stdout


def test_without_a_device_a_test_is_skipped(tmp_path: pathlib.Path) -> None:
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = lambda: False\n")
    process = run(tmp_path, PROGRAM.format(limit="1MiB"))
    assert (process.returncode, "1 skipped" in process.stdout) == (0, True), process.stdout
    assert "vramscope_peak needs a CUDA device" in process.stdout


@needs_torch
def test_a_block_above_its_limit_fails_with_its_lines(tmp_path: pathlib.Path) -> None:
    process = run(tmp_path, PROGRAM.format(limit="80MiB"), PYTHON)
    assert process.returncode == 1, process.stdout
    message = "GPU memory peaks at 96.00 MiB on device 0, 16.00 MiB above the limit of 80.00 MiB"
    assert message in process.stdout
    first, second = (line for line in process.stdout.splitlines() if "test_it.py:" in line)
    assert (first.split()[:2], "test_it.py:5 step" in first) == (["64.00", "MiB"], True)
    assert (second.split()[:2], "test_it.py:6 step" in second) == (["32.00", "MiB"], True)
    (told,) = (line for line in process.stdout.splitlines() if "vramscope diagnose " in line)
    assert pathlib.Path(told.split("vramscope diagnose ")[1]).is_file()


@needs_torch
@pytest.mark.parametrize("limit", ["96MiB", None])
def test_a_block_within_its_limit_passes_and_is_measured(
    limit: str | None, tmp_path: pathlib.Path
) -> None:
    process = run(tmp_path, PROGRAM.format(limit=limit), PYTHON)
    assert process.returncode == 0, process.stdout
    assert f"peak {96 << 20}" in process.stdout


@needs_torch
def test_what_lived_before_the_block_counts(tmp_path: pathlib.Path) -> None:
    before = 'before = torch.empty(16 << 20, dtype=torch.uint8, device="cuda")\n\ndef test_step'
    program = PROGRAM.replace("def test_step", before).format(limit="96MiB")
    process = run(tmp_path, program, PYTHON)
    assert "peaks at 112.00 MiB" in process.stdout, process.stdout


@needs_torch
def test_a_block_that_uses_no_device_needs_nothing(tmp_path: pathlib.Path) -> None:
    program = PROGRAM.replace("        step()", "        pass").format(limit=0)
    process = run(tmp_path, program, PYTHON)
    assert (process.returncode, "peak 0" in process.stdout) == (0, True), process.stdout


@needs_torch
def test_an_error_of_the_block_is_its_own(tmp_path: pathlib.Path) -> None:
    program = PROGRAM.replace("        step()", "        step()\n        raise KeyError('own')")
    process = run(tmp_path, program.format(limit="1MiB"), PYTHON)
    assert "KeyError: 'own'" in process.stdout
    assert "above the limit" not in process.stdout
