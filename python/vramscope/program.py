"""The program ``vramscope``, as a console script."""

from __future__ import annotations

import signal
import sys

from . import _vramscope


def main() -> None:
    """Runs the program with the arguments of this process, and ends with its exit code."""
    # Python's handler would only take note until the program returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The MCP server calls the program by its first argument.
    status = _vramscope.main(sys.argv)
    sys.exit(status)
