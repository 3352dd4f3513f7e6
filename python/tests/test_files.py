"""Names and lifetimes of files."""

import pathlib

import pytest

from vramscope.recorder.files import Kept, sidecar_of, write_whole
from vramscope.recorder.ranks import rank_and_world


def test_a_file_is_whole_or_absent(tmp_path: pathlib.Path) -> None:
    wanted = tmp_path / "exit" / "rank0_memory_snapshot.pickle"

    def fail(file) -> None:
        file.write(b"half")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_whole(wanted, fail)
    assert list(wanted.parent.iterdir()) == []
    assert write_whole(wanted, lambda file: file.write(b"whole")) == wanted
    assert wanted.read_bytes() == b"whole"


def test_two_processes_of_one_rank_keep_both_files(tmp_path: pathlib.Path) -> None:
    wanted = tmp_path / "rank0_memory_snapshot.pickle"
    assert write_whole(wanted, lambda file: file.write(b"first")) == wanted
    other = write_whole(wanted, lambda file: file.write(b"second"))
    assert (wanted.read_bytes(), other.read_bytes()) == (b"first", b"second")
    assert other.name.endswith("_rank0_memory_snapshot.pickle")
    assert other.parent == tmp_path


def test_only_the_last_dumps_are_kept_and_other_ranks_stay(tmp_path: pathlib.Path) -> None:
    kept = Kept(2)
    paths = [tmp_path / f"step_{n}" / "rank0_memory_snapshot.pickle" for n in range(1, 5)]
    for path in paths:
        for file in (path, sidecar_of(path)):
            write_whole(file, lambda out: out.write(b"x"))
    other = tmp_path / "step_1" / "rank1_memory_snapshot.pickle"
    other.write_bytes(b"x")
    for path in paths:
        kept.add(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_1", "step_3", "step_4"]
    assert [path.name for path in (tmp_path / "step_1").iterdir()] == [other.name]
    assert sidecar_of(paths[3]).exists()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, (5, 16)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 4)),
        # torchrun within a Slurm job: its rank is that of the process.
        ({"RANK": "9", "WORLD_SIZE": "16", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, (9, 16)),
        ({"RANK": "6"}, (6, 7)),
        ({"RANK": "many", "SLURM_PROCID": "4"}, (4, 5)),
    ],
)
def test_the_launcher_tells_the_rank(environ: dict, expected: tuple) -> None:
    assert rank_and_world(environ) == expected
