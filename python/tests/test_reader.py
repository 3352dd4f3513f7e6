"""Reading: its numbers are those of the program.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import threading

import duckdb
import polars
import pyarrow
import pytest

import vramscope

DATA = pathlib.Path(__file__).parents[2] / "test_data"
OOM = DATA / "recorded" / "oom_expandable.pickle.gz"
RANKS = DATA / "recorded" / "ranks_fsdp"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")


def program(*arguments: object) -> dict:
    """The program's JSON."""
    command = [PROGRAM, *map(str, arguments), "--format", "json"]
    run = subprocess.run(command, capture_output=True, check=True)
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def snapshot() -> vramscope.Snapshot:
    return vramscope.open(OOM)


def test_the_summary_is_the_programs(snapshot) -> None:
    (told,) = program("summary", OOM)["files"]
    (device,) = snapshot.summary.devices
    (wanted,) = told["devices"]
    assert snapshot.summary.file_bytes == told["bytes"]
    for name in ("requested", "active", "allocated", "reserved"):
        band, figures = getattr(device, name), wanted[f"{name}_bytes"]
        assert band.peak_bytes == figures["peak"]
        assert (band.peak_event, band.start_bytes, band.end_bytes, band.exactness) == (
            figures["peak_event"],
            figures["start"],
            figures["end"],
            figures["exactness"],
        )
    assert [oom.requested_bytes for oom in device.ooms] == [o["requested"] for o in wanted["ooms"]]
    assert len(device.ooms) == 5


@pytest.mark.parametrize("band", ["requested_bytes", "reserved_bytes"])
def test_the_peak_is_the_programs(snapshot, band: str) -> None:
    told = program("peak", OOM, "--band", band)
    stacks = snapshot.peak(by="stack", band=band)
    assert (stacks.peak_bytes, stacks.event, stacks.phase) == (
        told["total"],
        told["event"],
        told["phase"],
    )
    assert [(row.name, row.live_bytes, row.blocks) for row in stacks.rows] == [
        (row["site"], row["bytes"], row["blocks"]) for row in told["stacks"]
    ]
    lines = snapshot.peak(by="line", band=band)
    frames = {(f["file"], f["line"], f["name"]): f["inclusive"] for f in told["frames"]}
    assert {row.live_bytes for row in lines.rows} <= set(frames.values())


def test_findings_and_the_diagnosis_are_the_programs(snapshot) -> None:
    told = program("diagnose", OOM, "--all")
    assert [(f.id, f.text, f.about_bytes) for f in snapshot.findings] == [
        (f["id"], f["text"], f["bytes"]) for f in told["findings"]
    ]
    for finding, wanted in zip(snapshot.findings, told["findings"], strict=True):
        optional = {"simulated", "fixes", "look", "proof", "holders"}
        assert len(dataclasses.fields(finding)) == len(wanted.keys() | optional)
        children = [(one.site, one.about_bytes, one.blocks) for one in finding.children]
        assert children == [tuple(one.values()) for one in wanted["children"]]
        simulated = [dataclasses.astuple(one) for one in finding.simulated]
        assert simulated == [tuple(one.values()) for one in wanted.get("simulated", ())]
        fixes = [
            (one.id, one.text, one.now_bytes, one.needs_bytes, one.outcome, one.error_percent)
            for one in finding.fixes
        ]
        names = ("id", "text", "now_bytes", "needs_bytes", "outcome", "error_percent")
        assert fixes == [tuple(one[name] for name in names) for one in wanted.get("fixes", ())]
        looks = [dataclasses.astuple(one) for one in finding.look]
        assert looks == [tuple(one.values()) for one in wanted.get("look", ())]
        assert (finding.why, finding.saving_bytes) == (wanted["why"], wanted["saving_bytes"])
        place = wanted["place"]
        assert (finding.place is None) == (place is None)
        if finding.place is not None:
            assert dataclasses.asdict(finding.place) == place
        proof = wanted.get("proof")
        assert (finding.proof is None) == (proof is None)
        if finding.proof is not None:
            assert (finding.proof.text, finding.proof.values) == (
                proof["text"],
                tuple(proof["values"]),
            )
    assert any(finding.simulated for finding in snapshot.findings)
    assert [b.kind for b in snapshot.findings.blind_spots] == [
        b["kind"] for b in told["blind_spots"]
    ]
    told = program("diagnose", OOM)
    diagnosis = snapshot.diagnosis
    assert [dataclasses.asdict(one) for one in diagnosis.headlines] == told["headlines"]
    assert [one.id for one in diagnosis.findings] == [one["id"] for one in told["findings"]]
    assert diagnosis.memory.reserved_bytes == told["memory"]["reserved"]
    assert diagnosis.peak.categories_bytes == told["peak"]["categories"]


