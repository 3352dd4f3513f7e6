"""Names and lifetimes of files."""

import errno
import os
import pathlib
import stat
import struct
import threading
import time

import pytest

from vramscope.recorder.files import (
    Kept,
    Recordings,
    remove_left_over,
    sidecar_of,
    write_beside,
    write_snapshot,
)
from vramscope.recorder.ranks import job_name, rank_and_world


def test_a_file_is_whole_or_absent(tmp_path: pathlib.Path) -> None:
    wanted = tmp_path / "exit" / "rank0_memory_snapshot.pickle"

    def fail(file) -> None:
        file.write(b"half")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_snapshot(wanted, fail)
    assert list(wanted.parent.iterdir()) == []
    assert write_snapshot(wanted, lambda file: file.write(b"whole")) == wanted
    assert wanted.read_bytes() == b"whole"


def test_no_snapshot_replaces_another_and_each_has_its_own_file_beside(
    tmp_path: pathlib.Path,
) -> None:
    wanted = tmp_path / "rank0_memory_snapshot.pickle"
    # A file whose snapshot is gone does not describe the next one.
    sidecar_of(wanted).write_bytes(b"of another")
    paths = []
    for text in (b"first", b"second", b"third"):
        paths.append(write_snapshot(wanted, lambda file, text=text: file.write(text)))
        write_beside(paths[-1], lambda file, text=text: file.write(text))
    own = f"pid{os.getpid()}"
    assert [path.name for path in paths] == [
        f"{own}_{wanted.name}",
        f"{own}_2_{wanted.name}",
        f"{own}_3_{wanted.name}",
    ]
    assert [path.read_bytes() for path in paths] == [b"first", b"second", b"third"]
    assert [sidecar_of(path).read_bytes() for path in paths] == [b"first", b"second", b"third"]
    assert sidecar_of(wanted).read_bytes() == b"of another"
    with pytest.raises(FileExistsError):
        write_beside(wanted, lambda file: file.write(b"other"))


def test_a_file_system_without_links_replaces_nothing_either(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*paths: object) -> None:
        raise PermissionError("no links")

    monkeypatch.setattr(os, "link", no_links)
    wanted = tmp_path / "rank0_memory_snapshot.pickle"
    paths = [write_snapshot(wanted, lambda file: file.write(b"x")) for _ in range(3)]
    assert len({path for path in paths if path.read_bytes() == b"x"}) == 3
    assert len(list(tmp_path.iterdir())) == 3


