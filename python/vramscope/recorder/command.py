"""The command ``vramscope record``, which is ``python -m vramscope record`` too.

It runs a program of Python in this process and records its memory. The program gets its own
arguments, and its exit status is that of the process. A command after ``--`` runs below this
process (:mod:`.launch`), and ``--dump`` asks a recorded process for a snapshot (:mod:`.dump`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import runpy
import shutil
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn

from . import dump, launch, main_module, record
from .ranks import job_name
from .teller import teller

#: The exit status of wrong usage, as for the program ``vramscope``.
WRONG_USAGE = 64
#: The exit status where the program is not there, as for Python.
NO_PROGRAM = 2
#: Launchers, which may be installed on another machine than this one.
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "srun", "mpirun", "vllm")
#: The folder of runs that have no folder of their own.
RUNS = "vramscope-runs"
USAGE = """vramscope record [OPTION...] [-m] PROGRAM [ARGUMENT...]
       vramscope record [OPTION...] -- COMMAND [ARGUMENT...]
       vramscope record --dump PID"""
#: What helps where a process is not recorded.
HOW_TO_RECORD = "a history begins with the recording, so start it by vramscope record -- COMMAND"
IMPORTING = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
#: Files of frames that are above those of the program.
ABOVE = {__file__, main_module.__file__, runpy.__file__, "<frozen runpy>", *IMPORTING}


class Parser(argparse.ArgumentParser):
    """Ends with :data:`WRONG_USAGE`, as the program ``vramscope`` does."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(WRONG_USAGE)


