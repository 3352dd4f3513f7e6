"""``vramscope record``, as ``python -m vramscope record``, and what it says on standard error.

Real processes, over the PyTorch that ``VRAMSCOPE_TORCH`` names (see ``test_recorder.py``), or else
over ``stand_in/torch.py``.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

TORCH = os.environ.get("VRAMSCOPE_TORCH")
HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "programs/runs.py"
SNAPSHOT = "rank0_memory_snapshot.pickle"
#: Variables of launchers, which the tests may run below.
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM", "OMPI", "PMI", "TORCHELASTIC")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no signals and forks here")
needs_torch = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")


def run(folder: pathlib.Path, *arguments: object, **environ: str) -> tuple[int, str, list[str]]:
    """Runs ``python -m vramscope`` in a folder. Returns the exit status, the output, and the lines
    of standard error without the notice of PyTorch 2.11."""
    paths = [HERE.parent] if TORCH else [HERE.parent, HERE / "stand_in"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    process = subprocess.run(
        [TORCH or sys.executable, "-m", "vramscope", *map(str, arguments)],
        env={
            **clean,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "FAKECUDA_CAPACITY_MB": "2000",
            **environ,
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = process.stderr.splitlines()
    notice = "frees show the stack of their allocation"
    return process.returncode, process.stdout, [line for line in lines if notice not in line]


def snapshots(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.pickle"))


def test_the_program_sees_what_it_sees_without_a_recorder(tmp_path: pathlib.Path) -> None:
    told = run(tmp_path, "record", "-o", "run", PROGRAM, "plain", "--every", "-m", "--", "x")
    output = "__main__ True ['--every', '-m', '--', 'x'] True\n"
    assert told == (0, output, ["vramscope: wrote run/exit/, run: vramscope diagnose run"])
    assert snapshots(tmp_path) == [f"run/exit/{SNAPSHOT}"]


def test_a_program_may_change_its_working_folder(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run").mkdir()
    status, _, lines = run(tmp_path, "record", "-o", "run", PROGRAM, "moves")
    assert (status, lines) == (0, ["vramscope: wrote run/exit/, run: vramscope diagnose run"])
    assert snapshots(tmp_path) == [f"run/exit/{SNAPSHOT}"]


def test_a_folder_without_snapshots_goes_only_if_it_has_no_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty.py").write_text("import os; os._exit(0) if os.fork() == 0 else os.wait()\n")
    (tmp_path / "run").mkdir()
    environ = {"FAKECUDA_DEVICES": "0", "TORCH_DEVICES": "0"}
    for options in ([], ["-o", "run"]):
        assert run(tmp_path, "record", *options, "empty.py", **environ)[:2] == (0, "")
    assert not (tmp_path / "vramscope-runs").exists()
    assert list((tmp_path / "run").iterdir()) == []


def test_a_module_runs_as_by_python(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "work" / "package"
    package.mkdir(parents=True)
    code = "import sys, torch; torch.empty(8, device='cuda'); print(__name__, sys.argv[1:])"
    (package / "train.py").write_text(code)
    command = ["record", "-o", "../run", "-m", "package.train", "-m", "x"]
    status, output, _ = run(tmp_path / "work", *command)
    assert (status, output) == (0, "__main__ ['-m', 'x']\n")
    assert snapshots(tmp_path) == [f"run/exit/{SNAPSHOT}"]


def test_options_reach_the_recorder(tmp_path: pathlib.Path) -> None:
    options = ["--every", 2, "--keep", "all", "--stacks", "all", "--max-entries", 5000]
    status, _, _ = run(tmp_path, "record", "-o", "run", *options, "--no-source", PROGRAM, "plain")
    assert status == 0
    beside = (tmp_path / "run/exit" / SNAPSHOT).with_suffix(".vramscope.json").read_text()
    assert '"stacks":"all","max_entries":5000' in beside
    assert '"sources":{}' in beside


def test_the_exit_status_is_the_programs(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, "record", "-o", "run", PROGRAM, "status", 3)[0] == 3
    assert run(tmp_path, "record", "-o", "run", PROGRAM, "fails")[0] == 1
    assert run(tmp_path, "record", "-o", "run", PROGRAM, "interrupted")[0] == -signal.SIGINT
    assert run(tmp_path, "record", "-o", "run", PROGRAM, "terminated")[0] == -signal.SIGTERM


def test_a_traceback_begins_at_the_program(tmp_path: pathlib.Path) -> None:
    _, _, alone = run_alone(tmp_path, "fails")
    _, _, lines = run(tmp_path, "record", "-o", "run", PROGRAM, "fails")
    # The line of the recorder stands below it.
    assert lines == [*alone, "vramscope: wrote run/exit/, run: vramscope diagnose run"]
    assert "ValueError: second" in alone


def run_alone(folder: pathlib.Path, *arguments: str) -> tuple[int, str, list[str]]:
    paths = [] if TORCH else [str(HERE / "stand_in")]
    process = subprocess.run(
        [TORCH or sys.executable, str(PROGRAM), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr.splitlines()


def test_a_program_that_cannot_begin_says_what_python_says(tmp_path: pathlib.Path) -> None:
    (tmp_path / "odd.py").write_text("def\n")
    status, _, lines = run(tmp_path, "record", "-o", "run", "odd.py")
    assert status == 1
    assert "Traceback (most recent call last):" not in lines
    assert any(line.endswith('odd.py", line 1') for line in lines)
    assert any(line.startswith("SyntaxError: ") for line in lines)
    status, _, lines = run(tmp_path, "record", "-o", "run", "-m", "absent.module")
    assert status == 1
    assert "Traceback (most recent call last):" not in lines
    assert any("No module named 'absent'" in line for line in lines)


def test_the_programs_own_hook_shows_the_programs_frames(tmp_path: pathlib.Path) -> None:
    status, output, _ = run(tmp_path, "record", "-o", "run", PROGRAM, "own_hook")
    assert (status, output) == (1, "hook <module>\n")


def test_two_lines_below_the_traceback_tell_of_the_error(tmp_path: pathlib.Path) -> None:
    status, _, lines = run(tmp_path, "record", "-o", "a run", PROGRAM, "runs_out")
    assert status == 1
    assert snapshots(tmp_path) == [f"a run/oom_1/{SNAPSHOT}"]
    assert lines[0] == "Traceback (most recent call last):"
    assert "OutOfMemoryError: CUDA out of memory" in lines[-3]
    size = r"\d+(\.\d\d)? TiB"
    asked = f"asked for {size}, {size} short"
    line = next(n for n, text in enumerate(PROGRAM.read_text().split("\n"), 1) if "size, d" in text)
    assert re.fullmatch(rf"vramscope: out of memory at runs.py:{line}, {asked}", lines[-2])
    assert lines[-1] == "vramscope: wrote a run/oom_1/, run: vramscope diagnose 'a run'"


def test_errors_that_the_program_catches_are_told_once_and_counted(tmp_path: pathlib.Path) -> None:
    status, output, lines = run(tmp_path, "record", "-o", "run", PROGRAM, "catches", 5)
    assert (status, output) == (0, "survived\n")
    assert lines[0].startswith("vramscope: out of memory at runs.py:")
    assert lines[1:] == [
        "vramscope: wrote run/oom_1/, run: vramscope diagnose run",
        "vramscope: out of memory 5 times in all",
        "vramscope: wrote run/oom_5/, run: vramscope diagnose run",
    ]
    assert snapshots(tmp_path) == [f"run/oom_{number}/{SNAPSHOT}" for number in (3, 4, 5)]


def test_a_terminated_program_tells_before_it_ends(tmp_path: pathlib.Path) -> None:
    _, _, lines = run(tmp_path, "record", "-o", "run", PROGRAM, "terminated")
    assert [line.split(",")[0].split(" at ")[0] for line in lines] == [
        "vramscope: out of memory",
        "vramscope: wrote run/oom_1/",
    ]


def test_one_of_many_ranks_says_which_it_is(tmp_path: pathlib.Path) -> None:
    ranks = {"RANK": "3", "WORLD_SIZE": "8"}
    _, _, lines = run(tmp_path, "record", "-o", "run", PROGRAM, "runs_out", **ranks)
    assert lines[-2].startswith("vramscope: rank 3: out of memory at runs.py:")
    assert lines[-1].startswith("vramscope: rank 3: wrote run/oom_1/, run: ")
    # The first rank tells where a healthy job has written.
    assert run(tmp_path, "record", "-o", "run", PROGRAM, "plain", **ranks)[2] == []


def test_a_forked_child_tells_nothing(tmp_path: pathlib.Path) -> None:
    told = run(tmp_path, "record", "-o", "run", PROGRAM, "forks")
    assert told == (0, "5\n", ["vramscope: wrote run/exit/, run: vramscope diagnose run"])


def test_a_run_has_a_folder_by_its_time_or_job(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        assert run(tmp_path, "record", PROGRAM, "plain")[0] == 0
    (one, other) = sorted(path.name for path in (tmp_path / "vramscope-runs").iterdir())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", one)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_2)?", other)
    for rank in ("0", "1"):
        slurm = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
        run(tmp_path, "record", PROGRAM, "plain", SLURM_PROCID=rank, **slurm)
    of_job = tmp_path / "vramscope-runs/job_77.0"
    names = [f"exit/rank{rank}_memory_snapshot" for rank in (0, 1)]
    assert snapshots(of_job) == [f"{name}.pickle" for name in names]
    beside = [json.loads((of_job / f"{name}.vramscope.json").read_text()) for name in names]
    assert [(one["rank"], one["world_size"]) for one in beside] == [(0, 2), (1, 2)]


def test_wrong_usage_is_told(tmp_path: pathlib.Path) -> None:
    usage = [
        "usage: vramscope record [OPTION...] [-m] PROGRAM [ARGUMENT...]",
        "       vramscope record [OPTION...] -- COMMAND [ARGUMENT...]",
        "       vramscope record --dump PID",
    ]
    for arguments, problem in [
        ([], "expected a program"),
        (["-o", "run"], "expected a program"),
        (["--every", "0", PROGRAM], "argument --every: '0', expected a number from 1 on"),
        (["--keep", "two", PROGRAM], "argument --keep: 'two', expected a number from 1 on"),
        (["--nonsense", PROGRAM], "unrecognized arguments: --nonsense"),
        (["-o", "run", "--"], "expected a command after --"),
        (["-m", "--", "x"], "-m takes a module, and -- a command: expected one of them"),
        (["--dump", "1", "--", "x"], "--dump takes no program"),
        (["--dump", "0"], "argument --dump: '0', expected a number from 1 on"),
    ]:
        status, output, lines = run(tmp_path, "record", *arguments)
        assert (status, output) == (64, ""), arguments
        assert lines == [*usage, f"vramscope record: {problem}"]
    (tmp_path / "all").write_text("#!/usr/bin/env bash\n")
    for name, problem in [
        ("all", "all is a script of bash: write vramscope record -- bash all"),
        ("absent.py", "cannot find absent.py: expected a file of Python, or -m and a module"),
        ("python", "cannot find python: leave it out, the program runs in this Python"),
        ("torchrun", "torchrun is a command: write vramscope record -- torchrun ..."),
        ("env", "env is a command: write vramscope record -- env ..."),
    ]:
        told = run(tmp_path, "record", name, "x")
        assert told == (2, "", [f"vramscope record: {problem}"])
    status, output, _ = run(tmp_path, "record", "--help")
    assert status == 0
    assert output.startswith(usage[0])
    assert [path.name for path in tmp_path.iterdir()] == ["all"]


@needs_torch
@pytest.mark.parametrize("has_folder", [True, False])
def test_ranks_of_torchrun_share_a_folder(tmp_path: pathlib.Path, has_folder: bool) -> None:
    run_folder = ["-o", "run"] if has_folder else []
    launch = [TORCH, "-m", "torch.distributed.run", "--nproc-per-node", "4"]
    launch += ["--master-port", "29471" if has_folder else "29472"]
    record = ["-m", "vramscope", "record", *run_folder, HERE / "programs/train.py"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    process = subprocess.run(
        [*map(str, [*launch, *record])],
        env={**clean, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "trained\n" * 4
    (folder,) = [tmp_path / "run"] if has_folder else (tmp_path / "vramscope-runs").iterdir()
    names = [f"exit/rank{rank}_memory_snapshot.pickle" for rank in range(4)]
    assert snapshots(folder) == names
    (told,) = [line for line in process.stderr.splitlines() if line.startswith("vramscope")]
    shown = folder.relative_to(tmp_path)
    assert told == f"vramscope: rank 0: wrote {shown}/exit/, run: vramscope diagnose {shown}"
