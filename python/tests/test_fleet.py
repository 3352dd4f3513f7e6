"""The queries of ``vramscope sql``, in DuckDB, on a fleet of which it is known what is planted.

Needs the installed wheel. ``VRAMSCOPE_FLEET`` names a folder with two runs as ``cargo xtask gen``
writes them: ``before`` with several iterations, and ``after`` with more skewed ranks and no leaking
ones. ``cargo xtask test wheel`` makes both.
"""

from __future__ import annotations

import importlib.resources
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections import defaultdict
from typing import Any

import duckdb
import pyarrow
import pytest

import vramscope

ROOT = pathlib.Path(__file__).parents[2]
OOM = ROOT / "test_data" / "recorded" / "oom_expandable.pickle.gz"
FLEET = pathlib.Path(os.environ.get("VRAMSCOPE_FLEET", "."))

MIB = 1 << 20
GIB = 1 << 30

PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")


def said(*arguments: str) -> str:
    """What the program prints."""
    # The package in this Python answers, if there is no program of DuckDB.
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [PROGRAM, *arguments],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


#: The queries of the program by their names.
QUERIES = {
    name: said("sql", name) for name in (line.split()[0] for line in said("sql").splitlines())
}

Rows = list[dict[str, Any]]


@pytest.fixture(scope="session")
def truth() -> dict[str, Any]:
    """What is planted in the run `before`."""
    told = json.loads((FLEET / "before" / "truth.json").read_text())
    assert len(told["skewed"]) == len(told["leaking"]) == 1
    assert len(told["stages"]) > 1
    assert len(told["iterations"]) > 2
    return told


@pytest.fixture(scope="session")
def after() -> dict[str, Any]:
    told = json.loads((FLEET / "after" / "truth.json").read_text())
    assert len(told["skewed"]) > 1
    assert told["leaking"] == []
    return told


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run with a rank that ran out of memory, and one whose file ends too early."""
    folder = tmp_path_factory.mktemp("runs") / "other"
    folder.mkdir()
    shutil.copy(OOM, folder / "rank0.pickle.gz")
    whole = next((FLEET / "after").glob("**/rank1_*.pickle")).read_bytes()
    (folder / "rank1.pickle").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture(scope="session")
def dataset(other: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("dataset")
    vramscope.export_parquet([FLEET / "before"], folder)
    vramscope.export_parquet([FLEET / "after"], folder, run="d4e5f6")
    vramscope.export_parquet([other], folder)
    return folder


@pytest.fixture(scope="session")
def connection(dataset: pathlib.Path, truth: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    sql = (importlib.resources.files("vramscope") / "vramscope.sql").read_text()
    assert (dataset / "vramscope.sql").read_text() == sql
    connection = duckdb.connect()
    connection.execute(f"SET VARIABLE dataset = '{dataset}'")
    connection.execute(f"SET VARIABLE stages = {len(truth['stages'])}")
    connection.execute("SET VARIABLE before = 'before'; SET VARIABLE after = 'd4e5f6'")
    connection.execute(sql)
    return connection


@pytest.fixture
def ask(connection: duckdb.DuckDBPyConnection):
    """Answers a query of the program, or SQL."""

    def ask(query: str) -> Rows:
        answer = connection.sql(QUERIES.get(query, query))
        return [dict(zip(answer.columns, row)) for row in answer.fetchall()]

    return ask


def rows_of(table: object) -> Rows:
    """The rows of a table of a snapshot."""
    return pyarrow.table(table).to_pylist()


def of(rows: Rows, **wanted: object) -> Rows:
    """The rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def test_every_query_has_a_test() -> None:
    names = [name.replace("_", "-") for name in globals() if name.startswith("test_")]
    assert len(QUERIES) >= 20
    assert [name for name in QUERIES if f"test-query-{name}" not in names] == []


def test_query_contents(ask, truth) -> None:
    rows = ask("contents")
    counts = [(row["run"], row["iteration"], row["files"], row["ranks"]) for row in rows]
    assert counts == [
        *[
            ("before", iteration, truth["ranks"], truth["ranks"])
            for iteration in truth["iterations"]
        ],
        ("d4e5f6", 0, truth["ranks"], truth["ranks"]),
        ("other", 0, 2, 2),
    ]
    assert [row["unreadable"] for row in rows] == [0] * (len(rows) - 1) + [1]


def test_query_unreadable(ask, other) -> None:
    (row,) = ask("unreadable")
    assert (row["run"], row["path"]) == ("other", str(other / "rank1.pickle"))
    assert row["error_kind"] == "damaged"
    assert row["error"]
    assert row["file_bytes"] == (other / "rank1.pickle").stat().st_size


