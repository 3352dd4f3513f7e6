"""The names of the package, and what importing it costs."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

PACKAGE = pathlib.Path(__file__).parents[1]


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE)
    return done.stdout.strip()


def test_dir_has_the_public_names_alone() -> None:
    names = run(
        "import vramscope; print(dir(vramscope) == sorted(vramscope.__all__), *dir(vramscope))"
    )
    assert names == (
        "True DryRun Export Holders ReadError Recorder Run Snapshot VramscopeError __version__ "
        "dry_run export_parquet holders open open_run record show"
    )


def test_an_import_loads_no_other_module() -> None:
    code = (
        "import sys; before = set(sys.modules); import vramscope; print(*set(sys.modules) - before)"
    )
    assert run(code) in ("vramscope", "vramscope __future__", "__future__ vramscope")


def test_recording_loads_no_reader() -> None:
    code = "import sys, vramscope; vramscope.record; print('vramscope.reader' in sys.modules)"
    assert run(code) == "False"


def test_an_unknown_name_is_an_attribute_error() -> None:
    code = "import vramscope\ntry: vramscope.opne\nexcept AttributeError as error: print(error)"
    assert run(code) == "module 'vramscope' has no attribute 'opne'"


def test_the_version_is_that_of_the_crates() -> None:
    manifest = (PACKAGE.parent / "Cargo.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r'^version = "(.+)"$', manifest, re.MULTILINE)
    assert run("import vramscope; print(vramscope.__version__)") == version
