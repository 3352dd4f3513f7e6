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
    from .live import Holders, holders
    from .notebook import show
    from .reader import Run, Snapshot, open, open_run

__all__ = [
    "Export",
    "Holders",
    "ReadError",
    "Recorder",
    "Run",
    "Snapshot",
    "VramscopeError",
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

#: Names of what is asked of a living process.
_LIVE = frozenset({"Holders", "holders"})


def __getattr__(name: str) -> Any:
    if name in _READER:
        return getattr(importlib.import_module(".reader", __name__), name)
    if name in _DATASET:
        return getattr(importlib.import_module(".dataset", __name__), name)
    if name in _LIVE:
        return getattr(importlib.import_module(".live", __name__), name)
    if name == "show":
        return importlib.import_module(".notebook", __name__).show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
