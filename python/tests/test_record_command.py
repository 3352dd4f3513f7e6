"""``vramscope record -- COMMAND`` and ``vramscope record --dump PID``.

Real processes, over the PyTorch that ``VRAMSCOPE_TORCH`` names (see ``test_recorder.py``), or else
over ``stand_in/torch.py``.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from vramscope.recorder import dump, entry, process

TORCH = os.environ.get("VRAMSCOPE_TORCH")
PYTHON = TORCH or sys.executable
HERE = pathlib.Path(__file__).parent
PROGRAM = str(HERE / "programs/below.py")
BELOW = [PYTHON, PROGRAM]
SNAPSHOT = "rank0_memory_snapshot.pickle"
#: Variables of launchers, which the tests may run below, and of this command.
OTHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "SLURM", "OMPI", "PMI", "TORCHELASTIC", "VRAMSCOPE_REC")
NOTHING = (
    "vramscope: nothing was recorded: no Python process has used a GPU, or each was killed before "
    "its end"
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who signals")
needs_torch = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")


def environment(folder: pathlib.Path, **more: str) -> dict[str, str]:
    paths = [HERE.parent] if TORCH else [HERE.parent, HERE / "stand_in"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    (folder / "tmp").mkdir(exist_ok=True)
    return {
        **clean,
        "PYTHONPATH": os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "FAKECUDA_CAPACITY_MB": "2000",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(folder / "tmp"),
        **more,
    }


def record(*command: object, options: tuple[str, ...] = ("-o", "run")) -> list[str]:
    return [PYTHON, "-m", "vramscope", "record", *options, "--", *map(str, command)]


def run(folder: pathlib.Path, command: list[str], **more: str) -> tuple[int, list[str], list[str]]:
    """Runs a command. Returns its status, and the lines of standard output and error, the last
    without the notice of PyTorch 2.11. No file may be left over."""
    process = subprocess.run(
        command,
        env=environment(folder, **more),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # PyTorch and launchers leave files of their own.
    assert list((folder / "tmp").glob("*vramscope*")) == []
    lines = process.stderr.splitlines()
    notice = "frees show the stack of their allocation"
    told = [line for line in lines if notice not in line and "Gloo" not in line]
    return process.returncode, process.stdout.splitlines(), told


def snapshots(folder: pathlib.Path) -> list[str]:
    """The snapshots below a folder, with `N` in place of the number of a process."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*.pickle"))
    return sorted(
        re.sub(r"_\d\d+/|pid\d+_", lambda n: re.sub(r"\d+", "N", n[0]), one) for one in found
    )


def beside(folder: pathlib.Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted(folder.rglob("*.vramscope.json"))]


def test_a_command_is_recorded_into_the_folder(tmp_path: pathlib.Path) -> None:
    told = run(tmp_path, record(*BELOW, "use", "end=3"))
    assert told == (3, [], ["vramscope: wrote run/exit/, run: vramscope diagnose run"])
    assert snapshots(tmp_path) == [f"run/exit/{SNAPSHOT}"]
    (one,) = beside(tmp_path)
    assert (one["rank"], one["world_size"], one["role"]) == (0, 1, "below.py")
    assert one["command"] == [*BELOW, "use", "end=3"]


def test_each_program_of_a_script_has_its_folder(tmp_path: pathlib.Path) -> None:
    program = shlex.join(BELOW)
    module = f"{shlex.quote(PYTHON)} -m package.train"
    (tmp_path / "package").mkdir()
    (tmp_path / "package/train.py").write_text("import torch\ntorch.empty(8, device='cuda')\n")
    (tmp_path / "all.sh").write_text(
        f"{program} nothing\nenv A=1 {program} use\n{module}\nexit 5\n"
    )
    status, _, lines = run(tmp_path, record("sh", "all.sh"))
    assert status == 5
    wanted = ["below.py", "package.train"]
    assert snapshots(tmp_path) == [f"run/{name}_N/exit/{SNAPSHOT}" for name in wanted]
    folders = r"run/below.py_\d+/exit/, run/package.train_\d+/exit/"
    assert len(lines) == 1
    assert re.fullmatch(f"vramscope: wrote {folders}, run: vramscope diagnose run", lines[0])
    assert sorted(str(one["role"]) for one in beside(tmp_path)) == wanted


