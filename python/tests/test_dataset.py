"""Datasets: Python writes what the program writes, and readers find units and partitions.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

import duckdb
import pyarrow.parquet
import pytest

import vramscope

DATA = pathlib.Path(__file__).parents[2] / "test_data"
RANKS = DATA / "recorded" / "ranks_fsdp"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")


def contents(dataset: pathlib.Path) -> dict[str, bytes]:
    files = (path for path in dataset.rglob("*") if path.is_file())
    return {str(path.relative_to(dataset)): path.read_bytes() for path in files}


def test_python_and_program_write_the_same_bytes(tmp_path) -> None:
    done = vramscope.export_parquet(RANKS, tmp_path / "python")
    assert (done.converted, done.present, done.skipped, done.parts) == (2, 0, 0, 1)
    assert done.failed == ()
    assert done.bytes_read == sum(path.stat().st_size for path in RANKS.iterdir())
    command = [PROGRAM, "export", RANKS, "--as", "parquet", "-o", tmp_path / "program"]
    subprocess.run(command, check=True)
    written = contents(tmp_path / "python")
    assert written == contents(tmp_path / "program")
    tables = [content for name, content in written.items() if name.endswith(".parquet")]
    assert done.bytes_written == sum(map(len, tables))
    again = vramscope.export_parquet([RANKS], tmp_path / "python")
    assert (again.converted, again.present, again.parts) == (0, 2, 0)


def test_bad_files_have_rows_with_their_error(tmp_path) -> None:
    good, bad = tmp_path / "step_7" / "rank0.pickle", tmp_path / "step_7" / "rank1.pickle"
    good.parent.mkdir()
    whole = (DATA / "recorded" / "t26" / "linear_seed_python.pickle").read_bytes()
    good.write_bytes(whole)
    bad.write_bytes(whole[: len(whole) // 2])
    dataset = tmp_path / "dataset"
    done = vramscope.export_parquet([good, bad], dataset, run="job")
    ((path, why),) = done.failed
    assert path == str(bad)
    connection = duckdb.connect()
    ranks = connection.execute(
        "select run, iteration, rank, error from read_parquet(?, hive_partitioning=true)"
        " order by rank",
        [f"{dataset}/ranks/**/*.parquet"],
    ).fetchall()
    assert ranks == [("job", 7, 0, None), ("job", 7, 1, why)]
    assert vramscope.export_parquet(good.parent, dataset, run="job").failed == ((path, why),)


def test_columns_have_units(tmp_path) -> None:
    vramscope.export_parquet(RANKS, tmp_path)
    (path,) = (tmp_path / "blocks").rglob("*.parquet")
    schema = pyarrow.parquet.read_schema(path)
    assert schema.metadata[b"vramscope.schema"] == b"vramscope.dataset/1"
    units = {name: schema.field(name).metadata.get(b"unit") for name in schema.names}
    assert units["block_bytes"] == b"bytes"
    assert units["alloc_event"] == b"events"
    assert units["lifetime_us"] == b"microseconds"
    assert units["reuse"] is None
    assert all(schema.field(name).metadata[b"description"] for name in schema.names)


def test_two_files_of_one_name_are_refused(tmp_path) -> None:
    files = [DATA / "recorded" / torch / "pools.pickle" for torch in ("t20", "t26")]
    with pytest.raises(ValueError, match=r"would both be pools\.pickle of run one"):
        vramscope.export_parquet(files, tmp_path, run="one")
