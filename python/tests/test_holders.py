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


def test_no_other_thread_runs_within_a_walk():
    # pyo3 let go of the lock when it made the texts of `intern!`, once in each process.
    [told] = run("traps.py", "beside")
    assert told == {"complete": [True] * 5, "graph": [True] * 5}


def test_a_hook_of_audit_events_is_no_reason_to_fail():
    # The function that refuses the program's stayed when the hook, a function of Python, was asked.
    [told] = run("traps.py", "audited")
    assert told == {"graph": True, "hears": True, "left": True}


def test_a_hook_that_refuses_is_told_and_the_program_goes_on():
    [told] = run("traps.py", "refused")
    assert told["failed"].startswith("sys.") and told["runs"]


#: Kinds of tensors of which all memory is told.
SEEN = {
    *("plain", "fake", "fake_with_symbolic_sizes", "exported", "quantized", "without_dispatch"),
    *("in_a_mode", "in_a_function", "packed"),
}


def test_no_kind_of_tensor_runs_code_of_the_program():
    found = run("kinds.py", os.environ.get("VRAMSCOPE_SECONDS", "60"), timeout=3600)
    assert len(found) == 19
    for one in found:
        assert one["calls"] == [] and one["warned"] == [], one
        # Tensors that were not read are counted, and nothing else cuts a walk short. Up to PyTorch
        # 2.9 a hook is refused when it is called. Python hands its lock over before that: this is
        # said, and whether graphs may be read is asked again.
        assert (one["opaque"] == 0) == (one["kind"] in SEEN), one
        is_whole = one["complete"] == one["walks"]
        assert is_whole or one["kind"] == "packed", one
        if one["kind"] in SEEN and is_whole:
            assert one["linked"] == one["blocks"] > 0, one


#: Shapes of a million objects.
SHAPES = ("chain", "pairs", "tree", "wide", "ring", "keyed", "module", "instance")


@pytest.mark.parametrize("shape", SHAPES)
def test_very_many_objects_take_no_longer_and_no_larger_file(shape):
    # A chain of 320,000 objects took 65.8 seconds, and wrote 18.4 MB.
    [one] = run("large.py", shape, "1000000", "2")
    assert one["seconds"] <= 2.2, shape
    assert one["bytes"] <= 1 << 20, shape
    # A list was followed to its end before the clock was looked at.
    [one] = run("large.py", shape, "1000000", "0.2")
    assert one["seconds"] <= 0.2 + 0.3, shape


def test_types_that_tell_the_collector_odd_things_end_nothing(tmp_path):
    include = subprocess.run(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    command = ["gcc", "-shared", "-fPIC", "-O1", f"-I{include}", str(PROGRAMS / "broken.c")]
    subprocess.run([*command, "-o", str(tmp_path / "broken.so")], check=True)
    found = {one["type"]: one for one in run("broken.py", str(tmp_path))}
    assert len(found) == 8
    for one in found.values():
        assert one["seconds"] <= 3.3 and one["resident"] < 4 << 30, one
    # What they refer to is found where they tell it, and what was cut or let others run is said.
    cut = {name for name, one in found.items() if not one["complete"]}
    assert cut == {"many_times", "many_times_to_the_end", "an_error", "without_the_lock"}
    assert {name for name, one in found.items() if not one["linked"]} <= {
        "many_times",
        "many_times_to_the_end",
    }


def test_the_middle_of_a_long_chain_is_left_out():
    [one] = run("large.py", "chain", "200000", "60")
    told = one["told"]
    assert told["complete"] and one["bytes"] < 20_000
    [block] = told["blocks"]
    chain, at = [], block["link"]
    while at is not None:
        chain.append(told["links"][at])
        at = told["links"][at]["from"]
    chain.reverse()
    assert chain[0]["name"] == "kept" and len(chain) < 50
    [cut] = [link for link in chain if "between" in link]
    # From Python 3.11 on an object has no dict of attributes of its own until it is asked for.
    assert 200_000 - len(chain) <= cut["between"] <= 2 * 200_000
    assert {link["name"] for link in chain[1:] if link is not cut} == {"next"}
    assert all(link["by"] == "attribute" for link in chain[1:] if link is not cut)
    assert told["drops"][0]["bytes"] == 8 << 20


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
