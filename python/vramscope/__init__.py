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

import importlib
from typing import TYPE_CHECKING, Any

from .errors import ReadError, VramscopeError
from .recorder import Recorder, record

if TYPE_CHECKING:
    from .dataset import Export, export_parquet
    from .dry import DryRun, dry_run
    from .live import Holders, holders
    from .notebook import show
    from .reader import Run, Snapshot, open, open_run

__all__ = [
    "DryRun",
    "Export",
    "Holders",
    "ReadError",
    "Recorder",
    "Run",
    "Snapshot",
    "VramscopeError",
    "dry_run",
    "export_parquet",
    "holders",
    "open",
    "open_run",
    "record",
    "show",
]

#: Names of the reader. A program that only records does not load it.
_READER = frozenset({"Run", "Snapshot", "open", "open_run"})

#: Names of datasets.
_DATASET = frozenset({"Export", "export_parquet"})

#: Names of dry runs.
_DRY = frozenset({"DryRun", "dry_run"})

#: Names of what is asked of a living process.
_LIVE = frozenset({"Holders", "holders"})


def __getattr__(name: str) -> Any:
    if name in _READER:
        return getattr(importlib.import_module(".reader", __name__), name)
    if name in _DATASET:
        return getattr(importlib.import_module(".dataset", __name__), name)
    if name in _DRY:
        return getattr(importlib.import_module(".dry", __name__), name)
    if name in _LIVE:
        return getattr(importlib.import_module(".live", __name__), name)
    if name == "show":
        return importlib.import_module(".notebook", __name__).show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
