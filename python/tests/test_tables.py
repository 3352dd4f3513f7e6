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
    assert frame.shape == (len(rows), len(table.columns))
    assert list(frame.columns) == table.columns
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
        assert list(frame.columns) == blocks.columns
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


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_a_sequence_of_its_rows(snapshot, name: str) -> None:
    table = getattr(snapshot, name)
    rows = list(table)
    count = len(rows)
    assert (table[0], table[-1], table[count - 1], table[-count]) == (
        rows[0],
        rows[-1],
        rows[-1],
        rows[0],
    )
    assert [*reversed(table[:3])] == rows[2::-1]
    for index in (count, -count - 1):
        with pytest.raises(IndexError, match=f"no row {index}: the table has {count:d}"):
            table[index]
    for some in (
        slice(5),
        slice(3, 7),
        slice(-4, None),
        slice(None, None, 7),
        slice(None, None, -1),
        slice(9, 2, -3),
        slice(count, None),
        slice(7, 3),
    ):
        part = table[some]
        assert type(part) is type(table) and list(part) == rows[some]
        assert part.to_arrow().to_pylist() == rows[some]
        assert part.columns == table.columns
    assert [row for row in table[:5][1:3]] == rows[1:3]


def test_a_column_is_a_list(snapshot) -> None:
    blocks = snapshot.blocks
    for name in blocks.columns:
        assert blocks[name] == [row[name] for row in blocks]
    with pytest.raises(KeyError, match=r"no column \"cat\" \(available: address, reuse, "):
        blocks["cat"]
    for key in (1.5, None, (0, 1)):
        with pytest.raises(TypeError):
            blocks[key]
