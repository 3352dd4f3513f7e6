"""Who holds memory, told of real programs with PyTorch's own allocator.

Needs a PyTorch with CUDA or over the stand-in (``VRAMSCOPE_TORCH``, see ``test_recorder.py``), and
a package with its native part: ``VRAMSCOPE_PACKAGE`` names the folder that it is imported from.
Each program runs in a process of its own: a crash fails its test.
"""

import json
import os
import pathlib
import subprocess

import pytest

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
PACKAGE = os.environ.get("VRAMSCOPE_PACKAGE")
pytestmark = pytest.mark.skipif(
    PYTHON is None or PACKAGE is None,
    reason="VRAMSCOPE_TORCH names no Python, or VRAMSCOPE_PACKAGE no package",
)
PROGRAMS = pathlib.Path(__file__).parent / "programs"
#: Walks of the soak test.
WALKS = os.environ.get("VRAMSCOPE_WALKS", "100")


def run(program: str, *arguments: str, timeout: int = 600) -> list[dict]:
    """The lines that a program prints."""
    done = subprocess.run(
        [PYTHON, str(PROGRAMS / program), *arguments],
        env={**os.environ, "PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-2000:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_kind_of_reference_is_named_and_frees_what_is_told():
    found = run("held.py")
    assert len(found) >= 40
    wrong = []
    for one in found:
        name = one["case"]
        if one["chain"] != one["wanted"] or one["none"] != one["wanted_none"]:
            wrong.append(f"{name}: {one['chain']} {one['none']}, expected {one['wanted']}")
        if not one["complete"]:
            wrong.append(f"{name}: not complete")
        if "fell" in one:
            told, fell = one["told_bytes"], one["fell"]
            # References that hold something together hold parts of it alone, too.
            if told != fell and not (one["together"] and told <= fell):
                wrong.append(f"{name}: dropping it frees {fell}, told {told}")
        if one.get("also") != one.get("wanted_also"):
            wrong.append(f"{name}: held by {one['also']}, expected {one['wanted_also']}")
    assert not wrong, "\n".join(wrong)


def test_the_fallback_tells_the_same():
    native = [(one["case"], one["chain"]) for one in run("held.py")]
    assert [(one["case"], one["chain"]) for one in run("held.py", "--fallback")] == native


def test_a_walk_that_is_cut_claims_nothing():
    [told] = run("traps.py", "cut")
    assert told["complete"] is False
    assert all(one.get("none") == "unread" or "link" in one for one in told["blocks"])
    assert not any(link["by"] == "cycle" for link in told["links"])


def test_graphs_are_left_alone_while_another_thread_is_in_backward():
    [told] = run("traps.py", "backward")
    assert told["graph"] is False
    assert told["local"] == "link"
    # Only the graph holds it.
    assert told["saved"] == "unread"


def test_the_only_backward_pass_waits_for_a_walk_inside_of_it():
    [told] = run("traps.py", "inside")
    assert told["graph"] is True
    assert told["saved"] == "link"


def test_a_profiler_of_the_program_stays():
    [told] = run("traps.py", "profiled")
    assert told["kept"] is True


@pytest.mark.parametrize("way", ["busy", "quiet"])
def test_walks_beside_other_threads_change_nothing(way):
    [told] = run("soak.py", WALKS, way, timeout=3600)
    # Threads that train keep graphs from being read, and others for moments.
    assert way == "busy" or told["read"] > told["walks"] / 2
    assert told["errors"] == []
    assert told["found"] == told["walks"] == int(WALKS)
    assert told["passes"] > 0
    # Workspaces of cuBLAS, which each new thread has.
    assert told["grown"] <= 200 << 20
    assert told["settings"] == [True, True]


def test_the_recorder_writes_holders_when_memory_runs_out(tmp_path):
    environ = {**os.environ, "PYTHONPATH": PACKAGE, "FAKECUDA_CAPACITY_MB": "2000"}
    command = [PYTHON, "-m", "vramscope", "record", "-o", str(tmp_path)]
    command.append(str(PROGRAMS / "keeps.py"))
    # In another folder than the sources, which Python would import instead.
    done = subprocess.run(
        command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert "OutOfMemoryError" in done.stderr
    [path] = tmp_path.glob("oom_1/*.vramscope.json")
    told = json.loads(path.read_text())["holders"]
    assert told["complete"] and told["graph"]
    largest = max(told["drops"], key=lambda row: (row["bytes"], row["within"] is not None))
    rows = [row for row in told["drops"] if row["bytes"] > largest["bytes"] / 2]
    names = [told["links"][link]["name"] for row in rows for link in row["links"]]
    assert "losses" in names


def test_nothing_is_written_if_holders_are_not_wanted(tmp_path):
    environ = {**os.environ, "PYTHONPATH": PACKAGE, "FAKECUDA_CAPACITY_MB": "2000"}
    command = [PYTHON, "-m", "vramscope", "record", "--no-holders", "-o", str(tmp_path)]
    command.append(str(PROGRAMS / "keeps.py"))
    subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, timeout=300)
    [path] = tmp_path.glob("oom_1/*.vramscope.json")
    assert "holders" not in json.loads(path.read_text())
