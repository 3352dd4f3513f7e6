"""The recorder under signals, in forked processes, and where PyTorch does not record.

Real processes, over the PyTorch that ``VRAMSCOPE_TORCH`` names (see ``test_recorder.py``), or else
over ``stand_in/torch.py``.
"""

import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys

import pytest

TORCH = os.environ.get("VRAMSCOPE_TORCH")
HERE = pathlib.Path(__file__).parent
SNAPSHOT = "rank0_memory_snapshot.pickle"
BESIDE = "rank0_memory_snapshot.vramscope.json"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no signals and forks here")
NOTICE = "frees show the stack of their allocation: PyTorch 2.11"
needs_torch = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")
needs_none = pytest.mark.skipif(TORCH is not None, reason="a stand-in for PyTorch does this")


def run(folder: pathlib.Path, *arguments: str, **environ: str) -> tuple[int, str, str]:
    """Runs ``programs/ends.py``. Returns its exit status, what it printed, and its errors."""
    paths = [HERE.parent] if TORCH else [HERE.parent, HERE / "stand_in"]
    process = subprocess.run(
        [TORCH or sys.executable, str(HERE / "programs/ends.py"), *arguments],
        env={
            **os.environ,
            "RUN": str(folder),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "FAKECUDA_CAPACITY_MB": "2000",
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr


def run_without_notice(folder: pathlib.Path, *arguments: str) -> tuple[int, str, str]:
    """:func:`run`, without what the recorder says of PyTorch 2.11 at each start."""
    status, out, err = run(folder, *arguments)
    lines = err.splitlines(keepends=True)
    return status, out, "".join(line for line in lines if not line.startswith(NOTICE))


def files(folder: pathlib.Path) -> list[str]:
    """All files. Every snapshot is whole and has a file beside it."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    for name in found:
        if name.endswith(".pickle"):
            pickle.loads((folder / name).read_bytes())
            assert name.replace(".pickle", ".vramscope.json") in found
    return found


def dump(*folders: str) -> list[str]:
    return [f"{folder}/{name}" for folder in folders for name in (SNAPSHOT, BESIDE)]


def test_termination_waits_for_the_snapshot_of_an_error(tmp_path: pathlib.Path) -> None:
    status, out, _ = run(tmp_path, "signal_in_oom", "SIGTERM")
    assert (status, out) == (-signal.SIGTERM, "")
    assert files(tmp_path) == dump("oom_1")


def test_termination_waits_for_the_file_beside_a_snapshot(tmp_path: pathlib.Path) -> None:
    status, out, _ = run(tmp_path, "signal_beside")
    assert (status, out) == (-signal.SIGTERM, "")
    assert files(tmp_path) == dump("oom_1")


def test_a_hangup_waits_for_a_snapshot(tmp_path: pathlib.Path) -> None:
    status, out, _ = run(tmp_path, "signal_in_oom", "SIGHUP")
    assert (status, out) == (-signal.SIGHUP, "")
    assert files(tmp_path) == dump("oom_1")


def test_an_interrupt_waits_for_a_snapshot_and_reaches_the_program(tmp_path: pathlib.Path) -> None:
    status, out, _ = run(tmp_path, "signal_in_oom", "SIGINT")
    assert (status, out) == (0, "KeyboardInterrupt\n")
    assert files(tmp_path) == dump("oom_1")


def test_what_a_handler_of_the_program_raises_is_the_programs(tmp_path: pathlib.Path) -> None:
    status, out, err = run_without_notice(tmp_path, "own_handler")
    assert (status, out, err) == (0, "the program's own\n" * 2, "")
    assert files(tmp_path) == dump("exit", "late")


def test_a_request_during_a_snapshot_is_answered_after_it(tmp_path: pathlib.Path) -> None:
    assert run_without_notice(tmp_path, "asked_twice") == (0, "", "")
    assert files(tmp_path) == dump("exit", "signal_1", "signal_2")


def test_a_request_before_the_recording_ends_the_process_as_without_the_recorder(
    tmp_path: pathlib.Path,
) -> None:
    assert run_without_notice(tmp_path, "too_early") == (-signal.SIGUSR2, "", "")
    assert files(tmp_path) == []


def test_forked_children_write_nothing_and_end_as_without_the_recorder(
    tmp_path: pathlib.Path,
) -> None:
    status, out, err = run_without_notice(tmp_path, "forked")
    assert (status, out, err) == (0, "3\n", "")
    assert files(tmp_path) == dump("exit")
    snapshot = pickle.loads((tmp_path / "exit" / SNAPSHOT).read_bytes())
    (events,) = [trace for trace in snapshot["device_traces"] if trace]
    assert sum(event["action"] == "alloc" for event in events) == 150


def test_a_child_that_is_forked_during_a_snapshot_gets_its_signals(tmp_path: pathlib.Path) -> None:
    status, out, err = run_without_notice(tmp_path, "forked_in_dump")
    assert (status, out, err) == (0, f"{-signal.SIGTERM}\n", "")
    assert files(tmp_path) == dump("exit")


@needs_none
def test_a_child_may_record_itself(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, "child_records") == (0, "0\n", "")
    assert files(tmp_path) == dump("child/exit", "exit")


def test_the_end_of_a_pool_writes_nothing(tmp_path: pathlib.Path) -> None:
    assert run_without_notice(tmp_path, "pool") == (0, "[1, 2]\n", "")
    assert files(tmp_path) == dump("exit")


@needs_torch
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_read_data_write_nothing(tmp_path: pathlib.Path, method: str) -> None:
    assert run_without_notice(tmp_path, "loader", method) == (0, "32\n32\n", "")
    assert files(tmp_path) == dump("exit")


def test_an_event_loop_gets_its_signals(tmp_path: pathlib.Path) -> None:
    out = "ended by its handler\nran in a thread\n"
    assert run_without_notice(tmp_path, "event_loop") == (0, out, "")
    assert files(tmp_path) == dump("exit", "late")


def test_each_recording_of_a_process_has_its_own_folder(tmp_path: pathlib.Path) -> None:
    assert run_without_notice(tmp_path, "repeated") == (0, "", "")
    folders = ["exit", *(f"recording_{number}/exit" for number in (2, 3, 4))]
    assert files(tmp_path) == dump(*folders)
    # The first recording has 1 allocation, the last has 4.
    counts = []
    for folder in folders:
        snapshot = pickle.loads((tmp_path / folder / SNAPSHOT).read_bytes())
        events = [event for trace in snapshot["device_traces"] for event in trace]
        counts.append(sum(event["action"] == "alloc" for event in events))
    assert counts == [1, 2, 3, 4]


def test_a_recorder_says_what_it_does(tmp_path: pathlib.Path) -> None:
    status, out, _ = run_without_notice(tmp_path, "shown")
    assert status == 0
    before, during, after = out.splitlines()
    begins = f"<vramscope.Recorder into {str(tmp_path)!r}: "
    assert before == f"{begins}not recording, a snapshot every 10 steps, 0 snapshots so far>"
    last = "recording the last 5,000 events of each device"
    assert during == f"{begins}{last}, a snapshot every 10 steps, 1 snapshot so far>"
    assert after == f"{begins}ended, a snapshot every 10 steps, 2 snapshots so far>"


def test_memory_that_runs_out_is_told_once_by_a_program_that_records_itself(
    tmp_path: pathlib.Path,
) -> None:
    status, out, err = run_without_notice(tmp_path, "catches")
    assert (status, out) == (0, "survived\n")
    (where, wrote, *last) = err.splitlines()
    assert where.startswith("vramscope: out of memory at ")
    assert wrote == f"vramscope: wrote {tmp_path}/oom_1/, run: vramscope diagnose {tmp_path}"
    assert last == [
        "vramscope: out of memory 3 times in all",
        f"vramscope: wrote {tmp_path}/oom_3/, run: vramscope diagnose {tmp_path}",
    ]


@needs_none
def test_the_limit_of_a_release_that_does_not_tell_it_is_that_of_the_error(
    tmp_path: pathlib.Path,
) -> None:
    assert run(tmp_path, "catches", TORCH_LIMIT=str(1 << 39))[0] == 0
    (device,) = json.loads((tmp_path / "oom_1" / BESIDE).read_text())["devices"]
    assert (device["total_bytes"], device["limit_bytes"]) == (1 << 40, 1 << 39)


#: Makes PyTorch refuse early: 2.12 and later over the stand-in for the driver, or that of PyTorch.
REFUSES = {"PYTORCH_CUDA_ALLOC_CONF": "throw_on_cudamalloc_oom:True", "TORCH_REFUSES": "1"}


def refuses_early() -> bool:
    if TORCH is None:
        return True
    release = [TORCH, "-c", "import torch; print(torch.__version__.split('.')[1])"]
    return int(subprocess.run(release, capture_output=True, check=True).stdout) >= 12


@pytest.mark.skipif(not refuses_early(), reason="this PyTorch refuses nothing early")
@pytest.mark.parametrize("how", ["with", "without", "thread"])
def test_a_request_that_is_refused_early_has_a_snapshot(tmp_path: pathlib.Path, how: str) -> None:
    status, _, err = run(tmp_path, "ends_by_error", how, **REFUSES)
    assert (status == 0, "OutOfMemoryError" in err) == (how == "thread", True), err
    assert err.count("PyTorch refused a request early") == 1, err
    assert files(tmp_path) == dump("oom_1")
    facts = json.loads((tmp_path / "oom_1" / BESIDE).read_text())
    assert (facts["reason"], facts["oom"]) == ("oom", None)


@pytest.mark.skipif(not refuses_early(), reason="this PyTorch refuses nothing early")
def test_refused_requests_that_a_program_survives_are_told(tmp_path: pathlib.Path) -> None:
    status, _, err = run(tmp_path, "catches", **REFUSES)
    assert (status, "which no snapshot shows" in err) == (0, True), err
    assert files(tmp_path) == dump("exit")


def test_a_series_of_states_is_small_and_has_no_history(tmp_path: pathlib.Path) -> None:
    assert run_without_notice(tmp_path, "states") == (0, "", "")
    (name,) = [name for name in files(tmp_path) if name.endswith(".jsonl")]
    assert name == "states/rank0_memory_states.jsonl"
    head, *states = map(json.loads, (tmp_path / name).read_text().splitlines())
    assert (head["version"], head["rank"], head["world_size"]) == (1, 0, 1)
    assert [state["step"] for state in states] == [2, 4, 6]
    sizes = [state["devices"][0]["allocated_bytes"] for state in states]
    assert sizes == sorted(sizes)
    assert sizes[0] > 0
    # From 2.11 on PyTorch lists segments without the history.
    lists_them = not head["torch"].startswith(("2.9.", "2.10."))
    for state in states:
        segments = state["devices"][0]["segments"]
        assert (segments is not None) == lists_them
        for segment in segments or ():
            assert 0 < segment["allocated_bytes"] <= segment["total_bytes"]
            assert segment["largest_free_bytes"] <= segment["total_bytes"]


@needs_none
def test_a_release_that_lists_segments_alone_has_them_in_states(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, "states", TORCH_VERSION="2.11.0")[0] == 0
    last = (tmp_path / "states/rank0_memory_states.jsonl").read_text().splitlines()[-1]
    (segment,) = json.loads(last)["devices"][0]["segments"]
    assert (segment["total_bytes"], segment["blocks"]) == (1024, 1)
    assert segment["largest_free_bytes"] == 512


def test_pauses_of_the_collector_end(tmp_path: pathlib.Path) -> None:
    assert run_without_notice(tmp_path, "collected") == (0, "0 1 False 700\nTrue 500\n", "")


def test_a_thread_of_a_library_stays_unknown_to_python(tmp_path: pathlib.Path) -> None:
    status, out, _ = run_without_notice(tmp_path, "foreign")
    assert (status, out) == (0, "MainThread\n")
    assert files(tmp_path) == dump("oom_1")


def test_the_next_start_removes_what_a_killed_process_left(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, "killed")[0] == -signal.SIGKILL
    (left,) = files(tmp_path)
    assert left.endswith(".part")
    others = [
        # By name of nobody, of a process that runs, of another machine.
        f"exit/.{SNAPSHOT}.abcdefgh.part",
        f"exit/.{SNAPSHOT}.{left.split('.')[3].split('-')[0]}-{os.getpid()}.abcdefgh.part",
        f"exit/.{SNAPSHOT}.01234567-1.abcdefgh.part",
    ]
    for other in others:
        (tmp_path / other).write_bytes(b"half")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / pathlib.Path(left).name).symlink_to(tmp_path / others[0])
    assert run_without_notice(tmp_path, "own_handler")[0] == 0
    kept = [name for name in files(tmp_path) if name.endswith(".part")]
    assert kept == sorted([*others, f"elsewhere/{pathlib.Path(left).name}"])


def test_handlers_of_a_recording_that_another_thread_stopped_do_nothing(
    tmp_path: pathlib.Path,
) -> None:
    status, out, err = run_without_notice(tmp_path, "stopped_elsewhere")
    assert (status, out, err) == (-signal.SIGTERM, "stopped\n", "")
    assert files(tmp_path) == dump("exit")


def test_a_snapshot_that_fails_is_one_line_and_the_error_stays_the_programs(
    tmp_path: pathlib.Path,
) -> None:
    status, out, err = run_without_notice(tmp_path, "broken")
    assert (status, out) == (0, "None\nCUDA out of memory\n")
    (first, second, told) = err.splitlines()
    assert first == second == "cannot write a snapshot: RuntimeError: no snapshot"
    # There is no snapshot to name.
    assert told.startswith("vramscope: out of memory at ")
    assert files(tmp_path) == []


def test_an_allocator_without_a_history_is_one_line(tmp_path: pathlib.Path) -> None:
    name = "PYTORCH_CUDA_ALLOC_CONF" if TORCH else "TORCH_BACKEND"
    value = "backend:cudaMallocAsync" if TORCH else "cudaMallocAsync"
    status, out, err = run(tmp_path, "pool", **{name: value})
    assert (status, out) == (0, "[1, 2]\n")
    told = [line for line in err.splitlines() if "is deprecated" not in line]
    assert told == [
        "cannot start recording: RuntimeError: "
        "PyTorch records only its native allocator, and this is cudaMallocAsync"
    ]
    assert files(tmp_path) == []


def test_a_release_that_loses_errors_in_frees_records_allocations(tmp_path: pathlib.Path) -> None:
    if TORCH:
        asked = "import torch; print(torch.__version__)"
        release = subprocess.check_output([TORCH, "-c", asked], text=True).strip()
        status, out, err = run(tmp_path, "checkpointed")
        assert (status, out) == (0, "trained\n"), err
    else:
        release = "2.11.0"
        status, out, err = run(tmp_path, "pool", TORCH_VERSION=release)
        assert status == 0
    recording = json.loads((tmp_path / "exit" / BESIDE).read_text())["recording"]
    is_limited = release.startswith("2.11.")
    assert recording.get("context") == ("alloc" if is_limited else None)
    assert len(err.splitlines()) == is_limited
    assert is_limited == err.startswith(NOTICE)
