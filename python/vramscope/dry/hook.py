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
from typing import Any, Optional

#: The folder of the package ``vramscope``. PyTorch's Python need not have it installed.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class _OfPackage:
    """Finds the package ``vramscope`` where no installed one is found."""

    @staticmethod
    def find_spec(
        name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name != "vramscope":
            return None
        file = os.path.join(PACKAGE, "__init__.py")
        return importlib.util.spec_from_file_location(
            name, file, submodule_search_locations=[PACKAGE]
        )


class _OfTorch:
    """Finds PyTorch as others would, and does its work around the import."""

    def __init__(self) -> None:
        self._is_asking = False

    def find_spec(
        self,
        name: str,
        path: Optional[Sequence[str]] = None,
        target: Optional[ModuleType] = None,
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name != "torch" or self._is_asking:
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
            # The one copy of the package that all processes of the run share.
            sys.meta_path.insert(0, _OfPackage())  # type: ignore[arg-type]
            from vramscope.dry import process

            process.before_torch()
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)  # type: ignore[arg-type]
            process.after_torch(module)

        loader.exec_module = exec_module


def install() -> None:
    """Waits for the import of PyTorch in this process."""
    sys.meta_path.insert(0, _OfTorch())  # type: ignore[arg-type]
