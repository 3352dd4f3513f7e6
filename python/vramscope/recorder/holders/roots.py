"""Where references begin: the variables of the program."""

from __future__ import annotations

import contextvars
import math
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from . import plain

#: The package, whose own variables hold nothing for the program.
OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
#: Folders of Python and of installed packages.
LIBRARIES = tuple(
    {
        sysconfig.get_paths()[name] + os.sep
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_DICT_OF_MODULE: Callable[[Any], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__
#: Flag of a code object: its local variables are not a dict of their own.
OPTIMIZED = 0x1


class Roots:
    """The variables of all threads and modules. Their values are held until they are dropped.

    Args:
        until: When no more are looked at, by ``time.perf_counter``.
    """

    def __init__(self, until: float = math.inf) -> None:
        self._until = until
        #: Whether some were not looked at.
        self.cut = False
        #: Of each variable what a link says of it. Those of the program come first.
        self.links: list[dict[str, Any]] = []
        self.values: list[Any] = []
        #: Whether it is of a library's function, which ends with the call that the program makes.
        self.passing: list[bool] = []
        #: How many variables are the program's.
        self.own = 0
        #: What no way may lead through: frames that run, modules and their dicts.
        self.skipped: list[Any] = [sys.modules]
        self._theirs: list[tuple[dict[str, Any], Any, bool]] = []
        self._seen = 0
        self._dicts: set[int] = set()
        self._frames()
        self._modules()
        self._contexts()
        self.own = len(self.values)
        for link, value, passing in self._theirs:
            self._append(link, value, passing)
        self._theirs.clear()

    def _append(self, link: dict[str, Any], value: Any, passing: bool) -> None:
        self.links.append(link)
        self.values.append(value)
        self.passing.append(passing)

    def _add(self, link: dict[str, Any], value: Any, is_own: bool, passing: bool = False) -> None:
        self._seen += 1
        if self._seen % 1024 == 0 and time.perf_counter() > self._until:
            self.cut = True
        if self.cut:
            return
        if is_own:
            self._append(link, value, passing)
        else:
            self._theirs.append((link, value, passing))

    # -- Local variables ---------------------------------------------------------------------------

    def _frames(self) -> None:
        main = threading.main_thread().ident
        names = {thread.ident: thread.name for thread in _threads()}
        here = threading.get_ident()
        frames = sys._current_frames()
        for ident in sorted(frames, key=lambda one: (one != here, one != main, one)):
            frame: FrameType | None = frames[ident]
            while frame is not None:
                self.skipped.append(frame)
                if not frame.f_code.co_filename.startswith(OWN):
                    self._frame(frame, None if ident == main else names.get(ident, "?"))
                frame = frame.f_back
        frames.clear()

    def _frame(self, frame: FrameType, thread: str | None) -> None:
        if self.cut:
            return
        code = frame.f_code
        is_own = not code.co_filename.startswith(LIBRARIES)
        if not code.co_flags & OPTIMIZED:
            # The code of a module, whose variables are global. It may run in a dict of its own.
            self._globals(frame.f_globals, "", code.co_filename, is_own)
            return
        place = {
            "function": getattr(code, "co_qualname", code.co_name)[: plain.MAX_NAME],
            "file": code.co_filename,
            "line": frame.f_lineno,
        }
        if thread is not None:
            place["thread"] = thread
        for name, value in locals_of(frame).items():
            self._add({"by": "local", "name": name, **place}, value, is_own, passing=not is_own)

    # -- Global variables --------------------------------------------------------------------------

    def _modules(self) -> None:
        for name, module in list(sys.modules.items()):
            if not plain.is_a(module, ModuleType):
                continue
            self.skipped.append(module)
            values = _DICT_OF_MODULE(module)
            file = values.get("__file__")
            file = file if type(file) is str else ""
            is_main = name == "__main__"
            is_own = is_main or (file != "" and not file.startswith(LIBRARIES))
            if not file.startswith(OWN) or is_main:
                self._globals(values, name, file, is_own)
            else:
                self.skipped.append(values)

    def _globals(self, values: dict[str, Any], module: str, file: str, is_own: bool) -> None:
        if id(values) in self._dicts:
            return
        self._dicts.add(id(values))
        self.skipped.append(values)
        named = values.get("__name__") if not module else module
        module = named if type(named) is str else "?"
        if file.startswith(OWN):
            return
        for name, value in list(values.items()):
            if self.cut:
                return
            if type(name) is str:
                link = {"by": "global", "name": name, "module": module, "file": file or None}
                self._add(link, value, is_own)

    # -- Others ------------------------------------------------------------------------------------

    def _contexts(self) -> None:
        for variable, value in contextvars.copy_context().items():
            self._add({"by": "context", "name": variable.name}, value, False)
        handled: dict[int, Any] = getattr(sys, "_current_exceptions", dict)()
        for value in handled.values():
            # From Python 3.12 on an exception, before with its type and traceback.
            error = value[1] if type(value) is tuple else value
            if error is not None:
                self._add({"by": "handled", "name": plain.type_name(error)}, error, False)


def _threads() -> Iterator[threading.Thread]:
    # `threading.enumerate` takes a lock that the interrupted code may hold.
    yield from list(getattr(threading, "_active", {}).values())


def locals_of(frame: FrameType) -> dict[str, Any]:
    """The local variables of a frame.

    Up to Python 3.12 a frame keeps the dict of its local variables once it was asked for, and so
    what the program deletes later. It is cleared, unless the program has it.
    """
    values = frame.f_locals
    if not plain.is_a(values, dict):
        return dict(values)
    copy = dict(values)
    # The frame, `values`, and the argument.
    if frame.f_code.co_flags & OPTIMIZED and sys.getrefcount(values) <= 3:
        values.clear()
    return copy
