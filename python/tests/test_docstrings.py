"""The examples of docstrings run, in a folder with the files that they name.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it.
"""

from __future__ import annotations

import doctest
import gzip
import importlib
import pathlib
import re
import shutil
import sys
import textwrap

import pytest

import vramscope

ROOT = pathlib.Path(__file__).parents[2]
RECORDED = ROOT / "test_data" / "recorded"
MODULES = ("answer", "reader.run", "reader.snapshot")

#: What asks more of the examples of the package than this test has.
NEEDS_MORE = {
    "dry_run": "a PyTorch",
    "holders": "a PyTorch",
    "show": "a notebook",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    snapshot = gzip.decompress((RECORDED / "oom_expandable.pickle.gz").read_bytes())
    for path in ("rank0.pickle", "runs/42/exit/rank0_memory_snapshot.pickle"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(snapshot)
    shutil.copytree(RECORDED / "ranks_fsdp", tmp_path / "ranks_fsdp")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", MODULES)
def test_examples_show_what_they_print(name: str) -> None:
    module = importlib.import_module(f"vramscope.{name}")
    # `open` of an example is that of Python, and not of the module.
    names = {"vramscope": vramscope, "open": open}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    tests = doctest.DocTestFinder(exclude_empty=True).find(module, globs=names)
    failed = [test.name for test in tests if runner.run(test).failed]
    assert runner.tries > 0 and failed == []


def test_the_examples_of_the_package_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "python" / "tests" / "stand_in")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    blocks = re.findall(r"\n\n((?: {4}.+\n)+)", vramscope.__doc__ or "")
    names = {"vramscope": vramscope, "train": lambda: None}
    run = 0
    for block in blocks:
        called = set(re.findall(r"vramscope\.(\w+)", block))
        assert called <= set(vramscope.__all__)
        if not called & NEEDS_MORE.keys():
            exec(textwrap.dedent(block), names)
            run += 1
    assert (run, len(blocks)) == (3, 6)
