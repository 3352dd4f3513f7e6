"""Dry runs of tests: pytest starts once more, in a process that has the GPU."""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import sys
import tempfile
from typing import Callable

from .run import NotRun, Program, environment
from .settings import VARIABLE

__all__ = ["NotRun", "start"]


def start(gpu: str, release: Callable[[], None]) -> None:
    """Starts this process anew with the GPU. Does nothing in a process that has it.

    ``release`` is called just before, to give back standard output.

    Raises:
        NotRun: Something that a dry run needs is missing.
    """
    if VARIABLE in os.environ:
        # Workers of pytest-xdist end before the process that has started them.
        if os.environ.get("VRAMSCOPE_DRY_OWNER") == str(os.getpid()):
            own = pathlib.Path(os.environ[VARIABLE]).parent
            atexit.register(shutil.rmtree, own, ignore_errors=True)
        return
    folder = tempfile.mkdtemp(prefix="vramscope-dry-")
    try:
        program = Program([], gpu=gpu, python=sys.executable)
        variables = environment(program, None, folder)
        variables["VRAMSCOPE_DRY_OWNER"] = str(os.getpid())
        release()
        sys.stdout.flush()
        os.execve(sys.executable, _own_command(), variables)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _own_command() -> list[str]:
    """The command line of this process."""
    if hasattr(sys, "orig_argv"):
        return [sys.executable, *sys.orig_argv[1:]]
    return [sys.executable, "-m", "pytest", *sys.argv[1:]]