def test_query_blind_spots(ask, truth) -> None:
    rows = ask("blind-spots")
    assert len(rows) == truth["ranks"] * (len(truth["iterations"]) + 1) + 1
    assert [row["percent"] for row in rows] == sorted((r["percent"] for r in rows), reverse=True)
    fleet = of(rows, run="before")
    assert {(row["coverage"], row["exactness"]) for row in fleet} == {("whole", "exact")}
    assert {row["without_stack_gib"] for row in fleet} == {0}


def test_query_peaks(ask, truth) -> None:
    rows = ask("peaks")
    (leaking,) = truth["leaking"]
    (skewed,) = truth["skewed"]
    last = of(rows, run="before", iteration=truth["iterations"][-1])
    assert rows[0] == last[0]
    assert [row["rank"] for row in last[:2]] == [leaking["rank"], skewed["rank"]]
    path = (
        FLEET
        / f"before/iteration_{last[0]['iteration']}/rank{leaking['rank']}_memory_snapshot.pickle"
    )
    (device,) = vramscope.open(path).summary.devices
    assert rows[0]["requested_gib"] == round(device.requested.peak_bytes / GIB, 3)
    assert rows[0]["allocated_gib"] == round(device.allocated.peak_bytes / GIB, 3)
    assert rows[0]["reserved_gib"] == round(device.reserved.peak_bytes / GIB, 3)


def test_query_nearest_capacity(ask) -> None:
    # The size of the device is known where an allocation failed.
    (row,) = ask("nearest-capacity")
    (device,) = vramscope.open(OOM).summary.devices
    assert (row["run"], row["rank"], row["ooms"]) == ("other", 0, len(device.ooms))
    assert 50 < row["percent"] <= 100
    assert row["free_gib"] == pytest.approx(
        row["capacity_gib"] - device.reserved.peak_bytes / GIB, abs=0.001
    )


def test_query_skew_by_stage(ask, truth) -> None:
    rows = ask("skew-by-stage")
    sizes = [len(stage) for stage in truth["stages"]]
    first = of(rows, run="before", iteration=truth["iterations"][0])
    assert sorted((row["stage"], row["ranks"]) for row in first) == list(enumerate(sizes))
    (skewed,) = truth["skewed"]
    assert (first[0]["stage"], first[0]["highest_rank"]) == (skewed["stage"], skewed["rank"])
    # The rest differs with the length of sequences.
    assert first[0]["skew_gib"] * GIB == pytest.approx(skewed["bytes"], rel=0.3)
    last = of(rows, run="before", iteration=truth["iterations"][-1])
    assert last[0]["highest_rank"] == truth["leaking"][0]["rank"]


def test_query_more_than_others(ask, truth, after) -> None:
    rows = ask("more-than-others")
    for run, iterations, skewed in (
        ("before", truth["iterations"], truth["skewed"]),
        ("d4e5f6", [0], after["skewed"]),
    ):
        found = [
            (row["iteration"], row["rank"], row["stage"], row["more_mib"], row["usual_mib"])
            for row in of(rows, run=run)
            if skewed[0]["site"] in row["site"]
        ]
        assert sorted(found) == sorted(
            (iteration, one["rank"], one["stage"], one["bytes"] / MIB, 0)
            for iteration in iterations
            for one in skewed
        )


def test_query_top_sites_by_rank(ask, truth) -> None:
    rows = ask("top-sites-by-rank")
    path = next((FLEET / "before").glob("iteration_*/rank3_*.pickle"))
    iteration = int(path.parent.name.split("_")[1])
    mine = of(rows, run="before", iteration=iteration, rank=3)
    totals: dict[str, int] = defaultdict(int)
    for row in vramscope.open(path).peak().rows:
        # The program names the library's call site, too.
        totals[row.name.split(" > ")[0]] += row.live_bytes
    highest = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:3]
    assert [(row["site"], row["gib"]) for row in mine] == [
        (site, round(size / GIB, 3)) for site, size in highest
    ]
    assert mine[0]["percent"] == round(100 * highest[0][1] / sum(totals.values()), 1)
    assert len(of(rows, run="before")) == 3 * truth["ranks"] * len(truth["iterations"])


