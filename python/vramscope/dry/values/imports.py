"""Does something once a module has been imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Callable


class _Waiting:
    """Finds one module as others would, and acts after its import."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._action = action
        self._is_asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        if name != self._name or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_asking = False
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return spec
        run, action = loader.exec_module, self._action

        def exec_module(module: ModuleType) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            action(module)

        loader.exec_module = exec_module
        return spec


def after_import(name: str, action: Callable[[ModuleType], None]) -> None:
    """Acts on a module now if it is imported, else after its import."""
    module = sys.modules.get(name)
    if module is not None:
        action(module)
    else:
        sys.meta_path.insert(0, _Waiting(name, action))
