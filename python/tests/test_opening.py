"""What ``vramscope.open`` takes, and how a snapshot goes to another process.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it.
"""

from __future__ import annotations

import concurrent.futures
import gzip
import io
import multiprocessing
import os
import pathlib
import pickle
import shutil

import pytest

import vramscope

DATA = pathlib.Path(__file__).parents[2] / "test_data"
OOM = DATA / "recorded" / "oom_expandable.pickle.gz"
RANKS = DATA / "recorded" / "ranks_fsdp"
BESIDE = DATA / "beside" / "oom_1" / "rank3_memory_snapshot.pickle"


def test_bytes_and_binary_files_are_read(tmp_path: pathlib.Path) -> None:
    packed = OOM.read_bytes()
    wanted = vramscope.open(OOM)
    with OOM.open("rb") as file, gzip.open(OOM) as unpacked:
        many = {
            "<bytes>": [packed, bytearray(packed), memoryview(packed)],
            str(OOM): [file],
            "<file>": [io.BytesIO(packed), Pipe(packed)],
        }
        for name, sources in many.items():
            for source in sources:
                s = vramscope.open(source)
                assert (s.path, repr(s)) == (name, f"<vramscope.Snapshot {name!r}, device 0>")
                assert s.peak(by="stack").rows == wanted.peak(by="stack").rows
                assert s.summary.file_bytes == len(packed)
        assert vramscope.open(unpacked).summary.devices == wanted.summary.devices
    some = vramscope.open(packed, events=(0, 1000), device=0, max_memory="1GiB")
    assert some.summary.devices == vramscope.open(OOM, events=(0, 1000)).summary.devices


class Pipe:
    """A file that cannot be moved in, and gives less than it is asked for."""

    def __init__(self, content: bytes) -> None:
        self._file = io.BytesIO(content)

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, 1000))


def test_a_file_is_read_from_where_it_stands() -> None:
    file = io.BytesIO(b"header" + OOM.read_bytes())
    file.seek(len(b"header"))
    assert vramscope.open(file).summary.file_bytes == OOM.stat().st_size


def test_errors_of_files_pass(tmp_path: pathlib.Path) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise TimeoutError("the bucket does not answer")

    with pytest.raises(TimeoutError, match="the bucket does not answer"):
        vramscope.open(Broken())
    (tmp_path / "text").write_text("text")
    with open(tmp_path / "text") as text, pytest.raises(TypeError, match='expected mode "rb"'):
        vramscope.open(text)
    with pytest.raises(vramscope.ReadError, match="<bytes>: ") as caught:
        vramscope.open(b"hello")
    assert (caught.value.path, caught.value.kind) == ("<bytes>", "no_snapshot")
    with pytest.raises(TypeError, match="int"):
        vramscope.open(3)


def test_what_needs_a_path_says_so(tmp_path: pathlib.Path) -> None:
    s = vramscope.open(OOM.read_bytes())
    with pytest.raises(TypeError, match="read from <bytes> cannot be written as a report"):
        s.report(tmp_path / "report.html")
    with pytest.raises(TypeError, match="read from <bytes> cannot be copied to another process"):
        pickle.dumps(s)
    with pytest.raises(TypeError, match="read from <bytes> cannot be shown"):
        vramscope.show(s)


def test_a_folder_leads_to_open_run() -> None:
    with pytest.raises(vramscope.ReadError, match=r"it is a folder\nvramscope\.open_run") as caught:
        vramscope.open(RANKS)
    assert (caught.value.path, caught.value.kind) == (str(RANKS), "unreadable")


def test_the_home_folder_is_known(tmp_path: pathlib.Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "runs").mkdir()
    shutil.copy(OOM, tmp_path / "runs")
    for path in (f"~/runs/{OOM.name}", pathlib.PurePosixPath("~/runs") / OOM.name):
        assert vramscope.open(path).path == os.path.expanduser(f"~/runs/{OOM.name}")
    assert len(vramscope.open_run("~/runs")) == 1


def peak_of(s: vramscope.Snapshot) -> tuple[str, int, int]:
    return s.path, s.device, s.peak().peak_bytes


def test_a_snapshot_goes_to_a_pool_of_processes() -> None:
    snapshots = [*vramscope.open_run(RANKS), vramscope.open(OOM, events=(0, 5000), device=0)]
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        assert [*pool.map(peak_of, snapshots)] == [*map(peak_of, snapshots)]


def test_a_copy_has_what_the_snapshot_has(tmp_path: pathlib.Path) -> None:
    s = vramscope.open(BESIDE)
    again = pickle.loads(pickle.dumps(s))
    assert again.diagnosis == s.diagnosis and list(again.blocks) == list(s.blocks)
    # A rank that ran out of memory shows the limit of another: also to a copy of that one.
    shutil.copy(
        DATA / "what_if/varlen_tight_default.pickle.gz", tmp_path / "rank0_memory.pickle.gz"
    )
    shutil.copy(DATA / "recorded/t29/pools.pickle", tmp_path / "rank1_memory.pickle")
    with vramscope.open_run(tmp_path) as run:
        limits = [one.what_if().calibration.capacity_basis for one in run]
        assert limits[1] == "other_rank"
        for copied in (
            [pickle.loads(pickle.dumps(one)) for one in run],
            pickle.loads(pickle.dumps(run)),
        ):
            assert [one.what_if() for one in copied] == [one.what_if() for one in run]
    for closed in (run, run[0]):
        with pytest.raises(ValueError, match="is closed: open it again"):
            pickle.dumps(closed)