def test_query_top_sites(ask, truth, after) -> None:
    rows = of(ask(QUERIES["top-sites"].replace("LIMIT 20", "")), run="d4e5f6")
    moments = of(rows, category="optimizer_state")
    assert {row["ranks"] for row in moments} == {truth["ranks"]}
    (prefetch,) = [row for row in rows if after["skewed"][0]["site"] in row["site"]]
    assert prefetch["ranks"] == len(after["skewed"])
    assert prefetch["all_ranks_gib"] * GIB == sum(one["bytes"] for one in after["skewed"])


def test_query_categories(ask, truth) -> None:
    rows = ask("categories")
    last = truth["iterations"][-1]
    assert {row["iteration"] for row in of(rows, run="before")} == {last}
    for rank in (0, truth["ranks"] - 1):
        mine = of(rows, run="before", rank=rank)
        assert sum(row["percent"] for row in mine) == pytest.approx(100, abs=0.5)
        path = FLEET / f"before/iteration_{last}/rank{rank}_memory_snapshot.pickle"
        told = {row.name: row.live_bytes for row in vramscope.open(path).peak(by="category").rows}
        assert {row["category"]: row["gib"] for row in mine} == {
            category: round(size / GIB, 3) for category, size in told.items()
        }


def test_query_drift(ask, truth) -> None:
    rows = ask("drift")
    (leaking,) = truth["leaking"]
    assert {row["run"] for row in rows} == {"before"}
    assert sorted(row["rank"] for row in rows) == list(range(truth["ranks"]))
    assert {row["iterations"] for row in rows} == {len(truth["iterations"])}
    per_step = leaking["bytes_per_step"] / MIB
    assert rows[0]["rank"] == leaking["rank"]
    assert rows[0]["mib_per_iteration"] == pytest.approx(per_step, rel=0.1)
    assert all(abs(row["mib_per_iteration"]) < per_step / 4 for row in rows[1:])


def test_query_drift_by_site(ask, truth) -> None:
    row, *others = ask("drift-by-site")
    (leaking,) = truth["leaking"]
    assert (row["run"], row["rank"]) == ("before", leaking["rank"])
    assert leaking["site"] in row["site"]
    per_step = leaking["bytes_per_step"] / MIB
    assert row["mib_per_iteration"] == pytest.approx(per_step, rel=0.05)
    assert all(other["mib_per_iteration"] < per_step / 4 for other in others)


def test_query_between_runs(ask, truth, after) -> None:
    rows = ask("between-runs")
    grown = sum(one["bytes"] for one in after["skewed"]) - sum(o["bytes"] for o in truth["skewed"])
    assert "prefetch" in rows[0]["site"]
    assert rows[0]["growth_mib"] == round(grown / truth["ranks"] / MIB, 1)
    # The other way around, the leak is what the change saved.
    other_way = QUERIES["between-runs"].replace("after - before DESC", "after - before")
    saved = ask(other_way)[0]
    assert "append" in saved["site"]
    assert saved["after_mib"] == 0
    assert saved["growth_mib"] == -saved["before_mib"]


def test_query_fragmentation(ask, truth) -> None:
    rows = ask("fragmentation")
    last = truth["iterations"][-1]
    mine = of(rows, run="before", iteration=last)
    assert sorted(row["host"] for row in mine) == sorted(
        f"ranks {first} to {first + 7}" for first in range(0, truth["ranks"], 8)
    )
    unused = {}
    for rank in range(8):
        path = FLEET / f"before/iteration_{last}/rank{rank}_memory_snapshot.pickle"
        (device,) = vramscope.open(path).summary.devices
        unused[rank] = device.reserved.end_bytes - device.active.end_bytes
    (first,) = of(mine, host="ranks 0 to 7")
    assert first["most_rank"] == max(unused, key=lambda rank: unused[rank])
    assert first["most_unused_gib"] == round(max(unused.values()) / GIB, 3)
    assert first["mean_unused_gib"] == round(sum(unused.values()) / 8 / GIB, 3)


def test_query_kept_segments(ask, truth) -> None:
    rows = ask("kept-segments")
    assert len(rows) > 2
    path = FLEET / f"before/iteration_{truth['iterations'][-1]}"
    row = of(rows, run="before")[0]
    snapshot = vramscope.open(path / f"rank{row['rank']}_memory_snapshot.pickle")
    segments = rows_of(snapshot.segments)
    (segment,) = [one for one in segments if hex(one["address"]) == row["segment"]]
    assert row["total_mib"] == round(segment["total_bytes"] / MIB, 1)
    assert 0 < segment["active_bytes"] < segment["total_bytes"] / 10
    inside = [
        block
        for block in rows_of(snapshot.blocks)
        if block["live_at_end"]
        and segment["address"] <= block["address"] < segment["address"] + segment["total_bytes"]
    ]
    largest = max(inside, key=lambda block: block["requested_bytes"])
    assert (row["largest_site"], row["category"]) == (largest["site"], largest["category"])


