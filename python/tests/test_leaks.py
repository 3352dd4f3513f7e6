"""``vramscope diagnose`` names the variable that holds a planted leak, however it was recorded.

Needs what ``test_holders.py`` needs. ``VRAMSCOPE`` may name the program; otherwise it is that of
the package.
"""

import functools
import os
import pathlib
import re
import subprocess

import pytest

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
PACKAGE = os.environ.get("VRAMSCOPE_PACKAGE")
pytestmark = pytest.mark.skipif(
    PYTHON is None or PACKAGE is None,
    reason="VRAMSCOPE_TORCH names no Python, or VRAMSCOPE_PACKAGE no package",
)
PROGRAMS = pathlib.Path(__file__).parent / "programs"

#: What holds the memory, by the kind of the leak: see ``programs/leaks.py``.
HOLDERS = {
    "global": r'global "KEPT" \(list of \d+\)',
    "local": r'local "kept" \(list of \d+\) of leak_local\(\)',
    "attribute": r"local logger\.history \(list of \d+\) of leak_attribute\(\)",
    "closure": r'local "seen" \(list of \d+\) of leak_closure\(\)',
    "exception": r'local "errors" \(list of \d+\) of leak_exception\(\)',
    "hook": r'local "features" \(list of \d+\) of leak_hook\(\)',
    "dict": r'local "table" \(dict of \d+\) of leak_dict\(\)',
}
FORMS = {
    "file": ["-m", "vramscope", "record", "-o", "RUN", str(PROGRAMS / "leaks.py")],
    "module": ["-m", "vramscope", "record", "-o", "RUN", "-m", "leaks"],
    "with": [str(PROGRAMS / "leaks.py")],
}


@functools.cache
def environ() -> dict[str, str]:
    paths = os.pathsep.join([str(PACKAGE), str(PROGRAMS)])
    return {**os.environ, "PYTHONPATH": paths, "FAKECUDA_CAPACITY_MB": "8500", "COLUMNS": "100"}


def recorded(run: pathlib.Path, form: str, *arguments: str, **more: str) -> tuple[int, str]:
    """Runs the program. Returns its exit status and errors."""
    named = [str(run) if one == "RUN" else one for one in FORMS[form]]
    done = subprocess.run(
        [str(PYTHON), *named, *arguments, *(["with"] if form == "with" else [])],
        env={**environ(), "RUN": str(run), **more},
        # The sources of the package are in the working folder.
        cwd=run.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stderr


def diagnosis(run: pathlib.Path) -> str:
    named = os.environ.get("VRAMSCOPE")
    program = [named] if named else [str(PYTHON), "-m", "vramscope"]
    return subprocess.check_output(
        [*program, "diagnose", str(run)], env=environ(), cwd=run.parent, text=True
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", HOLDERS)
def test_the_holder_of_a_leak_is_named(tmp_path: pathlib.Path, kind: str, form: str) -> None:
    status, errors = recorded(tmp_path / "run", form, kind)
    assert status == 0, errors
    told = diagnosis(tmp_path / "run")
    assert "leak at leaks.py" in told, told
    assert re.search(f"held by: {HOLDERS[kind]}", told), told
    # The walk at the end has seen it only in a cycle, where functions have ended.
    assert "gc.collect()" not in told, told


@pytest.mark.parametrize("kind", ["global", "local"])
def test_the_holder_is_named_where_no_optimizer_steps(tmp_path: pathlib.Path, kind: str) -> None:
    status, errors = recorded(tmp_path / "run", "file", kind, "60", "infer", PAUSE="0.05")
    assert status == 0, errors
    told = diagnosis(tmp_path / "run")
    assert re.search(f"held by: {HOLDERS[kind]}", told), told


def test_the_holder_is_named_and_growth_foretold_where_memory_runs_out(
    tmp_path: pathlib.Path,
) -> None:
    status, errors = recorded(
        tmp_path / "run", "file", "local", "1000", FAKECUDA_CAPACITY_MB="2000"
    )
    assert status == 1
    assert re.search(f"held by: {HOLDERS['local']}", diagnosis(tmp_path / "run"))
    told = [line for line in errors.splitlines() if "memory grows by" in line]
    assert len(told) == 1, errors
    rate, steps = re.search(
        r"grows by ([\d.]+) MiB a step: full in about ([\d,]+)", told[0]
    ).groups()
    assert float(rate) == pytest.approx(8, rel=0.1)
    # It ran out in step 143; this was said after step 35.
    assert int(steps.replace(",", "")) == pytest.approx(143 - 35, rel=0.2)
    assert re.search(r"what fills it: vramscope record --dump \d+\n", errors)


@pytest.mark.parametrize("local_rank", ["0", "1"])
def test_of_several_ranks_the_first_of_a_machine_foretells(
    tmp_path: pathlib.Path, local_rank: str
) -> None:
    _, errors = recorded(
        tmp_path / "run",
        "file",
        "global",
        FAKECUDA_CAPACITY_MB="1000",
        RANK=local_rank,
        LOCAL_RANK=local_rank,
        WORLD_SIZE="2",
        LOCAL_WORLD_SIZE="2",
    )
    said = "vramscope: rank 0: memory grows by 8.00 MiB a step" in errors
    assert said == (local_rank == "0"), errors


def test_nothing_is_foretold_of_healthy_programs(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [str(PYTHON), str(PROGRAMS / "healthy.py")],
        env={**environ(), "RUN": str(tmp_path / "run"), "FAKECUDA_CAPACITY_MB": "1200"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "16\n"), done.stderr
    assert "grows" not in done.stderr
