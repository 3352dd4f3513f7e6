"""Finds the fewest GPUs that hold jobs, each rank run alone without a GPU.

Needs the installed package, and in ``VRAMSCOPE_TORCH`` a Python whose PyTorch is built for CUDA,
such as that of ``scripts/standin``.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from dry import PROGRAMS, TORCH, dry_answer, dry_run

pytestmark = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")

JOBS = str(PROGRAMS / "dry_jobs.py")
GIB = 1 << 30


def search(folder: pathlib.Path, numbers: str, memory: str, *words: str) -> tuple[int, Any]:
    """The exit status and the JSON of a search."""
    options = ["--gpus", numbers, "--memory", memory, "--no-holders", "-o", str(folder)]
    ended = dry_run(*options, "--format", "json", JOBS, *words)
    if any(name in ended.stdout + ended.stderr for name in ("ImportError", "ModuleNotFoundError")):
        pytest.skip("this PyTorch has no such module")
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def alone(folder: pathlib.Path, ranks: int, rank: int, memory: str, *words: str) -> Any:
    options = ["--ranks", str(ranks), "--rank", str(rank), "--memory", memory, "--no-holders"]
    return dry_answer(*options, "-o", str(folder), JOBS, *words)["dry"]


def test_the_fewest_gpus_of_fsdp_hold_it_and_half_of_them_do_not(tmp_path: pathlib.Path) -> None:
    status, found = search(tmp_path / "search", "1..512", "5GiB", "fsdp")
    assert (status, found["schema"], found["fewest"]) == (0, "vramscope.cluster/1", 4)
    rows = found["rows"]
    assert [row["outcome"] for row in rows] == ["runs_out", "runs_out", "fits"]
    for rank in (0, 3):
        dry = alone(tmp_path / f"four_{rank}", 4, rank, "5GiB", "fsdp")
        assert dry["outcome"] == "fits" and dry["active_bytes"] == rows[-1]["active_bytes"]
    assert alone(tmp_path / "two", 2, 0, "5GiB", "fsdp")["outcome"] == "runs_out"
    # The row that runs out states what a rank of two needs.
    enough = alone(tmp_path / "enough", 2, 1, "20GiB", "fsdp")
    assert rows[1]["active_bytes"] == enough["active_bytes"] and rows[1]["left_bytes"] < 0
    fits = rows[-1]
    assert fits["left_bytes"] == 5 * GIB - fits["reserved_bytes"] - fits["parts"]["outside"]
    whole = fits["reserved_bytes"] + fits["parts"]["outside"]
    assert sum(fits["parts"].values()) == pytest.approx(whole, rel=0.001)
    # Gathered weights of FSDP: a whole block of 96 MiB in fp32 at least.
    assert fits["parts"]["communication"] > 96 << 20
    assert fits["largest_part"] == "activation"


def test_the_table_states_each_row_and_the_fewest(tmp_path: pathlib.Path) -> None:
    ended = dry_run(
        *("--gpus", "4..8", "--memory", "5GiB", "--no-holders", "-o", str(tmp_path)), JOBS, "fsdp"
    )
    lines = ended.stdout.splitlines()
    if "ImportError" in ended.stdout:
        pytest.skip("this PyTorch has no fully_shard")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert lines[1].split("  ")[1].strip() == "GPUs" and lines[1].endswith("outcome")
    assert lines[2].split()[0] == "4" and lines[2].endswith("fits")
    assert lines[3].startswith("fewest GPUs that hold it, of those run: 4. The fullest rank has ")
    assert lines[4].startswith("not included: the buffers of NCCL itself")
    assert max(map(len, lines)) <= 100


def test_sharded_optimizer_states_need_eight(tmp_path: pathlib.Path) -> None:
    status, found = search(tmp_path, "2..64", "6GiB", "zero")
    assert (status, found["fewest"]) == (0, 8)
    states = [row["parts"]["optimizer_state"] for row in found["rows"]]
    # Each doubling halves them: parameters of a rank are whole ones.
    for more, fewer in zip(states, states[1:]):
        assert fewer == pytest.approx(more / 2, rel=0.15)


def test_a_replicated_model_is_told_after_two_rows(tmp_path: pathlib.Path) -> None:
    status, found = search(tmp_path, "1..512", "5GiB", "ddp")
    assert (status, found["fewest"]) == (1, None)
    assert [row["gpus"] for row in found["rows"]] == [1, 2]
    assert found["text"] == (
        "more GPUs do not lower the peak of a rank: the program replicates its model"
    )


def test_parts_that_do_not_shard_end_the_search(tmp_path: pathlib.Path) -> None:
    # Activations and the gathered block stay: more than 2 GiB.
    status, found = search(tmp_path, "2..512", "2GiB", "fsdp")
    assert (status, found["fewest"]) == (1, None)
    assert [row["gpus"] for row in found["rows"]] == [2, 4]
    assert found["text"].startswith("more GPUs are not enough: from 2 to 4 the peak of a rank fell")
    assert "Largest part: activations" in found["text"]


def test_tensor_parallelism_shards_activations_too(tmp_path: pathlib.Path) -> None:
    status, found = search(tmp_path, "2..8", "3GiB", "tensor")
    assert (status, found["fewest"]) == (0, 4)
    two, four = (row["parts"]["activation"] for row in found["rows"])
    assert four < 0.75 * two


@pytest.mark.parametrize("asks", [(), ("asks",)])
def test_the_fullest_stage_of_a_pipeline_counts(
    tmp_path: pathlib.Path, asks: tuple[str, ...]
) -> None:
    status, found = search(tmp_path / "search", "2..8", "5GiB", "pipeline", *asks)
    if any("TypeError" in row.get("text", "") for row in found["rows"]):
        pytest.skip("stages of this PyTorch cannot ask for shapes")
    assert (status, found["fewest"]) == (0, 4), found
    # The last stage has the logits. One between is run because the ends differ.
    assert [row["rank"] for row in found["rows"]] == [1, 3]
    assert [one["rank"] for one in found["rows"][-1]["ranks"]] == [0, 3, 2]
    dry = alone(tmp_path / "last", 4, 3, "5GiB", "pipeline")
    assert dry["active_bytes"] == pytest.approx(found["rows"][-1]["active_bytes"], rel=0.01)


def test_a_program_of_one_gpu_is_told_so(tmp_path: pathlib.Path) -> None:
    status, found = search(tmp_path, "1..512", "5GiB", "plain")
    assert (status, found["fewest"], len(found["rows"])) == (2, None, 1)
    assert found["text"].startswith("the program does not use torch.distributed")


def test_numbers_that_a_program_refuses_have_its_error(tmp_path: pathlib.Path) -> None:
    status, found = search(tmp_path, "2..8", "5GiB", "four")
    assert (status, found["fewest"]) == (0, 4)
    assert found["rows"][0]["outcome"] == "cannot_run"
    text = found["rows"][0]["text"]
    assert text.startswith("AssertionError: this job has four ranks, dry_jobs.py:")
    none = dry_run("--gpus", "5..7", "-o", str(tmp_path / "none"), JOBS, "four")
    assert none.returncode == 2
    assert none.stdout.count("cannot run: AssertionError: this job has four ranks") == 2
    assert none.stdout.splitlines()[-1].endswith("with none of these numbers of GPUs")


def test_the_number_of_ranks_is_an_argument(tmp_path: pathlib.Path) -> None:
    status, found = search(tmp_path / "a", "3..6", "5GiB", "argument", "--tp", "{gpus}")
    assert (status, found["fewest"]) == (0, 3), found
    status, found = search(tmp_path / "b", "4..4", "5GiB", "argument", "--world", "{gpus}0")
    assert status == 2
    assert found["rows"][0]["text"].startswith(
        "ValueError: the program asks for 40 ranks, and the job has 4"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--gpus", "4..2", JOBS], "expected a range: 1..512"),
        (["--gpus", "0..2", JOBS], "expected a range: 1..512"),
        (["--gpus", "1..2", "--ranks", "2", JOBS], "without --ranks and --largest"),
        (["--gpus", "1..2", "--", "torchrun", JOBS], "without torchrun"),
        (["--gpus", "1..2", "-m", "torch.distributed.run", JOBS], "without torch.distributed.run"),
    ],
)
def test_what_is_no_search_is_told(words: list[str], expected: str) -> None:
    ended = dry_run(*words)
    assert ended.returncode == 64 and not ended.stdout
    assert expected in ended.stderr, ended.stderr


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", ["fsdp", "zero", "ddp", "tensor", "pipeline"])
def test_peaks_alone_are_those_beside_the_others(
    tmp_path: pathlib.Path, name: str, ranks: int
) -> None:
    status, found = search(tmp_path / "alone", f"{ranks}..{ranks}", "60GiB", name)
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    options = ["--memory", "60GiB", "--no-holders", "-o", str(tmp_path / "beside")]
    beside = dry_answer(*options, *torchrun, JOBS, name)["dry"]
    assert (status, beside["outcome"]) == (0, "fits")
    for peak in ("active_bytes", "reserved_bytes"):
        assert found["rows"][0][peak] == pytest.approx(beside[peak], rel=0.01)
