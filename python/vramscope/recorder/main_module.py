"""Runs a program as the module ``__main__``, which stays: its globals are what holds memory at the
end. ``runpy`` clears them before anybody can look.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import os
import runpy
import sys
import types
from typing import Any


def run_script(path: str) -> None:
    """Runs a file of Python. A folder or an archive has a ``__main__`` of its own."""
    if not os.path.isfile(path) or path.endswith((".zip", ".pyz")):
        runpy.run_path(path, run_name="__main__")
        return
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    _run(code, __file__=path, __cached__=None, __loader__=None, __package__=None, __spec__=None)


def run_module(name: str) -> None:
    """Runs a module, or the module ``__main__`` of a package, as ``python -m`` does."""
    spec = _found(name)
    loader = spec.loader
    get_code = getattr(loader, "get_code", None)
    code = get_code(spec.name) if get_code is not None else None
    if code is None:
        raise ImportError(f"No code object available for {spec.name}", name=spec.name)
    sys.argv[0] = spec.origin or sys.argv[0]
    _run(
        code,
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=loader,
        __package__=spec.parent,
        __spec__=spec,
    )


def _found(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
    except ImportError as error:
        # A package above it is not there.
        raise ImportError(
            f"Error while finding module specification for {name!r} ({error})", name=name
        ) from None
    if spec is None:
        raise ImportError(f"No module named {name}", name=name)
    if spec.submodule_search_locations is None:
        return spec
    return _found(f"{name}.__main__")


def _run(code: types.CodeType, **attributes: Any) -> None:
    main = types.ModuleType("__main__")
    vars(main).update(attributes, __builtins__=__builtins__)
    # What the program pickles or spawns finds its names there.
    sys.modules["__main__"] = main
    exec(code, vars(main))
