"""Writes the parts of the reference that a program tells of itself, as Markdown.

`cargo xtask docs` and the build of the site call it with a built program and a folder. `web/site`
makes pages of them, beside those of docs/ and of the documents in crates/.
"""

from __future__ import annotations

import argparse
import pathlib
import re

from json_reference import ask, reference

FINDINGS = """\
# Findings

What vramscope claims about a recording: the name in answers, when it is said, what it does not see,
and what helps. `vramscope explain NAME` prints one. [What is inferred](inference.md) says what
makes a finding and its severity.
"""
WARNINGS = """\
# Warnings and errors

`vramscope explain NAME` prints one. A file that cannot be read is an error: it is `damaged` (a
snapshot that breaks off or is broken), `no_snapshot` (something else) or `unreadable` (it cannot be
opened or fetched). The error names what failed, where, and what was expected.
"""
BLIND_SPOTS = """\
## Blind spots

Gaps in a recording that can hide a fault. Their text says how to record without the gap.
"""
DEFECTS = """\
## Defects of a file

Each is a warning with its count and first place. Between a trace and its segments any of these but
`free_size`, `host_requests` and `reserved_below_zero` makes `active_bytes` and `allocated_bytes`
estimates.
"""
CHANGES = """\
# Changes of the program

What `vramscope what-if --apply` takes, and what `diagnose`, `info` and `diff` name. The error is
that of programs that were really changed: 95 of 100 are within it. [Predictions](predictions.md)
has the rules. `K` is a factor, `N` a number of parts, `FILE:LINE` a line of the program.
"""
TABLES = """\
# Tables and queries

The tables of a dataset (`vramscope export --as parquet`), and the named queries of `vramscope sql`.
"""
COMMANDS = """\
# Commands

What `vramscope help --all` and `vramscope COMMAND --help` print.
"""


def names(program: str) -> dict[str, list[str]]:
    """The names that have an explanation, by their kind."""
    found: dict[str, list[str]] = {}
    for line in ask(program, "explain", "--list").splitlines():
        kind, name, _ = re.split(r" {2,}", line, maxsplit=2)
        found.setdefault(kind, []).append(name)
    return found


def entries(program: str, found: list[str], level: str) -> str:
    """A section for each name: its heading is the name, so that its address is known."""
    sections = []
    for name in found:
        text = ask(program, "explain", name, "--format", "markdown")
        title, _, body = text.partition("\n\n")
        words = re.sub(r"^# (.*) \(`.*`\)$", r"\1", title)
        begin = "" if words == name else f"**{words}.** "
        sections.append(f"{level} `{name}`\n\n{begin}{body.strip()}\n")
    return "\n".join(sections)


def helps(program: str) -> str:
    """The manual, and the help of each command."""
    manual = ask(program, "help", "--all")
    listed = manual.partition("Commands:\n")[2].partition("\n\n")[0]
    commands = [name for name in re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE)]
    parts = [f"```text\n{manual.rstrip()}\n```\n"]
    for name in commands:
        parts.append(f"## {name}\n\n```text\n{ask(program, 'help', name).rstrip()}\n```\n")
    return "\n".join(parts)


def queries(program: str) -> str:
    """Each query with its question."""
    sections = []
    for line in ask(program, "sql").splitlines():
        name, question = re.split(r" {2,}", line, maxsplit=1)
        sql = ask(program, "sql", name).rstrip()
        sections.append(f"### {name}\n\n{question}\n\n```sql\n{sql}\n```\n")
    return "\n".join(sections)


def pages(program: str) -> dict[str, str]:
    """The pages by their names."""
    found = names(program)
    warnings = [
        *(WARNINGS, BLIND_SPOTS, entries(program, found["blind spot"], "###")),
        *(DEFECTS, entries(program, found["warning"], "###")),
    ]
    tables = [TABLES, "## Tables\n", ask(program, "sql", "--tables")]
    return {
        "commands": "\n".join([COMMANDS, helps(program)]),
        "json": reference(program),
        "findings": "\n".join([FINDINGS, entries(program, found["finding"], "##")]),
        "warnings": "\n".join(warnings),
        "changes": "\n".join([CHANGES, entries(program, found["change"], "##")]),
        "tables": "\n".join([*tables, "## Queries\n", queries(program)]),
    }


def main() -> None:
    """Writes all pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="the built program `vramscope`")
    parser.add_argument("folder", type=pathlib.Path, help="the folder of the pages")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(options.program).items():
        (options.folder / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