def test_a_name_that_cannot_be_given_stays_free(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*paths: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="quota"):
        write_snapshot(tmp_path / "rank0_memory_snapshot.pickle", lambda file: file.write(b"x"))
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_writing_names_the_file_and_is_not_replaced(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tmp_path / "rank0_memory_snapshot.pickle"

    def fail(file) -> None:
        monkeypatch.setattr(pathlib.Path, "unlink", refuse)
        raise OSError(errno.EIO, "Input/output error")

    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with pytest.raises(OSError, match=f"Input/output error: '{wanted}'"):
        write_snapshot(wanted, fail)


def test_a_written_snapshot_has_its_name_also_if_the_other_name_stays(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    wanted = tmp_path / "rank0_memory_snapshot.pickle"
    assert write_snapshot(wanted, lambda file: file.write(b"x")) == wanted


def test_files_of_other_threads_keep_the_mode_of_the_program(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_mask = os.umask
    before = set_mask(0o022)
    done = threading.Event()
    modes = set()

    def make_files() -> None:
        while not done.is_set():
            path = tmp_path / "other"
            path.touch()
            modes.add(stat.S_IMODE(path.stat().st_mode))
            path.unlink()

    def set_for_long(mask: int) -> int:
        old = set_mask(mask)
        time.sleep(0.01)
        return old

    monkeypatch.setattr(os, "umask", set_for_long)
    other = threading.Thread(target=make_files)
    other.start()
    try:
        for number in range(20):
            wanted = tmp_path / "x" / f"{number}.pickle"
            path = write_snapshot(wanted, lambda file: file.write(b"x"))
            modes.add(stat.S_IMODE(path.stat().st_mode))
    finally:
        done.set()
        other.join()
        set_mask(before)
    assert modes == {0o644}


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no lists of rights here")
def test_files_have_the_rights_that_their_folder_gives(tmp_path: pathlib.Path) -> None:
    """A default list of rights takes the place of the mask, for files and for folders."""
    # Version 2. Owner, group and others may read and write: tag, rights, number.
    entries = [(0x01, 7), (0x04, 6), (0x10, 6), (0x20, 4)]
    rights = b"".join(struct.pack("<HHI", tag, allowed, 0xFFFFFFFF) for tag, allowed in entries)
    try:
        os.setxattr(tmp_path, "system.posix_acl_default", struct.pack("<I", 2) + rights)
    except OSError:
        pytest.skip("no lists of rights on this file system")
    before = os.umask(0o077)
    try:
        path = write_snapshot(tmp_path / "x" / "1.pickle", lambda file: file.write(b"x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


def test_files_that_are_left_over_are_a_day_old_or_of_an_ended_process(
    tmp_path: pathlib.Path,
) -> None:
    dump = tmp_path / "exit"
    dump.mkdir()
    name = ".rank0_memory_snapshot.pickle.01234567-1.abcdefgh.part"
    for path in (dump / name, dump / f"other{name}", dump / "rank0_memory_snapshot.pickle"):
        path.write_bytes(b"x")
    assert remove_left_over(tmp_path) == []
    yesterday = time.time() - 25 * 3600
    for path in dump.iterdir():
        os.utime(path, (yesterday, yesterday))
    assert remove_left_over(tmp_path) == [dump / name]
    assert len(list(dump.iterdir())) == 2
    assert remove_left_over(tmp_path / "none") == []


def test_only_the_last_dumps_are_kept_and_other_ranks_stay(tmp_path: pathlib.Path) -> None:
    kept = Kept(2)
    paths = [tmp_path / f"step_{n}" / "rank0_memory_snapshot.pickle" for n in range(1, 5)]
    for path in paths:
        for file in (path, sidecar_of(path)):
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b"x")
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
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "16"}, (5, 16)),
        # In the script of a batch job, without srun: one process of a job that may start 16.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "77"}, (0, 1)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 4)),
        # torchrun within a Slurm job: its rank is that of the process.
        (
            {"RANK": "9", "WORLD_SIZE": "16", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
            (9, 16),
        ),
        ({"RANK": "6"}, (6, 7)),
        ({"RANK": "many", "SLURM_PROCID": "4"}, (4, 5)),
    ],
)
def test_the_launcher_tells_the_rank(environ: dict, expected: tuple) -> None:
    assert rank_and_world(environ) == expected


def test_each_recording_of_a_folder_has_a_folder_of_its_own(tmp_path: pathlib.Path) -> None:
    recordings = Recordings()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    folders = [recordings.next_folder(tmp_path / name) for name in ("run", "other", "run", "link")]
    names = ["run", "other", "run/recording_2", "link/recording_3"]
    assert folders == [tmp_path / name for name in names]


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"TORCHELASTIC_RUN_ID": "42", "RANK": "1"}, "run_42"),
        ({"TORCHELASTIC_RUN_ID": "a/../b c", "RANK": "1"}, "run_a-..-b-c"),
        (
            {"TORCHELASTIC_RUN_ID": "42", "TORCHELASTIC_RESTART_COUNT": "2", "RANK": "1"},
            "run_42_restart_2",
        ),
        ({"SLURM_JOB_ID": "77", "SLURM_PROCID": "3"}, "job_77"),
        ({"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "1", "SLURM_RESTART_COUNT": "0"}, "job_77.1"),
        # torchrun without a number, within a Slurm job.
        ({"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_ID": "77", "RANK": "0"}, "job_77"),
        ({"PMIX_NAMESPACE": "prterun-node7-123@1", "PMI_RANK": "0"}, "run_prterun-node7-123-1"),
    ],
)
def test_all_ranks_of_a_job_find_one_folder(environ: dict, name: str) -> None:
    assert job_name(environ) == (name, True)


def test_a_job_without_a_number_has_the_time_of_its_launcher() -> None:
    alone = {
        "TORCHELASTIC_RUN_ID": "0b1d9f3e-8d4b-4a52-9d1c-3c7e5f0a6b21",
        "GROUP_WORLD_SIZE": "1",
        "RANK": "0",
    }
    names = {job_name({**alone, "RANK": str(rank)}) for rank in range(4)}
    ((name, is_of_job),) = names
    assert is_of_job
    assert time.strptime(name, "%Y-%m-%d_%H-%M-%S")
    name, is_of_job = job_name({})
    assert not is_of_job
    assert time.strptime(name, "%Y-%m-%d_%H-%M-%S")
