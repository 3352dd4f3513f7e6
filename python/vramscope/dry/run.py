"""Starts a program as a dry run, and waits for its end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Callable

from .. import _vramscope
from ..hook import python_path
from ..recorder.descendants import descendants
from ..recorder.files import snapshots_below
from . import lone_rank
from .ending import SHOW_STACKS, adopt_orphans, end_all, send
from .settings import LIBRARY_VARIABLE, NOTES_VARIABLE, VARIABLE, Settings

#: The exit status for a program that cannot be run here.
NOT_RUN = 2
#: Seconds that a program has to end after it was asked to.
PATIENCE = 20.0
#: Seconds that processes have which the program has left.
LEFT_OVER = 1.0
#: Seconds after an interrupt until the program is ended: a terminal has interrupted it, too.
AFTER_INTERRUPT = 5.0
#: Asks a Python where its PyTorch is.
_PROBE = (
    "import importlib.util as u, json, sys;"
    "s = u.find_spec('torch');"
    "print(json.dumps([list(sys.version_info[:2]), s and s.origin]))"
)


class NotRun(Exception):
    """The program cannot be run here: what is missing, and what to do."""


@dataclasses.dataclass
class Program:
    """A program and the device that it runs on."""

    #: The script, or the module, or the command, and its arguments.
    words: list[str]
    #: ``script``, ``module`` or ``command``.
    kind: str = "script"
    gpu: str = "H100"
    #: The memory of the device in bytes; ``None`` for that of the GPU.
    memory: int | None = None
    #: How many such devices the machine has.
    gpus: int = 1
    #: The Python with PyTorch; ``None`` to look for one.
    python: str | None = None
    values: str = "small"
    #: The ranks of the job of which one rank runs alone; ``None`` to run what the program starts.
    ranks: int | None = None
    rank: int = 0
    #: In a search: what the first rank has sent, pickled. A later one gets it (``handover.py``).
    received: bytes | None = None
    is_without_weights: bool = False
    steps: int | None = None
    #: Seconds after which the program is ended.
    seconds: float = 1800.0
    #: Arguments of :func:`vramscope.record`.
    record: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Outcome:
    """How a dry run ended."""

    #: The exit status of the program.
    status: int
    #: What was recorded: the snapshots of this run.
    snapshots: list[pathlib.Path]
    #: Whether the time limit or an interrupt ended it: ``limit``, ``interrupt`` or ``None``.
    ended_by: str | None
    #: The stacks of processes that did not end by themselves.
    stuck: str | None
    #: The first error that ended a process, with its line.
    error: str | None
    #: Whether the rank that runs alone has begun a process group.
    is_job: bool
    #: What it sent to others, pickled.
    sent: bytes


def run(
    program: Program,
    output: pathlib.Path,
    *,
    out: int | None = None,
    err: int | None = None,
    tell: Callable[[dict[str, Any] | None, float], None] = lambda progress, seconds: None,
) -> Outcome:
    """Runs a program. ``tell`` is called about once a second.

    Args:
        program: The program.
        output: Where recordings go. What is there stays.
        out: A file descriptor for what the program writes to standard output.
        err: The same for standard error.
        tell: Gets the progress of the process that is furthest, and the seconds since the start.

    Raises:
        NotRun: Something that a dry run needs is missing.
    """
    if program.kind == "command" and shutil.which(program.words[0]) is None:
        raise NotRun(f"cannot find {program.words[0]}: expected a command")
    python = find_python(program)
    packages = _packages(python)
    _check_output(output)
    before = set(snapshots_below(output))
    with _folder() as folder:
        settings, variables = _prepare(program, packages, output, folder)
        command = _command(program, python)
        adopt_orphans()
        try:
            child = subprocess.Popen(command, env=variables, stdout=out, stderr=err)
        except OSError as error:
            raise NotRun(f"cannot start {command[0]}: {error.strerror}") from None
        waiting = _Waiting(child, settings, program.seconds, tell)
        with waiting.passing_signals():
            ended_by = waiting.wait()
            end_all(LEFT_OVER)
        stuck = _stuck(settings)
        failed = settings.error.read_text(encoding="utf-8") if settings.error.exists() else None
        is_job = settings.joined.exists()
        sent = settings.sent.read_bytes() if settings.sent.exists() else b""
    status = child.returncode if child.returncode >= 0 else 128 - child.returncode
    snapshots = [path for path in snapshots_below(output) if path not in before]
    status = {None: status, "limit": 0, "interrupt": 128 + signal.SIGINT}[ended_by]
    return Outcome(status, snapshots, ended_by, stuck, failed, is_job, sent)


class _Waiting:
    """Waits for the end of a program."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        settings: Settings,
        seconds: float,
        tell: Callable[[dict[str, Any] | None, float], None],
    ) -> None:
        self._child = child
        self._settings = settings
        self._seconds = seconds
        self._tell = tell
        self._ended_by: str | None = None

    def passing_signals(self) -> _Passing:
        """Passes on what a terminal or a scheduler sends to this process."""
        return _Passing(self._interrupted)

    def _interrupted(self) -> None:
        self._ended_by = self._ended_by or "interrupt"

    def wait(self) -> str | None:
        """Waits. Returns what has ended the program, if it did not end by itself."""
        begin = time.monotonic()
        while True:
            try:
                self._child.wait(timeout=1.0)
                return self._ended_by
            except subprocess.TimeoutExpired:
                pass
            seconds = time.monotonic() - begin
            if self._ended_by is None and seconds >= self._seconds:
                self._ended_by = "limit"
            if self._ended_by is not None:
                self._end()
                return self._ended_by
            self._tell(furthest(self._settings), seconds)

    def _end(self) -> None:
        """Lets the program write what it has, and ends it."""
        if self._ended_by == "interrupt":
            try:
                self._child.wait(timeout=AFTER_INTERRUPT)
                return
            except subprocess.TimeoutExpired:
                pass
        self._settings.ended.write_text(str(self._ended_by), encoding="utf-8")
        send(descendants(os.getpid()), signal.SIGTERM)
        try:
            self._child.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            send(descendants(os.getpid()), SHOW_STACKS)
            time.sleep(0.5)
            self._child.kill()
            self._child.wait()


