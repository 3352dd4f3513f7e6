"""The program ``vramscope``, as a console script and as ``python -m vramscope``."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the program with the arguments of this process, and ends with its exit code."""
    if sys.argv[1:2] == ["record"]:
        # In Python alone: it runs inside of a program that needs nothing else.
        from .recorder import command

        command.main(sys.argv[2:])
        return
    if sys.argv[1:2] == ["dry-run"]:
        from .dry import command as dry_run

        dry_run.main(sys.argv[2:])
        return
    if sys.argv[1:2] == ["fix"]:
        from .fix import command as fix

        fix.main(sys.argv[2:])
        return
    from . import _vramscope

    # Python's handler would only take note until the program returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = _vramscope.main(["vramscope", *sys.argv[1:]], _again())
    sys.exit(status)


def _again() -> list[str] | None:
    """The command line that runs the program of this process again, as the MCP server does for
    each call: with the modules of this process, whatever it was started by."""
    if not sys.executable:
        return None
    begin = f"import sys; sys.path[:] = {sys.path!a}"
    code = f"{begin}; from vramscope.program import main; main()"
    return [sys.executable, "-c", code]
