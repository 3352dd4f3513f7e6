"""Waits for the import of PyTorch in a process of a dry run.

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
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


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


class _Dry:
    """The work around the import of PyTorch."""

    def __init__(self) -> None:
        self._process: Any = None

    def before(self) -> None:
        # The one copy of the package that all processes of the run share.
        sys.meta_path.insert(0, _OfPackage())
        from vramscope.dry.process import Process

        self._process = Process()
        self._process.before_torch()

    def after(self, torch: ModuleType) -> None:
        self._process.after_torch(torch)


def install() -> None:
    """Waits for the import of PyTorch in this process."""
    dry = _Dry()
    sys.meta_path.insert(0, _Waiting("torch", dry.before, dry.after))