def test_phases_are_the_programs(snapshot) -> None:
    told = program("steps", OOM)
    assert [
        (step.step, [(p.phase, p.peak_bytes, p.categories_bytes) for p in step.phases])
        for step in snapshot.phases.steps
    ] == [
        (step["step"], [(p["phase"], p["peak_bytes"], p["categories"]) for p in step["phases"]])
        for step in told["steps"]
    ]
    assert snapshot.phases.limiting_bytes == told["limiting"]["bytes"]
    assert [
        (one.step, one.peak_bytes, one.peak_event, one.floor_bytes, one.change_bytes)
        for one in snapshot.steps
    ] == [
        (one["step"], one["peak_bytes"], one["peak_event"], one["floor_bytes"], one["change"])
        for one in told["steps"]
    ]


def test_predictions_are_the_programs(snapshot) -> None:
    told = program("what-if", OOM, "--change", "expandable_segments:False,max_split_size_mb:128")
    (wanted,) = told["scenarios"]
    answer = snapshot.what_if(expandable_segments=False, max_split_size_mb=128)
    (scenario,) = answer.scenarios
    assert scenario.reserved_peak_bytes == wanted["reserved_peak"]
    assert (scenario.fits, scenario.short_by_bytes, scenario.conf) == (
        wanted["fits"],
        wanted["short_by"],
        wanted["conf"],
    )
    assert answer.calibration.equal
    on_device = snapshot.what_if(device_memory="H100", apply=["batch:2", "optimizer:8bit"])
    told = program("what-if", OOM, "--device-memory", "H100", "--apply", "batch:2,optimizer:8bit")
    assert [s.reserved_peak_bytes for s in on_device.scenarios] == [
        s["reserved_peak"] for s in told["scenarios"]
    ]
    (changed,) = on_device.scenarios
    assert max(changed.curve) == changed.active_peak_bytes
    planned = snapshot.what_if(plan="16MiB").plan
    told = program("what-if", OOM, "--plan", "16MiB")["plan"]
    assert (planned.unchanged, planned.needs_bytes) == (told["unchanged"], told["needs_bytes"])
    assert [one.lever.recipe for one in planned.sets] == [one["recipe"] for one in told["sets"]]
    with pytest.raises(ValueError, match="no_such_setting"):
        snapshot.what_if(no_such_setting=1)


def test_tables_are_taken_by_pyarrow(snapshot) -> None:
    told = program("blocks", OOM)
    blocks = pyarrow.table(snapshot.blocks).to_pylist()
    assert len(blocks) == len(snapshot.blocks) == told["total"]
    wanted = {(int(b["address"], 16), b["reuse"]): b for b in told["blocks"]}
    stacks: dict[int, list[tuple]] = {}
    for row in pyarrow.table(snapshot.stacks).to_pylist():
        stacks.setdefault(row["stack"], []).append((row["function"], row["file"], row["line"]))
    for block in blocks:
        other = wanted[block["address"], block["reuse"]]
        assert (block["requested_bytes"], block["block_bytes"], block["category"]) == (
            other["bytes"],
            other["block_bytes"],
            other["category"],
        )
        assert (block["site"], block["lifetime_us"], block["alloc_event"]) == (
            other["site"],
            other["lifetime"],
            other["alloc_event"],
        )
        frames = told["stacks"][other["stack"]]
        assert stacks.get(block["stack"], []) == [(f["name"], f["file"], f["line"]) for f in frames]
    events = pyarrow.table(snapshot.events).to_pylist()
    told = program("events", OOM)
    assert [(e["event"], e["action"], e["size_bytes"], e["time_us"]) for e in events] == [
        (e["index"], e["action"], e["size"], e["time_us"]) for e in told["events"]
    ]
    segments = pyarrow.table(snapshot.segments).to_pylist()
    told = program("segments", OOM, "--at", "end")
    assert [(s["address"], s["total_bytes"], s["active_bytes"]) for s in segments] == [
        (int(s["address"], 16), s["total_size"], s["active"]) for s in told["segments"]
    ]


def test_tensors_and_source_lines_are_those_beside_the_snapshot() -> None:
    path = DATA / "beside" / "oom_1" / "rank3_memory_snapshot.pickle"
    recorded = vramscope.open(path)
    blocks = pyarrow.table(recorded.blocks).to_pylist()
    named = [
        (b["tensor_kind"], b["tensor_name"], b["tensor_shape"], b["tensor_dtype"])
        for b in blocks
        if b["tensor_name"] is not None
    ]
    assert ("optimizer_state", "2.bias.exp_avg", "[1024]", "float32") in named
    told = [b["tensor"] for b in program("blocks", path)["blocks"] if "tensor" in b]
    assert sorted(name for _, name, _, _ in named) == sorted(t["name"] for t in told)
    sources = {row["source"] for row in pyarrow.table(recorded.stacks).to_pylist()}
    assert "loss.backward()" in sources
    assert "500.0 MiB are outside of PyTorch" in recorded.findings[0].text


