"""Python runs this at its start, because this folder is in ``PYTHONPATH`` during a dry run.

It prepares the process for the import of PyTorch, and then runs the ``sitecustomize`` that this one
hides.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_DRY = os.path.dirname(_HERE)


def _is_here(folder):
    return os.path.abspath(folder or os.curdir) == _HERE


def _load(name, path, search=None):
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run_hidden():
    sys.path[:] = [folder for folder in sys.path if not _is_here(folder)]
    hidden = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if hidden is not None and hidden.loader is not None:
        module = importlib.util.module_from_spec(hidden)
        sys.modules["sitecustomize"] = module
        hidden.loader.exec_module(module)


if "VRAMSCOPE_DRY_RUN" in os.environ:
    _load("_vramscope_hook", os.path.join(_DRY, "hook.py")).install()
_run_hidden()
