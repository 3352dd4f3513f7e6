"""Waits for the import of PyTorch, in a process of a dry run or below ``vramscope record --``.

It is loaded by its path, before any package: a process that never imports PyTorch pays for this
file only.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Callable

#: The folder of the package ``vramscope``. PyTorch's Python need not have it installed.
PACKAGE = os.path.dirname(os.path.abspath(__file__))


def python_path() -> str:
    """The ``PYTHONPATH`` by which processes run ``inject/sitecustomize.py`` at their start."""
    path = os.environ.get("PYTHONPATH")
    inject = os.path.join(PACKAGE, "inject")
    return inject if not path else inject + os.pathsep + path


class _OfPackage:
    """Finds the package ``vramscope`` where no installed one is found."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "vramscope":
            return None
        file = os.path.join(PACKAGE, "__init__.py")
        return importlib.util.spec_from_file_location(
            name, file, submodule_search_locations=[PACKAGE]
        )


class _Waiting:
    """Finds a package as others would, and does its work around the import."""

    def __init__(
        self,
        name: str,
        before: Callable[[], None],
        after: Callable[[ModuleType], None],
    ) -> None:
        self._name = name
        self._before = before
        self._after = after
        self._is_asking = False

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_asking = False
        if spec is not None and spec.loader is not None:
            self._surround(spec.loader)
        return spec

    def _surround(self, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            self._before()
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            # A package may have put another module in its place.
            self._after(sys.modules.get(self._name, module))

        loader.exec_module = exec_module


def when_imported(name: str, call: Callable[[ModuleType], None]) -> None:
    """Calls now if a package is imported, else after its import."""
    module = sys.modules.get(name)
    if module is not None:
        call(module)
        return
    sys.meta_path.insert(0, _Waiting(name, lambda: None, call))


def _take_package() -> None:
    """Lets this process import the one copy of the package that all processes share."""
    sys.meta_path.insert(0, _OfPackage())


class _Dry:
    """The work of a dry run around the import of PyTorch."""

    def __init__(self) -> None:
        self._process: Any = None

    def before(self) -> None:
        _take_package()
        from vramscope.dry.process import Process

        self._process = Process()
        self._process.before_torch()

    def after(self, torch: ModuleType) -> None:
        self._process.after_torch(torch)


def _record(torch: ModuleType) -> None:
    """Records this process from its first use of a GPU on."""
    try:
        _take_package()
        from vramscope.recorder import by_environment
    except Exception as error:
        # The program goes on: it is not about the recording.
        print(f"vramscope: process {os.getpid()} is not recorded: {error}", file=sys.stderr)
        return
    by_environment.wait(torch)


def install() -> None:
    """Waits for the import of PyTorch in this process."""
    if "VRAMSCOPE_DRY_RUN" in os.environ:
        dry = _Dry()
        sys.meta_path.insert(0, _Waiting("torch", dry.before, dry.after))
    else:
        when_imported("torch", _record)