def test_holders_are_those_beside_the_snapshot(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "gpt_leak.pickle.gz"
    shutil.copy(DATA / "recorded" / path.name, path)
    shutil.copy(DATA / "holders" / "gpt_leak.vramscope.json", tmp_path)
    recorded = vramscope.open(path)
    leaked = 'local "leaked" (list of 12) of main(), p_gpt.py:40'
    (holder,) = recorded.findings[0].holders
    assert (holder.kind, holder.text, holder.path) == ("reference", leaked, "leaked[0..11]")
    # 12 blocks of 51,511,296 bytes.
    assert (holder.held_bytes, holder.frees_bytes, holder.blocks) == (618_135_552,) * 2 + (12,)
    assert f"held by {leaked}" in str(recorded.findings[0])
    held = [b["holders"] for b in pyarrow.table(recorded.blocks).to_pylist()]
    assert {text for text in held if text and text.startswith(leaked)} == {
        f"{leaked}: leaked[{index}]" for index in range(12)
    }
    told = program("peak", path, "--by", "holder", "--at", "end")
    assert [(r.holder, r.live_bytes, r.frees_bytes) for r in recorded.holders.rows] == [
        (r["holder"], r["bytes"], r["frees_bytes"]) for r in told["rows"]
    ]
    assert recorded.holders.rows[0].holder == leaked
    assert [(d.text, d.frees_bytes) for d in recorded.holders.drops] == [
        (d["text"], d["bytes"]) for d in told["drops"]
    ]
    peak = recorded.peak(by="holder")
    assert sum(row.own_bytes for row in peak.rows) == peak.peak_bytes
    # Without the file, nothing tells it.
    alone = vramscope.open(DATA / "recorded" / path.name)
    assert alone.holders.complete is None and not alone.findings[0].holders


def test_tables_are_taken_by_duckdb(snapshot) -> None:
    blocks = snapshot.blocks
    connection = duckdb.connect()
    connection.register("blocks", blocks)
    ((count, total),) = connection.sql(
        "select count(*), sum(requested_bytes) from blocks where category = 'parameter'"
    ).fetchall()
    told = [b for b in program("blocks", OOM)["blocks"] if b["category"] == "parameter"]
    assert (count, total) == (len(told), sum(b["bytes"] for b in told))


def test_tables_are_taken_by_polars(snapshot) -> None:
    blocks = polars.DataFrame(snapshot.blocks)
    assert blocks.height == len(snapshot.blocks)
    told = program("blocks", OOM)["blocks"]
    assert blocks["requested_bytes"].sum() == sum(b["bytes"] for b in told)


def test_a_run_is_read_and_bad_files_are_collected(tmp_path: pathlib.Path) -> None:
    for file in RANKS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    bad = tmp_path / "rank4_memory_snapshot.pickle.gz"
    bad.write_bytes((RANKS / "rank3_memory_snapshot.pickle.gz").read_bytes()[:20_000])
    (tmp_path / "notes.json").write_text('{"lr": 0.1}')
    run = vramscope.open_run(tmp_path)
    (error,) = run.errors
    assert (pathlib.Path(error.path), error.kind) == (bad, "damaged")
    assert error.offset is not None
    command = [PROGRAM, "diagnose", "--all", str(tmp_path), "--format", "json"]
    told = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    assert run.skipped_files == told["skipped_files"] == 1
    assert [f.id for f in run.findings] == [f["id"] for f in told["findings"]]
    assert [s.rank for s in run.summaries] == [2, 3]
    assert [s.path for s in run] == [s.path for s in run.summaries]
    assert [group.ranks for group in run.diagnosis.ranks] == [g["ranks"] for g in told["ranks"]]


def test_a_run_without_a_snapshot_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(vramscope.ReadError, match="no snapshot in it: no files") as caught:
        vramscope.open_run(tmp_path)
    assert (caught.value.path, caught.value.kind) == (str(tmp_path), "no_snapshot")
    (tmp_path / "notes.json").write_text('{"lr": 0.1}')
    with pytest.raises(vramscope.ReadError, match="no snapshot in it: 1 other files"):
        vramscope.open_run(tmp_path)
    with pytest.raises(vramscope.ReadError) as caught:
        vramscope.open_run(tmp_path / "absent")
    assert (caught.value.path, caught.value.kind) == (str(tmp_path / "absent"), "unreadable")
    for rank in range(2):
        damaged = (RANKS / "rank3_memory_snapshot.pickle.gz").read_bytes()[:20_000]
        (tmp_path / f"rank{rank}_memory_snapshot.pickle.gz").write_bytes(damaged)
    with pytest.raises(vramscope.ReadError, match="none of 1 more files") as caught:
        vramscope.open_run(tmp_path)
    assert caught.value.kind == "damaged"


def test_a_closed_snapshot_says_so() -> None:
    with vramscope.open(OOM) as s:
        blocks, diagnosis = s.blocks, s.diagnosis
        other = s.of_device(s.device)
    assert repr(s).endswith("closed>")
    assert s.path == str(OOM)
    for question in (lambda: s.diagnosis, lambda: s.blocks, other.peak, lambda: s.what_if()):
        with pytest.raises(ValueError, match="is closed: open it again"):
            question()
    # Answers stay.
    assert len(blocks) > 0 and diagnosis.findings


def test_a_closed_run_says_so() -> None:
    with vramscope.open_run(RANKS) as run:
        assert len(run.diagnosis.headlines) == 2
    for question in (lambda: run.diagnosis, run[0].peak):
        with pytest.raises(ValueError, match="is closed: open it again"):
            question()


def test_another_snapshot_is_compared() -> None:
    paths = [RANKS / f"rank{rank}_memory_snapshot.pickle.gz" for rank in (2, 3)]
    before, after = map(vramscope.open, paths)
    diff = before.diff(after)
    (pair,) = program("diff", *paths)["pairs"]
    assert (diff.before.path, diff.after.path) == tuple(map(str, paths))
    for name in ("requested", "active", "allocated", "reserved"):
        peak, wanted = getattr(diff, name).peak, pair[f"{name}_bytes"]["peak"]
        assert (peak.before, peak.after, peak.change) == tuple(wanted.values())
    assert [one.live.change for one in diff.categories] == [
        one["change"] for one in pair["categories"]
    ]
    assert sum(one.live.change for one in diff.stacks) == diff.requested.peak.change
    assert [one.id for one in diff.new] == [one["id"] for one in pair["findings"]["new"]]
    assert "requested_bytes peak" in str(diff)
    same = before.diff(before)
    assert same.requested.peak.change == 0
    assert "No call stack changed" in str(same)


def test_a_report_is_written(snapshot, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "report.html"
    if vramscope.reader.snapshot._vramscope.viewer_part("script") is None:
        with pytest.raises(vramscope.VramscopeError, match="cargo xtask build"):
            snapshot.report(path)
        return
    held = snapshot.report(path)
    assert "no line of source" in held
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "out of memory" in text.lower()
    path.write_text("notes")
    with pytest.raises(ValueError, match="report"):
        snapshot.report(path)
    snapshot.report(path, redact=True, force=True)
    assert "gpt.py" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "kind", "offset"),
    [(b"", "damaged", None), (b"\x80\x04}\x94(", "damaged", 5), (b"hello", "no_snapshot", None)],
)
def test_errors_name_file_and_offset(tmp_path, content: bytes, kind: str, offset) -> None:
    path = tmp_path / "rank0.pickle"
    path.write_bytes(content)
    with pytest.raises(vramscope.ReadError) as caught:
        vramscope.open(path)
    error = caught.value
    assert isinstance(error, vramscope.VramscopeError)
    assert (error.path, error.kind, error.offset) == (str(path), kind, offset)
    assert str(error).startswith(f"{path}: {error.reason}")


