"""Runs the scripts of base and branch without a GPU, and writes the comment.

The inputs of the action are in ``INPUT_...``. ``FOLDER`` has the checkout of the base and the
installed vramscope; recordings, reports and texts go there.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

from runs import RELATIVE, Program, Run, Script
from words import Compared, comment, head

#: GitHub takes comments of at most 65,536 characters. A link is still to come.
LONGEST = 60_000


class Failed(Exception):
    """The action cannot go on, and why."""


def lines_of(name: str) -> list[str]:
    """The lines of an input, without comments."""
    lines = (line.strip() for line in os.environ[name].splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def program() -> Program:
    """The installed vramscope, with the options of all dry runs."""
    own = pathlib.Path(os.environ["FOLDER"], "venv/bin/vramscope")
    path = str(own) if own.exists() else shutil.which("vramscope")
    if path is None:
        raise Failed("The input vramscope is empty, and no vramscope is on the path.")
    values = {name: os.environ[f"INPUT_{name.upper()}"] for name in ("gpu", "memory", "steps")}
    options = [word for name, value in values.items() if value for word in (f"--{name}", value)]
    return Program(path, (*options, "--python", os.environ["INPUT_PYTHON"]))


def install(checkout: pathlib.Path) -> str | None:
    """Installs what the scripts of a checkout need. Returns why that failed."""
    commands = os.environ["INPUT_INSTALL"]
    if not commands.strip():
        return None
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", commands]
    status = subprocess.run(shell, cwd=checkout, check=False).returncode
    return f"the input install ended with status {status}" if status else None


def run_all(
    program: Program, scripts: Sequence[Script], checkout: pathlib.Path, side: str
) -> list[Run]:
    """Runs scripts in a checkout, one after the other."""
    if not scripts:
        return []
    print(f"::group::Install for the {side}", flush=True)
    failure = install(checkout)
    print("::endgroup::", flush=True)
    if failure is not None:
        return [Run(1, None, failure) for _ in scripts]
    runs = []
    for script in scripts:
        output = folder_of(script) / side
        output.mkdir(parents=True)
        print(f"::group::{script.name} of the {side}", flush=True)
        runs.append(program.dry_run(script, checkout, output))
        print("::endgroup::", flush=True)
    return runs


def folder_of(script: Script) -> pathlib.Path:
    """The folder of the recordings of both sides."""
    return pathlib.Path(os.environ["FOLDER"], "recordings", slug(script.name))


def slug(text: str) -> str:
    """A text as the name of a file."""
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def compare(program: Program, script: Script, base: Run | None, branch: Run) -> Compared:
    """What is told about a script."""
    folder = folder_of(script)
    found = Compared(script.name, base, branch)
    is_compared = base is not None and base.dry is not None
    if branch.dry is None:
        return found
    expressions = lines_of("INPUT_FAIL_ON")
    if not is_compared:
        found.unchecked = [one for one in expressions if RELATIVE.search(one)]
        expressions = [one for one in expressions if one not in found.unchecked]
    if expressions:
        checks = program.checks(folder, is_compared, expressions)
        found.holding = [check for check in checks if check["holds"]]
    found.phases = [program.phases(folder, branch.dry)]
    sides = ["branch"]
    if base is not None and base.dry is not None:
        found.phases.insert(0, program.phases(folder, base.dry))
        found.changes = program.changes(folder)
        sides.insert(0, "base")
    report = pathlib.Path(os.environ["FOLDER"], "reports", f"{folder.name}.html")
    report.parent.mkdir(exist_ok=True)
    program.ask(folder, "export", *sides, "--as", "html", "-o", str(report))
    return found


def main() -> None:
    """Runs, compares, and writes texts and outputs."""
    scripts = [Script.parse(line) for line in lines_of("INPUT_SCRIPT")]
    if len({slug(script.name) for script in scripts}) != len(scripts) or not scripts:
        raise Failed("The input script needs at least one line, and each line its own name.")
    folder = pathlib.Path(os.environ["FOLDER"])
    checkouts = {"base": folder / "base", "branch": pathlib.Path(os.environ["GITHUB_WORKSPACE"])}
    own = program()
    known = [script for script in scripts if not script.is_new(*checkouts.values())]
    # The branch comes last: later steps of the job have what it installed.
    bases = dict(zip(known, run_all(own, known, checkouts["base"], "base")))
    branches = run_all(own, scripts, checkouts["branch"], "branch")
    found = [compare(own, *each) for each in zip(scripts, map(bases.get, scripts), branches)]
    title = os.environ["INPUT_TITLE"]
    marker = f"<!-- vramscope: {slug(title)} -->"
    top = head(title, found, os.environ["BASE_COMMIT"])
    details = [text for one in found if (text := one.details())]
    (folder / "summary.md").write_text("\n\n".join([top, *details]) + "\n", encoding="utf-8")
    text = comment([marker, top, *details], LONGEST)
    (folder / "comment.md").write_text(text, encoding="utf-8")
    outputs = {
        "failed": str(any(one.failures() for one in found)).lower(),
        "comment": folder / "comment.md",
        "summary": folder / "summary.md",
        "reports": folder / "reports",
        "artifact": slug(title),
    }
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in outputs.items())


if __name__ == "__main__":
    try:
        main()
    except (Failed, ValueError, subprocess.CalledProcessError) as error:
        print(f"::error::{error}")
        sys.exit(1)
