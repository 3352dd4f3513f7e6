"""Recording real programs with PyTorch's own allocator.

Needs a PyTorch with CUDA, or one over the stand-in libraries of ``scripts/standin``:
``VRAMSCOPE_TORCH`` names its Python. ``cargo xtask test --long`` sets both up.
"""

import json
import os
import pathlib
import pickle
import re
import signal
import subprocess

import pytest

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="VRAMSCOPE_TORCH names no Python")

PACKAGE = pathlib.Path(__file__).parent.parent
PROGRAMS = pathlib.Path(__file__).parent / "programs"


def start(program: str, run: pathlib.Path, *arguments: str, **environ: str) -> subprocess.Popen:
    """Runs a program of ``programs/`` under a recorder."""
    return subprocess.Popen(
        [PYTHON, "-m", "vramscope", "record", "-o", str(run), str(PROGRAMS / program), *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(PACKAGE),
            "FAKECUDA_CAPACITY_MB": "2000",
            **environ,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def snapshots(run: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(run)) for path in run.rglob("*.pickle"))


def facts(run: pathlib.Path, name: str) -> dict:
    path = run / name.replace(".pickle", ".vramscope.json")
    return json.loads(path.read_text())


def read(run: pathlib.Path, name: str) -> dict:
    """The snapshot: it has a history."""
    with (run / name).open("rb") as file:
        snapshot = pickle.load(file)
    assert any(snapshot["device_traces"])
    return snapshot


def test_the_exit_status_and_output_are_the_programs(tmp_path: pathlib.Path) -> None:
    status, out, _ = ended(start("train.py", tmp_path, "--status", "3"))
    assert (status, out) == (3, "trained\n")
    assert snapshots(tmp_path) == ["exit/rank0_memory_snapshot.pickle"]
    read(tmp_path, "exit/rank0_memory_snapshot.pickle")


def test_running_out_of_memory_is_recorded_inside_and_passes_untouched(
    tmp_path: pathlib.Path,
) -> None:
    status, out, err = ended(start("train.py", tmp_path, "--oom"))
    assert (status, out) == (1, "")
    error, where, wrote = err.strip().splitlines()[-3:]
    assert error.startswith("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 Gi")
    # Of 2000 MiB, 500 belong to the context.
    reserved = (
        r"vramscope: out of memory at \S*train\.py:22, asked for 8\.00 GiB, 6\.\d\d GiB short"
    )
    assert re.fullmatch(reserved, where)
    assert wrote == f"vramscope: wrote {tmp_path}/oom_1/, run: vramscope diagnose {tmp_path}"
    name = "oom_1/rank0_memory_snapshot.pickle"
    assert snapshots(tmp_path) == [name]
    oom = [e for e in read(tmp_path, name)["device_traces"][0] if e["action"] == "oom"]
    assert [event["size"] for event in oom] == [8 << 30]
    beside = facts(tmp_path, name)
    assert beside["oom"]["requested_bytes"] == 8 << 30
    assert [step["step"] for step in beside["steps"]] == [1, 2, 3]
    (device,) = beside["devices"]
    others = device["total_bytes"] - device["free_bytes"] - device["reserved_bytes"]
    assert device["other_bytes"] == others > 0


@pytest.mark.parametrize(
    ("rows", "where"),
    [("6000", r"in backward at \S*phases\.py:24"), ("20000", r"in forward at \S*phases\.py:16")],
)
def test_the_phase_and_the_line_are_told(tmp_path: pathlib.Path, rows: str, where: str) -> None:
    _, _, err = ended(start("phases.py", tmp_path, rows, FAKECUDA_CAPACITY_MB="900"))
    told = err.strip().splitlines()[-2]
    size = r"\d+\.\d\d MiB"
    said = rf"vramscope: out of memory {where}, asked for {size}, {size} short"
    assert re.fullmatch(said, told), told


def test_the_limit_of_the_process_is_written(tmp_path: pathlib.Path) -> None:
    assert ended(start("train.py", tmp_path, "--fraction", "0.25"))[0] == 0
    beside = facts(tmp_path, "exit/rank0_memory_snapshot.pickle")
    (device,) = beside["devices"]
    assert device["limit_bytes"] == device["total_bytes"] // 4
    assert re.fullmatch(r"\d+\.\d+", beside["driver"])
    assert ended(start("train.py", tmp_path / "free"))[0] == 0
    (device,) = facts(tmp_path / "free", "exit/rank0_memory_snapshot.pickle")["devices"]
    assert device["limit_bytes"] is None


def test_a_caught_error_is_recorded_and_the_program_goes_on(tmp_path: pathlib.Path) -> None:
    status, out, _ = ended(start("train.py", tmp_path, "--oom", "--catch"))
    assert (status, out) == (0, "trained\n")
    assert snapshots(tmp_path) == [
        "exit/rank0_memory_snapshot.pickle",
        "oom_1/rank0_memory_snapshot.pickle",
    ]


def test_eight_ranks_of_which_one_runs_out_write_eight_files(tmp_path: pathlib.Path) -> None:
    ranks = [
        start(
            "train.py",
            tmp_path,
            *(["--oom"] if rank == 5 else []),
            RANK=str(rank),
            WORLD_SIZE="8",
            OMP_NUM_THREADS="1",
        )
        for rank in range(8)
    ]
    results = [ended(process)[0] for process in ranks]
    assert results == [1 if rank == 5 else 0 for rank in range(8)]
    names = snapshots(tmp_path)
    assert len(names) == 8
    for rank in range(8):
        folder = "oom_1" if rank == 5 else "exit"
        name = f"{folder}/rank{rank}_memory_snapshot.pickle"
        assert name in names
        read(tmp_path, name)
        assert (facts(tmp_path, name)["rank"], facts(tmp_path, name)["world_size"]) == (rank, 8)


def wait_for(process: subprocess.Popen, line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{line}\n"


def run_alone(program: str, run: pathlib.Path, **environ: str) -> subprocess.CompletedProcess:
    """Runs a program that makes its own recorder."""
    return subprocess.run(
        [PYTHON, str(PROGRAMS / program)],
        env={**os.environ, "RUN": str(run), "PYTHONPATH": str(PACKAGE), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_programs_handler_of_the_signal_is_called_too(tmp_path: pathlib.Path) -> None:
    process = run_alone("chained.py", tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "own handler\nown handler\n"
    # After the recording the program's handler is alone again.
    assert snapshots(tmp_path) == [
        "exit/rank0_memory_snapshot.pickle",
        "signal_1/rank0_memory_snapshot.pickle",
    ]


def test_a_signal_asks_for_a_snapshot_and_termination_stays_one(tmp_path: pathlib.Path) -> None:
    process = start("waiting.py", tmp_path)
    wait_for(process, "waiting")
    process.send_signal(signal.SIGUSR2)
    wait_for(process, "handled")
    assert snapshots(tmp_path) == ["signal_1/rank0_memory_snapshot.pickle"]
    read(tmp_path, "signal_1/rank0_memory_snapshot.pickle")
    process.send_signal(signal.SIGTERM)
    status, _, _ = ended(process)
    assert status == -signal.SIGTERM
    assert "terminated/rank0_memory_snapshot.pickle" in snapshots(tmp_path)


def test_every_steps_and_the_last_ones_are_kept(tmp_path: pathlib.Path) -> None:
    process = run_alone("every.py", tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert snapshots(tmp_path) == [
        f"{folder}/rank0_memory_snapshot.pickle" for folder in ("exit", "step_4", "step_6")
    ]
    beside = facts(tmp_path, "step_6/rank0_memory_snapshot.pickle")
    assert beside["steps"][-1]["step"] == 6
    kinds = {tensor["kind"] for tensor in beside["tensors"][-1]["tensors"]}
    assert kinds == {"parameter", "gradient", "optimizer_state"}
    named = {t["name"]: t for t in beside["tensors"][-1]["tensors"] if t["kind"] == "parameter"}
    assert named["0.weight"]["shape"] == [512, 256]
    assert named["0.weight"]["dtype"] == "float32"
    snapshot = read(tmp_path, "step_6/rank0_memory_snapshot.pickle")
    live = {
        block["address"]
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }
    assert {tensor["address"] for tensor in named.values()} <= live
    lines = beside["sources"][str(PROGRAMS / "every.py")]
    assert any("model(" in text for text in lines.values()), lines


def test_a_model_may_be_watched_at_any_time(tmp_path: pathlib.Path) -> None:
    process = run_alone("watched.py", tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "None True\nmodel is a str, expected a torch.nn.Module\n"

    def tensors(folder: str) -> list[dict]:
        listed = facts(tmp_path, f"{folder}/rank0_memory_snapshot.pickle")["tensors"]
        return listed[-1]["tensors"] if listed else []

    assert tensors("unnamed") == []
    assert {t["kind"] for t in tensors("named")} == {"parameter", "gradient", "optimizer_state"}
    shapes = {t["name"]: t["shape"] for t in tensors("trained") if t["kind"] == "parameter"}
    assert (shapes["0.weight"], shapes["1.bias"]) == ([512, 256], [256])
    # Recording began before the model was made, so each parameter has its stack.
    snapshot = read(tmp_path, "trained/rank0_memory_snapshot.pickle")
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    stacks = {block["address"]: block["frames"] for block in blocks}
    for tensor in tensors("trained"):
        files = {frame["filename"] for frame in stacks[tensor["address"]]}
        # The engine of backward has no frames of Python.
        assert tensor["kind"] == "gradient" or str(PROGRAMS / "watched.py") in files
    steps = facts(tmp_path, "exit/rank0_memory_snapshot.pickle")["steps"]
    # Three of the first model; of two, those of the first optimizer.
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5]
    names = [t["name"] for t in tensors("exit") if t["kind"] == "parameter"]
    assert sorted(names) == sorted(2 * ["0.weight", "0.bias", "1.weight", "1.bias"])


def test_a_program_without_a_device_runs_as_before(tmp_path: pathlib.Path) -> None:
    status, out, err = ended(start("waiting.py", tmp_path, "--no-device", FAKECUDA_DEVICES="0"))
    assert (status, out) == (0, "no device\n")
    assert "PyTorch sees no CUDA device" in err
    assert snapshots(tmp_path) == []


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: pathlib.Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    status, out, err = ended(start("train.py", blocked / "run"))
    assert (status, out) == (0, "trained\n")
    assert "cannot write a snapshot" in err


@pytest.mark.skipif("VRAMSCOPE" not in os.environ, reason="VRAMSCOPE names no program")
def test_the_program_reads_what_was_recorded(tmp_path: pathlib.Path) -> None:
    ended(start("train.py", tmp_path, "--oom", RANK="3", WORLD_SIZE="8"))

    def told(*command: str) -> dict:
        arguments = [os.environ["VRAMSCOPE"], *command, str(tmp_path), "--format", "json"]
        return json.loads(subprocess.run(arguments, capture_output=True, check=True).stdout)

    first = told("diagnose")["headlines"][0]["text"]
    assert first.startswith("Out of memory in step 3: 8.00 GiB asked")
    (process,) = [file["process"] for file in told("info")["files"]]
    assert (process["reason"], process["rank"], process["world_size"]) == ("oom", 3, 8)
    oom = told("diagnose", "--all")["findings"][0]
    assert "500.0 MiB are outside of PyTorch" in oom["text"]
    # The program runs below `python -m vramscope`, whose frames are no callers.
    assert oom["sites"][0] == "train.py:22 train"
    assert oom["called_from"] == ["train.py:32 <module>"]


def test_the_cost_of_a_step_is_small(tmp_path: pathlib.Path) -> None:
    """Steps of a small model, in milliseconds, as the best of some runs.

    Kernels do nothing on a stand-in, so a step is only what Python and PyTorch do on the host. The
    cost is that of a real device, the share of a step is not.
    """
    best: dict[str, float] = {}

    def is_small() -> bool:
        # 2 % of a step of 25 ms. Listing the tensors takes 1 % of the time at most.
        beyond = {mode: best[mode] - best["own"] for mode in ("recorder", "names")}
        return beyond["recorder"] < 0.5 and beyond["names"] < 0.5 + best["own"] * 0.1

    for attempt in range(4):
        for mode in ("off", "own", "recorder", "names"):
            process = run_alone("cost.py", tmp_path / f"{mode}_{attempt}", MODE=mode)
            assert process.returncode == 0, process.stderr
            best[mode] = min(best.get(mode, float("inf")), float(process.stdout))
        # Other programs on this machine may have slowed one of them.
        if is_small():
            break
    told = ", ".join(f"{mode} {ms:.3f}" for mode, ms in best.items())
    print(f"\nms per step of a model of 48 parameters, kernels do nothing: {told}")
    assert is_small()


def test_a_snapshot_takes_no_longer_than_by_pytorch(tmp_path: pathlib.Path) -> None:
    process = run_alone("dumps.py", tmp_path / "run")
    assert process.returncode == 0, process.stderr
    own, recorded, state = map(float, process.stdout.split())
    print(f"\nseconds of a dump: PyTorch {own:.3f}, recorder {recorded:.3f}, a state {state:.4f}")
    assert recorded < own * 1.1
    assert state < own * 0.02
