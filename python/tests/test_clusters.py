"""The lines of ``docs/fleets.md`` run on one machine.

The script for Slurm runs with a stand-in for ``srun``, and with ``stand_in/torch.py`` where
``VRAMSCOPE_TORCH`` names no Python with PyTorch. The lines for torchrun need PyTorch. ``VRAMSCOPE``
names the program.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

TORCH = os.environ.get("VRAMSCOPE_TORCH")
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")
HERE = pathlib.Path(__file__).parent
PACKAGE = HERE.parent
#: The part of the document about recording. The part after it needs a dataset.
DOCUMENT = (PACKAGE.parent / "docs/fleets.md").read_text().partition("\n## Tables\n")[0]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.S
)
#: Variables of launchers, which the tests may run below.
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM", "OMPI", "PMI", "TORCHELASTIC", "MASTER")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="commands of a POSIX shell")
needs_torch = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")

#: Two tasks of a step, as srun starts them: the exit status is the highest of the tasks.
SRUN = """#!/bin/bash
for task in 0 1; do
    SLURM_PROCID=$task SLURM_LOCALID=$task SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 "$@" &
    tasks[task]=$!
done
status=0
for task in "${tasks[@]}"; do
    wait "$task" || { ended=$?; [ $ended -le $status ] || status=$ended; }
