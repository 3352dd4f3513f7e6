"""Every block of code of every document runs, or a comment in the document says why not.

- ``console``: each line after ``$ `` is a command, and what follows is all that it prints. A last
  line ``...`` stands for more lines. With ``UPDATE_DOCUMENTS=1`` the test writes what is printed.
- ``sh``: the commands end with exit code 0.
- ``python``: the blocks of a document run in order, in one process, with a stand-in for PyTorch.
- ``json``, ``yaml`` and other kinds, and blocks without a kind, only show something.

``<!-- not run: REASON -->`` stands on the line above a block, ``<!-- KIND blocks are not run:
REASON -->`` below the title. ``VRAMSCOPE`` names the program.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TEST_DATA = ROOT / "test_data"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")
UPDATE = "UPDATE_DOCUMENTS" in os.environ

FOLDERS = ["", "docs", "docs/ci", "python", "web/viewer", "bench", ".github/actions/memory"]
FOLDERS += ["crates/vramscope-cli/skills/vramscope"]
FOLDERS += ["scripts/standin", "scripts/twins", "crates/vramscope-fuzz"]
FOLDERS += [f"crates/vramscope-{name}" for name in ("trace", "inference", "snapshot", "report")]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).glob("*.md")
)
RUN = ("console", "sh", "python")
#: Kinds that only show something: a text of another program, or of another language.
SHOWN = {"", "text", "json", "yaml", "js", "jsx", "html", "css", "sql", "toml"}
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
NOT_RUN = re.compile(r"^<!-- (\w+) blocks are not run: ([^\n]+) -->$", re.MULTILINE)

#: Programs that install, build or ask other machines: a block with one needs a reason.
NEVER_RUN = ("cargo", "rustup", "npm", "npx", "node", "pip", "pip3", "uv", "ssh", "curl", "gh")

#: Recordings by the names that documents give them.
RECORDINGS = {
    "oom_except.pickle": "documents/oom_except.pickle.gz",
    "gpt_leak.pickle": "recorded/gpt_leak.pickle.gz",
    "held/gpt_leak.pickle": "recorded/gpt_leak.pickle.gz",
    "rank0.pickle": "documents/oom_except.pickle.gz",
    "engine.pickle": "serving/engine_one_pool.pickle.gz",
    "engine_own_pools.pickle": "serving/engine_own_pools.pickle.gz",
    "serve.pickle": "serving/serve.pickle.gz",
    "main.pickle": "twins/gpt_flash.pickle.gz",
    "branch.pickle": "twins/gpt_flash_checkpoint_half.pickle.gz",
    "runs/42/oom_1/rank0_memory_snapshot.pickle": "documents/oom_except.pickle.gz",
    "runs/42/exit/rank0_memory_snapshot.pickle": "recorded/t26/gpt_small.pickle.gz",
    **{
        f"ranks_fsdp/rank{rank}_memory_snapshot.pickle": (
            f"recorded/ranks_fsdp/rank{rank}_memory_snapshot.pickle.gz"
        )
        for rank in (2, 3)
    },
}

#: Runs the blocks that come as JSON, in one namespace.
RUN_PYTHON = """
import json, sys, traceback
names = {"__name__": "__main__", "train": lambda: None}
for name in ("vramscope", "polars", "pyarrow", "duckdb", "subprocess"):
    names[name] = __import__(name)
for number, block in json.load(sys.stdin):
    try:
        exec(compile(block, f"block of line {number}", "exec"), names)
    except BaseException:
        traceback.print_exc()
        sys.exit(f"the block of line {number} failed:\\n{block}")
