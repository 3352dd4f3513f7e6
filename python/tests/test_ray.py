"""Fleets on Ray: the rows of one machine, also when workers are lost.

Ray is large, so ``cargo xtask test --long`` installs it and runs this. ``VRAMSCOPE_FLEET`` names a
folder as in ``test_fleet.py``.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow
import pytest

import vramscope

ray = pytest.importorskip("ray")

import vramscope.ray  # noqa: E402

FLEET = pathlib.Path(os.environ.get("VRAMSCOPE_FLEET", "."))

TABLES = (
    "ranks",
    "blocks",
    "stacks",
    "frames",
    "peak",
    "curve",
    "segments",
    "ooms",
    "findings",
    "phases",
    "annotations",
)

Dataset = pathlib.Path


@pytest.fixture(scope="module", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Starts Ray. Gives the folder in which its workers have their temporary files."""
    folder = tmp_path_factory.mktemp("temporary")
    environment = {"env_vars": {"TMPDIR": str(folder)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    yield folder
    ray.shutdown()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Ranks of one iteration, with a file that ends too early and one that is no snapshot."""
    run = tmp_path_factory.mktemp("runs") / "big"
    folder = run / "iteration_100"
    shutil.copytree(FLEET / "before" / "iteration_100", folder)
    ranks = len(list(folder.iterdir()))
    assert ranks >= 32
    whole = (folder / "rank0_memory_snapshot.pickle").read_bytes()
    (folder / f"rank{ranks}_memory_snapshot.pickle").write_bytes(whole[: len(whole) // 2])
    (folder / f"rank{ranks + 1}_memory_snapshot.pickle").write_bytes(b"nothing of the kind")
    (folder / "rank3_memory_snapshot.vramscope.json").write_text('{"version": 1, "host": "node7"}')
    return run


@pytest.fixture(scope="module")
def files(runs: pathlib.Path) -> list[pathlib.Path]:
    return sorted(runs.glob("**/rank*.pickle"))


@pytest.fixture(scope="module")
def wanted(files: list[pathlib.Path], tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The dataset that one machine makes of the files."""
    dataset = tmp_path_factory.mktemp("wanted")
    done = vramscope.export_parquet(files, dataset)
    assert (done.converted, len(done.failed)) == (len(files), 2)
    return dataset


def rows(dataset: Dataset, table: str, without: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """The rows of a table in order. Those of stacks and frames are in several parts."""
    distinct = "DISTINCT" if table in ("stacks", "frames") else ""
    left_out = f"EXCLUDE ({', '.join(without)})" if without else ""
    return duckdb.sql(
        f"SELECT {distinct} * {left_out} "
        f"FROM read_parquet('{dataset}/{table}/*/*/*.parquet') ORDER BY ALL"
    ).fetchall()


def cards(dataset: Dataset) -> list[dict[str, Any]]:
    """The cards of the ranks in order."""
    query = f"SELECT card FROM read_parquet('{dataset}/ranks/*/*/*.parquet') ORDER BY rank"
    return [json.loads(card) for (card,) in duckdb.sql(query).fetchall()]


def assert_equal(dataset: Dataset, wanted: Dataset, without: tuple[str, ...] = ()) -> None:
    for table in TABLES:
        names = without if table == "ranks" else ()
        own, other = rows(dataset, table, names), rows(wanted, table, names)
        assert len(own) == len(other) > 0 or table == "ooms", table
        assert own == other, table


def parts(dataset: Dataset) -> int:
    return len(list(dataset.glob("ranks/*/*/*.parquet")))


@contextlib.contextmanager
def killing(temporary: pathlib.Path, dataset: Dataset, times: int) -> Iterator[list[int]]:
    """Ends workers that have a file in work, which gives the ids of their processes."""
    ended: list[int] = []
    is_over = threading.Event()

    def workers() -> list[int]:
        return [int(folder.name.split("-")[1]) for folder in temporary.glob("vramscope-*-ray*")]

    def run() -> None:
        while not is_over.wait(0.05) and len(ended) < times:
            # Some parts are there for each that was ended.
            if parts(dataset) < 4 * (len(ended) + 1):
                continue
            for process in workers():
                if process not in ended:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                        ended.append(process)
                    break

    thread = threading.Thread(target=run)
    thread.start()
    yield ended
    is_over.set()
    thread.join()


def test_a_fleet_has_the_rows_of_one_machine(temporary, runs, files, wanted, tmp_path) -> None:
    dataset = tmp_path / "dataset"
    done = vramscope.ray.convert(f"{runs.parent}/**/rank*.pickle", dataset)
    assert (done.files, done.converted, done.present) == (len(files), len(files), 0)
    ranks = len(files) - 2
    assert sorted(done.failed) == [
        str(runs / f"iteration_100/rank{rank}_memory_snapshot.pickle")
        for rank in sorted((ranks, ranks + 1), key=str)
    ]
    assert done.bytes_read == sum(path.stat().st_size for path in files)
    assert parts(dataset) == len(files)
    assert_equal(dataset, wanted)
    left = [path for path in dataset.glob("**/*") if path.name.endswith(".tmp")]
    assert left == []
    assert list(temporary.glob("vramscope-*")) == []
    assert (dataset / "vramscope.sql").is_file()
    # A second time nothing is to be done.
    again = vramscope.ray.convert(runs, dataset)
    assert (again.files, again.converted, again.present) == (len(files), 0, len(files))
    assert again.failed == done.failed


def test_a_lost_worker_loses_nothing(temporary, runs, files, wanted, tmp_path) -> None:
    dataset = tmp_path / "dataset"
    with killing(temporary, dataset, 3) as ended:
        done = vramscope.ray.convert(f"{runs}/**/rank*.pickle", dataset, retries=10)
    assert len(ended) == 3
    assert (done.converted, len(done.failed)) == (len(files), 2)
    assert_equal(dataset, wanted)


def test_a_file_without_a_worker_is_a_row_and_is_tried_again(
    temporary, runs, files, wanted, tmp_path
) -> None:
    dataset = tmp_path / "dataset"
    with killing(temporary, dataset, 10) as ended:
        done = vramscope.ray.convert(f"{runs}/**/rank*.pickle", dataset, retries=0)
    lost = [path for path, why in done.failed.items() if "the worker was lost" in why]
    assert 0 < len(lost) <= len(ended)
    errors = duckdb.sql(
        f"SELECT path, file_bytes, error FROM read_parquet('{dataset}/ranks/*/*/*.parquet') "
        "WHERE error_kind = 'unreadable' ORDER BY path"
    ).fetchall()
    assert errors == [(path, os.path.getsize(path), done.failed[path]) for path in sorted(lost)]
    again = vramscope.ray.convert(f"{runs}/**/rank*.pickle", dataset)
    assert (again.converted, again.present) == (len(lost), len(files) - len(lost))
    assert_equal(dataset, wanted)


def test_a_changed_file_replaces_its_rows(runs, tmp_path) -> None:
    run = tmp_path / "runs" / "big"
    folder = run / "iteration_100"
    folder.mkdir(parents=True)
    for rank in (1, 2):
        shutil.copy(runs / "iteration_100" / f"rank{rank}_memory_snapshot.pickle", folder)
    dataset = tmp_path / "dataset"
    assert vramscope.ray.convert(run, dataset).converted == 2
    (folder / "rank2_memory_snapshot.pickle").write_bytes(
        (folder / "rank1_memory_snapshot.pickle").read_bytes()
    )
    done = vramscope.ray.convert(run, dataset)
    assert (done.converted, done.present) == (1, 1)
    vramscope.export_parquet(run, tmp_path / "wanted")
    assert_equal(dataset, tmp_path / "wanted")


def test_files_of_a_server_are_fetched(runs, wanted, tmp_path) -> None:
    handler = functools.partial(QuietHandler, directory=str(runs.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        dataset = tmp_path / "dataset"
        done = vramscope.ray.convert(f"{place}/big/iteration_100/rank*.pickle", dataset)
        server.shutdown()
    assert len(done.failed) == 2
    # A server of files does not say when they were written.
    assert_equal(dataset, wanted, without=("path", "modified_us", "card"))
    own, other = cards(dataset), cards(wanted)
    for card in other:
        card["path"] = f"{place}/{pathlib.Path(card['path']).relative_to(runs.parent)}"
        for finding in card.get("findings", ()):
            finding["record"]["path"] = card["path"]
    assert own == other
    (row,) = duckdb.sql(
        f"SELECT path, host FROM read_parquet('{dataset}/ranks/*/*/*.parquet') WHERE rank = 3"
    ).fetchall()
    assert row == (f"{place}/big/iteration_100/rank3_memory_snapshot.pickle", "node7")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_findings_are_those_of_the_dataset(runs, files, wanted) -> None:
    found = vramscope.ray.findings(runs)
    connection = duckdb.connect()
    connection.register("found", pyarrow.concat_tables(ray.get(found.to_arrow_refs())))
    own = connection.sql(
        "SELECT * EXCLUDE (path, error) FROM found WHERE error IS NULL ORDER BY ALL"
    ).fetchall()
    assert len(own) > 0
    hive = f"FROM read_parquet('{wanted}/findings/*/*/*.parquet') ORDER BY ALL"
    assert own == duckdb.sql(f"SELECT run, iteration, * EXCLUDE (run, iteration) {hive}").fetchall()
    bad = connection.sql("SELECT rank, kind, path FROM found WHERE error IS NOT NULL ORDER BY rank")
    ranks = len(files) - 2
    assert bad.fetchall() == [
        (rank, None, str(runs / f"iteration_100/rank{rank}_memory_snapshot.pickle"))
        for rank in (ranks, ranks + 1)
    ]


def test_nothing_to_read_is_an_error(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="no files"):
        vramscope.ray.convert(f"{tmp_path}/**/rank*.pickle", tmp_path / "dataset")


def test_without_ray_the_error_says_what_to_install(tmp_path) -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "try: import vramscope.ray\n"
        "except ImportError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'vramscope[ray]'" in told.stdout