class _Passing:
    """SIGINT and SIGTERM end the program, not this process: the answer is still to be told."""

    def __init__(self, interrupted: Callable[[], None]) -> None:
        self._interrupted = interrupted
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, lambda *_: self._interrupted())

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def find_python(program: Program) -> str:
    """The Python that has PyTorch.

    Raises:
        NotRun: None has it.
    """
    if program.python is not None:
        found = shutil.which(program.python)
        if found is None:
            raise NotRun(f"cannot find {program.python}: expected a Python with PyTorch")
        return found
    candidates = [*_of_command(program), sys.executable, "python", "python3"]
    tried = list(dict.fromkeys(filter(None, map(shutil.which, candidates))))
    for python in tried:
        origin = _origin(python)
        if origin is not None:
            return python
    raise NotRun(
        f"no PyTorch in {', '.join(tried) or 'any Python'}: run pip install torch, or name a "
        "Python that has it with --python"
    )


def _of_command(program: Program) -> Iterator[str]:
    """The Python of a console script, from its first line."""
    path = shutil.which(program.words[0]) if program.kind == "command" else None
    if path is None:
        return
    with open(path, "rb") as file:
        first = file.readline(4096)
    if first.startswith(b"#!"):
        words = first[2:].decode(errors="replace").split()
        yield words[-1]
    else:
        yield path


