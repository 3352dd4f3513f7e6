"""Runs programs without a GPU.

Needs the installed package, and in ``VRAMSCOPE_TORCH`` a Python whose PyTorch is built for CUDA,
such as that of ``scripts/standin``.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from dry import PROGRAMS, TORCH, dry_answer, dry_run

pytestmark = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")

CASES = str(PROGRAMS / "dry_cases.py")
H100 = json.loads((PROGRAMS.parents[2] / "test_data" / "dry" / "h100.json").read_text())
#: Twins that the gate runs; all of them with ``VRAMSCOPE_TWINS``.
TWINS = H100["twins"] if os.environ.get("VRAMSCOPE_TWINS") else ("base", "batch_2", "expandable")


@pytest.mark.parametrize("name", TWINS)
def test_peaks_are_those_of_an_h100(tmp_path: pathlib.Path, name: str) -> None:
    twin = H100["twins"][name]
    ended = dry_run(
        "-o",
        str(tmp_path),
        "--no-holders",
        str(PROGRAMS / "dry_gpt.py"),
        *twin["arguments"],
        PYTORCH_CUDA_ALLOC_CONF=twin["settings"],
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(next(line for line in ended.stdout.splitlines() if line.startswith("{")))
    torch = json.loads(next(tmp_path.rglob("*.vramscope.json")).read_text())["torch"]
    if torch.startswith(("2.9.", "2.11.")):
        assert told == {"active": twin["active"], "reserved": twin["reserved"]}
    else:
        # Other releases have other workspaces.
        assert told["active"] == pytest.approx(twin["active"], rel=0.02)


def test_the_first_line_says_whether_it_fits(tmp_path: pathlib.Path) -> None:
    ended = dry_run("--steps", "2", "-o", str(tmp_path), CASES, "train")
    assert ended.returncode == 0, ended.stderr
    first = ended.stdout.splitlines()[0]
    assert first.startswith("dry run of H100 (79.18 GiB): 2 steps, peak "), first
    assert first.endswith(", fits")
    beside = json.loads(next(tmp_path.rglob("*.vramscope.json")).read_text())
    assert beside["dry"]["gpu"] == "H100" and beside["dry"]["ended"] == "steps"
    info = subprocess.run(
        [sys.executable, "-m", "vramscope", "info", "--format", "json", str(tmp_path)],
        capture_output=True,
        check=True,
    )
    assert json.loads(info.stdout)["files"][0]["process"]["dry"]["gpu"] == "H100"


def test_an_error_is_that_of_pytorch_and_has_its_line(tmp_path: pathlib.Path) -> None:
    ended = dry_run(
        *("--memory", "600MiB", "--fail-on", "oom", "-o", str(tmp_path)), CASES, "train"
    )
    assert ended.returncode == 1
    assert "OutOfMemoryError: CUDA out of memory. Tried to allocate" in ended.stderr
    first = " ".join(ended.stdout.split("\n\n")[0].split())
    assert first.startswith("dry run of H100 (600.0 MiB): runs out in "), first
    assert "dry_cases.py:" in first


def test_a_caught_error_fails_only_if_that_was_asked_for(tmp_path: pathlib.Path) -> None:
    assert dry_run("-o", str(tmp_path / "a"), CASES, "catches").returncode == 0
    asked = dry_run("--fail-on", "oom", "-o", str(tmp_path / "b"), CASES, "catches")
    assert asked.returncode == 1


@pytest.fixture(scope="session")
def has_values(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips a test of a PyTorch before 2.5, which computes no values."""
    folder = tmp_path_factory.mktemp("values")
    assert dry_run("-o", str(folder), CASES, "train").returncode == 0
    beside = json.loads(next(folder.rglob("*.vramscope.json")).read_text())
    if beside["dry"]["values"] == "off":
        pytest.skip(f"PyTorch {beside['torch']} computes no values")