"""


@dataclasses.dataclass
class Block:
    """A block of code."""

    kind: str
    text: str
    line: int
    reason: str | None


def blocks(document: str) -> list[Block]:
    text = (ROOT / document).read_text(encoding="utf-8")
    not_run = dict(NOT_RUN.findall(text))
    return [
        Block(
            found["kind"],
            found["text"],
            text.count("\n", 0, found.start("text")),
            found["reason"] or not_run.get(found["kind"]),
        )
        for found in BLOCK.finditer(text)
    ]


def to_run(document: str, kind: str) -> list[Block]:
    return [b for b in blocks(document) if b.kind == kind and b.reason is None]


def with_blocks(kind: str) -> list[str]:
    return [document for document in DOCUMENTS if to_run(document, kind)]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the files that documents name."""
    for name, source in RECORDINGS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(TEST_DATA / source) as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file)
    shutil.copytree(TEST_DATA / "beside", tmp_path / "runs/7")
    shutil.copy(TEST_DATA / "holders/gpt_leak.vramscope.json", tmp_path / "held")
    shutil.copy(TEST_DATA / "serving/serve.vramscope.json", tmp_path)
    for name in ("test_data", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "vramscope"
    program.write_text(f'#!/bin/sh\nexec {shutil.which(PROGRAM) or PROGRAM} "$@"\n')
    program.chmod(0o755)
    for name in NEVER_RUN:
        stub = tmp_path / "bin" / name
        stub.write_text(f"#!/bin/sh\necho {name} is not run from documents >&2\nexit 1\n")
        stub.chmod(0o755)
    return tmp_path


def run(
    command: list[str], folder: pathlib.Path, text: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100", **environ},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_kind_of_block_is_known() -> None:
    for document in DOCUMENTS:
        unknown = {block.kind for block in blocks(document)} - set(RUN) - SHOWN
        assert unknown == set(), document


def answers(text: str) -> list[tuple[str, str]]:
    """The commands of a console, with what they print."""
    parts = re.split(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n", text, flags=re.MULTILINE)
    assert parts[0] == "", "a console begins with a command"
    return list(zip(parts[1::2], parts[2::2]))


def answered(command: str, documented: str, folder: pathlib.Path) -> str:
    """What the command prints, cut where the document cuts it."""
    # Errors are shown where they come. Exit codes are no part of what a console shows.
    process = run(["bash", "-c", f"({command}) 2>&1"], folder)
    said = "".join(f"{line.rstrip()}\n" for line in process.stdout.splitlines())
    said = said.removesuffix("\n\n") + "\n" if said.endswith("\n\n") else said
    shown = documented.splitlines(keepends=True)
    if shown[-1:] == ["...\n"]:
        return "".join([*said.splitlines(keepends=True)[: len(shown) - 1], "...\n"])
    return said


@pytest.mark.skipif(os.name == "nt", reason="commands of a POSIX shell")
@pytest.mark.parametrize("document", with_blocks("console"))
def test_commands_print_what_the_document_shows(document: str, folder: pathlib.Path) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    for block in to_run(document, "console"):
        pairs = [
            (command, shown, answered(command, shown, folder))
            for command, shown in answers(block.text)
        ]
        if UPDATE:
            new = "".join(f"$ {command}\n{said}" for command, _, said in pairs)
            text = text.replace(f"```console\n{block.text}```", f"```console\n{new}```")
            continue
        for command, shown, said in pairs:
            assert shown == said, f"{document}: {command}\nUPDATE_DOCUMENTS=1 rewrites it"
    if UPDATE:
        path.write_text(text, encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="commands of a POSIX shell")
@pytest.mark.parametrize("document", with_blocks("sh"))
def test_commands_succeed(document: str, folder: pathlib.Path) -> None:
    for block in to_run(document, "sh"):
        process = run(["bash", "-e", "-o", "pipefail", "-c", block.text], folder)
        assert process.returncode == 0, f"{document}:{block.line}: {process.stderr}\n{block.text}"


@pytest.mark.parametrize("document", with_blocks("python"))
def test_programs_run(document: str, folder: pathlib.Path) -> None:
    texts = [(block.line, block.text) for block in to_run(document, "python")]
    paths = [str(ROOT / "python/tests/stand_in"), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, paths))
    process = run([sys.executable, "-c", RUN_PYTHON], folder, json.dumps(texts), PYTHONPATH=path)
    assert process.returncode == 0, f"{document}: {process.stderr}"


def test_the_program_tells_its_reference(tmp_path: pathlib.Path) -> None:
    script = [sys.executable, str(ROOT / "scripts/reference.py")]
    command = [*script, shutil.which(PROGRAM) or PROGRAM, str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    headings = {
        path.stem: set(re.findall(r"^#+ `?([^`\n]+)`?$", path.read_text(), re.MULTILINE))
        for path in tmp_path.iterdir()
    }
    assert {"growth", "reserved", "oom"} <= headings["findings"]
    assert {"lost_free", "few_steps"} <= headings["warnings"]
    assert {"checkpoint:all", "batch:K"} <= headings["changes"]
    assert {"diagnose", "record", "completions"} <= headings["commands"]
    assert {"ranks", "peaks"} <= headings["tables"]
    # Each record that the reference of JSON links to has its heading.
    text = (tmp_path / "json.md").read_text()
    anchors = {heading.lower().replace(" ", "-") for heading in headings["json"]}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors
