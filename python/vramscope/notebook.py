"""Shows snapshots in a notebook.

The files and the viewer go to the browser by the messages of a widget, in pieces that the browser
asks for. No port is opened, and the browser asks no address for anything.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, Union

from . import _vramscope
from .errors import ReadError, VramscopeError
from .reader import Run, Snapshot

if TYPE_CHECKING:
    from .widget import Viewer

#: What is shown: a path, the result of ``torch.cuda.memory._snapshot()``, or what ``open`` and
#: ``open_run`` of this package return.
Source = Union[str, "os.PathLike[str]", Mapping[str, Any], Snapshot, Run]

#: How the viewer looks: ``auto`` is the theme of the system.
Theme = Literal["notebook", "auto", "light", "dark"]

#: The largest file that is shown without ``max_bytes``.
MAX_BYTES = 1 << 30

#: Bytes of a piece. The messages of Jupyter have at most 10 MB.
PIECE = 4 << 20

_GZIP = b"\x1f\x8b"

#: A sidecar has the name of its snapshot without these, in this order.
_ENDINGS = ((".gz",), (".pickle", ".pkl", ".pt"))


class File:
    """A file that the browser reads in pieces."""

    #: The name in the viewer.
    name: str
    #: Bytes.
    size: int
    #: Whether it is gzipped.
    is_packed = False

    def read(self, at: int) -> bytes:
        """The piece from a byte on.

        Raises:
            OSError: it cannot be read, or is not the file that was shown.
        """
        raise NotImplementedError


class OnDisk(File):
    """A file at a path."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.basename(path)
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            self.is_packed = file.read(2) == _GZIP
        self.size = status.st_size
        self._modified = status.st_mtime_ns

    def read(self, at: int) -> bytes:
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            if (status.st_size, status.st_mtime_ns) != (self.size, self._modified):
                raise OSError(f"{self.path} has changed: run the cell again")
            file.seek(at)
            return file.read(PIECE)


class Temporary(File):
    """A file that exists as long as this object."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self.size = file.tell()
        self._file = file
        # Kernels answer the messages of widgets in several threads.
        self._lock = threading.Lock()

    def read(self, at: int) -> bytes:
        with self._lock:
            self._file.seek(at)
            return self._file.read(PIECE)


class InMemory(File):
    """A part of the viewer."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.size = len(content)
        self._content = content

    def read(self, at: int) -> bytes:
        return self._content[at : at + PIECE]


def viewer_part(name: str) -> bytes:
    """A part of the viewer.

    Raises:
        VramscopeError: the package was built without the page.
    """
    part = _vramscope.viewer_part(name)
    if part is None:
        raise VramscopeError(
            "this build of vramscope has no viewer: run `cargo xtask build` before it is built"
        )
    return part


def show(
    source: Source | None = None,
    *,
    device: int | None = None,
    view: str | None = None,
    height: int = 720,
    theme: Theme = "notebook",
    max_bytes: int = MAX_BYTES,
) -> Viewer:
    """Shows a snapshot below the cell of a notebook, if it is the last expression of the cell.

    Args:
        source: a file; the result of ``torch.cuda.memory._snapshot()``; or what ``vramscope.open``
            or ``vramscope.open_run`` returned. By default the memory of this process now. The file
            that ``vramscope.record`` writes beside a snapshot is shown with it.
        device: the ordinal; by default that of the device with the most events.
        view: what is shown first, such as ``"flame"`` or ``"blocks"``.
        height: pixels.
        theme: ``"light"``, ``"dark"``, ``"auto"`` (the system's), or that of the notebook.
        max_bytes: a larger file is an error.

    Returns:
        The widget. ``selected``, ``finding`` and ``cursor`` are what is selected in it.

    Raises:
        ImportError: anywidget is not installed.
        ReadError: the file cannot be read, or is too large.
    """
    try:
        from .widget import Viewer
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "ipywidgets", "traitlets"):
            raise
        raise ImportError(
            "vramscope.show needs anywidget: pip install 'vramscope[notebook]'"
        ) from error
    state: dict[str, Any] = {}
    if isinstance(source, (str, os.PathLike)):
        files = _on_disk([os.fspath(source)])
    elif source is None or isinstance(source, Mapping):
        files = [_dumped(_now() if source is None else source)]
    elif isinstance(source, Snapshot):
        files = _on_disk([source._opened_for("shown").path])
        state = {"path": files[0].name, "part": source._entry, "device": source.device}
    elif isinstance(source, Run):
        # A file with several snapshots is shown once.
        files = _on_disk([*dict.fromkeys(snapshot.path for snapshot in source)])
    else:
        raise TypeError(
            f"a {type(source).__name__} is no snapshot: expected a path, the result of "
            "torch.cuda.memory._snapshot(), or what vramscope.open or open_run returns"
        )
    for file in files:
        if file.size > max_bytes:
            raise ReadError(
                file.name,
                f"it has {file.size:,} bytes, and a notebook shows at most {max_bytes:,}",
                "`vramscope serve` has no such limit; or raise max_bytes.",
                "unreadable",
                None,
            )
    if device is not None:
        state["device"] = device
    if view is not None:
        state["view"] = view
    return Viewer(files, state=state, height=height, theme=theme)


def _on_disk(paths: list[str]) -> list[File]:
    """Files, each with the file beside it if there is one. Equal names get their folders."""
    files = [file for path in paths for file in _with_sidecar(path)]
    if len({file.name for file in files}) < len(files):
        common = os.path.commonpath([os.path.abspath(os.path.dirname(file.path)) for file in files])
        for file in files:
            file.name = os.path.relpath(file.path, common).replace(os.sep, "/")
    return [*files]


def _with_sidecar(path: str) -> Iterator[OnDisk]:
    if os.path.isdir(path):
        hint = "vramscope.show(vramscope.open_run(FOLDER)) shows a folder."
        raise ReadError(path, "it is a folder", hint, "unreadable", None)
    try:
        yield OnDisk(path)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror or error}"
        raise ReadError(path, reason, None, "unreadable", None) from error
    stem = path
    for endings in _ENDINGS:
        found = next((ending for ending in endings if stem.endswith(ending)), "")
        stem = stem[: len(stem) - len(found)]
    beside = f"{stem}.vramscope.json"
    if beside != path and os.path.isfile(beside):
        yield OnDisk(beside)


def _now() -> Mapping[str, Any]:
    import torch

    snapshot: Mapping[str, Any] = torch.cuda.memory._snapshot()
    return snapshot


def _dumped(snapshot: Mapping[str, Any]) -> File:
    """Writes a snapshot as ``torch.cuda.memory._dump_snapshot`` does."""
    file = tempfile.TemporaryFile(prefix="vramscope-")
    pickle.dump(snapshot, file)
    return Temporary("snapshot.pickle", file)
