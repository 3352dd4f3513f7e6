"""Converts and reads the snapshots of many ranks on Ray, which needs ``vramscope[ray]``.

Each file is a task of its own, on a worker that has this package. Places are those of fsspec:
``/runs/42``, ``s3://bucket/runs/**/rank*.pickle``, ``gs://bucket/runs/42``.

    import vramscope.ray

    done = vramscope.ray.convert("s3://bucket/runs/**/rank*.pickle", "s3://bucket/dataset")
    print(done)

    vramscope.ray.findings("s3://bucket/runs/42").to_pandas()

docs/fleets.md describes the dataset.

``pyarrow.dataset.write_dataset`` in each task cannot replace the writes below. A file becomes a
part of eleven tables, and a reader must see a part whole or not at all. ``write_dataset`` writes
one table, so a worker that is killed between two calls leaves a part in some tables only. Here
``ranks`` is written last, and a part that ``ranks`` lacks does not count. ``write_dataset`` also
writes under the final name, so a killed worker leaves half a Parquet file on a local disk. It knows
no source files. The next call asks ``ranks`` which files are there, have changed, or had no worker
to the end, and repairs these. Retries themselves are Ray's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib.resources
import json
import os
import pathlib
import re
import shutil
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, Union

from .dataset import export_parquet
from .errors import VramscopeError

try:
    import fcntl
except ImportError:
    # On Windows, what lost workers have left stays.
    fcntl = None  # type: ignore[assignment]

try:
    import fsspec
    import pyarrow
    import pyarrow.parquet
    import ray
    import ray.data
except ImportError as error:
    raise ImportError(
        f"vramscope.ray needs Ray Data ({error}): pip install 'vramscope[ray]'"
    ) from error

__all__ = ["Converted", "convert", "findings"]

#: One or several paths or patterns.
Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]

#: Stores that show an object only when it is whole. Elsewhere a file is renamed when it is.
_WHOLE = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "r2", "memory"}
)

#: The ends of the names of snapshots in a folder.
_ENDINGS = re.compile(r"\.(pickle|pkl|pt)(\.gz)?$")

#: What a pattern has.
_MAGIC = re.compile(r"[*?\[]")

#: Files of the dataset that are read or written at a time.
_THREADS = 16

#: How often a file of the dataset is written before that is an error.
_WRITES = 3


@dataclasses.dataclass
class Converted:
    """What `convert` did."""

    #: Files that were found.
    files: int = 0
    #: Files that were converted. Files that could not be read count, too.
    converted: int = 0
    #: Files that the dataset had already.
    present: int = 0
    #: Bytes of the converted files, and of what was written.
    bytes_read: int = 0
    bytes_written: int = 0
    #: Files that could not be read or converted, now or before, and why. They have rows in
    #: ``ranks``.
    failed: dict[str, str] = dataclasses.field(default_factory=dict)


def convert(
    paths: Paths,
    dataset: str | os.PathLike[str],
    *,
    run: str | None = None,
    retries: int = 3,
    concurrency: int | None = None,
    memory: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    dataset_options: Mapping[str, Any] | None = None,
) -> Converted:
    """Adds files to a dataset, each as a part of its own. Files that it has are skipped.

    A file that cannot be read is a row of ``ranks`` with its error. So is a file that could not be
    fetched, or whose workers were lost more than ``retries`` times. The next call tries such files
    again.

    Args:
        paths: files, folders or patterns.
        dataset: the folder of the dataset.
        run: the name of the run, by default that of the folder of its iterations.
        retries: how often a file is given to another worker when its worker is lost.
        concurrency: the largest number of files at a time, by default as many as Ray has CPUs.
        memory: bytes that a task may need. Ray starts no more tasks on a machine than fit.
        storage_options: for fsspec, of the files: credentials, endpoints.
        dataset_options: the same of the dataset, by default ``storage_options``.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: the dataset cannot be read or written.
    """
    options = dict(storage_options or {})
    target = _Store(os.fspath(dataset), options if dataset_options is None else dataset_options)
    items = _found(paths, options)
    there = target.parts(run)
    stale = _stale(items, there)
    target.remove({there[path].part for path in stale})
    missing = [item for item in items if item.path not in there or item.path in stale]
    target.add_sql()
    done = Converted(files=len(items), present=len(items) - len(missing))
    for item in items:
        before = there.get(item.path)
        if before is not None and before.error is not None and item.path not in stale:
            done.failed[item.path] = before.error
    work = _Convert(run, options, target)
    errors = {item.path: _lost(retries) for item in missing}
    if missing:
        rows = _run(work.batch, missing, retries, concurrency, memory)
        for row in rows.iter_rows():
            del errors[row["path"]]
            done.bytes_read += row["bytes"]
            done.bytes_written += row["written"]
            if row["error"] is not None:
                done.failed[row["path"]] = row["error"]
            if row["written"] == 0:
                errors[row["path"]] = row["error"]
    # A task may have written its part before it was lost.
    there = target.parts(run) if errors else {}
    for item in missing:
        if item.path not in errors:
            continue
        row = there.get(item.path)
        if row is None or not row.is_of(item):
            done.failed[item.path] = errors[item.path]
            done.bytes_written += work.write(item, errors[item.path])
        elif row.error is not None:
            done.failed[item.path] = row.error
    done.converted = len(missing)
    return done


def findings(
    paths: Paths,
    *,
    run: str | None = None,
    retries: int = 3,
    concurrency: int | None = None,
    memory: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> ray.data.Dataset:
    """The findings of files, as the table ``findings`` of a dataset, without making one.

    Columns are those of the table, with ``run``, ``iteration``, ``path`` and ``error``. A file that
    cannot be read is a row with its ``error``, in which ``kind`` is null.

    Args:
        paths: files, folders or patterns.
        run: the name of the run, by default that of the folder of its iterations.
        retries: how often a file is given to another worker when its worker is lost.
        concurrency: the largest number of files at a time, by default as many as Ray has CPUs.
        memory: bytes that a task may need. Ray starts no more tasks on a machine than fit.
        storage_options: for fsspec, of the files: credentials, endpoints.

    Raises:
        FileNotFoundError: nothing is there.
    """
    options = dict(storage_options or {})
    items = _found(paths, options)
    work = _Findings(run, options)
    rows = _run(work.batch, items, retries, concurrency, memory).materialize()
    seen = set(rows.unique("path"))
    lost = [work.rows(item, _lost(retries)) for item in items if item.path not in seen]
    if lost:
        rows = rows.union(ray.data.from_arrow(lost))
    # Each file has a row without a finding, by which it is known that none was lost.
    return rows.map_batches(_without_own_rows, batch_format="pyarrow")


def _without_own_rows(rows: pyarrow.Table) -> pyarrow.Table:
    is_kept = [
        kind is not None or error is not None
        for kind, error in zip(rows["kind"].to_pylist(), rows["error"].to_pylist())
    ]
    return rows.filter(pyarrow.array(is_kept, pyarrow.bool_()))


def _lost(retries: int) -> str:
    times = "once" if retries == 0 else f"{retries + 1} times"
    return f"the worker was lost {times}; it may have needed more memory than there was"


def _run(
    work: Callable[[pyarrow.Table], pyarrow.Table],
    items: list[_Item],
    retries: int,
    concurrency: int | None,
    memory: int | None,
) -> ray.data.Dataset:
    """Gives each file to a task."""
    # A block for each file, and a task for each block.
    given = [dataclasses.asdict(item) for item in items]
    rows = ray.data.from_items(given, override_num_blocks=len(items))
    # A file whose worker is lost again and again must not end the others.
    rows.context.max_errored_blocks = -1
    return rows.map_batches(
        work,
        batch_size=1,
        batch_format="pyarrow",
        concurrency=concurrency,
        num_cpus=1,
        memory=memory,
        ray_remote_args_fn=lambda: {"max_retries": retries},
    )


class _Work:
    """What is done with a file."""

    def __init__(self, run: str | None, options: Mapping[str, Any]) -> None:
        self.run = run
        self.options = options

    @contextlib.contextmanager
    def exported(self, item: _Item, error: str | None) -> Iterator[tuple[pathlib.Path, str | None]]:
        """A dataset of one file, and why the file cannot be read. With an ``error`` it is not."""
        with _folder() as folder:
            try:
                path = _fetched(item, self.options, folder / "files") if error is None else None
            except Exception as problem:  # Of any library.
                path, error = None, f"cannot fetch it: {_text(problem)}"
            path = path or _stand_in(item, folder / "absent")
            out = folder / "dataset"
            export_parquet(path, out, self.run)
            yield out, _name_file(_only(out, "ranks"), item, error)


class _Convert(_Work):
    """Adds a file to a dataset."""

    def __init__(self, run: str | None, options: Mapping[str, Any], target: _Store) -> None:
        super().__init__(run, options)
        self.target = target

    def batch(self, batch: pyarrow.Table) -> pyarrow.Table:
        rows = []
        for item in _items(batch):
            size, error, written = 0, None, 0
            try:
                with self.exported(item, None) as (out, error):
                    size = item.bytes
                    written = self.target.add(out)
            except Exception as problem:  # Of any library. Another machine may do better.
                error = _text(problem)
            rows.append({"path": item.path, "bytes": size, "written": written, "error": error})
        return pyarrow.Table.from_pylist(rows, schema=_DONE)

    def write(self, item: _Item, error: str) -> int:
        """Adds a file that no task could add. Returns the bytes that were written."""
        with self.exported(item, error) as (out, _):
            return self.target.add(out)


_DONE = pyarrow.schema(
    [
        ("path", pyarrow.string()),
        ("bytes", pyarrow.int64()),
        ("written", pyarrow.int64()),
        ("error", pyarrow.string()),
    ]
)


class _Findings(_Work):
    """The findings of a file."""

    def batch(self, batch: pyarrow.Table) -> pyarrow.Table:
        return pyarrow.concat_tables([self.rows(item, None) for item in _items(batch)])

    def rows(self, item: _Item, error: str | None) -> pyarrow.Table:
        with self.exported(item, error) as (out, problem):
            part = _only(out, "findings")
            found = _plain(_read(part))
            file = _plain(_read(_only(out, "ranks")))
            run, iteration = (folder.split("=", 1)[1] for folder in part.parts[-3:-1])
        # The last row is of the file itself.
        own = {name: file[name][0].as_py() for name in ("file", "rank")}
        rows = pyarrow.concat_tables([found, pyarrow.Table.from_pylist([own], schema=found.schema)])
        for name, kind, value, last in (
            ("error", pyarrow.string(), None, problem),
            ("path", pyarrow.string(), item.path, item.path),
            ("iteration", pyarrow.int64(), int(iteration), int(iteration)),
            ("run", pyarrow.string(), urllib.parse.unquote(run), urllib.parse.unquote(run)),
        ):
            column = pyarrow.array([value] * len(found) + [last], kind)
            rows = rows.add_column(0, pyarrow.field(name, kind), column)
        return rows


@dataclasses.dataclass(frozen=True)
class _Item:
    """A file to read."""

    #: Where it is: a path on the local disk, or with a protocol.
    path: str
    bytes: int
    modified_us: int | None


@dataclasses.dataclass(frozen=True)
class _Row:
    """A file that a dataset has."""

    #: The name of its part below the folder of a table.
    part: str
    bytes: int
    modified_us: int | None
    error: str | None
    error_kind: str | None

    def is_of(self, item: _Item) -> bool:
        """Whether the row is of the file as it is now."""
        is_same = (self.bytes, self.modified_us) == (item.bytes, item.modified_us)
        return is_same and self.error_kind != "unreadable"


class _Store:
    """A dataset at a place of fsspec. It is sent to workers."""

    def __init__(self, path: str, options: Mapping[str, Any]) -> None:
        self.path = path
        self.options = dict(options)

    def _open(self) -> tuple[fsspec.AbstractFileSystem, str]:
        files, root = fsspec.core.url_to_fs(self.path, **self.options)
        return files, str(root).rstrip("/")

    def parts(self, run: str | None) -> dict[str, _Row]:
        """The files that the dataset has, those of a run or all, by path."""
        files, root = self._open()
        names = [name for name in files.glob(f"{root}/ranks/run=*/iteration=*/*.parquet")]
        columns = ["path", "file_bytes", "modified_us", "error", "error_kind"]

        def read(name: str) -> dict[str, _Row]:
            part = "/".join(name.split("/")[-3:])
            if run is not None and urllib.parse.unquote(part.split("/")[0]) != f"run={run}":
                return {}
            with files.open(name) as file:
                rows = pyarrow.parquet.ParquetFile(file).read(columns).to_pylist()
            return {row.pop("path"): _Row(part, *row.values()) for row in map(dict, rows)}

        return {path: row for rows in _parallel(read, names) for path, row in rows.items()}

    def remove(self, parts: Iterable[str]) -> None:
        """Removes parts: first ``ranks``, without which the rest is no part."""
        files, root = self._open()

        def remove(part: str) -> None:
            for table in ("ranks", *_OTHERS):
                with contextlib.suppress(FileNotFoundError):
                    files.rm_file(f"{root}/{table}/{part}")

        _parallel(remove, sorted(parts))

    def add_sql(self) -> None:
        """Writes the views and macros of DuckDB."""
        files, root = self._open()
        files.makedirs(root, exist_ok=True)
        text = (importlib.resources.files(__package__) / "vramscope.sql").read_bytes()
        with _folder() as folder:
            (folder / "vramscope.sql").write_bytes(text)
            _put(files, folder / "vramscope.sql", f"{root}/vramscope.sql")

    def add(self, out: pathlib.Path) -> int:
        """Adds the parts of a dataset on the local disk. Returns the bytes that were written."""
        files, root = self._open()
        written = 0
        for table in (*_OTHERS, "ranks"):
            for path in sorted(out.glob(f"{table}/*/*/*.parquet")):
                _put(files, path, f"{root}/{path.relative_to(out).as_posix()}")
                written += path.stat().st_size
        return written


#: The tables without ``ranks``, by which it is known that a part is whole.
_OTHERS = (
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


def _put(files: fsspec.AbstractFileSystem, path: pathlib.Path, to: str) -> None:
    """Writes a file of a dataset. No one sees a half of it."""
    names = files.protocol if isinstance(files.protocol, (list, tuple)) else [files.protocol]
    for attempt in range(_WRITES):
        try:
            if _WHOLE.isdisjoint(names):
                files.makedirs(to.rsplit("/", 1)[0], exist_ok=True)
                files.put_file(str(path), f"{to}.tmp")
                files.mv(f"{to}.tmp", to)
            else:
                files.put_file(str(path), to)
            return
        except Exception:  # Of any library.
            if attempt + 1 == _WRITES:
                raise


def _found(paths: Paths, options: Mapping[str, Any]) -> list[_Item]:
    """The files at these places, in order, each once."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: dict[str, _Item] = {}
    for place in [os.fspath(one) for one in given]:
        files, path = fsspec.core.url_to_fs(place, **options)
        if _MAGIC.search(path):
            names = files.glob(path)
        elif files.isdir(path):
            names = [name for name in files.find(path) if _ENDINGS.search(name)]
        else:
            names = [path]
        is_local = _is_local(files)

        def item(name: str, files: Any = files, is_local: bool = is_local) -> _Item | None:
            info = files.info(name)
            if info["type"] != "file":
                return None
            if is_local:
                return _Item(name, info["size"], os.stat(name).st_mtime_ns // 1000)
            return _Item(files.unstrip_protocol(name), info["size"] or 0, _modified(info))

        items = [one for one in _parallel(item, names) if one is not None]
        if not items:
            raise FileNotFoundError(f"no files are at {place}")
        found.update((one.path, one) for one in items)
    return list(found.values())


def _is_local(files: fsspec.AbstractFileSystem) -> bool:
    return "file" in files.protocol


def _modified(info: Mapping[str, Any]) -> int | None:
    """When a file was written, in microseconds since 1970, as the store says."""
    for name in ("LastModified", "last_modified", "updated", "mtime", "modified", "created"):
        value = info.get(name)
        if isinstance(value, str):
            try:
                value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
            except ValueError:
                continue
        if isinstance(value, datetime.datetime):
            if value.tzinfo is None:
                value = value.replace(tzinfo=datetime.timezone.utc)
            value = value.timestamp()
        if isinstance(value, (int, float)):
            return int(value * 1_000_000)
    return None


def _stale(items: Iterable[_Item], there: Mapping[str, _Row]) -> set[str]:
    """Files that have changed or may be readable now, and the others of their parts."""
    given = {item.path: item for item in items}
    parts = set()
    for path, row in there.items():
        if path in given and not row.is_of(given[path]):
            parts.add(row.part)
    stale = {path for path, row in there.items() if row.part in parts}
    absent = sorted(stale - given.keys())
    if absent:
        raise VramscopeError(
            f"a file that was converted together with {absent[0]} has changed: give {absent[0]}, "
            "too, or another dataset"
        )
    return stale


def _fetched(item: _Item, options: Mapping[str, Any], folder: pathlib.Path) -> pathlib.Path:
    """The file on the local disk, with the file beside it."""
    files, path = fsspec.core.url_to_fs(item.path, **options)
    if _is_local(files):
        return pathlib.Path(path)
    local = _mirrored(item, folder)
    local.parent.mkdir(parents=True)
    files.get_file(path, str(local))
    _set_time(local, item)
    beside = _ENDINGS.sub(".vramscope.json", path)
    if beside != path and files.exists(beside):
        files.get_file(beside, str(local.parent / beside.rsplit("/", 1)[-1]))
    return local


def _stand_in(item: _Item, folder: pathlib.Path) -> pathlib.Path:
    """A file without contents, whose part has the name of that of the file."""
    local = _mirrored(item, folder)
    local.parent.mkdir(parents=True)
    with open(local, "wb") as file:
        file.truncate(item.bytes)
    _set_time(local, item)
    return local


def _set_time(local: pathlib.Path, item: _Item) -> None:
    if item.modified_us is not None:
        os.utime(local, ns=(item.modified_us * 1000, item.modified_us * 1000))


def _mirrored(item: _Item, folder: pathlib.Path) -> pathlib.Path:
    """The place of a file below a folder. Run, iteration and rank are in its path."""
    path = item.path.split("://", 1)[-1]
    return folder.joinpath(*(part for part in path.split("/") if part not in ("", ".", "..")))


def _name_file(ranks: pathlib.Path, item: _Item, error: str | None) -> str | None:
    """Says in ``ranks`` where the file is, and why it could not be fetched.

    Returns why it could not be read.
    """
    rows = _read(ranks)
    own = _plain(rows).to_pylist()
    if error is None and own[0]["path"] == item.path:
        return _text_or_none(own[0]["error"])
    columns: dict[str, list[str | None]] = {
        "path": [item.path] * len(own),
        "card": [_named_card(row["card"], row["path"], item, error) for row in own],
    }
    if error is not None:
        columns.update(error=[error] * len(own), error_kind=["unreadable"] * len(own))
    for name, values in columns.items():
        index = rows.schema.get_field_index(name)
        of = rows.schema.field(index)
        rows = rows.set_column(index, of, pyarrow.array(values, of.type))
    pyarrow.parquet.write_table(rows, ranks, compression="zstd")
    return _text_or_none(own[0]["error"] if error is None else error)


def _named_card(card: str | None, local: str, item: _Item, error: str | None) -> str | None:
    """The card of a device, with the place of its file."""
    if card is None:
        return None
    told = json.loads(card)
    # The name of a snapshot in the file may follow.
    told["path"] = told["path"].replace(local, item.path, 1)
    for finding in told.get("findings", ()):
        finding["record"]["path"] = told["path"]
    if error is not None:
        told["error"] = error
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


@contextlib.contextmanager
def _folder() -> Iterator[pathlib.Path]:
    """A folder on the local disk. Removes those that lost workers have left."""
    for left in pathlib.Path(tempfile.gettempdir()).glob("vramscope-*-ray*"):
        if _is_left(left):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"vramscope-{os.getpid()}-ray") as folder:
        with open(os.path.join(folder, _LOCK), "w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield pathlib.Path(folder)


#: The file that a worker locks while it uses its folder.
_LOCK = ".lock"

#: A folder without a lock is new if it is younger than this, in seconds.
_NEW = 60


def _is_left(folder: pathlib.Path) -> bool:
    if fcntl is None:
        return False
    try:
        if time.time() - folder.stat().st_mtime < _NEW:
            return False
        with open(folder / _LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _only(out: pathlib.Path, table: str) -> pathlib.Path:
    """The one part of a table."""
    (part,) = out.glob(f"{table}/*/*/*.parquet")
    return part


def _read(part: pathlib.Path) -> pyarrow.Table:
    return pyarrow.parquet.ParquetFile(part).read()


def _plain(rows: pyarrow.Table) -> pyarrow.Table:
    """The rows with texts in place of dictionaries, and values that may be null."""
    fields = [
        pyarrow.field(
            of.name, of.type.value_type if pyarrow.types.is_dictionary(of.type) else of.type
        )
        for of in rows.schema
    ]
    return rows.cast(pyarrow.schema(fields))


def _items(batch: pyarrow.Table) -> list[_Item]:
    return [_Item(**row) for row in batch.to_pylist()]


def _text(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


def _parallel(act: Callable[[_Given], _Result], all: Iterable[_Given]) -> list[_Result]:
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(act, all))