def test_query_ooms(ask) -> None:
    rows = ask("ooms")
    snapshot = vramscope.open(OOM)
    (device,) = snapshot.summary.devices
    assert {row["event"] for row in rows} == {oom.event for oom in device.ooms}
    oom = device.ooms[0]
    mine = of(rows, event=oom.event)
    assert mine[0]["requested_mib"] == round(oom.requested_bytes / MIB, 1)
    held: dict[str, int] = defaultdict(int)
    for block in rows_of(snapshot.blocks):
        begin, end = block["alloc_event"], block["free_completed_event"]
        if (begin is None or begin <= oom.event) and (end is None or end > oom.event):
            held[block["category"]] += block["requested_bytes"]
    assert {row["category"]: row["mib"] for row in mine} == {
        category: round(size / MIB, 1) for category, size in held.items()
    }
    assert sum(row["percent"] for row in mine) == pytest.approx(100, abs=0.5)


def test_query_long_lived(ask, truth) -> None:
    rows = ask("long-lived")
    (leaking,) = truth["leaking"]
    mine = of(rows, run="before", rank=leaking["rank"])
    assert [row["iteration"] for row in mine] == truth["iterations"]
    assert all(leaking["site"] in row["site"] for row in mine)
    for row in mine:
        # One block for each step but the first, up to the last that is two steps old.
        assert row["first_step"] == 1
        assert row["blocks"] == row["last_step"] > 2
        assert row["mib"] == row["blocks"] * leaking["bytes_per_step"] / MIB


def test_query_churn(ask, truth) -> None:
    rows = ask(QUERIES["churn"].replace("LIMIT 20", ""))
    assert rows[:20] == ask("churn")
    last = truth["iterations"][-1]
    mine = of(rows, run="before", iteration=last)
    (leaking,) = truth["leaking"]
    snapshot = vramscope.open(
        FLEET / f"before/iteration_{last}/rank{leaking['rank']}_memory_snapshot.pickle"
    )
    steps = sum(step.whole for step in snapshot.phases.steps)
    appended = [
        block["requested_bytes"]
        for block in rows_of(snapshot.blocks)
        if block["site"] == leaking["site"]
    ]
    (row,) = of(mine, site=leaking["site"])
    assert (row["ranks"], row["blocks_per_step"]) == (1, round(len(appended) / steps, 1))
    assert row["mib_per_step"] == round(sum(appended) / steps / MIB, 1)
    # Parameters are gathered in forward and in backward of each step, on all ranks.
    assert mine[0]["ranks"] == truth["ranks"]
    assert mine[0]["blocks_per_step"] == pytest.approx(2, abs=0.5)


def test_query_one_rank_only(ask, truth) -> None:
    rows = of(ask("one-rank-only"), run="before")
    planted = truth["skewed"] + truth["leaking"]
    assert len(rows) == len(planted) * len(truth["iterations"])
    for one in planted:
        mine = of(rows, rank=one["rank"])
        assert sorted(row["iteration"] for row in mine) == truth["iterations"]
        assert all(one["site"] in row["site"] for row in mine)


def test_query_peak_by_phase(ask, truth) -> None:
    rows = of(ask("peak-by-phase"), run="before", iteration=truth["iterations"][0])
    assert {row["stage"] for row in rows} == set(range(len(truth["stages"])))
    for phase in ("forward", "backward", "optimizer"):
        assert sum(row["ranks"] for row in of(rows, phase=phase)) == truth["ranks"]
    assert sum(row["ranks_with_their_peak"] for row in rows) >= truth["ranks"]
    path = FLEET / f"before/iteration_{truth['iterations'][0]}"
    highest = max(
        phase.peak_bytes
        for rank in truth["stages"][1]
        for step in vramscope.open(path / f"rank{rank}_memory_snapshot.pickle").phases.steps
        for phase in step.phases
        if phase.phase == "backward"
    )
    (row,) = of(rows, stage=1, phase="backward")
    assert row["most_gib"] == round(highest / GIB, 3)


