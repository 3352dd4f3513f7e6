"""The widget of ``vramscope.show``. Importing this needs anywidget."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import anywidget
import traitlets

from .notebook import File, InMemory, Theme, viewer_part

#: The parts of the viewer that the browser asks for by name.
_PARTS = ("script", "view", "worker")

_THEMES: tuple[Theme, ...] = get_args(Theme)


class Viewer(anywidget.AnyWidget):
    """The viewer in a notebook.

    Its traits follow what is selected in the browser, so ``observe`` works:

        w = vramscope.show("rank0_memory_snapshot.pickle")
        w.observe(lambda change: print(change.new["site"]), "selected")

    A trait of a widget that is shown twice has the last selection of both.
    """

    _esm = viewer_part("notebook").decode()

    #: The selected block, as ``vramscope blocks --format json`` prints it, with its ``reference``,
    #: ``device``, call stack (``frames``) and the ``path`` of its file. ``None`` without one.
    selected = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)
    #: The selected finding, as ``vramscope diagnose --all --format json`` prints it.
    finding = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)
    #: The event of the time cursor; -1 is the state before the first event.
    cursor = traitlets.Int(default_value=None, allow_none=True).tag(sync=True)
    #: What the viewer could not read or do: ``{"path", "message", "hint"}``.
    errors = traitlets.List(traitlets.Dict()).tag(sync=True)
    #: How the widget is shown.
    options = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        files: Sequence[File],
        *,
        state: Mapping[str, Any],
        height: int,
        theme: Theme,
    ) -> None:
        if theme not in _THEMES:
            raise ValueError(f"theme is {theme!r}: expected one of {', '.join(_THEMES)}")
        self._files = tuple(files)
        super().__init__(
            options={
                "files": [{"name": file.name, "bytes": file.size} for file in files],
                "height": height,
                "theme": theme,
                "state": dict(state),
            }
        )
        self.on_msg(self._answer)

    def __repr__(self) -> str:
        names = ", ".join(file.name for file in self._files)
        return f"<vramscope viewer of {names}>"

    def select(self, reference: str | None) -> None:
        """Selects the block ``<device>:<address>@<event|pre>`` in the browser; ``None`` clears."""
        self.send({"kind": "select", "reference": reference})

    def _answer(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        """Sends a piece of a file or of the viewer."""
        if content.get("kind") != "read":
            return
        answer: dict[str, Any] = {"id": content.get("id")}
        try:
            file = self._part(content.get("part"))
            piece = file.read(int(content.get("at", 0)))
        except (OSError, LookupError, ValueError) as error:
            self.send({**answer, "kind": "failed", "message": str(error)})
            return
        packed = piece if file.is_packed else gzip.compress(piece, 1)
        is_smaller = len(packed) < len(piece)
        self.send(
            {**answer, "kind": "piece", "bytes": file.size, "gzip": is_smaller},
            [packed if is_smaller else piece],
        )

    def _part(self, part: object) -> File:
        if isinstance(part, int) and 0 <= part < len(self._files):
            return self._files[part]
        if part in _PARTS:
            return InMemory(str(part), viewer_part(str(part)))
        raise LookupError(f"there is no part {part!r}")
