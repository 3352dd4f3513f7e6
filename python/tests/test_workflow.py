"""The shell of the workflow in ``docs/ci`` runs, on recordings in place of trainings.

GitHub's server, pip and the trainings have stand-ins on the path: ``gh`` and ``python`` write down
their arguments, ``vramscope record`` copies a recording. All other commands are real.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from steps import evaluated, steps

ROOT = pathlib.Path(__file__).parents[2]
TEST_DATA = ROOT / "test_data"
WORKFLOW = ROOT / "docs/ci/pull-request.yml"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="commands of a POSIX shell")

#: Writes its arguments to a file that has its name, and what it is given as the body of a comment.
WRITES = """#!/bin/sh
echo "$@" >> "$TOLD/$(basename "$0")"
while [ $# -gt 0 ]; do
  [ "$1" = --body-file ] && cp "$2" "$TOLD/body.md"
  shift
done
"""

#: The file ``recording`` of the working tree names what its training records.
RECORDS = """#!/bin/sh
[ "$1" = record ] || exec {program} "$@"
echo "$@" >> "$TOLD/record"
read -r recording < recording
read -r status < status
mkdir -p "$3/exit"
[ -z "$recording" ] || cp "$TOLD/../$recording" "$3/exit/rank0_memory_snapshot.pickle"
exit "$status"
"""


@dataclasses.dataclass
class Outcome:
    """What a run of the workflow left."""

    failed: str | None
    told: pathlib.Path
    work: pathlib.Path

    def text(self, name: str) -> str:
        return (self.told / name).read_text()


def recorded(folder: pathlib.Path, name: str) -> str:
    """Unpacks a recording of the test data. Returns its name in the folder."""
    target = name.replace("/", "_").removesuffix(".gz")
    with gzip.open(TEST_DATA / name) as packed, (folder / target).open("wb") as file:
        shutil.copyfileobj(packed, file)
    return target


def git(work: pathlib.Path, *arguments: str) -> str:
    names = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    command = ["git", *names, *arguments]
    return subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout


def run(tmp_path: pathlib.Path, base: str, branch: str, status: int = 0) -> Outcome:
    """Runs the steps on a repository whose two commits record these recordings."""
    work, told, programs = (tmp_path / name for name in ("work", "told", "bin"))
    for path in (work, told, programs):
        path.mkdir()
    for name in ("gh", "python"):
        (programs / name).write_text(WRITES)
    program = shutil.which(PROGRAM) or PROGRAM
    (programs / "vramscope").write_text(RECORDS.format(program=program))
    for path in programs.iterdir():
        path.chmod(0o755)
    git(work, "init", "--quiet")
    commits = []
    for recording, code in ((base, 0), (branch, status)):
        (work / "recording").write_text((recorded(tmp_path, recording) if recording else "") + "\n")
        (work / "status").write_text(f"{code}\n")
        git(work, "add", "--all")
        git(work, "commit", "--quiet", "--allow-empty", "--message", "a change")
        commits.append(git(work, "rev-parse", "HEAD").strip())
    values = {"github.token": "a token", "github.event.pull_request.number": "17"}
    environ = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "TRAIN": "train.py --steps 6",
        "BASE": commits[0],
        "TOLD": str(told),
        "GITHUB_ENV": str(told / "env"),
        "GITHUB_STEP_SUMMARY": str(told / "summary.md"),
    }
    for step in steps(WORKFLOW):
        if not step.run:
            continue
        own = {name: evaluated(value, values) for name, value in step.env.items()}
        if (told / "env").exists():
            environ.update(line.split("=", 1) for line in (told / "env").read_text().splitlines())
        process = step.start(work, {**environ, **own})
        if process.returncode:
            return Outcome(f"{step.name}: {process.stdout}", told, work)
    return Outcome(None, told, work)


BASE = "twins/gpt_flash.pickle.gz"
LESS = "twins/gpt_flash_checkpoint_half.pickle.gz"
MORE = "twins/gpt_flash_batch_2.pickle.gz"
OOM = "documents/oom_except.pickle.gz"


def test_the_workflow_has_the_steps_that_are_run() -> None:
    names = [step.name for step in steps(WORKFLOW) if step.run]
    assert names[:4] == ["Install", "Record the pull request", "Record its base", "Diagnose"]
    assert names[4:] == ["Compare", "Summarize", "Comment", "Fail"]


def test_less_memory_passes_and_is_told(tmp_path: pathlib.Path) -> None:
    outcome = run(tmp_path, BASE, LESS)
    assert outcome.failed is None
    expected = "pr comment 17 --body-file comment.md --edit-last --create-if-none\n"
    assert outcome.text("gh") == expected
    assert outcome.text("python") == "-m pip install --requirement requirements.txt vramscope\n"
    branch, base = outcome.text("record").splitlines()
    assert branch == "record -o memory/branch train.py --steps 6"
    assert base == "record -o ../memory/base train.py --steps 6"
    body = outcome.text("body.md")
    assert body.startswith("### GPU memory: all checks pass\n")
    # PyTorch measured this peak.
    pairs = json.loads((TEST_DATA / "twins/manifest.json").read_text())["pairs"]
    (measured,) = (pair["active"] for pair in pairs if f"twins/{pair['file']}" == LESS)
    (row,) = (line for line in body.splitlines() if "active_bytes peak" in line)
    assert f"| {measured / (1 << 20):.1f} MiB |" in row
    assert outcome.text("summary.md") == body


def test_more_memory_fails_after_the_comment(tmp_path: pathlib.Path) -> None:
    outcome = run(tmp_path, BASE, MORE)
    assert outcome.failed is not None
    assert outcome.failed.startswith("Fail: ::error::GPU memory: the comparison.")
    assert "`peak>+2%`" in outcome.text("body.md")
    assert (outcome.told / "gh").exists()


def test_an_error_of_memory_fails_with_its_diagnosis(tmp_path: pathlib.Path) -> None:
    outcome = run(tmp_path, OOM, OOM, status=1)
    assert outcome.failed is not None
    assert outcome.failed.startswith("Fail: ::error::GPU memory: the diagnosis.")
    assert "out of memory in backward of step 2" in outcome.text("body.md").lower()


def test_a_training_without_a_snapshot_fails(tmp_path: pathlib.Path) -> None:
    outcome = run(tmp_path, BASE, "", status=1)
    assert outcome.failed is not None
    assert outcome.failed.startswith("Fail: ")
