"""vramscope: what holds your GPU memory.

Record a program:

    with vramscope.record("runs/42"):
        train()

Read what it recorded:

    s = vramscope.open("runs/42/exit/rank0_memory_snapshot.pickle")
    print(s.diagnosis)
    print(s.peak(by="category"))

Make tables of all ranks of a job:

    vramscope.export_parquet("runs/42", "dataset")

Look at it in a notebook:

    vramscope.show(s)

Run a program without a GPU, to see whether it fits on one:

    found = vramscope.dry_run("train.py", gpu="H100", steps=3)
    print(found.text)

Ask who holds the memory of this process:

    vramscope.holders()
"""

from __future__ import annotations

TYPE_CHECKING = False  # Checkers take it for true. The module typing would take longest here.

if TYPE_CHECKING:
    from .dataset import Export, export_parquet
    from .dry import DryRun, dry_run
    from .errors import ReadError, VramscopeError
    from .live import Holders, holders
    from .notebook import show
    from .reader import Run, Snapshot, open, open_run
    from .recorder import Recorder, record

__version__ = "0.1.0"

#: The modules of the public names. None is imported before one of its names is used.
_MODULES = {
    "DryRun": "dry",
    "Export": "dataset",
    "Holders": "live",
    "ReadError": "errors",
    "Recorder": "recorder",
    "Run": "reader",
    "Snapshot": "reader",
    "VramscopeError": "errors",
    "dry_run": "dry",
    "export_parquet": "dataset",
    "holders": "live",
    "open": "reader",
    "open_run": "reader",
    "record": "recorder",
    "show": "notebook",
}

__all__ = [
    "DryRun",
    "Export",
    "Holders",
    "ReadError",
    "Recorder",
    "Run",
    "Snapshot",
    "VramscopeError",
    "__version__",
    "dry_run",
    "export_parquet",
    "holders",
    "open",
    "open_run",
    "record",
    "show",
]


if not TYPE_CHECKING:  # Or else a checker would take any name for one of this package.

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value

    def __dir__():
        return [*__all__]
