"""Python runs this at its start: this folder is in ``PYTHONPATH`` below ``vramscope record --`` and
during a dry run.

It prepares the process for the import of PyTorch, and then runs the ``sitecustomize`` that this one
hides.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


def _is_here(folder: str) -> bool:
    return os.path.abspath(folder or os.curdir) == _HERE


def _run(name: str, spec: importlib.machinery.ModuleSpec | None) -> ModuleType | None:
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run_hidden() -> None:
    # This folder stays: some programs give their path to the processes that they start.
    others = [folder for folder in sys.path if not _is_here(folder)]
    _run("sitecustomize", importlib.machinery.PathFinder.find_spec("sitecustomize", others))


if sys.version_info >= (3, 9) and not {"VRAMSCOPE_DRY_RUN", "VRAMSCOPE_RECORD"}.isdisjoint(
    os.environ
):
    _file = os.path.join(os.path.dirname(_HERE), "hook.py")
    _hook = _run(
        "_vramscope_hook", importlib.util.spec_from_file_location("_vramscope_hook", _file)
    )
    if _hook is not None:
        _hook.install()
_run_hidden()