done
exit $status
"""
#: A program of which `STATUS` is the exit status.
TRAIN = """
import os, sys, torch
held = torch.empty(1024, device="cuda")
sys.exit(int(os.environ.get("STATUS", "0")))
"""
#: A program whose first attempt fails.
FAILS_ONCE = """
import os, sys, torch
held = torch.empty(1024, device="cuda")
sys.exit(os.environ["TORCHELASTIC_RESTART_COUNT"] == "0")
"""
#: Distributed data parallel over gloo.
PARALLEL = """
import torch, torch.distributed
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(8, 64, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.distributed.destroy_process_group()
"""
#: A program that says that it runs: not while the recorder writes.
WAITS = """
import os, pathlib, time, torch
held = torch.empty(1024, device="cuda")
while True:
    time.sleep(0.1)
    pathlib.Path("runs" + os.environ["RANK"] + ".txt").touch()
"""


def blocks(kind: str) -> list[str]:
    """The blocks of a kind that are run."""
    found = [block for block in BLOCK.finditer(DOCUMENT) if block["kind"] == kind]
    return [block["text"] for block in found if block["reason"] is None]


(LAUNCH, SIGNAL, END, AGAIN, SCRIPT) = blocks("sh")


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the programs that the document names, and a program to record."""
    python = TORCH or sys.executable
    programs = {
        # A Python with PyTorch records, by the sources of the package. The program answers, which a
        # wheel may have installed.
        "vramscope": f'[ "$1" != record ] || exec {python} -m vramscope "$@"\n'
        f'PYTHONPATH= exec {shutil.which(PROGRAM) or PROGRAM} "$@"\n',
        "torchrun": f'exec {python} -m torch.distributed.run "$@"\n',
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}")
    (tmp_path / "bin/srun").write_text(SRUN)
    for path in (tmp_path / "bin").iterdir():
        path.chmod(0o755)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def environment(folder: pathlib.Path, **environ: str) -> dict[str, str]:
    paths = [PACKAGE] if TORCH else [PACKAGE, HERE / "stand_in"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return {
        **clean,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
        **environ,
    }


def run(folder: pathlib.Path, text: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=environment(folder, **environ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def snapshots(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.pickle"))


def of_ranks(dump: str) -> list[str]:
    return [f"{dump}/rank{rank}_memory_snapshot.pickle" for rank in (0, 1)]


def test_each_block_says_whether_it_was_run() -> None:
    for block in BLOCK.finditer(DOCUMENT):
        if block["kind"] == "text":
            continue
        above = DOCUMENT[: block.start()].rstrip().rpartition("\n\n")[2]
        says = re.search(r"\b(Not run|Run here|A test runs)\b", above)
        assert says is not None, above
        assert (block["reason"] is None) or says[0] == "Not run", above


@pytest.mark.parametrize("status", [0, 3])
def test_the_script_of_slurm_records_each_task_and_ends_as_they_do(
    folder: pathlib.Path, status: int
) -> None:
    # As sbatch starts it: without a step.
    job = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "STATUS": str(status)}
    for attempt, restarts in enumerate(({}, {"SLURM_RESTART_COUNT": "1"})):
        ended = run(folder, SCRIPT, **job, **restarts)
        assert ended.returncode == status, ended.stderr
        assert f"wrote runs/77-{attempt}/exit/" in ended.stderr
        # The answer of diagnose is the last that the job says.
        assert re.match(r"(Peak )?\d\.\d\d KiB ", ended.stdout), ended.stdout
    assert snapshots(folder / "runs") == of_ranks("77-0/exit") + of_ranks("77-1/exit")


def test_a_second_attempt_in_one_folder_replaces_nothing(folder: pathlib.Path) -> None:
    for _ in range(2):
        ended = run(folder, "srun vramscope record -o runs/77 train.py")
        assert ended.returncode == 0, ended.stderr
    names = [re.sub(r"pid\d+", "pidN", name) for name in snapshots(folder / "runs/77/exit")]
    names_of_ranks = [f"rank{rank}_memory_snapshot.pickle" for rank in (0, 1)]
    assert names == [f"pidN_{name}" for name in names_of_ranks] + names_of_ranks
    told = run(folder, "vramscope ranks runs/77")
    assert told.stdout.startswith("runs/77/exit  4 snapshots of 2 ranks\n")


@needs_torch
def test_the_lines_for_torchrun_run(folder: pathlib.Path) -> None:
    (folder / "train.py").write_text(PARALLEL)
    ended = run(folder, f"set -e\n{LAUNCH}", FAKECUDA_SHADOW="1")
    assert ended.returncode == 0, ended.stderr
    assert snapshots(folder / "runs/77") == of_ranks("exit")
    assert "runs/77/exit  2 ranks\n" in ended.stdout


@needs_torch
def test_each_attempt_of_torchrun_has_a_folder(folder: pathlib.Path) -> None:
    (folder / "train.py").write_text(FAILS_ONCE)
    ended = run(folder, AGAIN)
    assert ended.returncode == 0, ended.stderr
    runs = folder / "vramscope-runs"
    assert sorted(path.name for path in runs.iterdir()) == ["run_77", "run_77_restart_1"]
    for attempt in runs.iterdir():
        assert snapshots(attempt) == of_ranks("exit")


@needs_torch
def test_signals_reach_the_ranks(folder: pathlib.Path) -> None:
    (folder / "train.py").write_text(WAITS)
    launch = LAUNCH.splitlines()[0]
    job = subprocess.Popen(
        ["bash", "-c", f"exec {launch}"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        both_run(folder)
        assert run(folder, SIGNAL, torchrun=str(job.pid)).returncode == 0
        until(lambda: snapshots(folder / "runs/77") == of_ranks("signal_1"))
        # SIGTERM during a snapshot writes no second one of the same state.
        both_run(folder)
        assert run(folder, END, torchrun=str(job.pid)).returncode == 0
        _, said = job.communicate(timeout=60)
        assert job.returncode != 0, said
    finally:
        job.kill()
        job.wait()
    assert snapshots(folder / "runs/77") == of_ranks("signal_1") + of_ranks("terminated")


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def both_run(folder: pathlib.Path) -> None:
    """Waits until both ranks have said anew that they run."""
    files = [folder / f"runs{rank}.txt" for rank in (0, 1)]
    for file in files:
        file.unlink(missing_ok=True)
    until(lambda: all(file.exists() for file in files))


@needs_torch
def test_the_calls_of_pytorch_alone_write_a_file_for_each_rank(folder: pathlib.Path) -> None:
    (calls,) = blocks("python")
    train = "def train():\n    global held\n    held = torch.empty(1024, device='cuda')\n\n"
    (folder / "plain.py").write_text(train + calls)
    # Without the package on the nodes.
    ended = run(folder, "torchrun --nproc-per-node 2 plain.py", PYTHONPATH="", FAKECUDA_DEVICES="2")
    assert ended.returncode == 0, ended.stderr
    assert snapshots(folder / "runs/78") == [
        f"rank{rank}_memory_snapshot.pickle" for rank in (0, 1)
    ]
    told = run(folder, "vramscope ranks runs/78")
    assert "runs/78  2 ranks\n" in told.stdout, told.stderr
