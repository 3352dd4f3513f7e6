"""Tables in pandas, polars, DuckDB and pyarrow, and without them.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it.
"""

from __future__ import annotations

import pathlib
import sys

import duckdb
import pandas
import polars
import pyarrow
import pytest

import vramscope

DATA = pathlib.Path(__file__).parents[2] / "test_data"
OOM = DATA / "recorded" / "oom_expandable.pickle.gz"
BESIDE = DATA / "beside" / "oom_1" / "rank3_memory_snapshot.pickle"

TABLES = ("blocks", "events", "stacks", "segments")


@pytest.fixture(scope="module", params=[OOM, BESIDE], ids=["plain", "with sidecar"])
def snapshot(request) -> vramscope.Snapshot:
    return vramscope.open(request.param)


@pytest.mark.parametrize("name", TABLES)
def test_every_library_has_the_rows(snapshot, name: str) -> None:
    table = getattr(snapshot, name)
    rows = table.to_arrow().to_pylist()
    assert len(rows) == len(table) > 0
    assert list(table) == rows
    assert table.to_polars().to_dicts() == rows
    assert table.to_polars().equals(polars.DataFrame(table))
    assert pyarrow.table(table).equals(table.to_arrow())
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.shape == (len(rows), len(table.column_names))
    assert list(frame.columns) == table.column_names
    connection = duckdb.connect()
    connection.register("taken", table)
    ((count,),) = connection.sql("select count(*) from taken").fetchall()
    assert count == len(rows)


def test_pandas_takes_a_table(snapshot) -> None:
    blocks = snapshot.blocks
    wanted = sum(row["requested_bytes"] for row in blocks)
    for frame in (
        pandas.DataFrame(blocks),
        blocks.to_pandas(),
        pandas.DataFrame.from_arrow(blocks),
    ):
        assert list(frame.columns) == blocks.column_names
        assert int(frame["requested_bytes"].sum()) == wanted
        assert frame["address"].dtype.kind in "ui"
        by_category = frame.groupby("category", observed=True)["requested_bytes"].sum()
        assert int(by_category.sum()) == wanted
        freed = frame["free_completed_event"]
        assert freed.isna().sum() == sum(row["free_completed_event"] is None for row in blocks)


def test_pandas_needs_no_pyarrow(snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pyarrow = snapshot.events.to_pandas()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = snapshot.events.to_pandas()
    assert list(frame.columns) == list(with_pyarrow.columns)
    assert frame["size_bytes"].tolist() == with_pyarrow["size_bytes"].tolist()
    assert frame["site"].astype(str).tolist() == with_pyarrow["site"].astype(str).tolist()


@pytest.mark.parametrize(
    ("method", "package"),
    [("to_pandas", "pandas"), ("to_polars", "polars"), ("to_arrow", "pyarrow")],
)
def test_a_missing_package_is_named(snapshot, monkeypatch, method: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"Table.{method} needs {package}: pip install {package}"):
        getattr(snapshot.blocks, method)()


def test_a_table_shows_its_first_rows(snapshot) -> None:
    blocks = snapshot.blocks
    html = blocks._repr_html_()
    assert html.count("<tr>") == 11
    assert f"{len(blocks):,} rows" in html
    assert len(blocks.slice(3, 4)) == 4
    assert list(blocks.slice(3, 4)) == list(blocks)[3:7]
    assert len(blocks.slice(len(blocks) + 1, 4)) == 0
