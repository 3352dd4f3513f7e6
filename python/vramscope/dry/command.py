"""The command ``vramscope dry-run``, which is ``python -m vramscope dry-run`` too."""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys

from .. import _vramscope
from ..recorder.command import LAUNCHERS, RUNS, Parser, default_folder, positive, without_empty
from .cluster import Range, find_fewest
from .largest import Search, find_largest
from .progress import Progress
from .run import NOT_RUN, NotRun, Outcome, Program, run

#: Launchers that ``python -m`` runs.
LAUNCHER_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
)


def _parser() -> Parser:
    parser = Parser(
        prog="vramscope dry-run",
        usage="vramscope dry-run [OPTION...] SCRIPT | -m MODULE | -- COMMAND [ARGUMENT...]",
        description=(
            "Runs a program of PyTorch without a GPU: with PyTorch's own allocator, autograd and "
            "optimizers, on Linux. Kernels do nothing. Says whether the program fits, what holds "
            "the memory, and what to change."
        ),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--gpu", default="H100", metavar="NAME", help="the GPU: H100, A100, L4, ... (default H100)")
    add(
        "--memory", metavar="SIZE", help="the memory of the device, such as 24GiB, for another size"
    )
    add(
        "--gpus",
        type=_gpus,
        default=1,
        metavar="N|A..B",
        help="how many of them (default 1), or the fewest in a range that hold a job: 1..512. "
        "{gpus} in the program's arguments is that number",
    )
    add(
        "--python", metavar="P", help="the Python with PyTorch. Without it: this one, or the PATH's"
    )
    add("-o", "--output", metavar="DIR", help=f"where recordings go. Without it, into {RUNS}/")
    add("-m", dest="is_module", action="store_true", help="run a module, as in python -m")
    add("--steps", type=positive, metavar="N", help="end after N steps of the optimizer")
    add(
        "--seconds",
        type=positive,
        default=1800,
        metavar="N",
        help="end after N seconds (default 1800)",
    )
    add("--ranks", type=positive, metavar="N", help="run one rank of a job of N, alone")
    add("--rank", type=_rank, default=0, metavar="R", help="which one, from 0 (default 0)")
    add(
        "--no-weights",
        action="store_true",
        help="from_pretrained of transformers reads the configuration, no weights",
    )
    add(
        "--largest",
        metavar="NAME=LO..HI",
        help="the largest value of this option of the program that fits: batch_size=1..256",
    )
    add(
        "--values",
        choices=("off", "small", "full"),
        default="small",
        help="which tensors get true values: none, small ones, or all, which is slow",
    )
    add("--stacks", choices=("python", "all"), default="python", help="all: with frames of C++")
    add("--max-entries", type=positive, metavar="N", help="events to keep")
    add("--use-step", type=positive, metavar="N", help="note what the Nth step reads and writes")
    add("--no-source", action="store_true", help="no lines of source in the files")
    add("--no-holders", action="store_true", help="do not look for who holds the memory")
    add("--format", choices=("text", "json", "markdown"), default="text", help="of the answer")
    add(
        "--fail-on",
        action="append",
        default=[],
        metavar="EXPR",
        help="exit with 1 if it holds, such as 'oom' or 'peak>20GiB'. May be given several times",
    )
    add("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _rank(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number from 0 on")
    return int(text)


def _gpus(text: str) -> int | Range:
    try:
        return Range.parse(text) if ".." in text else positive(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: list[str]) -> None:
    """Runs a program dry, and tells what was found."""
    parser = _parser()
    options = parser.parse_args(arguments)
    program = _program(parser, options)
    folder = pathlib.Path(options.output) if options.output else default_folder()
    is_json = options.format == "json"
    with without_empty(folder, is_own=not options.output):
        # The answer alone goes to standard output if a script reads it.
        out = sys.stderr.fileno() if is_json else None
        try:
            if options.largest is not None:
                search = _search(parser, options.largest)
                raise SystemExit(find_largest(search, program, folder, is_json))
            if isinstance(options.gpus, Range):
                raise SystemExit(find_fewest(options.gpus, program, folder, is_json))
            with Progress(options.steps) as progress:
                outcome = run(program, folder, out=out, tell=progress.tell)
        except NotRun as error:
            print(f"vramscope dry-run: {error}", file=sys.stderr)
            raise SystemExit(NOT_RUN) from None
        try:
            status = _answer(outcome, folder, options)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of the answer has left. Nothing more is written at the exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = outcome.status
        raise SystemExit(status)


def _program(parser: Parser, options: argparse.Namespace) -> Program:
    words = list(options.program)
    kind = "module" if options.is_module else "script"
    if words[:1] == ["--"]:
        words, kind = words[1:], "command"
    if options.ranks is not None and options.rank >= options.ranks:
        parser.error(f"--rank {options.rank} is none of {options.ranks} ranks, from 0")
    is_range = isinstance(options.gpus, Range)
    if is_range and (options.ranks is not None or options.largest is not None):
        parser.error("--gpus A..B goes without --ranks and --largest")
    launcher = _launcher(kind, words)
    if is_range and launcher:
        parser.error(
            f"--gpus A..B runs ranks without {launcher}: expected the script that it starts"
        )
    if not words:
        parser.error("expected a program: a script, -m and a module, or -- and a command")
    if kind == "script" and not os.path.exists(words[0]):
        parser.error(f"cannot find {words[0]}: expected a script, or -- before a command")
    for expression in options.fail_on:
        try:
            _vramscope.check_expression(expression)
        except ValueError as error:
            parser.error(str(error))
    memory = None
    if options.memory is not None:
        try:
            memory = _vramscope.memory_size(options.memory)
        except ValueError as error:
            parser.error(str(error))
    return Program(
        words,
        kind,
        gpu=options.gpu,
        memory=memory,
        gpus=1 if is_range else options.gpus,
        python=options.python,
        values=options.values,
        ranks=options.ranks,
        rank=options.rank,
        is_without_weights=options.no_weights,
        steps=options.steps,
        seconds=options.seconds,
        record={
            "stacks": options.stacks,
            "max_entries": options.max_entries,
            "use_step": options.use_step,
            "source": not options.no_source,
            "holders": not options.no_holders,
        },
    )


def _launcher(kind: str, words: list[str]) -> str | None:
    """The launcher that a command line begins with, if it does: ``torchrun``, ``python -m ...``."""
    if kind == "script" or not words:
        return None
    if kind == "command" and words[1:2] == ["-m"]:
        words = words[2:]
    name = os.path.basename(words[0]) if words else ""
    return name if name in (*LAUNCHERS, *LAUNCHER_MODULES) else None


def _search(parser: Parser, text: str) -> Search:
    try:
        return Search.parse(text)
    except ValueError as error:
        parser.error(f"--largest {error}")


def _answer(outcome: Outcome, folder: pathlib.Path, options: argparse.Namespace) -> int:
    """Tells what was found. Returns the exit status."""
    sys.stdout.flush()
    if outcome.stuck is not None:
        print(f"the program did not end when it was asked to:\n{outcome.stuck}", file=sys.stderr)
    if not outcome.snapshots:
        print(f"vramscope dry-run: {_why_nothing(outcome)}", file=sys.stderr)
        return outcome.status
    paths = [str(path) for path in outcome.snapshots]
    checks = [word for expression in options.fail_on for word in ("--fail-on", expression)]
    arguments = ["vramscope", "diagnose", "--format", options.format, *checks, *paths]
    found = int(_vramscope.main(arguments, None))
    if outcome.status and outcome.ended_by is None and options.format == "text":
        print(f"the program ended with status {outcome.status}")
    if options.format == "text":
        print(f"recorded into {folder}/")
    return outcome.status or found


def _why_nothing(outcome: Outcome) -> str:
    if outcome.ended_by == "limit":
        return "nothing was recorded: the program did not end when the time limit asked it to"
    if outcome.ended_by == "interrupt":
        return "interrupted before the program used a GPU"
    if outcome.status > 128:
        number = outcome.status - 128
        perhaps = ": perhaps the memory of this machine ran out" if number == signal.SIGKILL else ""
        return f"the program was killed by signal {number}, and nothing was recorded{perhaps}"
    if outcome.status:
        return f"the program ended with status {outcome.status}, and nothing was recorded"
    return "the program did not use a GPU: nothing was moved to the device cuda"
