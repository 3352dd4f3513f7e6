"""The installed package: the program, and the first example of the README.

``VRAMSCOPE`` names the console script that the wheel installed.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from importlib import metadata
from urllib.request import url2pathname

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SNAPSHOT = ROOT / "test_data" / "recorded" / "oom_expandable.pickle.gz"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")


def run(*command: object, folder: pathlib.Path) -> subprocess.CompletedProcess:
    # Without the path of the tests' own packages: the wheel needs none.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, command)], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def test_the_program_tells_its_version(tmp_path: pathlib.Path) -> None:
    told = run(PROGRAM, "--version", folder=tmp_path)
    assert (told.returncode, told.stdout) == (0, f"vramscope {metadata.version('vramscope')}\n")


def test_the_package_is_the_program(tmp_path: pathlib.Path) -> None:
    told = run(sys.executable, "-m", "vramscope", "--version", folder=tmp_path)
    assert (told.returncode, told.stdout) == (0, f"vramscope {metadata.version('vramscope')}\n")
    told = run(sys.executable, "-m", "vramscope", "summary", SNAPSHOT, folder=tmp_path)
    assert told.stdout == run(PROGRAM, "summary", SNAPSHOT, folder=tmp_path).stdout
    assert run(sys.executable, "-m", "vramscope", "nonsense", folder=tmp_path).returncode == 64


@pytest.mark.parametrize("program", [[PROGRAM], [sys.executable, "-m", "vramscope"]])
def test_the_program_records_another(program: list[str], tmp_path: pathlib.Path) -> None:
    # The tests of the recorder have a PyTorch. Here is none, so the program runs unrecorded.
    (tmp_path / "train.py").write_text("import sys; print(sys.argv); sys.exit(3)\n")
    told = run(*program, "record", "-o", "run", "train.py", "--steps", "2", folder=tmp_path)
    assert (told.returncode, told.stdout) == (3, "['train.py', '--steps', '2']\n")
    assert "cannot start recording: ModuleNotFoundError" in told.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows who handles a signal")
def test_a_recorded_process_is_asked_and_diagnosed(tmp_path: pathlib.Path) -> None:
    code = (
        "import os, time, torch\n"
        "held = torch.empty(1 << 20, device='cuda')\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(600)\n"
    )
    (tmp_path / "train.py").write_text(code)
    command = [sys.executable, "-m", "vramscope", "record", "-o", "run", "--"]
    recorded = subprocess.Popen(
        [*command, sys.executable, "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python/tests/stand_in")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert recorded.stdout is not None
        told = run(PROGRAM, "record", "--dump", recorded.stdout.readline().strip(), folder=tmp_path)
    finally:
        recorded.terminate()
        recorded.communicate(timeout=60)
    snapshot = tmp_path / "run/signal_1/rank0_memory_snapshot.pickle"
    assert (told.returncode, told.stderr) == (0, f"vramscope: wrote {snapshot}\n")
    assert told.stdout == run(PROGRAM, "diagnose", snapshot, folder=tmp_path).stdout
    assert "1.00 MiB" in told.stdout


@pytest.mark.parametrize("group", ["vllm.general_plugins", "sglang.srt.plugins"])
def test_servers_find_their_plugin(group: str) -> None:
    found = metadata.entry_points(group=group)
    (plugin,) = [point for point in found if point.name == "vramscope"]
    # Without the variable it does nothing.
    assert plugin.load()() is None


def test_the_wheel_has_the_licenses_of_all_that_it_contains() -> None:
    names = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD_PARTY.txt"]
    shipped = {path.name: path for path in metadata.files("vramscope") or [] if path.name in names}
    assert sorted(shipped) == names
    assert sorted(metadata.metadata("vramscope").get_all("License-File") or []) == names
    for name, path in shipped.items():
        assert path.read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8")


def wheel_file() -> pathlib.Path:
    told = json.loads(metadata.distribution("vramscope").read_text("direct_url.json") or "")
    return pathlib.Path(url2pathname(told["url"].removeprefix("file://")))


def test_the_wheel_names_no_folder_of_the_machine() -> None:
    places = [f"{ROOT}{os.sep}{name}" for name in ("crates", "python", "target", "web")]
    folders = [place.encode() for place in [*places, f"{pathlib.Path.home()}{os.sep}."]]
    with zipfile.ZipFile(wheel_file()) as archive:
        # The gate's module reads the page from the checkout. `cargo xtask release wheel` checks
        # that of a release.
        names = [name for name in archive.namelist() if not name.endswith((".so", ".pyd"))]
        assert len(names) >= 20
        for name in names:
            assert not [folder for folder in folders if folder in archive.read(name)], name


def test_the_page_of_the_package_has_what_people_look_for() -> None:
    told = metadata.metadata("vramscope")
    assert told["Author"] == "the vramscope authors"
    assert told["Description-Content-Type"].startswith("text/markdown")
    found = told.get_all("Classifier")
    pythons = {f"Programming Language :: Python :: 3.{minor}" for minor in range(9, 15)}
    assert {one for one in found if "Python :: 3." in one} == pythons
    for start in ("Operating System ::", "Topic ::", "Intended Audience ::"):
        assert any(one.startswith(start) for one in found), start
    # A link to a file of the checkout leads nowhere on the page of an index.
    links = re.findall(r"\]\(([^)]+)\)", told.get_payload())
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_manual_page_is_installed() -> None:
    page = pathlib.Path(sys.prefix) / "share/man/man1/vramscope.1"
    text = page.read_text(encoding="utf-8")
    assert f'"vramscope {metadata.version("vramscope")}"' in text
    assert '.SH "vramscope diagnose"' in text


@pytest.fixture
def index(tmp_path: pathlib.Path) -> str:
    """The address of an index with the wheel, as PyPI would have it."""
    folder = tmp_path / "simple" / "vramscope"
    folder.mkdir(parents=True)
    wheel = pathlib.Path(shutil.copy(wheel_file(), folder))
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>\n')
    return (tmp_path / "simple").as_uri()


def from_index(*command: object, folder: pathlib.Path, **environ: str) -> str:
    """The output of a command that finds packages in no other place."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PIPX_", "VIRTUAL_ENV"))
    }
    environ = {**kept, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", **environ}
    run = subprocess.run(
        [*map(str, command)], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_pip_installs_it_from_an_index(index: str, tmp_path: pathlib.Path) -> None:
    from_index(sys.executable, "-m", "venv", "venv", folder=tmp_path)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [programs / "python", "-m", "pip", "install", "--no-cache-dir", "--index-url", index]
    from_index(*pip, "vramscope", folder=tmp_path, PYTHONPATH="")
    told = from_index(programs / "vramscope", "diagnose", SNAPSHOT, folder=tmp_path, PYTHONPATH="")
    assert told.startswith("error[oom]: ")


def test_uvx_runs_it_from_an_index(index: str, tmp_path: pathlib.Path) -> None:
    uvx = [sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable]
    uvx += ["--no-python-downloads", "--cache-dir", tmp_path / "cache", "--index-url", index]
    told = from_index(*uvx, "vramscope", "diagnose", SNAPSHOT, folder=tmp_path)
    assert told.startswith("error[oom]: ")


def test_pipx_runs_it_from_an_index(index: str, tmp_path: pathlib.Path) -> None:
    pipx = [sys.executable, "-m", "pipx", "run", "--backend", "uv", "--index-url", index]
    told = from_index(
        *pipx, "vramscope", "diagnose", SNAPSHOT, folder=tmp_path, PIPX_HOME=str(tmp_path / "pipx")
    )
    assert told.startswith("error[oom]: ")


def test_the_program_reads_and_keeps_its_exit_codes(tmp_path: pathlib.Path) -> None:
    told = run(PROGRAM, "diagnose", SNAPSHOT, folder=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("error[oom]: out of memory in backward of step 2")
    assert run(PROGRAM, "summary", "absent", folder=tmp_path).returncode == 2
    assert run(PROGRAM, "nonsense", folder=tmp_path).returncode == 64


def test_the_first_example_of_the_readme_runs(tmp_path: pathlib.Path) -> None:
    text = (ROOT / "README.md").read_text()
    (install, example) = re.findall(r"```(?:sh|python)\n(.*?)```", text, re.DOTALL)[:2]
    assert install == "pip install vramscope\n"
    program = tmp_path / "program.py"
    program.write_text("def train():\n    print('trained')\n\n" + example)
    told = run(sys.executable, program, folder=tmp_path)
    assert (told.returncode, told.stdout) == (0, "trained\n")


def test_a_program_that_only_records_does_not_load_the_reader(tmp_path: pathlib.Path) -> None:
    code = "import sys, vramscope; vramscope.record; print('vramscope._vramscope' in sys.modules)"
    told = run(sys.executable, "-c", code, folder=tmp_path)
    assert (told.stdout, told.stderr) == ("False\n", "")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_ends_a_command(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "rank0.pickle"
    os.mkfifo(pipe)
    with subprocess.Popen([PROGRAM, "summary", str(pipe)]) as process:
        try:
            # Opens when the program has opened its end: it then waits in Rust.
            with pipe.open("wb"):
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=20) == -signal.SIGINT
        finally:
            process.kill()