def test_query_packages(ask, truth) -> None:
    rows = of(ask("packages"), run="before")
    (torch,) = of(rows, package="torch")
    (own,) = of(rows, package="(own code)")
    (total,) = ask(
        "SELECT gib(sum(bytes)) AS gib FROM peak SEMI JOIN last_iteration USING (run, iteration) "
        "WHERE run = 'before' AND band = 'requested_bytes'"
    )
    # All stacks begin in the program, and what it allocates itself is planted.
    assert own["through_gib"] == total["gib"] >= torch["through_gib"]
    assert own["own_gib"] * GIB > sum(one["bytes"] for one in truth["skewed"])
    assert own["own_gib"] + torch["own_gib"] == pytest.approx(total["gib"], abs=0.01)


def test_query_near_peak(ask, truth) -> None:
    rows = ask("near-peak")
    last = truth["iterations"][-1]
    (row,) = of(rows, run="before", iteration=last, rank=truth["skewed"][0]["rank"])
    (device,) = vramscope.open(
        FLEET / f"before/iteration_{last}/rank{row['rank']}_memory_snapshot.pickle"
    ).summary.devices
    assert row["peak_gib"] == round(device.requested.peak_bytes / GIB, 3)
    assert 0 < row["buckets"] <= 2048
    assert 0 < row["percent_near"] < 100
    assert row["median_gib"] <= row["peak_gib"]
    assert len(of(rows, run="before", iteration=last)) == truth["ranks"]


def test_query_findings(ask, truth) -> None:
    rows = ask("findings")
    last = truth["iterations"][-1]
    path = FLEET / f"before/iteration_{last}"
    ranks: dict[str, set[int]] = defaultdict(set)
    for rank in range(truth["ranks"]):
        snapshot = vramscope.open(path / f"rank{rank}_memory_snapshot.pickle")
        for finding in snapshot.findings:
            ranks[finding.kind].add(rank)
    told: dict[str, int] = defaultdict(int)
    for row in of(rows, run="before", iteration=last):
        told[row["kind"]] = max(told[row["kind"]], row["ranks"])
    assert told == {kind: len(all) for kind, all in ranks.items()}
    (leaking,) = truth["leaking"]
    (row,) = of(rows, run="before", iteration=last, kind="growth")
    assert (row["ranks"], row["most_rank"]) == (1, leaking["rank"])
    assert leaking["site"] in row["most_site"]


#: Queries whose rows have one order.
ORDERED = ("contents", "unreadable", "peaks", "drift", "peak-by-phase")


@pytest.mark.parametrize("name", ORDERED)
def test_the_program_answers_as_duckdb(name, ask, dataset, truth) -> None:
    stages = f"stages={len(truth['stages'])}"
    variables = ["--set", stages, "--set", "before=before", "--set", "after=d4e5f6"]
    answer = json.loads(said("sql", name, str(dataset), *variables, "--format", "json"))
    assert (answer["schema"], answer["query"]) == ("vramscope.sql/1", name)
    # Values that JSON lacks are texts.
    expected = json.loads(json.dumps(ask(name), default=str))
    assert [list(row) for row in answer["rows"]] == [list(row) for row in expected]
    assert answer["rows"] == expected
    text = said("sql", name, str(dataset), *variables)
    assert len(text.splitlines()) > len(answer["rows"]) or not answer["rows"]


def test_a_dataset_may_have_any_name(dataset, tmp_path) -> None:
    odd = tmp_path / "it's [a] *; DROP TABLE ranks"
    shutil.copytree(dataset, odd)
    plain = said("sql", "contents", str(dataset), "--format", "csv")
    assert said("sql", "contents", str(odd), "--format", "csv") == plain
    assert plain.startswith("run,iteration,files,ranks,unreadable,highest_peak_gib,findings\n")


def test_frames_of_a_stack_are_the_programs(ask, truth) -> None:
    (skewed,) = truth["skewed"]
    (stack,) = ask("SELECT stack_id FROM stacks WHERE site LIKE '%prefetch'")
    frames = ask(f"FROM frames_of('{stack['stack_id']}')")
    assert [frame["depth"] for frame in frames] == list(range(1, len(frames) + 1))
    path = next((FLEET / "before").glob(f"iteration_*/rank{skewed['rank']}_*.pickle"))
    stacks = vramscope.open(path).peak(by="stack").rows
    (row,) = [row for row in stacks if skewed["site"] in row.name]
    assert [(frame["name"], frame["line"]) for frame in frames] == [
        (frame.name, frame.line) for frame in row.frames
    ]


def test_the_stages_are_those_of_the_job(ask, truth) -> None:
    rows = ask("SELECT DISTINCT rank, stage FROM gpus WHERE run = 'before' ORDER BY rank")
    stages = {rank: stage for stage, ranks in enumerate(truth["stages"]) for rank in ranks}
    assert {row["rank"]: row["stage"] for row in rows} == stages