def test_ranks_of_a_job_share_the_folder(tmp_path: pathlib.Path) -> None:
    program = f"WORLD_SIZE=2 RANK=%d {shlex.join(BELOW)} use"
    script = "\n".join(program % rank for rank in (0, 1, 1))
    status, _, lines = run(tmp_path, record("sh", "-c", script))
    assert (status, lines) == (0, ["vramscope: wrote run/exit/, run: vramscope diagnose run"])
    # The second process of rank 1 has a file, too.
    names = ["pidN_rank1_memory_snapshot.pickle", SNAPSHOT, SNAPSHOT.replace("0", "1")]
    assert snapshots(tmp_path / "run/exit") == names
    assert sorted(one["rank"] for one in beside(tmp_path)) == [0, 1, 1]


def test_a_title_is_told_from_a_command() -> None:
    command = ["/usr/bin/python3", "-c", "code"]
    assert process.title(["VLLM::EngineCore", "", "", ""], command) == "VLLM::EngineCore"
    assert process.title([*command, ""], command) is None
    assert process.title(["python", ""], ["/usr/bin/python3"]) is None
    assert process.title(["own", "x", ""], ["own", "x"]) is None
    assert process.title(["own", ""], ["own"]) is None
    assert process.title([""], command) is None


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_child_that_uses_the_gpu_is_recorded(tmp_path: pathlib.Path, method: str) -> None:
    status, output, lines = run(tmp_path, record(*BELOW, f"child={method}"))
    assert (status, output, len(lines)) == (0, ["child 0"], 1)
    assert snapshots(tmp_path) == [f"run/Engine-core_N/exit/{SNAPSHOT}"]
    (one,) = beside(tmp_path)
    assert one["role"] == "Engine core"
    # That of its parent: a child of ``spawn`` has one that says nothing.
    assert one["command"][-2:] == [PROGRAM, f"child={method}"]


def test_a_forked_process_that_uses_the_gpu_is_recorded(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, record(*BELOW, "fork"))[:2] == (0, ["child 0"])
    assert snapshots(tmp_path) == [f"run/below.py_N/exit/{SNAPSHOT}"]


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_helpers_without_a_gpu_write_nothing(tmp_path: pathlib.Path, method: str) -> None:
    assert run(tmp_path, record(*BELOW, "use", f"helpers={method}"))[:2] == (0, ["3"])
    assert snapshots(tmp_path) == [f"run/exit/{SNAPSHOT}"]


def test_a_first_use_in_another_thread_is_recorded_without_signals(tmp_path: pathlib.Path) -> None:
    status, _, lines = run(tmp_path, record(*BELOW, "thread"))
    assert (status, snapshots(tmp_path)) == (0, [f"run/exit/{SNAPSHOT}"])
    assert lines == [
        "no snapshot on signals: recording was started outside the main thread",
        "vramscope: wrote run/exit/, run: vramscope diagnose run",
    ]


def test_a_server_that_renames_itself_keeps_its_folder(tmp_path: pathlib.Path) -> None:
    # The second dump has another role in its file, and lies beside the first.
    status, _, _ = run(tmp_path, record("sh", "-c", shlex.join([*BELOW, "use", "rename"]) + "; :"))
    assert status == 0
    assert snapshots(tmp_path) == [
        f"run/below.py_N/exit/{SNAPSHOT}",
        f"run/below.py_N/oom_1/{SNAPSHOT}",
    ]
    assert len(list((tmp_path / "run").iterdir())) == 1


def test_nothing_is_written_without_a_gpu(tmp_path: pathlib.Path) -> None:
    for options in ((), ("-o", "run")):
        assert run(tmp_path, record(*BELOW, "nothing", options=options)) == (0, [], [NOTHING])
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]


