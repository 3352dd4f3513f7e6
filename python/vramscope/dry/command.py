"""The command ``vramscope dry-run``, which is ``python -m vramscope dry-run`` too."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Any

from .. import _vramscope
from ..recorder.command import RUNS, Parser, default_folder, positive, without_empty
from .largest import Search
from .run import NotRun, Outcome, Program, run

#: The exit status of a program that cannot be run here.
NOT_RUN = 2
#: Seconds between two lines of progress where standard error is no terminal.
BETWEEN_LINES = 30.0


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
    add("--gpus", type=positive, default=1, metavar="N", help="how many of them (default 1)")
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
                raise SystemExit(_find_largest(search, program, folder, is_json))
            with _Progress(options.steps) as progress:
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
        gpus=options.gpus,
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


def _search(parser: Parser, text: str) -> Search:
    try:
        return Search.parse(text)
    except ValueError as error:
        parser.error(f"--largest {error}")


def _find_largest(search: Search, program: Program, folder: pathlib.Path, is_json: bool) -> int:
    """Runs the program with several values of an option, and tells the largest that fits."""

    tries: list[dict[str, Any]] = []

    def fits(value: int) -> bool:
        own = dataclasses.replace(program, words=search.words(program.words, value))
        output = folder / f"{search.name}_{value}"
        # What the program writes would hide the rows.
        with tempfile.TemporaryFile() as written, _Progress(program.steps) as progress:
            number = written.fileno()
            outcome = run(own, output, out=number, err=number, tell=progress.tell)
            written.seek(0)
            lines = written.read().decode(errors="replace").strip().splitlines()
        dry = _dry(outcome)
        if dry is None or (outcome.status and dry["outcome"] == "fits"):
            last = f": {lines[-1]}" if lines else ""
            raise NotRun(
                f"with {search.name} {value} the program ended with status {outcome.status}, and "
                f"not for memory{last}"
            )
        tries.append({"value": value, "active_bytes": dry["active_bytes"], "text": dry["text"]})
        told(f"  {search.name} {value:<6} {_outcome_words(dry)}")
        return bool(dry["outcome"] == "fits")

    def told(text: str) -> None:
        if not is_json:
            print(text, flush=True)

    told(f"{search.name} on {program.gpu}, each value run:")
    largest = search.run(fits)
    is_ignored = len(tries) > 1 and len({one["active_bytes"] for one in tries}) == 1
    if is_json:
        found = {"schema": "vramscope.largest/1", "name": search.name, "largest": largest}
        print(json.dumps({**found, "changes_peak": not is_ignored, "tries": tries}, indent=2))
    elif largest is None:
        print(f"no {search.name} from {search.least} on fits")
    else:
        bound = ", the end of the range" if largest == search.most else ""
        print(f"largest {search.name} that fits: {largest}{bound}")
    if is_ignored:
        told(f"each value has the same peak: the program may not use {search.name}")
    return 1 if largest is None else 0


def _dry(outcome: Outcome) -> Any:
    """The record of a dry run of what was recorded; ``None`` if nothing was."""
    if not outcome.snapshots:
        return None
    paths = [str(path) for path in outcome.snapshots]
    told = subprocess.run(
        [sys.executable, "-m", "vramscope", "diagnose", "--format", "json", *paths],
        capture_output=True,
        check=False,
    )
    return json.loads(told.stdout).get("dry")


def _outcome_words(dry: dict[str, Any]) -> str:
    if dry["outcome"] == "fits":
        return f"fits, peak {_vramscope.bytes_text(dry['active_bytes'])}"
    return str(dry["text"].partition(": ")[2])


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


class _Progress:
    """Tells of a long run: in place on a terminal, else a line now and then."""

    def __init__(self, wanted: int | None) -> None:
        self._wanted = wanted
        self._is_terminal = sys.stderr.isatty()
        self._told_at = 0.0
        self._is_open = False

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            sys.stderr.write("\r\x1b[K")

    def tell(self, progress: dict[str, Any] | None, seconds: float) -> None:
        """Tells how far the program is."""
        between = 1.0 if self._is_terminal else BETWEEN_LINES
        if seconds - self._told_at < between:
            return
        self._told_at = seconds
        line = f"dry run: {seconds:.0f} s, {self._words(progress, seconds)}"
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{line[:100]}")
            self._is_open = True
        else:
            print(f"vramscope: {line}", file=sys.stderr)
        sys.stderr.flush()

    def _words(self, progress: dict[str, Any] | None, seconds: float) -> str:
        if progress is None:
            return "no step yet. Ctrl-C ends it with an answer"
        steps = progress["steps"]
        reserved = _vramscope.bytes_text(progress["reserved_bytes"])
        if self._wanted is None:
            return f"step {steps}, {reserved} reserved. Ctrl-C ends it with an answer"
        left = max(self._wanted - steps, 0) * seconds / max(steps, 1)
        return f"step {steps} of {self._wanted}, {reserved} reserved, about {left:.0f} s left"
