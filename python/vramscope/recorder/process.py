"""What this process is: its role, its command line, and where its dumps go below a command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

from .ranks import is_in_job

#: The process that runs ``vramscope record --``, for those below it.
PARENT_VARIABLE = "VRAMSCOPE_RECORD_PARENT"
#: The most characters of a role. A program may set a title of any length.
MAX_ROLE = 80


def role() -> str:
    """What the process calls itself: its title (``VLLM::EngineCore``), else its name in
    ``multiprocessing``, else the name of its program."""
    return (title(_words(), command()) or _name_of_child() or _program())[:MAX_ROLE]


def command() -> list[str]:
    """The command line of this process. Of a child of ``multiprocessing``, that of its parent: the
    child has its arguments, and a command line that says nothing."""
    # From Python 3.10 on with what belongs to Python.
    own = list(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv])
    is_child = any(word.startswith("from multiprocessing.") for word in own)
    return [sys.executable, *sys.argv] if is_child else own


def _words() -> list[str]:
    """The command line of this process as the system shows it now."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")
    except OSError:
        return [""]


def title(shown: list[str], command: list[str]) -> str | None:
    """The title that a program has written over its command line, as ``setproctitle`` does."""
    # It has no end within, and nothing but zeros behind it.
    is_command = shown[0] == command[0] or os.path.basename(shown[0]).startswith("python")
    return None if is_command or any(shown[1:]) else shown[0].strip() or None


def _name_of_child() -> str | None:
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return None
    return str(process.current_process().name)


def _program() -> str:
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name.removesuffix(".__main__"))
    name = os.path.basename(sys.argv[0] if sys.argv else "")
    # Code of the command line, or of standard input.
    return "python" if name in ("", "-", "-c") else name


def place() -> Callable[[], str]:
    """Tells where dumps of this process go below the folder of a command.

    Those of the command itself and of the ranks of a job go into the folder. Other processes are no
    ranks, which are compared with each other: each has a folder of its own, named once.
    """
    name = re.sub(r"[^a-zA-Z0-9_.]+", "-", role()).strip("-.") or "python"
    own = f"{name}_{os.getpid()}"
    is_command = os.environ.get(PARENT_VARIABLE) == str(os.getppid())
    # A process may join its job after its first use of a GPU.
    return lambda: "" if is_command or is_in_job() else own


def at_end(call: Callable[[], None]) -> None:
    """Calls at the end of a child of ``multiprocessing``, too: before Python 3.13 a forked one ends
    without the functions of ``atexit``."""
    process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, call, exitpriority=0)