def test_a_file_that_does_not_exist_is_unreadable(tmp_path: pathlib.Path) -> None:
    with pytest.raises(vramscope.ReadError) as caught:
        vramscope.open(tmp_path / "absent.pickle")
    assert caught.value.kind == "unreadable"


def test_wrong_arguments_are_told(snapshot) -> None:
    with pytest.raises(ValueError, match="device 7"):
        snapshot.of_device(7)
    with pytest.raises(ValueError, match="no snapshot 'x'"):
        vramscope.open(OOM, snapshot="x")
    with pytest.raises(ValueError, match="by is 'color'"):
        snapshot.peak(by="color")
    with pytest.raises(ValueError, match="is no band"):
        snapshot.peak(band="some")
    with pytest.raises(ValueError, match="active_bytes has no rows by module"):
        snapshot.peak(by="module", band="active")
    with pytest.raises(ValueError, match="reserved_bytes has no rows by category"):
        snapshot.peak(by="category", band="reserved")


def test_other_threads_run_while_a_file_is_read() -> None:
    turns = 0
    ended = threading.Event()

    def count() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            ended.wait(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = turns
        vramscope.open(OOM).what_if(apply=["batch:2"])
        during = turns - before
    finally:
        ended.set()
        thread.join()
    assert during > 5
