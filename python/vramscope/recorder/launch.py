"""Runs a command whose Python processes are recorded: ``vramscope record -- COMMAND``."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal as signals
import subprocess
import sys
from typing import Any

from ..hook import python_path
from . import dump
from .by_environment import OPTIONS_VARIABLE, VARIABLE
from .files import remove_left_over, snapshots_below
from .process import PARENT_VARIABLE
from .ranks import rank_and_world
from .teller import wrote

#: Signals that are passed on to the command.
PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")


def why_not(command: list[str]) -> str | None:
    """Why a command cannot be started; ``None`` if it can."""
    name = command[0]
    if shutil.which(name) is not None:
        return None
    words = " ".join(command[:2] if len(command) == 2 else [name, "..."][: len(command)])
    if not os.path.isfile(name):
        return f"cannot find {name}: expected a command after --"
    if name.endswith(".py"):
        return f"{name} is no command: leave out --, or write -- python {words}"
    if os.access(name, os.X_OK):
        return f"{name} is not on the PATH: write -- ./{words}"
    return f"{name} is no command: run chmod +x {name}, or write -- bash {words}"


def run(command: list[str], folder: pathlib.Path, options: dict[str, Any]) -> int:
    """Runs a command, and tells at its end what was recorded. Returns its exit status as a shell
    does: 128 and the number of a signal that ended it.

    Args:
        command: The command and its arguments.
        folder: Where recordings go, as it was named.
        options: Arguments of :func:`vramscope.record`.

    Raises:
        OSError: The command cannot be started.
    """
    base = pathlib.Path(os.path.abspath(folder))
    before = set(snapshots_below(base))
    variables = {
        **os.environ,
        VARIABLE: str(base),
        OPTIONS_VARIABLE: json.dumps(options),
        PARENT_VARIABLE: str(os.getpid()),
        "PYTHONPATH": python_path(),
    }
    wait = _wait if hasattr(signals, "sigwaitinfo") else _wait_simply
    status = wait(command, variables)
    for place in {base, *(path for path in _folders(base))}:
        remove_left_over(place)
    written = [path for path in snapshots_below(base) if path not in before]
    # Of several such commands in a job, the first one tells.
    if rank_and_world()[0] == 0:
        print(f"vramscope: {_told(written, base, folder)}", file=sys.stderr)
    return status if status >= 0 else 128 - status


def _folders(base: pathlib.Path) -> list[pathlib.Path]:
    with contextlib.suppress(OSError):
        return [path for path in base.iterdir() if path.is_dir() and not path.is_symlink()]
    return []


def _told(written: list[pathlib.Path], base: pathlib.Path, folder: pathlib.Path) -> str:
    dumps = list(dict.fromkeys(folder / path.parent.relative_to(base) for path in written))
    if dumps:
        return wrote(dumps, folder)
    return (
        "nothing was recorded: no Python process has used a GPU, or each was killed before its end"
    )


def _wait(command: list[str], variables: dict[str, str]) -> int:
    """Runs a command, and passes on the signals that a process sends.

    Those of a terminal reach the command without help: it is in the same group.
    """
    passed_on = {getattr(signals, name) for name in PASSED_ON}
    # Ignored, it would say nothing of the end.
    signals.signal(signals.SIGCHLD, signals.SIG_DFL)
    mask = signals.pthread_sigmask(signals.SIG_BLOCK, {*passed_on, signals.SIGCHLD})
    child = subprocess.Popen(
        command,
        env=variables,
        preexec_fn=lambda: signals.pthread_sigmask(signals.SIG_SETMASK, mask),
    )
    while child.poll() is None:
        arrived = signals.sigwaitinfo({*passed_on, signals.SIGCHLD})
        # The code is above 0 if it comes from the kernel.
        if arrived.si_signo not in passed_on or arrived.si_code > 0:
            continue
        # A launcher would end by the request for a snapshot.
        if arrived.si_signo != signals.SIGUSR2 or not dump.send_below(os.getpid()):
            child.send_signal(arrived.si_signo)
    return child.returncode


def _wait_simply(command: list[str], variables: dict[str, str]) -> int:
    """Runs a command where the sender of a signal is not known: a terminal interrupts it itself."""
    child = subprocess.Popen(command, env=variables)
    signals.signal(signals.SIGINT, lambda *_: None)
    signals.signal(signals.SIGTERM, lambda *_: child.terminate())
    return child.wait()
