"""The command ``vramscope fix``, which is ``python -m vramscope fix`` too."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

from .. import _vramscope
from ..dry.run import NotRun, Program
from ..recorder.command import Parser, default_folder, positive, without_empty

#: The exit status of a program that cannot be run here.
NOT_RUN = 2


def _parser() -> Parser:
    parser = Parser(
        prog="vramscope fix",
        usage="vramscope fix [OPTION...] SCRIPT [ARGUMENT...] | SNAPSHOT [SCRIPT [ARGUMENT...]]",
        description=(
            "Runs a program of PyTorch without a GPU, makes the best change in a copy of its "
            "source, and runs that: does it go through, and what does it need? Nothing is written "
            "without --write. Of a snapshot, the program is what was recorded. On Linux."
        ),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--apply", metavar="CHANGE", help="this change: checkpoint:all. Several with commas")
    add("--plan", action="store_true", help="if no single change does it, sets of them")
    add("--write", action="store_true", help="write the change into the source")
    add("--force", action="store_true", help="even if the file has changes without a commit")
    add("--gpu", metavar="NAME", help="the GPU: H100, A100, L4, ... (default H100)")
    add("--memory", metavar="SIZE", help="the memory of the device, such as 24GiB")
    add(
        "--python", metavar="P", help="the Python with PyTorch. Without it: this one, or the PATH's"
    )
    add("-o", "--output", metavar="DIR", help="where recordings go. Without it, a new folder")
    add("--steps", type=positive, metavar="N", help="end after N steps of the optimizer")
    add("--seconds", type=positive, default=1800, metavar="N", help="end after N seconds each")
    add("--no-weights", action="store_true", help="from_pretrained reads no weights")
    add("--format", choices=("text", "json"), default="text", help="of the answer")
    add("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def main(arguments: list[str]) -> None:
    """Looks for a change, runs it, and tells what was found."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.program:
        parser.error("expected a script or a snapshot")
    try:
        from .fix import Fix
    except ImportError as error:
        if error.name != "libcst":
            raise
        print("vramscope fix: needs LibCST: run pip install 'vramscope[fix]'", file=sys.stderr)
        raise SystemExit(NOT_RUN) from None
    folder = pathlib.Path(options.output) if options.output else default_folder()
    with without_empty(folder, is_own=not options.output):
        try:
            fix = Fix(_program(parser, options), options.program, folder)
            status = fix.run(
                apply=options.apply, plan=options.plan, write=options.write, force=options.force
            )
        except NotRun as error:
            print(f"vramscope fix: {error}", file=sys.stderr)
            raise SystemExit(NOT_RUN) from None
    if options.format == "json":
        print(json.dumps(fix.record(), indent=1))
    else:
        print(fix.words(arguments), end="")
    raise SystemExit(status)


def _program(parser: Parser, options: argparse.Namespace) -> Program:
    memory = None
    if options.memory is not None:
        try:
            memory = _vramscope.memory_size(options.memory)
        except ValueError as error:
            parser.error(str(error))
    return Program(
        [],
        gpu=options.gpu or "H100",
        memory=memory,
        python=options.python,
        is_without_weights=options.no_weights,
        steps=options.steps,
        seconds=options.seconds,
    )
