"""Tables for pandas, polars, pyarrow, and for Python alone."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .shown import Grid

if TYPE_CHECKING:
    from .._vramscope import Table

#: Rows of a table in a notebook.
SHOWN = 10


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """The rows as dicts."""
    columns = table.to_pydict()
    names = tuple(columns)
    return (dict(zip(names, values)) for values in zip(*columns.values()))


def rows_from_the_last(table: Table) -> Iterator[dict[str, Any]]:
    """The rows as dicts, in reverse."""
    return rows(table[::-1])


def to_arrow(table: Table) -> Any:
    """A ``pyarrow.Table``."""
    return _module("pyarrow", "to_arrow").table(table)


def to_polars(table: Table) -> Any:
    """A ``polars.DataFrame``."""
    return _module("polars", "to_polars").DataFrame(table)


def to_pandas(table: Table) -> Any:
    """A ``pandas.DataFrame``. pyarrow makes it faster, but is not needed."""
    pandas = _module("pandas", "to_pandas")
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ModuleNotFoundError:
        return pandas.DataFrame(table.to_pydict())
    return pyarrow.table(table).to_pandas()


def html(table: Table) -> str:
    """The first rows, and how many there are."""
    columns = table[:SHOWN].to_pydict()
    cells = [["" if cell is None else str(cell) for cell in column] for column in columns.values()]
    grid = Grid(tuple(columns), list(zip(*cells)), "<" * len(columns))
    return f"<div>{''.join(grid.html())}<p>{len(table):,} rows</p></div>"


def _module(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(f"Table.{method} needs {name}: pip install {name}") from error
