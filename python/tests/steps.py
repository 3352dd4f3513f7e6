"""Reads the steps of a workflow or of an action, in the form that those of this project have."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess


@dataclasses.dataclass
class Step:
    """A step that runs commands, or another action."""

    name: str
    id: str
    #: The commands; empty for another action.
    run: str
    env: dict[str, str]
    #: The inputs of another action.
    given: dict[str, str]

    def start(
        self, work: pathlib.Path, environ: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Runs the commands as GitHub does with ``shell: bash``."""
        assert "${{" not in self.run, "a value becomes part of a command only by a variable"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.run],
            cwd=work,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def steps(path: pathlib.Path) -> list[Step]:
    """The steps of a file."""
    text = path.read_text(encoding="utf-8")
    begin = re.search(r"^( *)steps:\n", text, re.MULTILINE)
    assert begin is not None
    indent = len(begin[1]) + 2
    found = []
    for step in re.split(rf"^ {{{indent}}}- ", text[begin.end() :], flags=re.MULTILINE)[1:]:
        inner, deeper = " " * (indent + 2), " " * (indent + 4)
        run = re.search(rf"^{inner}run: (?:\|\n((?:{deeper}.*\n|\n)+)|(.+))", step, re.MULTILINE)
        identity = re.search(rf"^{inner}id: (.+)$", step, re.MULTILINE)
        assert run is not None or "uses: " in step, step
        commands = "" if run is None else _unindented(run[1]) if run[1] else run[2] + "\n"
        found.append(
            Step(
                name=step.splitlines()[0].removeprefix("name: "),
                id="" if identity is None else identity[1],
                run=commands,
                env=_mapping(step, "env", inner, deeper),
                given=_mapping(step, "with", inner, deeper),
            )
        )
    return found


def evaluated(text: str, values: dict[str, str]) -> str:
    """A text with the values of its expressions. A context has nothing for an unknown name."""
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values.get(found[1], ""), text)


def _mapping(step: str, name: str, inner: str, deeper: str) -> dict[str, str]:
    found = re.search(rf"^{inner}{name}:\n((?:{deeper}.*\n)+)", step, re.MULTILINE)
    pairs = re.findall(rf"^{deeper}([\w-]+): (.+)$", found[1], re.MULTILINE) if found else []
    return {key: value.strip('"') for key, value in pairs}


def _unindented(block: str) -> str:
    lines = block.splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[indent:] for line in lines).rstrip() + "\n"
