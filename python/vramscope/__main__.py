"""Runs a program and records its memory: ``python -m vramscope [-m] PROGRAM [ARGUMENT...]``.

The environment variable ``VRAMSCOPE_RECORD`` names the folder for the snapshots. Arguments and exit
status are the program's own.
"""

from __future__ import annotations

import os
import pathlib
import runpy
import sys

from .recorder import record

USAGE = "usage: VRAMSCOPE_RECORD=FOLDER python -m vramscope [-m] PROGRAM [ARGUMENT...]"
#: The exit status of wrong usage, as for the program ``vramscope``.
WRONG_USAGE = 64


def main(arguments: list[str]) -> None:
    """Runs a program under a recorder."""
    folder = os.environ.get("VRAMSCOPE_RECORD")
    is_module = arguments[:1] == ["-m"]
    program = arguments[1:] if is_module else arguments
    if not folder or not program:
        print(USAGE, file=sys.stderr)
        raise SystemExit(WRONG_USAGE)
    sys.argv = list(program)
    # What Python itself would put first.
    sys.path[0] = os.getcwd() if is_module else str(pathlib.Path(program[0]).resolve().parent)
    with record(folder):
        if is_module:
            runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