def _parser() -> Parser:
    parser = Parser(
        prog="vramscope record",
        usage=USAGE,
        description=(
            "Records the GPU memory of a program of Python, or of all Python processes that a "
            "command starts: vramscope record -o runs/42 -- torchrun --nproc-per-node 8 train.py. "
            "A snapshot is written when memory runs out, at the end, and on the signal USR2. All "
            "ranks of a job may share a folder."
        ),
        allow_abbrev=False,
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help=f"where snapshots go. Without it, into {RUNS}/ by the job's number or the time",
    )
    parser.add_argument(
        "-m", dest="is_module", action="store_true", help="PROGRAM is a module, as in python -m"
    )
    parser.add_argument(
        "--dump",
        type=positive,
        metavar="PID",
        help="ask a recorded process, or all of them below a process, for a snapshot now",
    )
    parser.add_argument(
        "--every", type=positive, metavar="N", help="a snapshot after each N steps, too"
    )
    parser.add_argument(
        "--states-every",
        type=positive,
        metavar="N",
        help="a line with the allocator's sums after each N steps",
    )
    parser.add_argument(
        "--keep",
        type=_count,
        default=3,
        metavar="N",
        help="how many snapshots of each kind to keep, or all (default 3)",
    )
    parser.add_argument(
        "--stacks",
        choices=("python", "all"),
        default="python",
        help="all: with the frames of C++, which make files much larger (default python)",
    )
    parser.add_argument(
        "--max-entries",
        type=positive,
        metavar="N",
        help="events to keep. Without it, by the host's free memory",
    )
    parser.add_argument(
        "--use-step",
        type=positive,
        metavar="N",
        help="note what the operations of the Nth step read and write",
    )
    parser.add_argument("--no-source", action="store_true", help="no lines of source in the files")
    parser.add_argument(
        "--no-holders", action="store_true", help="do not look for who holds the memory"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def positive(text: str) -> int:
    """A number from 1 on, of an argument."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number from 1 on")
    return number


def _count(text: str) -> int | None:
    return None if text == "all" else positive(text)


def main(arguments: list[str]) -> None:
    """Runs a program under a recorder."""
    parser = _parser()
    options = parser.parse_args(arguments)
    program, is_command = options.program, options.program[:1] == ["--"]
    if options.dump is not None:
        if program:
            parser.error("--dump takes no program")
        raise SystemExit(_dump(options.dump))
    if is_command:
        program = program[1:]
    if not program:
        parser.error("expected a command after --" if is_command else "expected a program")
    if is_command and options.is_module:
        parser.error("-m takes a module, and -- a command: expected one of them")
    name = program[0]
    why_not = None
    if is_command:
        why_not = launch.why_not(program)
    elif not options.is_module:
        why_not = _why_not(name)
    if why_not is not None:
        print(f"vramscope record: {why_not}", file=sys.stderr)
        raise SystemExit(NO_PROGRAM)
    folder = pathlib.Path(options.output) if options.output else default_folder()
    arguments_of_record = {
        "every": options.every,
        "states_every": options.states_every,
        "keep": options.keep,
        "stacks": options.stacks,
        "max_entries": options.max_entries,
        "source": not options.no_source,
        "holders": not options.no_holders,
        "use_step": options.use_step,
    }
    if is_command:
        with without_empty(folder, is_own=not options.output):
            try:
                raise SystemExit(launch.run(program, folder, arguments_of_record))
            except OSError as error:
                print(f"vramscope record: cannot start {name}: {error.strerror}", file=sys.stderr)
                raise SystemExit(NO_PROGRAM) from None
    recorder = record(folder, **arguments_of_record)
    sys.argv[:] = program
    if not getattr(sys.flags, "safe_path", False):
        # What Python itself would put first. A folder or an archive puts itself there.
        is_script = os.path.isfile(name) and not name.endswith((".zip", ".pyz"))
        first = os.curdir if options.is_module else os.path.dirname(os.path.realpath(name))
        # A working folder that is gone has no modules.
        with contextlib.suppress(FileNotFoundError):
            sys.path[:1] = [os.path.abspath(first)] if options.is_module or is_script else []
    with _told_at_the_end(), without_empty(recorder._base, is_own=not options.output), recorder:
        if options.is_module:
            main_module.run_module(name)
        else:
            main_module.run_script(name)


def _why_not(name: str) -> str | None:
    """Why a file is no program of Python; ``None`` if it may be one."""
    if os.path.exists(name):
        # What is read of a pipe would be gone.
        shell = _shell_of(name) if os.path.isfile(name) else None
        return shell and f"{name} is a script of {shell}: write vramscope record -- {shell} {name}"
    if os.path.basename(name).startswith("python"):
        return f"cannot find {name}: leave it out, the program runs in this Python"
    if shutil.which(name) is not None or name in LAUNCHERS:
        return f"{name} is a command: write vramscope record -- {name} ..."
    return f"cannot find {name}: expected a file of Python, or -m and a module"


def _shell_of(name: str) -> str | None:
    """The shell that the first line of a file names."""
    first = b""
    with contextlib.suppress(OSError), open(name, "rb") as file:
        first = file.readline(256)
    words = os.fsdecode(first).removeprefix("#!").split() if first.startswith(b"#!") else []
    return next((os.path.basename(word) for word in words if word.endswith("sh")), None)


def _dump(pid: int) -> int:
    """Asks for snapshots, and tells what they show. Returns the exit status."""
    problems: list[dump.NotDumped] = []
    try:
        written = dump.ask(pid, problems.append)
    except dump.NotDumped as error:
        written, problems = [], [error]
    for problem in problems:
        print(f"vramscope record: {problem}", file=sys.stderr)
    if not written and isinstance(problems[0], dump.NotRecorded):
        # Also from Python 3.14 on: code could be put into a process (`sys.remote_exec`), and would
        # find no history there.
        print(f"help: {HOW_TO_RECORD}", file=sys.stderr)
    for path in written:
        print(f"vramscope: wrote {path}", file=sys.stderr)
    status = 0
    if written:
        # Nothing else of this command needs the native part.
        from .. import _vramscope

        status = int(_vramscope.main(["vramscope", "diagnose", *written], None))
    return NO_PROGRAM if problems else status


def default_folder() -> pathlib.Path:
    """A folder for this run. All ranks of a job find the same one."""
    name, is_of_job = job_name()
    folder = pathlib.Path(RUNS) / name
    if is_of_job:
        return folder
    # Two programs may start in one second.
    for number in range(1, 1000):
        own = folder if number == 1 else folder.with_name(f"{name}_{number}")
        try:
            own.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError:
            # The recorder says so when it writes.
            break
        return own
    return folder


@contextlib.contextmanager
def without_empty(folder: pathlib.Path, is_own: bool) -> Iterator[None]:
    """Removes the folders of :func:`default_folder` at the end if nothing is in them."""
    pid = os.getpid()
    try:
        yield
    finally:
        if is_own and os.getpid() == pid:
            with contextlib.suppress(OSError):
                folder.rmdir()
                folder.parent.rmdir()


@contextlib.contextmanager
def _told_at_the_end() -> Iterator[None]:
    """Says at the end what was written: below the traceback, if there is one."""
    teller.waits = True
    pid = os.getpid()
    try:
        yield
    except SystemExit:
        # A forked process ends here, too. It has told nothing, and has nothing to tell.
        if os.getpid() == pid:
            teller.finish()
        raise
    except BaseException as error:
        _show_from_program(error, pid)
        raise
    if os.getpid() == pid:
        teller.finish()


def _show_from_program(error: BaseException, pid: int) -> None:
    """Lets the traceback begin at the program, and what was written be told below it."""
    shown = sys.excepthook

    def show(kind: type[BaseException], raised: BaseException, trace: TracebackType | None) -> Any:
        sys.excepthook = shown
        try:
            if raised is error:
                trace = _from_program(raised, trace)
                raised.__traceback__ = trace
            shown(kind, raised, trace)
        finally:
            if os.getpid() == pid:
                teller.finish()

    sys.excepthook = show


def _from_program(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    first = trace
    while first is not None and _is_above(first.tb_frame.f_code.co_filename):
        first = first.tb_next
    if first is None:
        if not isinstance(error, (SyntaxError, ImportError)):
            # No error of the program.
            return trace
        # Python says in one line that there is no such module.
        error.__suppress_context__, error.__cause__ = True, None
    return first


def _is_above(file: str) -> bool:
    # The console script, `python -m vramscope`, this module, and what runs the program.
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = (os.path.join(package, name) for name in ("__main__.py", "program.py"))
    return file in ABOVE or file in names or os.path.abspath(file) == _script


#: The script that Python runs: it is above the program. Read before the program's name replaces it.
_script = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
