"""The program ``vramscope``, as a console script and as ``python -m vramscope``."""

from __future__ import annotations

import os
import shutil
import signal
import sys


def main() -> None:
    """Runs the program with the arguments of this process, and ends with its exit code."""
    if sys.argv[1:2] == ["record"]:
        # In Python alone: it runs inside of a program that needs nothing else.
        from .recorder import command

        command.main(sys.argv[2:])
        return
    from . import _vramscope

    # Python's handler would only take note until the program returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = _vramscope.main([_own_path(), *sys.argv[1:]])
    sys.exit(status)


def _own_path() -> str:
    """The program by whose path the MCP server calls it."""
    if os.path.basename(sys.argv[0]) != "__main__.py":
        return sys.argv[0]
    return shutil.which("vramscope", path=os.path.dirname(sys.executable)) or sys.argv[0]
