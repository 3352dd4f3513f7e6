"""The module written in Rust. Use `vramscope.open` and `vramscope.open_run`."""

import os
from collections.abc import Iterator, Sequence
from typing import IO, Any, final, overload

from .reader.names import BandName

__all__ = [
    "File",
    "Run",
    "Table",
    "bytes_text",
    "check_expression",
    "dry_shims",
    "export_parquet",
    "gpu",
    "holders_told",
    "main",
    "memory_size",
    "open",
    "open_file",
    "open_run",
    "report",
    "viewer_part",
    "walk",
]

def main(arguments: list[str], again: list[str] | None) -> int:
    """Runs the program with these arguments, of which the first is its name. ``again`` is the
    command line that runs it in another process."""

def viewer_part(name: str) -> bytes | None: ...
def walk(torch: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """Follows references from variables to what holds blocks."""

def holders_told(json: bytes, sizes: Sequence[tuple[int, int, int]]) -> str:
    """What holds blocks, as JSON with words. Sizes are device, address and bytes."""

def bytes_text(bytes: int, is_change: bool = False) -> str:
    """Bytes in words: ``5.46 GiB``. A change has its sign."""

def gpu(name: str) -> str:
    """The numbers of a GPU, as JSON.

    Raises:
        ValueError: No GPU has this name, or a dry run cannot be of it.
    """

def memory_size(text: str) -> int:
    """Bytes of a size such as ``24GiB``.

    Raises:
        ValueError: The text is no size.
    """

def check_expression(text: str) -> None:
    """Checks an expression of ``--fail-on``.

    Raises:
        ValueError: The text is none.
    """

def dry_shims(packages: str, core: str, cache: str) -> str:
    """Writes the files that answer for Nvidia's libraries, unless the cache has them.

    Raises:
        ValueError: PyTorch in this folder cannot be run dry, and why.
    """

def report(
    paths: list[str],
    output: str,
    source: bool = False,
    redact: bool = False,
    force: bool = False,
) -> list[str]:
    """Writes the report of files in HTML. Returns what it holds."""

def open(
    path: str,
    events: tuple[int, int] | None = None,
    max_memory: str | None = None,
    limits: bytes | None = None,
) -> File: ...
def open_file(
    file: IO[bytes],
    name: str,
    bytes: int,
    events: tuple[int, int] | None = None,
    max_memory: str | None = None,
) -> File: ...
def open_run(
    paths: list[str],
    events: tuple[int, int] | None = None,
    max_memory: str | None = None,
) -> Run: ...
def export_parquet(
    paths: list[str],
    dataset: str,
    run: str | None = None,
) -> tuple[list[int], list[tuple[str | os.PathLike[str], str]]]: ...

@final
class File:
    """A file in memory. Reports are the JSON that the program prints.

    Two of them are a report, and what is said beside it.
    """

    @property
    def path(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def limits(self) -> bytes: ...
    def entries(self) -> list[tuple[str, list[int], int | None]]: ...
    def summary(self) -> bytes: ...
    def info(self) -> bytes: ...
    def findings(self) -> bytes: ...
    def diagnosis(self) -> tuple[bytes, bytes]: ...
    def peak(self, entry: int, device: int, band: BandName) -> bytes: ...
    def lines(self, entry: int, device: int, band: BandName) -> bytes: ...
    def modules(self, entry: int, device: int) -> bytes: ...
    def shapes(self, entry: int, device: int) -> bytes: ...
    def holders(self, entry: int, device: int, at_end: bool) -> bytes: ...
    def uses(self, entry: int, device: int) -> bytes: ...
    def steps(self, entry: int, device: int) -> bytes: ...
    def diff(
        self,
        before: tuple[int, int],
        other: File,
        after: tuple[int, int],
        band: BandName,
    ) -> tuple[bytes, bytes]: ...
    def what_if(self, entry: int, device: int, question: str) -> tuple[bytes, bytes]: ...
    def blocks(self, entry: int, device: int) -> Table: ...
    def events(self, entry: int, device: int) -> Table: ...
    def segments(self, entry: int, device: int) -> Table: ...
    def stacks(self, entry: int) -> Table: ...

@final
class Run:
    """The files under some paths, all in memory."""

    @property
    def skipped_files(self) -> int: ...
    @property
    def paths(self) -> list[str]: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def files(self) -> list[File]: ...
    def errors(self) -> list[Exception]: ...
    def summary(self) -> bytes: ...
    def findings(self) -> bytes: ...
    def diagnosis(self) -> tuple[bytes, bytes]: ...

@final
class Table:
    """A table, which other libraries take by the Arrow PyCapsule interface without a copy.

    It is a sequence of its rows, as dicts: ``table[0]``, ``table[-1]``. A slice is a table, without
    a copy for neighbors: ``table[:5]``. ``table["site"]`` is a column as a list.
    """

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    @overload
    def __getitem__(self, key: int, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice, /) -> Table: ...
    @overload
    def __getitem__(self, key: str, /) -> list[Any]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __reversed__(self) -> Iterator[dict[str, Any]]: ...
    def to_pydict(self) -> dict[str, list[Any]]: ...
    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``. Needs pandas; with pyarrow it is faster."""

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``, without a copy. Needs polars."""

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``, without a copy. Needs pyarrow."""