def test_a_run_without_a_name_has_a_folder_by_its_time(tmp_path: pathlib.Path) -> None:
    status, _, lines = run(tmp_path, record(*BELOW, "use", options=()))
    (folder,) = (tmp_path / "vramscope-runs").iterdir()
    where = f"vramscope-runs/{folder.name}"
    assert (status, snapshots(folder)) == (0, [f"exit/{SNAPSHOT}"])
    assert lines == [f"vramscope: wrote {where}/exit/, run: vramscope diagnose {where}"]


def test_a_process_says_where_memory_ran_out_and_the_command_where_files_are(
    tmp_path: pathlib.Path,
) -> None:
    status, _, lines = run(tmp_path, record(*BELOW, "use", "run_out"))
    assert status == 1
    assert [line for line in lines if line.startswith("vramscope: ")] == [lines[0], lines[-1]]
    assert lines[0].startswith("vramscope: out of memory at below.py:")
    assert lines[-1] == "vramscope: wrote run/oom_1/, run: vramscope diagnose run"


def test_options_reach_each_process(tmp_path: pathlib.Path) -> None:
    options = ("-o", "run", "--max-entries", "5000", "--stacks", "all", "--no-source")
    run(tmp_path, record(*BELOW, "use", options=options))
    (one,) = beside(tmp_path)
    recording = one["recording"]
    assert isinstance(recording, dict)
    assert (recording["stacks"], recording["max_entries"], one["sources"]) == ("all", 5000, {})


def test_the_status_is_that_of_a_shell(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, record(*BELOW, "nothing"))[0] == 0
    assert run(tmp_path, record("sh", "-c", "exit 41"))[0] == 41
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGABRT):
        assert run(tmp_path, record(*BELOW, f"kill={int(number)}"))[0] == 128 + number


