"""Dry runs of scripts, and what vramscope says of their recordings."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import shlex
import subprocess
from collections.abc import Sequence
from typing import Any

#: Exit codes of a command that has answered: done, and an expression of ``--fail-on`` holds.
ANSWERED = (0, 1)
#: The call stacks that a comment shows.
STACKS = "6"
#: An expression that compares with the base: its amount has a sign.
RELATIVE = re.compile(r"[<>]=?\s*[+-]")


@dataclasses.dataclass(frozen=True)
class Script:
    """A line of the input ``script``."""

    name: str
    #: The words of ``vramscope dry-run``.
    words: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> Script:
        named = re.fullmatch(r"(\w[\w .-]*):\s+(.+)", line)
        name, words = named.groups() if named else (line, line)
        return cls(name, tuple(shlex.split(words)))

    def is_new(self, base: pathlib.Path, branch: pathlib.Path) -> bool:
        """Whether it names a file that only the branch has: the base cannot run it."""
        return any((branch / w).is_file() and not (base / w).exists() for w in self.words)


@dataclasses.dataclass(frozen=True)
class Run:
    """A dry run of a script in one of the checkouts."""

    status: int
    #: What ``vramscope dry-run --format json`` says; ``None`` if nothing was recorded.
    answer: dict[str, Any] | None
    #: Why nothing was recorded.
    reason: str = ""

    @property
    def dry(self) -> dict[str, Any] | None:
        return None if self.answer is None else self.answer["dry"]

    @property
    def runs_out(self) -> bool:
        return self.dry is not None and self.dry["outcome"] == "runs_out"

    @property
    def failure(self) -> str | None:
        """What ended the script, if that was neither its end nor memory."""
        if self.dry is None:
            return self.reason
        if self.status == 0 or self.runs_out:
            return None
        if self.dry["outcome"] == "ended":
            return str(self.dry["text"].partition(": ")[2])
        return f"ended with status {self.status}"


@dataclasses.dataclass(frozen=True)
class Program:
    """The program vramscope, and the options of its dry runs."""

    path: str
    options: tuple[str, ...]

    def dry_run(self, script: Script, checkout: pathlib.Path, output: pathlib.Path) -> Run:
        """Runs a script in a checkout. Its recordings go into the folder ``output``."""
        command = [self.path, "dry-run", "--format", "json", *self.options, "-o", str(output)]
        lines = []
        with output.with_suffix(".json").open("w+", encoding="utf-8") as answer:
            with subprocess.Popen(
                [*command, *script.words],
                cwd=checkout,
                stdout=answer,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as process:
                assert process.stderr is not None
                for line in process.stderr:
                    print(line, end="", flush=True)
                    lines.append(line.strip())
            answer.seek(0)
            text = answer.read()
        told = json.loads(text) if text.strip() else None
        return Run(process.returncode, told, "" if told else why_nothing(lines))

    def ask(self, folder: pathlib.Path, *words: str) -> str:
        """What a command prints about the recordings in a folder."""
        ended = subprocess.run(
            [self.path, *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=False
        )
        if ended.returncode not in ANSWERED:
            ended.check_returncode()
        return ended.stdout

    def checks(self, folder: pathlib.Path, is_compared: bool, expressions: Sequence[str]) -> Any:
        """The records of expressions: of both sides, or of the branch alone."""
        words = ["diff", "base", "branch"] if is_compared else ["diagnose", "branch"]
        words += [word for one in expressions for word in ("--fail-on", one)]
        return json.loads(self.ask(folder, *words, "--format", "json"))["checks"]

    def changes(self, folder: pathlib.Path) -> str:
        """The Markdown of what changed, without its heading."""
        text = self.ask(folder, "diff", "base", "branch", "--limit", STACKS, "--format", "markdown")
        return text.partition("\n\n")[2].strip()

    def phases(self, folder: pathlib.Path, dry: dict[str, Any]) -> list[list[int]]:
        """The peaks of the phases of each step, in bytes."""
        words = ["steps", dry["path"], "--device", str(dry["device"]), "--format", "json"]
        steps = json.loads(self.ask(folder, *words))["steps"]
        return [[phase["peak_bytes"] for phase in step["phases"]] for step in steps]


def why_nothing(lines: Sequence[str]) -> str:
    """Why nothing was recorded, from what the program and the dry run wrote."""
    prefix = "vramscope dry-run: "
    own = next((line[len(prefix) :] for line in reversed(lines) if line.startswith(prefix)), "")
    others = [line for line in lines if line and not line.startswith("vramscope")]
    # The last line of a traceback says more than the status.
    return others[-1] if others and (own.startswith("the program ended") or not own) else own
