"""What checkers of types know of the package: an example, wrong names, and the compiled module.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it. pyright is one of the packages
of ``web``.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import vramscope

ROOT = pathlib.Path(__file__).parents[2]
RECORDED = ROOT / "test_data" / "recorded"
EXAMPLE = pathlib.Path(__file__).with_name("example.py")
PYRIGHT = ROOT / "web" / "node_modules" / "pyright" / "index.js"

#: Each line is an error for a checker.
WRONG = """\
import vramscope
s = vramscope.open("a")
vramscope.opne("a")
s.peak(by="color")
s.peak(band="some")
vramscope.record("runs", stacks="c")
vramscope.record("runs", holders="never")
vramscope.dry_run("train.py", values="all")
s.blocks[0].requested_bytes
s.steps[0].peak_of("fwd")
vramscope.show(s, theme="blue")
s.diagnosis.findings[0].kind == "growth" and s.diagnosis.findings[0].colour
"""


def checked(command: list[str], folder: pathlib.Path, file: pathlib.Path) -> str:
    # Of this Python, where the wheel and the tools are.
    done = subprocess.run(
        [*command, str(file)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def mypy(folder: pathlib.Path, file: pathlib.Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull]
    return checked([*command, "--hide-error-context", "--no-error-summary"], folder, file)


def pyright(folder: pathlib.Path, file: pathlib.Path) -> str:
    project = folder / "project"
    project.mkdir()
    shutil.copy(file, project)
    (project / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = ["node", str(PYRIGHT), "--pythonpath", sys.executable, "--project"]
    return checked(command, folder, project)


CHECKERS = [
    mypy,
    pytest.param(
        pyright,
        marks=pytest.mark.skipif(not PYRIGHT.is_file(), reason="run `npm ci` in web"),
    ),
]


@pytest.mark.parametrize("checker", CHECKERS)
def test_the_example_has_no_error(checker, tmp_path: pathlib.Path) -> None:
    said = checker(tmp_path, EXAMPLE)
    assert said.strip() in ("", "0 errors, 0 warnings, 0 informations")


@pytest.mark.parametrize("checker", CHECKERS)
def test_each_wrong_name_is_an_error(checker, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    said = checker(tmp_path, file)
    lines = {
        int(line.split("wrong.py:")[1].split(":")[0])
        for line in said.splitlines()
        if "error" in line and "wrong.py:" in line
    }
    assert lines == set(range(3, len(WRONG.splitlines()) + 1)), said


def test_the_example_runs(tmp_path: pathlib.Path) -> None:
    paths = [RECORDED / "oom_expandable.pickle.gz", RECORDED / "ranks_fsdp"]
    command = [sys.executable, str(EXAMPLE), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{vramscope.__version__}\noom high ")


def test_the_stub_is_that_of_the_compiled_module(tmp_path: pathlib.Path) -> None:
    """The stub is written by hand. pyo3 can derive one from the Rust code only with a feature that
    it calls experimental, and without the literals of bands and the overloads of ``Table``. So
    mypy's stubtest compares the stub with what was built: names, arguments, and what is there."""
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "vramscope._vramscope"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