def test_small_tensors_have_values(has_values: None, tmp_path: pathlib.Path) -> None:
    answer = dry_answer("-o", str(tmp_path), CASES, "values")
    assert answer["dry"]["outcome"] == "fits"
    assert not [read for read in answer["dry"]["read"] if read["decides"] == "size"]


def test_a_size_by_a_value_that_was_not_computed_is_named(
    has_values: None, tmp_path: pathlib.Path
) -> None:
    answer = dry_answer("-o", str(tmp_path), CASES, "made_up")
    sizes = [read for read in answer["dry"]["read"] if read["decides"] == "size"]
    assert [read["operator"] for read in sizes] == ["nonzero"]
    assert sizes[0]["line"].startswith("dry_cases.py:")
    assert any(note.startswith("sizes depend on") for note in answer["dry"]["notes"])


def test_values_do_not_change_peaks(tmp_path: pathlib.Path) -> None:
    peaks = set()
    for values in ("off", "small", "full"):
        answer = dry_answer("--values", values, "-o", str(tmp_path / values), CASES, "train")
        peaks.add((answer["dry"]["active_bytes"], answer["dry"]["reserved_bytes"]))
    assert len(peaks) == 1


def test_an_endless_program_ends_with_its_line(tmp_path: pathlib.Path) -> None:
    ended = dry_run("--seconds", "6", "-o", str(tmp_path), CASES, "endless")
    assert ended.returncode == 0, ended.stderr
    first = " ".join(ended.stdout.split("\n\n")[0].split())
    assert " so far, peak " in first and "ended at" in first, first


def test_a_program_that_waits_is_ended_with_its_stacks(tmp_path: pathlib.Path) -> None:
    begin = time.monotonic()
    ended = dry_run("--seconds", "4", "-o", str(tmp_path), CASES, "stuck")
    assert time.monotonic() - begin < 90
    assert ended.returncode == 0
    told = ended.stderr + ended.stdout
    assert "dry_cases.py" in told and "stuck" in told