def started(folder: pathlib.Path, command: list[str]) -> tuple[subprocess.Popen[str], int]:
    """A process that runs, and the process below it that has said that it is ready."""
    process = subprocess.Popen(
        command,
        env=environment(folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    word, pid = process.stdout.readline().split()
    assert word == "ready"
    return process, int(pid)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_a_signal_reaches_the_command_once(tmp_path: pathlib.Path, name: str) -> None:
    number = int(getattr(signal, name))
    process, _ = started(tmp_path, record(*BELOW, f"count={number}"))
    process.send_signal(number)
    assert process.communicate(timeout=60) == ("arrived 1\n", f"{NOTHING}\n")
    assert process.returncode == 0


def test_an_interrupt_of_a_terminal_reaches_the_command_once(tmp_path: pathlib.Path) -> None:
    pty = pytest.importorskip("pty")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(PYTHON, record(*BELOW, "count=2"), environment(tmp_path))
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    while not (arrived := re.search(rb"arrived (\d+)\s", shown)):
        shown += os.read(terminal, 4096)
    assert arrived[1] == b"1"
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)


def test_a_terminated_command_is_recorded(tmp_path: pathlib.Path) -> None:
    process, _ = started(tmp_path, record(*BELOW, "use", "wait"))
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert told == "vramscope: wrote run/terminated/, run: vramscope diagnose run\n"
    assert process.returncode == 128 + signal.SIGTERM
    assert snapshots(tmp_path) == [f"run/terminated/{SNAPSHOT}"]
    assert list((tmp_path / "tmp").glob("*vramscope*")) == []


def test_standard_input_is_that_of_the_command(tmp_path: pathlib.Path) -> None:
    process = subprocess.run(
        record("cat"),
        env=environment(tmp_path),
        cwd=tmp_path,
        input="words\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (0, "words\n")


def test_the_programs_own_start_hook_and_path_stay(tmp_path: pathlib.Path) -> None:
    (tmp_path / "own").mkdir()
    hook = "import os\nif 'VRAMSCOPE_RECORD' in os.environ: print('own hook')\n"
    (tmp_path / "own/sitecustomize.py").write_text(hook)
    path = os.pathsep.join([environment(tmp_path)["PYTHONPATH"], str(tmp_path / "own")])
    code = "import own_module, torch; torch.empty(8, device='cuda')"
    (tmp_path / "own/own_module.py").write_text("print('own module')")
    status, output, _ = run(tmp_path, record(PYTHON, "-c", code), PYTHONPATH=path)
    assert (status, output) == (0, ["own hook", "own module"])
    assert snapshots(tmp_path) == [f"run/exit/{SNAPSHOT}"]


def test_a_process_that_cannot_record_runs_all_the_same(tmp_path: pathlib.Path) -> None:
    status, output, lines = run(
        tmp_path,
        record("env", "VRAMSCOPE_RECORD_OPTIONS=[]", *BELOW, "use", "helpers=fork"),
    )
    assert (status, output) == (0, ["3"])
    problem = "VRAMSCOPE_RECORD_OPTIONS is [], expected a JSON object"
    assert lines == [f"cannot start recording: ValueError: {problem}", NOTHING]


def test_a_command_that_is_none_is_told(tmp_path: pathlib.Path) -> None:
    for name in ("train.py", "run.sh"):
        (tmp_path / name).write_text("")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    for command, problem in (
        (["absent", "x"], "cannot find absent: expected a command after --"),
        (["train.py"], "train.py is no command: leave out --, or write -- python train.py"),
        (
            ["run.sh", "x", "y"],
            "run.sh is no command: run chmod +x run.sh, or write -- bash run.sh ...",
        ),
        (["tool", "x"], "tool is not on the PATH: write -- ./tool x"),
    ):
        told = run(tmp_path, record(*command))
        assert told == (2, [], [f"vramscope record: {problem}"])
    (tmp_path / "tool").write_bytes(b"\x00")
    told = run(tmp_path, record("./tool"))
    assert told == (2, [], ["vramscope record: cannot start ./tool: Exec format error"])
    assert not (tmp_path / "run").exists()


def test_no_request_goes_to_a_handler_of_the_program(waiting) -> None:
    code = (
        "import os, signal, sys; sys.argv[1:] = []\n"
        f"exec(open({PROGRAM!r}).read().partition('if __name__')[0])\n"
        "signal.signal(signal.SIGUSR2, lambda *_: os._exit(9))\n"
        "thread()\n"
        "wait()\n"
    )
    _, pid = waiting(command=record(PYTHON, "-c", code))
    assert problems(pid) == [f"process {pid} is not recorded, or has not used a GPU yet"]
    os.kill(pid, 0)


def test_tests_are_a_command(tmp_path: pathlib.Path) -> None:
    test = "import torch\ndef test_one():\n    torch.empty(8, device='cuda')\n"
    (tmp_path / "test_one.py").write_text(test)
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py"]
    status, output, lines = run(tmp_path, record(*command))
    assert (status, lines) == (0, ["vramscope: wrote run/exit/, run: vramscope diagnose run"])
    assert "1 passed" in output[-1]
    assert [one["role"] for one in beside(tmp_path)] == ["pytest"]


# -- Plugins of servers ----------------------------------------------------------------------------


@pytest.mark.parametrize("group", ["vllm.general_plugins", "sglang.srt.plugins"])
def test_a_server_records_by_its_plugin(tmp_path: pathlib.Path, group: str) -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    (point,) = project["entry-points"][group].items()
    assert importlib.metadata.EntryPoint(*point, group).load()() is None
    # As a server does in each of its processes, perhaps twice.
    code = (
        "import importlib.metadata, sys, torch\n"
        f"point = importlib.metadata.EntryPoint({point[0]!r}, {point[1]!r}, {group!r})\n"
        "point.load()(), point.load()()\n"
        "if sys.argv[1:]: torch.empty(8, device='cuda')\n"
    )
    wanted = {"VRAMSCOPE_RECORD": str(tmp_path / "run")}
    for arguments, more in ((["use"], {}), ([], wanted)):
        assert run(tmp_path, [PYTHON, "-c", code, *arguments], **more) == (0, [], [])
        assert snapshots(tmp_path) == []
    assert run(tmp_path, [PYTHON, "-c", code, "use"], **wanted) == (0, [], [])
    assert snapshots(tmp_path) == [f"run/python_N/exit/{SNAPSHOT}"]


# -- Requests for a snapshot -----------------------------------------------------------------------


@pytest.fixture
def waiting(tmp_path: pathlib.Path) -> Iterator[object]:
    """Starts processes, and ends them."""
    all_started = []

    def start(*words: str, command: list[str] | None = None) -> tuple[int, int]:
        command = record(*BELOW, *words, "wait") if command is None else command
        process, pid = started(tmp_path, command)
        all_started.append((process, pid))
        return process.pid, pid

    yield start
    for outer, pid in all_started:
        for one in (pid, outer.pid):
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
        outer.communicate(timeout=60)


def problems(pid: int, **options: float) -> list[str]:
    """What is said of a process that writes no snapshot."""
    found: list[dump.NotDumped] = []
    try:
        assert dump.ask(pid, found.append, **options) == []
    except dump.NotDumped as error:
        found.append(error)
    return list(map(str, found))


def test_a_process_is_asked_for_whole_snapshots(tmp_path: pathlib.Path, waiting) -> None:
    _, pid = waiting("use")
    for number in (1, 2):
        path = tmp_path / f"run/signal_{number}" / SNAPSHOT
        assert dump.ask(pid, pytest.fail) == [str(path)]
        assert path.stat().st_size > 0
        assert path.with_suffix(".vramscope.json").is_file()


def test_all_processes_below_one_are_asked(tmp_path: pathlib.Path, waiting) -> None:
    program = f"WORLD_SIZE=2 RANK=%d {shlex.join(BELOW)} use wait"
    script = f"{program % 0} & {program % 1} & wait"
    outer, first = waiting(command=record("sh", "-c", script))
    until = time.monotonic() + 60
    while len(dump_of := [one for one in dump.descendants(outer) if entry.read(one)]) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert first in dump_of
    written = dump.ask(outer, pytest.fail)
    names = [SNAPSHOT, SNAPSHOT.replace("0", "1")]
    assert sorted(written) == [str(tmp_path / "run/signal_1" / name) for name in names]
    # The command passes a request on to them, and not to the shell, which it would end.
    os.kill(outer, signal.SIGUSR2)
    while len(list(tmp_path.glob("run/signal_2/*.json"))) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    for one in dump_of:
        os.kill(one, signal.SIGKILL)


def test_a_program_that_records_itself_is_asked_too(tmp_path: pathlib.Path, waiting) -> None:
    command = [PYTHON, "-m", "vramscope", "record", "-o", "run", PROGRAM, "use", "wait"]
    _, pid = waiting(command=command)
    assert dump.ask(pid, pytest.fail) == [str(tmp_path / "run/signal_1" / SNAPSHOT)]


def test_no_signal_goes_to_a_process_that_does_not_handle_it(waiting) -> None:
    not_recorded = "is not recorded, or has not used a GPU yet"
    for words in ([], ["nothing"]):
        command = [*BELOW, "use", "wait"] if not words else record(*BELOW, *words, "wait")
        _, pid = waiting(command=command)
        assert problems(pid) == [f"process {pid} {not_recorded}"]
        os.kill(pid, 0)
    _, pid = waiting("use", "replace")
    problem = f"process {pid} does not handle signal {int(signal.SIGUSR2)} any more"
    assert problems(pid) == [f"{problem}: its program has replaced the handler"]
    os.kill(pid, 0)


def test_a_process_that_is_not_there_is_told(waiting) -> None:
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert problems(ended.pid) == [f"there is no process {ended.pid}"]
    ended.wait()
    assert problems(ended.pid) == [f"there is no process {ended.pid}"]
    assert problems(1 << 40) == [f"there is no process {1 << 40}"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_process_of_another_user_is_told(waiting) -> None:
    _, pid = waiting("use")
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        try:
            os.setgroups([])
            os.setuid(65534)
            os.write(write_end, json.dumps(problems(pid)).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end) as told:
        problem = "is of another user: only that user and root may ask"
        assert json.load(told) == [f"process {pid} {problem}"]
    os.wait()


def test_a_process_that_writes_no_snapshot_is_told(tmp_path: pathlib.Path, waiting) -> None:
    _, pid = waiting("use", "leave_when_asked")
    assert problems(pid) == [f"process {pid} ended before it wrote a snapshot"]
    _, pid = waiting("use", "fail_when_asked")
    assert problems(pid) == [f"process {pid} wrote no snapshot: its standard error says why"]
    _, pid = waiting("use")
    os.kill(pid, signal.SIGSTOP)
    problem = "has not written a snapshot yet: it does when its native code returns"
    assert problems(pid, patience=0.5) == [f"process {pid} {problem}"]


def test_a_forked_process_does_not_answer_for_its_parent(tmp_path: pathlib.Path, waiting) -> None:
    code = (
        "import os, sys, time; sys.argv[1:] = []\n"
        f"exec(open({PROGRAM!r}).read().partition('if __name__')[0])\n"
        "use()\n"
        "if os.fork() == 0: wait()\n"
        "time.sleep(600)\n"
    )
    outer, child = waiting(command=record(PYTHON, "-c", code))
    not_recorded = f"process {child} is not recorded, or has not used a GPU yet"
    assert problems(child) == [not_recorded]
    (parent,) = [one for one in dump.descendants(outer) if one != child]
    os.kill(parent, signal.SIGKILL)


def test_no_answer_goes_into_a_file_of_the_program(tmp_path: pathlib.Path, waiting) -> None:
    _, pid = waiting("use", "close_all")
    assert problems(pid) == [f"process {pid} is not recorded, or has not used a GPU yet"]
    os.kill(pid, signal.SIGUSR2)
    until = time.monotonic() + 60
    while not list(tmp_path.glob("run/signal_1/*.json")):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert (tmp_path / "other").read_bytes() == b""


def test_a_request_that_fails_is_told_by_the_command(tmp_path: pathlib.Path) -> None:
    other = subprocess.Popen(["sleep", "600"])
    try:
        command = [PYTHON, "-m", "vramscope", "record", "--dump", str(other.pid)]
        status, output, lines = run(tmp_path, command)
    finally:
        other.kill()
        other.wait()
    assert (status, output) == (2, [])
    assert lines == [
        f"vramscope record: process {other.pid} is not recorded, or has not used a GPU yet",
        "help: a history begins with the recording, so start it by vramscope record -- COMMAND",
    ]


# -- Launchers -------------------------------------------------------------------------------------

TRAIN = str(HERE / "programs/train.py")


@needs_torch
@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_ranks_of_a_launcher_are_recorded(tmp_path: pathlib.Path, launcher: str) -> None:
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29473"]
    accelerate = ["-m", "accelerate.commands.accelerate_cli", "launch", "--multi_gpu"]
    accelerate += ["--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"]
    accelerate += ["--dynamo_backend", "no", "--main_process_port", "29474"]
    launch = torchrun if launcher == "torchrun" else accelerate
    devices = {"FAKECUDA_DEVICES": "2"}
    command = record(PYTHON, *launch, TRAIN)
    status, output, lines = run(tmp_path, command, **devices)
    assert (status, output) == (0, ["trained"] * 2), lines
    told = [line for line in lines if line.startswith("vramscope")]
    assert told == ["vramscope: wrote run/exit/, run: vramscope diagnose run"]
    names = [f"run/exit/rank{rank}_memory_snapshot.pickle" for rank in (0, 1)]
    assert snapshots(tmp_path) == names
    assert [(one["rank"], one["world_size"]) for one in beside(tmp_path)] == [(0, 2), (1, 2)]


@needs_torch
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_data_loader_write_nothing(tmp_path: pathlib.Path, method: str) -> None:
    (tmp_path / "load.py").write_text(
        "import torch\n"
        "class Ones(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, index): return torch.ones(4)\n"
        "if __name__ == '__main__':\n"
        "    loader = torch.utils.data.DataLoader(\n"
        f"        Ones(), batch_size=2, num_workers=2, multiprocessing_context={method!r})\n"
        "    print(sum(batch.cuda().shape[0] for batch in loader))\n"
    )
    assert run(tmp_path, record(PYTHON, "load.py"))[:2] == (0, ["8"])
    assert snapshots(tmp_path) == [f"run/exit/{SNAPSHOT}"]