def _origin(python: str) -> str | None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    asked = subprocess.run(
        [python, "-c", _PROBE], capture_output=True, text=True, env=environment, check=False
    )
    try:
        version, origin = json.loads(asked.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None
    if origin is not None and tuple(version) < (3, 9):
        raise NotRun(f"{python} is Python {version[0]}.{version[1]}: a dry run needs 3.9 or later")
    return None if origin is None else str(origin)


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """The folder of the run's own files, which is removed at the end."""
    try:
        with tempfile.TemporaryDirectory(prefix="vramscope-dry-") as folder:
            yield folder
    except OSError as error:
        raise NotRun(f"cannot write into {tempfile.gettempdir()}: {error.strerror}") from None


def _check_output(output: pathlib.Path) -> None:
    """Finds before the run that nothing could be written after it."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotRun(f"cannot make {output}: {error.strerror}") from None
    if not os.access(output, os.W_OK | os.X_OK):
        raise NotRun(f"cannot write into {output}: no permission")


def _packages(python: str) -> pathlib.Path:
    """The folder that PyTorch is installed in."""
    origin = _origin(python)
    if origin is None:
        raise NotRun(
            f"no PyTorch in {python}: run {python} -m pip install torch, or name a Python that "
            "has it with --python"
        )
    return pathlib.Path(origin).parent.parent


def _cache(folder: str) -> pathlib.Path:
    """The folder of shims: the user's cache, or else the folder of this run."""
    own = os.environ.get("XDG_CACHE_HOME")
    try:
        path = (pathlib.Path(own) if own else pathlib.Path.home() / ".cache") / "vramscope" / "dry"
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return pathlib.Path(folder, "shims")
    return path if os.access(path, os.W_OK) else pathlib.Path(folder, "shims")


def environment(program: Program, output: pathlib.Path | None, folder: str) -> dict[str, str]:
    """The environment of a process with the GPU.

    Args:
        program: The GPU, and the Python that has PyTorch.
        output: Where recordings go; ``None`` if the program records itself.
        folder: The folder of the run's own files.

    Raises:
        NotRun: Something that a dry run needs is missing.
    """
    return _prepare(program, _packages(find_python(program)), output, folder)[1]


def _prepare(
    program: Program, packages: pathlib.Path, output: pathlib.Path | None, folder: str
) -> tuple[Settings, dict[str, str]]:
    """What the processes of the run are told."""
    core = str(_vramscope.__file__)
    try:
        gpu = json.loads(_vramscope.gpu(program.gpu))
        shims = json.loads(_vramscope.dry_shims(str(packages), core, str(_cache(folder))))
    except ValueError as error:
        raise NotRun(str(error)) from None
    if program.memory is not None:
        gpu["total_bytes"] = program.memory
    settings = Settings(
        folder=folder,
        output=None if output is None else os.path.abspath(output),
        core=core,
        shims=shims["files"],
        own_runtimes=[refused["file"] for refused in shims["refused"]],
        gpu=program.gpu,
        memory_bytes=gpu["total_bytes"],
        capability=gpu["capability"],
        cuda=shims["cuda"],
        values=program.values,
        is_lone_rank=program.ranks is not None,
        is_without_weights=program.is_without_weights,
        steps=program.steps,
        record=program.record,
    )
    if program.received is not None:
        settings.received.write_bytes(program.received)
    job = {} if program.ranks is None else lone_rank.environment(program.rank, program.ranks)
    library = {
        "gpu": gpu,
        "devices": max(program.gpus, int(job.get("LOCAL_WORLD_SIZE", "1"))),
        "cuda": shims["cuda"] or 12080,
        "cudnn": shims["cudnn"] and shims["cudnn"][0],
        "unknown": str(settings.unknown),
        # Processes of the run share the memory of a device.
        "shared": os.path.join(folder, "memory"),
    }
    if shims["cudnn"]:
        library["cudnn_version"] = shims["cudnn"][1]
    for name in ("kernels", "triton"):
        pathlib.Path(folder, name).mkdir()
    variables = {
        # Defaults that a program may set otherwise.
        "CUDA_MODULE_LOADING": "LAZY",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        # The folder of the driver, for what Triton links.
        "TRITON_LIBCUDA_PATH": os.path.dirname(shims["files"][0]),
        # A filled cache changes what is reserved.
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
        **os.environ,
        **job,
        # Kernels that are compiled here are empty: a GPU must never find them.
        "PYTORCH_KERNEL_CACHE_PATH": os.path.join(folder, "kernels"),
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        VARIABLE: settings.write(),
        LIBRARY_VARIABLE: json.dumps(library),
        NOTES_VARIABLE: str(settings.notes),
        "PYTHONPATH": python_path(),
    }
    # Devices are those of the dry run, whatever the machine has.
    variables.pop("CUDA_VISIBLE_DEVICES", None)
    return settings, variables


def _command(program: Program, python: str) -> list[str]:
    if program.kind == "command":
        return program.words
    return [python, *(["-m"] if program.kind == "module" else []), *program.words]


def furthest(settings: Settings) -> dict[str, Any] | None:
    """The progress of the process with most steps; ``None`` before the first step."""
    found = []
    for path in settings.progress.glob("[0-9]*"):
        if path.suffix:
            continue
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return max(found, key=lambda one: one["steps"], default=None)


#: Lines of stacks that are not of the program.
_OF_PACKAGES = r'File "[^"]*(site-packages|dist-packages|/lib/python3|/vramscope/dry/|<frozen)'


def _stuck(settings: Settings) -> str | None:
    texts = []
    for path in sorted(settings.stuck.glob("*")):
        text = path.read_text(encoding="utf-8", errors="replace")
        # The frames of the program, without those of packages.
        lines = [line for line in text.splitlines() if not re.search(_OF_PACKAGES, line)]
        if any(line.startswith("  File ") for line in lines):
            texts.append("\n".join(lines))
    return "\n".join(texts) or None
