"""An answer's record is what the program prints with ``--format json`` for the same question.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pathlib
import pickle
import subprocess
import typing

import pytest

import vramscope

DATA = pathlib.Path(__file__).parents[2] / "test_data" / "recorded"
OOM = DATA / "oom_expandable.pickle.gz"
RANKS = DATA / "ranks_fsdp"
RANK2, RANK3 = (RANKS / f"rank{rank}_memory_snapshot.pickle.gz" for rank in (2, 3))
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")

#: ``diagnose`` leaves out what it must to stay within 8 kB. A Python program reads all of it.
ALL = ("--max-bytes", "100000000")


@pytest.fixture(scope="module")
def snapshot() -> vramscope.Snapshot:
    return vramscope.open(OOM)


QUESTIONS: dict[str, tuple[typing.Callable[[vramscope.Snapshot], typing.Any], tuple]] = {
    "summary": (lambda s: s.summary, ("summary", OOM)),
    "findings": (lambda s: s.findings, ("diagnose", OOM, "--all")),
    "diagnosis": (lambda s: s.diagnosis, ("diagnose", OOM, *ALL)),
    "peak": (lambda s: s.peak(), ("peak", OOM)),
    "reserved peak": (lambda s: s.peak(band="reserved"), ("peak", OOM, "--band", "reserved")),
    **{
        f"peak by {by}": (lambda s, by=by: s.peak(by=by), ("peak", OOM, "--by", by))
        for by in ("stack", "line", "module", "shape", "holder", "category", "stream", "pool")
    },
    "steps": (lambda s: s.steps, ("steps", OOM)),
    "modules": (lambda s: s.modules, ("peak", OOM, "--by", "module")),
    "shapes": (lambda s: s.shapes, ("peak", OOM, "--by", "shape")),
    "holders": (lambda s: s.holders, ("peak", OOM, "--by", "holder", "--at", "end")),
    "uses": (lambda s: s.uses, ("peak", OOM, "--by", "use")),
    "what_if": (lambda s: s.what_if(), ("what-if", OOM)),
    "setting": (
        lambda s: s.what_if(max_split_size_mb=128, device_memory="H100"),
        ("what-if", OOM, "--change", "max_split_size_mb:128", "--device-memory", "H100"),
    ),
    "recipe": (lambda s: s.what_if(apply=["batch:0.5"]), ("what-if", OOM, "--apply", "batch:0.5")),
    "plan": (lambda s: s.what_if(plan="5GiB"), ("what-if", OOM, "--plan", "5GiB")),
    "diff": (
        lambda _: vramscope.open(RANK2).diff(vramscope.open(RANK3)),
        ("diff", RANK2, RANK3),
    ),
}


def printed(*arguments: object) -> dict:
    command = [PROGRAM, *map(str, arguments), "--format", "json"]
    run = subprocess.run(command, capture_output=True, check=False)
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_record_is_what_the_program_prints(snapshot, name: str) -> None:
    ask, arguments = QUESTIONS[name]
    answer = ask(snapshot)
    told = printed(*arguments)
    assert answer.to_dict() == told
    assert told["schema"].startswith("vramscope.")
    assert json.loads(answer.to_json()) == json.loads(answer.to_json(indent=2)) == told
    assert "\n" not in answer.to_json() and answer.to_json(indent=2).startswith('{\n  "schema"')


def test_the_record_of_a_run_is_what_the_program_prints(tmp_path: pathlib.Path) -> None:
    for file in (RANK2, RANK3):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "rank4_memory_snapshot.pickle.gz").write_bytes(RANK2.read_bytes()[:20_000])
    run = vramscope.open_run(tmp_path)
    assert run.diagnosis.to_dict() == printed("diagnose", tmp_path, *ALL)
    assert run.findings.to_dict() == printed("diagnose", tmp_path, "--all")
    (failed,) = run.diagnosis.to_dict()["errors"]
    assert failed["path"] == run.errors[0].path
    files = [file for file in printed("summary", tmp_path)["files"] if file["error"] is None]
    assert [one.to_dict()["files"] for one in run.summaries] == [[file] for file in files]


def test_a_record_is_no_field_and_goes_with_copies(snapshot) -> None:
    steps = snapshot.steps
    steps.to_dict()["steps"].clear()
    assert steps.to_dict()["steps"]
    assert "_record" not in dataclasses.asdict(steps)
    for answer in (steps, snapshot.findings, snapshot.diagnosis):
        for other in (copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
            assert other == answer and other.to_dict() == answer.to_dict()