def test_an_interrupt_gives_an_answer(tmp_path: pathlib.Path) -> None:
    words = ["--python", str(TORCH), "-o", str(tmp_path), CASES, "slow"]
    started = subprocess.Popen(
        [sys.executable, "-m", "vramscope", "dry-run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(8)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert started.returncode == 130, err
    assert out.startswith("dry run of H100"), out + err


def test_children_have_the_gpu_and_others_have_nothing(tmp_path: pathlib.Path) -> None:
    ended = dry_run("-o", str(tmp_path), CASES, "children")
    lines = ended.stdout.splitlines()
    assert "child cuda:0" in lines and "preload []" in lines and "plain False" in lines, ended


def test_no_process_and_no_file_stays(tmp_path: pathlib.Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ended = dry_run("-o", str(tmp_path / "o"), CASES, "left", TMPDIR=str(temporary))
    assert ended.returncode == 0, ended.stderr
    assert not list(temporary.iterdir())
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "sleep 1000" not in running.stdout.splitlines()


def test_the_status_is_that_of_the_program(tmp_path: pathlib.Path) -> None:
    assert dry_run("-o", str(tmp_path), CASES, "ends").returncode == 3


def test_a_program_without_a_gpu_is_told_so(tmp_path: pathlib.Path) -> None:
    ended = dry_run("-o", str(tmp_path), CASES, "on_cpu")
    assert "the program did not use a GPU" in ended.stderr
    assert ended.returncode == 0 and not ended.stdout


def test_a_rank_alone_needs_what_it_needs_beside_the_others(tmp_path: pathlib.Path) -> None:
    alone = dry_answer("--ranks", "2", "--rank", "1", "-o", str(tmp_path / "a"), CASES, "job")
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    both = dry_answer("-o", str(tmp_path / "b"), *torchrun, CASES, "job")
    assert len(both["ranks"]) == 1 and both["ranks"][0]["ranks"] == "0-1", both["ranks"]
    for name in ("active_bytes", "reserved_bytes", "outcome"):
        assert alone["dry"][name] == both["dry"][name], name


def test_large_weights_take_no_memory_of_the_host(tmp_path: pathlib.Path) -> None:
    ended = dry_run("--no-holders", "-o", str(tmp_path), CASES, "large")
    assert ended.returncode == 0, ended.stderr
    (told,) = [line for line in ended.stdout.splitlines() if line.startswith("memory ")]
    assert int(told.split()[1]) < 1500, told


def test_an_error_of_the_program_is_no_answer(tmp_path: pathlib.Path) -> None:
    ended = dry_run("-o", str(tmp_path), CASES, "fails")
    assert ended.returncode == 1
    first = " ".join(ended.stdout.split("\n\n")[0].split())
    assert "then ValueError at dry_cases.py:" in first and "fits" not in first, first


def test_a_survived_failure_fits(tmp_path: pathlib.Path) -> None:
    answer = dry_answer("-o", str(tmp_path), CASES, "catches")
    assert answer["dry"]["outcome"] == "fits"
    assert answer["dry"]["text"].endswith("fits: the program survived a failed allocation")


def test_processes_share_the_memory_of_a_device(tmp_path: pathlib.Path) -> None:
    ended = dry_run("-o", str(tmp_path), CASES, "together")
    assert "child True" in ended.stdout, ended.stdout + ended.stderr


def test_models_are_made_without_weights(tmp_path: pathlib.Path) -> None:
    ended = dry_run("--no-weights", "-o", str(tmp_path), CASES, "without_weights", str(tmp_path))
    if "No module named 'transformers'" in ended.stderr:
        pytest.skip("this Python has no transformers")
    assert ended.returncode == 0, ended.stderr
    assert "made torch.bfloat16 cuda:0" in ended.stdout


def test_caches_of_kernels_are_those_of_the_run(tmp_path: pathlib.Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environ = {"HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert dry_run("-o", str(tmp_path / "o"), CASES, "jit", **environ).returncode == 0
    assert not list(home.rglob("*"))


def test_the_largest_value_is_found(tmp_path: pathlib.Path) -> None:
    words = ["--memory", "12GiB", "--largest", "batch-size=9..13", "-o", str(tmp_path)]
    ended = dry_run(*words, CASES, "batch")
    assert ended.returncode == 0, ended.stderr
    # 12 GiB less the context.
    assert ended.stdout.splitlines()[-1] == "largest batch-size that fits: 11"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--gpu", "MI300X", CASES], "ROCm"),
        (["--gpu", "H99", CASES], "no known GPU"),
        (["--memory", "much", CASES], "is no size"),
        (["nowhere.py"], "cannot find nowhere.py"),
        ([], "expected a program"),
        (["--ranks", "2", "--rank", "2", CASES], "--rank 2"),
        (["--python", "/nowhere/python", CASES], "cannot find /nowhere/python"),
        (["--largest", "batch_size", CASES], "batch_size=1..256"),
        (["--", "nowhere"], "cannot find nowhere: expected a command"),
    ],
)
def test_what_cannot_run_is_told(words: list[str], expected: str) -> None:
    ended = dry_run(*words)
    assert ended.returncode in (2, 64) and not ended.stdout
    assert expected in ended.stderr and "Traceback" not in ended.stderr, ended.stderr


def test_python_gets_the_same_answer(tmp_path: pathlib.Path) -> None:
    import vramscope

    found = vramscope.dry_run(
        CASES, "train", gpu="A100", python=str(TORCH), output=tmp_path, steps=2
    )
    assert found.status == 0 and found.fits and found.text.startswith("dry run of A100 (")
    assert found.snapshot is not None and found.snapshot.is_file()
    with pytest.raises(vramscope.VramscopeError, match="no known GPU"):
        vramscope.dry_run(CASES, gpu="H99", python=str(TORCH))
