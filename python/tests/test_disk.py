"""The recorder where it cannot write: full disks, folders without permission, and no folders.

Real processes over ``stand_in/torch.py``. Each ends as without a recorder, says in one line what
it could not write, and leaves no part of a file.
"""

import json
import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

HERE = pathlib.Path(__file__).parent
SNAPSHOT = "rank0_memory_snapshot.pickle"
BESIDE = "rank0_memory_snapshot.vramscope.json"
#: A disk of a number of bytes and files at RUN, whose files are kept in COPY.
DISK = """
mount -t tmpfs -o "$DISK" tmpfs "$RUN" || exit 99
"$@"
status=$?
cp -a "$RUN" "$COPY"
exit $status
"""
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
#: Root without the right to pass over modes.
PLAIN = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts and rights of Linux")


def run(folder: pathlib.Path | str, *command: object, **environ: str) -> tuple[str, list[str]]:
    """Runs ``programs/disk.py``. Returns what it printed and the lines of its errors."""
    paths = os.pathsep.join(map(str, [HERE.parent, HERE / "stand_in"]))
    *prefix, case = map(str, command)
    ran = subprocess.run(
        [*prefix, sys.executable, HERE / "programs/disk.py", case],
        env={**os.environ, "RUN": str(folder), "PYTHONPATH": paths, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 3, ran.stderr
    return ran.stdout, ran.stderr.splitlines()


def run_on_disk(tmp_path: pathlib.Path, disk: str, case: str, **environ: str) -> tuple:
    """:func:`run` on a disk of its own. Returns also the folder of the files."""
    try:
        probe = ["mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        subprocess.run([*NAMESPACE, *probe], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no mounts here")
    place, copy = tmp_path / "disk", tmp_path / "copy"
    place.mkdir()
    environ = {"DISK": disk, "COPY": str(copy), **environ}
    out, err = run(place, *NAMESPACE, "sh", "-c", DISK, "sh", case, **environ)
    return out, err, copy


def files(folder: pathlib.Path) -> list[str]:
    """All files. Every snapshot is whole."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    for name in found:
        if name.endswith(".pickle"):
            pickle.loads((folder / name).read_bytes())
    return found


@pytest.mark.parametrize("case", ["ends", "runs_out"])
@pytest.mark.parametrize("disk", ["size=8k", "size=64k", "size=256k", "nr_inodes=2", "nr_inodes=3"])
def test_a_full_disk_is_one_line(tmp_path: pathlib.Path, case: str, disk: str) -> None:
    out, err, copy = run_on_disk(tmp_path, disk, case, TORCH_EVENT_BYTES="400")
    assert out == ("survived\ndone\n" if case == "runs_out" else "done\n")
    (line, *told) = err
    folder = "exit" if case == "ends" else "oom_1"
    wanted = tmp_path / "disk" / folder
    assert line.startswith("cannot write a snapshot: OSError: [Errno 28] No space left on device: ")
    assert str(wanted) in line
    assert [one.split(" at ")[0] for one in told] == ["vramscope: out of memory"] * (case != "ends")
    assert files(copy) == []


@pytest.mark.parametrize("case", ["ends", "runs_out"])
def test_a_snapshot_stays_where_the_file_beside_it_has_no_place(
    tmp_path: pathlib.Path, case: str
) -> None:
    _, err, copy = run_on_disk(tmp_path, "nr_inodes=4", case)
    folder = "exit" if case == "ends" else "oom_1"
    (line,) = [one for one in err if not one.startswith("vramscope: ")]
    assert line.startswith("cannot write the file beside a snapshot: OSError: [Errno 28] ")
    # It is told: the file is whole.
    assert any(one.startswith("vramscope: wrote ") for one in err) == (case == "runs_out")
    assert files(copy) == [f"{folder}/{SNAPSHOT}"]


def test_a_disk_that_gets_full_keeps_the_last_snapshot(tmp_path: pathlib.Path) -> None:
    _, err, copy = run_on_disk(tmp_path, "size=512k", "steps", TORCH_EVENT_BYTES="400")
    lines = [line.split(": ")[0] for line in err]
    assert set(lines) == {"cannot write a snapshot"}
    # Each snapshot is larger than the one before. Two have to be there for a moment.
    failed = len(lines) - 1
    assert 2 <= failed < 12
    last = f"step_{12 - failed}"
    kept = [f"{last}/{name}" for name in (SNAPSHOT, BESIDE)]
    assert files(copy) == ["states/rank0_memory_states.jsonl", *kept]


def test_a_series_of_states_has_whole_lines(tmp_path: pathlib.Path) -> None:
    out, err, copy = run_on_disk(tmp_path, "size=32k", "states")
    assert out == "No space left on device\ndone\n"
    assert {line.split(": ")[0] for line in err} == {"cannot write the allocator's state"}
    for name, number in (("kept.jsonl", 102), ("states/rank0_memory_states.jsonl", 103)):
        text = (copy / name).read_text()
        assert text.endswith("\n")
        # The program has removed the first file. The next one has a head, too.
        head, *states = map(json.loads, text.splitlines())
        assert (head["rank"], states[-1]["step"]) == (0, number)


def loop(place: pathlib.Path) -> pathlib.Path:
    (place / "a").symlink_to(place / "b")
    (place / "b").symlink_to(place / "a")
    return place / "a"


def below_loop(place: pathlib.Path) -> pathlib.Path:
    return loop(place) / "run"


def dangling(place: pathlib.Path) -> pathlib.Path:
    (place / "link").symlink_to(place / "nowhere")
    return place / "link"


def file(place: pathlib.Path) -> pathlib.Path:
    (place / "file").write_text("of the program")
    return place / "file"


def below_file(place: pathlib.Path) -> pathlib.Path:
    return file(place) / "run"


def pipe(place: pathlib.Path) -> pathlib.Path:
    os.mkfifo(place / "pipe")
    return place / "pipe"


def pipe_as_dump(place: pathlib.Path) -> pathlib.Path:
    for name in ("exit", "oom_1"):
        os.mkfifo(place / name)
    return place


def device(place: pathlib.Path) -> pathlib.Path:
    return pathlib.Path("/dev/full")


def long_name(place: pathlib.Path) -> pathlib.Path:
    return place / ("x" * 256)


def long_path(place: pathlib.Path) -> pathlib.Path:
    return place.joinpath(*["x" * 250] * 20)


def read_only(place: pathlib.Path) -> pathlib.Path:
    place.chmod(0o555)
    return place


def closed(place: pathlib.Path) -> pathlib.Path:
    place.chmod(0)
    return place / "run"


def read_only_dump(place: pathlib.Path) -> pathlib.Path:
    for name in ("exit", "oom_1"):
        (place / name).mkdir(mode=0o555)
    return place


PLACES = [loop, below_loop, dangling, file, below_file, pipe, pipe_as_dump, device]
PLACES += [long_name, long_path, read_only, closed, read_only_dump]


@pytest.mark.parametrize("case", ["ends", "runs_out"])
@pytest.mark.parametrize("make", PLACES)
def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: pathlib.Path, make: Callable[[pathlib.Path], pathlib.Path], case: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    folder = make(place)
    before = sorted(os.lstat(path)[:3] for path in tmp_path.rglob("*"))
    prefix = PLAIN if os.geteuid() == 0 else []
    out, err = run(folder, *prefix, case)
    assert out == ("survived\ndone\n" if case == "runs_out" else "done\n")
    lines = [one for one in err if not one.startswith("vramscope: out of memory at ")]
    assert [one.split(": ")[0] for one in lines] == ["cannot write a snapshot"], err
    assert sorted(os.lstat(path)[:3] for path in tmp_path.rglob("*")) == before
    for path in [place, *place.iterdir()]:
        if not path.is_symlink():
            path.chmod(0o700)


def test_a_folder_that_cannot_be_listed_is_written(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o300)
    out, err = run(place, *(PLAIN if os.geteuid() == 0 else []), "ends")
    place.chmod(0o700)
    assert (out, err) == ("done\n", [])
    assert files(place) == [f"exit/{name}" for name in (SNAPSHOT, BESIDE)]


def test_a_limit_of_the_size_of_files_is_one_line(tmp_path: pathlib.Path) -> None:
    limited = ["sh", "-c", 'ulimit -f 8; "$@"', "sh"]
    out, err = run(tmp_path, *limited, "ends", TORCH_EVENT_BYTES="400")
    wanted = tmp_path / "exit" / SNAPSHOT
    line = f"cannot write a snapshot: OSError: [Errno 27] File too large: '{wanted}'"
    assert (out, err, files(tmp_path)) == ("done\n", [line], [])


def test_names_of_others_stay_what_they_are(tmp_path: pathlib.Path) -> None:
    """Pipes and links that have the names of snapshots, and a folder that is a link."""
    other = tmp_path / "other"
    other.mkdir()
    for number, name in enumerate((SNAPSHOT, BESIDE)):
        (tmp_path / f"pipe{number}" / "exit").mkdir(parents=True)
        os.mkfifo(tmp_path / f"pipe{number}" / "exit" / name)
        (tmp_path / f"link{number}" / "exit").mkdir(parents=True)
        (tmp_path / f"link{number}" / "exit" / name).symlink_to(other / "none")
    for run_of in ("pipe0", "pipe1", "link0", "link1"):
        _, (line,) = run(tmp_path / run_of, "ends")
        assert line.startswith(f"{tmp_path / run_of / 'exit' / SNAPSHOT} exists: wrote pid")
        assert len(files(tmp_path / run_of)) == 2
    assert list(other.iterdir()) == []


def test_a_name_that_is_no_text_is_a_folder(tmp_path: pathlib.Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    assert run(folder, "ends") == ("done\n", [])
    assert files(pathlib.Path(folder)) == [f"exit/{name}" for name in (SNAPSHOT, BESIDE)]


def test_a_folder_stays_where_it_was_when_the_program_moves(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path / "run", "moves") == ("done\n", [])
    # The program has removed the first snapshot, and its folder.
    wanted = [f"{folder}/{name}" for folder in ("exit", "two") for name in (SNAPSHOT, BESIDE)]
    assert files(tmp_path / "run") == wanted


def test_a_working_folder_that_is_gone_is_one_line(tmp_path: pathlib.Path) -> None:
    gone = "cannot start recording: FileNotFoundError: the working folder is gone, and "
    assert run(tmp_path / "run", "gone") == ("None\ndone\n", [f"{gone}run is below it"])
    # The command, of a program and of a module.
    program = tmp_path / "program.py"
    program.write_text("print('ran')")
    remove = 'mkdir "$RUN"; cd "$RUN"; rmdir "$RUN"; "$@"'
    for arguments in ([program], ["-o", tmp_path / "out", program], ["-m", "this"]):
        ran = subprocess.run(
            ["sh", "-c", remove, "sh", sys.executable, "-m", "vramscope", "record", *arguments],
            env={
                **os.environ,
                "RUN": str(tmp_path / "run"),
                "PYTHONPATH": os.pathsep.join(map(str, [HERE.parent, HERE / "stand_in"])),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        is_module = arguments[0] == "-m"
        assert ran.stdout.startswith("The Zen of Python" if is_module else "ran\n")
        assert ran.stderr.startswith(gone) == (arguments[0] != "-o"), ran.stderr
